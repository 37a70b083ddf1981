"""Settings of Tutti in annotations of a group or a queue; a queue's are the defaults of its groups.

A group that Tutti makes inherits those of its pods and of the objects above them (`of_gang`).

A malformed setting is a violation, both at admission (webhook) and when the object is read: it is
never treated as absent.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from shared.contracts import annotations
from shared.dialects.ceilings import LIMITED, UNLIMITED
from shared.dialects.field_checks import Findings
from shared.dialects.protocol import JsonObject
from shared.kinds.durations import seconds_of, whole_seconds
from shared.model import objects as model

_ROLE: Final = r"[A-Za-z0-9]([-\w.]*\w)?(=[1-9][0-9]{0,5})?"
_ROLES: Final = re.compile(f"{_ROLE}(,{_ROLE})*", re.ASCII)
_ROLES_CHARACTERS_MAX: Final = 1_000
_PREFLIGHT: Final = ("", "always")
#: The API of ProvisioningRequests limits names of classes, and number and length of parameters.
_CLASS: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_CLASS_CHARACTERS_MAX: Final = 253
_PARAMETERS_MAX: Final = 100
_PARAMETER: Final = re.compile(r"[^\s=,]{1,255}=[^,]{0,255}")
_TOPOLOGIES: Final = (annotations.REQUIRED_TOPOLOGY, annotations.PREFERRED_TOPOLOGY)
_FREE_TEXTS: Final = (*_TOPOLOGIES, annotations.TRACEPARENT)
_TEXT_CHARACTERS_MAX: Final = 4096
_SWITCH: Final = ("", "true", "false")
_SWITCHES: Final = (annotations.RUN_LIMIT_ENFORCED, annotations.UNDISTURBED)
#: Of these a group has the smallest of all origins, not the first one's.
_SMALLEST: Final = (annotations.RUN_LIMIT, annotations.OWNER_RUN_LIMIT)
#: Durations that are 0 where there shall be none.
_MAY_BE_NONE: Final = (annotations.CAPACITY_HOLD_AFTER, annotations.RUN_LIMIT_NOTICE)
_RUN_LIMITS: Final = (*_SMALLEST, annotations.RUN_LIMIT_MAX, *_MAY_BE_NONE)
SETTINGS: Final = tuple(
    sorted(
        (
            *({*LIMITED, *UNLIMITED} - {annotations.COOLDOWN_TIME}),
            *_RUN_LIMITS,
            *_SWITCHES,
            annotations.ENQUEUE_WITHOUT_ROOM,
            annotations.LATE_ROLES,
            annotations.PREFLIGHT,
            annotations.PROVISIONING_CLASS,
            annotations.PROVISIONING_PARAMETERS,
        )
    )
)
#: Settings that count on a queue only.
OF_QUEUES: Final = (
    annotations.CAPACITY_HOLD_AFTER,
    annotations.ENQUEUE_WITHOUT_ROOM,
    annotations.PROVISIONING_CLASS,
    annotations.PROVISIONING_PARAMETERS,
    annotations.RUN_LIMIT_ENFORCED,
    annotations.RUN_LIMIT_MAX,
    annotations.RUN_LIMIT_NOTICE,
)
#: What pods, or an object above them, may say of their gang.
OF_GANGS: Final = (
    *(key for key in SETTINGS if key not in OF_QUEUES),
    *_FREE_TEXTS,
)


def of_gang(*origins: Mapping[str, str]) -> dict[str, str]:
    """The annotations of a gang's pods, and of the objects above them, that its group inherits: of
    each key the first one's, and of run limits the smallest. What cannot be read is left out: no
    group could have it, and the webhook warns of it.
    """
    inherited: dict[str, str] = {}
    for given in origins:
        for key in OF_GANGS:
            # A gang has one topology, required or preferred.
            others = _TOPOLOGIES if key in _TOPOLOGIES else (key,)
            if key not in given or objection(key, given[key]):
                continue
            if inherited.keys().isdisjoint(others) or (
                key in _SMALLEST
                and (seconds_of(given[key]) or 0) < (seconds_of(inherited[key]) or 0)
            ):
                inherited[key] = given[key]
    return inherited


def read_settings(given: Mapping[str, str]) -> model.Labels:
    """The settings that are given and well-formed, sorted by name."""
    if not given:
        return ()
    return tuple(
        (key, given[key]) for key in SETTINGS if key in given and not objection(key, given[key])
    )


def setting_errors(given: Mapping[str, str], *, on_queue: bool = False) -> Iterator[str]:
    """Violations of malformed settings: "path: rule"."""
    for key in SETTINGS:
        words = objection(key, given[key], on_queue=on_queue) if key in given else ""
        if words:
            yield f"{_path(key)}: {words}"


def check_settings(
    findings: Findings, candidate: JsonObject, *, on_queue: bool = False
) -> JsonObject:
    """Add violations of malformed settings in an object at admission to `findings`, and return its
    annotations.
    """
    metadata = findings.section(candidate, "metadata")
    given = findings.section(metadata, "metadata.annotations")
    for key in SETTINGS:
        value = given.get(key)
        words = objection(key, value, on_queue=on_queue) if isinstance(value, str) else ""
        if words:
            findings.add(_path(key), words)
    return given


def objection(key: str, value: str, *, on_queue: bool = False) -> str:
    """Why the value of one of Tutti's annotations cannot be read; "": it can be.

    `on_queue`: a queue has it, which may set no run limit where its parent sets one.
    """
    if key in _FREE_TEXTS:
        long = len(value) > _TEXT_CHARACTERS_MAX
        return f"longer than {_TEXT_CHARACTERS_MAX} characters" if long else ""
    if key == annotations.PREFLIGHT:
        return "" if value in _PREFLIGHT else f'"{value[:50]}" is neither "always" nor ""'
    if key in _RUN_LIMITS:
        may_be_none = key in _MAY_BE_NONE or (on_queue and key == annotations.RUN_LIMIT)
        seconds = whole_seconds(value)
        if seconds or (seconds == 0 and may_be_none):
            return ""
        what = "a duration" if may_be_none else "a positive duration"
        return f'"{value[:50]}" is not {what}, as in "90m", "4h30m" or "5400"'
    if key in _SWITCHES:
        return "" if value in _SWITCH else f'"{value[:50]}" is neither "true" nor "false"'
    if key == annotations.LATE_ROLES:
        known = len(value) <= _ROLES_CHARACTERS_MAX and _ROLES.fullmatch(value)
        return "" if known else f'"{value[:50]}" is not a list of roles, as in "launcher,driver=2"'
    if key == annotations.PROVISIONING_CLASS:
        named = len(value) <= _CLASS_CHARACTERS_MAX and (not value or _CLASS.fullmatch(value))
        return "" if named else f'"{value[:50]}" is not the name of a provisioning class'
    if key == annotations.PROVISIONING_PARAMETERS:
        return _parameters_objection(value)
    if value.isascii() and value.isdigit() and len(value) < 10:
        return ""
    what = "" if key == annotations.ENQUEUE_WITHOUT_ROOM else " of seconds"
    return f'"{value[:50]}" is not a whole number{what}'


def _parameters_objection(value: str) -> str:
    parts = value.split(",") if value else []
    names = {part.partition("=")[0] for part in parts}
    good = all(_PARAMETER.fullmatch(part) for part in parts) and len(names) == len(parts)
    if good and len(parts) <= _PARAMETERS_MAX:
        return ""
    return (
        f'"{value[:50]}" is not a list of at most {_PARAMETERS_MAX} parameters with different '
        'names, as in "ValidUntilSeconds=3600,noRetry=true"'
    )


def _path(key: str) -> str:
    return f"metadata.annotations[{key}]"
