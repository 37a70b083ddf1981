"""Lifecycle policies of a Job or a task: an event or an exit code, and an action.

The schema refuses unknown events. Internal events, which the schema lists, are refused here.
"""

from collections.abc import Iterator
from typing import Final

from shared.admission.parts import as_int, as_list, invalid, objects_at, text_at, violation
from shared.admission.suggestions import Hints
from shared.dialects.protocol import FieldError, JsonObject
from shared.kinds.durations import duration_ms
from shared.kinds.job import ACTIONS, EVENTS, INTERNAL_ACTIONS, INTERNAL_EVENTS

_ANY: Final = "*"
_EVENTS: Final = tuple(sorted(set(EVENTS) - INTERNAL_EVENTS))
_ACTIONS: Final = tuple(sorted(set(ACTIONS) - INTERNAL_ACTIONS))
_VALID: Final = f"valid events are [{' '.join(_EVENTS)}], valid actions are [{' '.join(_ACTIONS)}]"


def policy_errors(parent: JsonObject, path: str, hints: Hints) -> Iterator[FieldError]:
    """Every violation in the policies of the Job or task `parent`, whose path is `path`."""
    events: set[str] = set()
    codes: set[int] = set()
    for where, policy in objects_at(parent, f"{path}.policies"):
        named, code = _events(policy), policy.get("exitCode")
        timeout = text_at(policy, "timeout")
        if timeout and not is_duration(timeout):
            yield invalid_duration(f"{where}.timeout", timeout)
        if named and code is not None:
            yield violation(where, "must not specify event and exitCode simultaneously")
        elif named:
            yield from _event_errors(policy, named, events, where, hints)
            events |= named
        elif code is None:
            yield violation(where, "either event and exitCode should be specified")
        else:
            yield from _code_errors(as_int(code), codes, where)
            codes |= {code} if isinstance(code, int) else set()
    if _ANY in events and len(events) > 1:
        yield violation(f"{path}.policies", "if there's * here, no other policy should be here")


def is_duration(text: str) -> bool:
    """Whether Go would parse it as a duration, which may be negative."""
    return duration_ms(text.removeprefix("-")) is not None


def invalid_duration(path: str, text: str) -> FieldError:
    """The violation of a text that is not a duration, with Go's message."""
    return invalid(path, text, f'time: invalid duration "{text[:100]}"')


def _events(policy: JsonObject) -> set[str]:
    events = {event for event in as_list(policy.get("events")) if isinstance(event, str)}
    return events | ({text_at(policy, "event")} - {""})


def _event_errors(
    policy: JsonObject, named: set[str], before: set[str], where: str, hints: Hints
) -> Iterator[FieldError]:
    for event in sorted(named):
        if event in before:
            yield violation(f"{where}.event", f"duplicate event {event}  across different policy")
        if event not in _EVENTS:
            near = hints.near(event, _EVENTS)
            yield invalid(f"{where}.event", event, f"invalid policy event{near}; {_VALID}")
    action = text_at(policy, "action")
    if action not in _ACTIONS:
        near = hints.near(action, _ACTIONS)
        yield invalid(f"{where}.action", action, f"invalid policy action{near}; {_VALID}")


def _code_errors(code: int | None, before: set[int], where: str) -> Iterator[FieldError]:
    """The action is not checked: Volcano never did, and treats an unknown one as none."""
    if code == 0:
        yield violation(f"{where}.exitCode", "0 is not a valid error code")
    elif code in before:
        yield violation(f"{where}.exitCode", f"duplicate exitCode {code}")
