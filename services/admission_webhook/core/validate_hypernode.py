"""What a HyperNode must be, beyond its schema: it has members, and their patterns are patterns.

Patterns are Go's, so that a HyperNode means the same to everything that reads it: what only other
dialects know (look-around, back-references) is refused.
"""

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import as_object, text_at
from shared.dialects.field_checks import Findings, shown
from shared.dialects.protocol import FieldError
from shared.kinds.patterns import Pattern, PatternError


def validate(case: Case) -> list[FieldError]:
    """Every violation."""
    findings = Findings()
    spec = findings.section(case.candidate, "spec")
    members = findings.items(spec, "spec.members")
    if not spec.get("members"):
        findings.add("spec.members", "Invalid value: null: member must have at least one member")
    for path, member in members:
        match = as_object((as_object(member.get("selector")) or {}).get("regexMatch")) or {}
        pattern = text_at(match, "pattern")
        objection = pattern_objection(pattern) if pattern else ""
        if objection:
            findings.add(
                f"{path}.selector.regexMatch.pattern",
                f"Invalid value: {shown(pattern)}: member regexMatch pattern is invalid: "
                f"error parsing regexp: {objection}",
            )
    return findings.errors


def pattern_objection(pattern: str) -> str:
    """Why Go would not take the pattern, or why it is too large for us; "" when it is good."""
    try:
        Pattern(pattern)
    except PatternError as error:
        return str(error)
    return ""
