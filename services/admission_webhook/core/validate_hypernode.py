"""What a HyperNode must be, beyond its schema: it has members, and their patterns are patterns.

Patterns are Go's, so that a HyperNode means the same to everything that reads it: what only other
dialects know (look-around, back-references) is refused.
"""

import re
from typing import Final

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import as_object, text_at
from shared.dialects.checking import Findings, shown
from shared.dialects.protocol import FieldError

#: What may follow "(?" in Go: a group without number, a named one, or flags.
_GROUP: Final = re.compile(r"\(\?(?!:|P?<[A-Za-z_]\w*>|[imsU]*(-[imsU]+)?[:)])")
_NOT_IN_GO: Final = re.compile(r"\\[1-9ZGkRKXhHNuV]|[*+?}]\+")
#: Go's own spellings -> what Python calls them, to try the rest of the pattern.
_SPELLINGS: Final = (
    (re.compile(r"\(\?<([A-Za-z_])"), r"(?P<\1"),
    (re.compile(r"\[\[:\^?\w+:\]\]"), "x"),
    (re.compile(r"\\[pP](\{\^?\w+\}|\w)"), "x"),
    (re.compile(r"\\z"), r"\\Z"),
    (re.compile(r"\\Q.*?(\\E|$)"), "x"),
    (re.compile(r"\(\?[imsU]*(-[imsU]+)?\)"), ""),
    (re.compile(r"\(\?[imsU]*(-[imsU]+)?:"), "(?:"),
)


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
    """Why Go would not take the pattern; "" when it would."""
    literal = re.sub(r"\\\\", "", pattern)
    if found := _GROUP.search(literal) or _NOT_IN_GO.search(literal):
        return f"invalid or unsupported Perl syntax: `{found[0]}`"
    for spelling, ours in _SPELLINGS:
        pattern = spelling.sub(ours, pattern)
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return ""
