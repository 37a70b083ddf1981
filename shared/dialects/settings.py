"""Settings of ours that a group or a queue carries as annotations; a queue's are its groups'
defaults.

A malformed one is an objection that names it, where the object is made (webhook) and where it is
read: it is never taken for "not said", which would be a promise silently broken.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from shared.contracts import annotations
from shared.dialects.field_checks import Findings
from shared.dialects.protocol import JsonObject
from shared.model import objects as model

#: Whole seconds.
_SECONDS: Final = (
    annotations.DEGRADED_GRACE_SECONDS,
    annotations.HOLD_SECONDS,
    annotations.MINIMUM_RUN_SECONDS,
    annotations.REPAIR_DEADLINE_SECONDS,
    annotations.RESERVE_SECONDS,
    annotations.START_DEADLINE_SECONDS,
)
_ROLE: Final = r"[A-Za-z0-9]([-\w.]*\w)?(=[1-9][0-9]{0,5})?"
_ROLES: Final = re.compile(f"{_ROLE}(,{_ROLE})*", re.ASCII)
_ROLES_CHARACTERS_MAX: Final = 1_000
_PREFLIGHT: Final = ("", "always")
SETTINGS: Final = tuple(
    sorted(
        (
            *_SECONDS,
            annotations.ENQUEUE_WITHOUT_ROOM,
            annotations.LATE_ROLES,
            annotations.PREFLIGHT,
        )
    )
)


def read_settings(notes: Mapping[str, str]) -> model.Labels:
    """The settings that are given and well-formed, sorted by name."""
    if not notes:
        return ()
    return tuple(
        (key, notes[key]) for key in SETTINGS if key in notes and not _objection(key, notes[key])
    )


def setting_errors(notes: Mapping[str, str]) -> Iterator[str]:
    """Objections to the malformed ones: "path: rule"."""
    for key in SETTINGS:
        objection = _objection(key, notes[key]) if key in notes else ""
        if objection:
            yield f"{_path(key)}: {objection}"


def check_settings(findings: Findings, candidate: JsonObject) -> JsonObject:
    """The same for an object that is about to be made; returns its annotations."""
    metadata = findings.section(candidate, "metadata")
    notes = findings.section(metadata, "metadata.annotations")
    for key in SETTINGS:
        value = notes.get(key)
        objection = _objection(key, value) if isinstance(value, str) else ""
        if objection:
            findings.add(_path(key), objection)
    return notes


def _objection(key: str, value: str) -> str:
    if key == annotations.PREFLIGHT:
        return "" if value in _PREFLIGHT else f'"{value[:50]}" is neither "always" nor ""'
    if key == annotations.LATE_ROLES:
        known = len(value) <= _ROLES_CHARACTERS_MAX and _ROLES.fullmatch(value)
        return "" if known else f'"{value[:50]}" is not a list of roles, as in "launcher,driver=2"'
    if value.isascii() and value.isdigit() and len(value) < 10:
        return ""
    what = "" if key == annotations.ENQUEUE_WITHOUT_ROOM else " of seconds"
    return f'"{value[:50]}" is not a whole number{what}'


def _path(key: str) -> str:
    return f"metadata.annotations[{key}]"
