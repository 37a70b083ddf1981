"""HyperNodes: beyond the schema, they have members, and the members' patterns can be compiled.

Patterns are Go's regular expressions, so that they mean the same to Volcano. Syntax that Go lacks
(look-around, back-references) is refused.
"""

from shared.admission.parts import invalid, text_at
from shared.admission.rules import Case, KindRules, only_changes_of_spec
from shared.dialects.field_checks import Findings
from shared.dialects.protocol import FieldError
from shared.kinds.patterns import Pattern, PatternError
from shared.kube.resources import HYPERNODES


def _violations(case: Case) -> list[FieldError]:
    findings = Findings()
    spec = findings.section(case.candidate, "spec")
    members = findings.items(spec, "spec.members")
    if not spec.get("members"):
        findings.add("spec.members", "Invalid value: null: member must have at least one member")
    for where, member in members:
        pattern = text_at(member, "selector", "regexMatch", "pattern")
        objection = pattern_objection(pattern) if pattern else ""
        if objection:
            rule = f"member regexMatch pattern is invalid: error parsing regexp: {objection}"
            path = f"{where}.selector.regexMatch.pattern"
            findings.errors.append(invalid(path, pattern, rule))
    return findings.errors


def pattern_objection(pattern: str) -> str:
    """Why Go would refuse the pattern, or why it is too large for us; "" for a valid one."""
    try:
        Pattern(pattern)
    except PatternError as error:
        return str(error)
    return ""


RULES = KindRules(
    resource=HYPERNODES,
    violations=_violations,
    operations=("CREATE", "UPDATE"),
    conditions=only_changes_of_spec,
)
