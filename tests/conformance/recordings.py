"""The files of recorded cases: reading them, and comparing states with what they say."""

import copy
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

Object = dict[str, Any]

RECORDED: Final = Path(__file__).parent / "recorded"


class Recorded(NamedTuple):
    """What one step of a case leads to: the state of the objects, and the events since the last."""

    state: Object
    events: list[Object]


class Difference(NamedTuple):
    """One place where the outcome is another one than recorded."""

    where: str
    """`<step>/<path in the state>`, or `<step> event <object> <reason>`."""

    what: str
    is_event: bool = False


def read(theme: str) -> Object:
    """One file, such as `admission/job`."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: Object = yaml.load((RECORDED / f"{theme}.yaml").read_text(), Loader=loader)
    return found


def themes(kind: str) -> list[str]:
    """The files of `admission` or `lifecycle`, as `read` takes them."""
    return sorted(f"{kind}/{path.stem}" for path in (RECORDED / kind).glob("*.yaml"))


def rebuilt(case: Object) -> list[Recorded]:
    """The recorded state and new events after each step."""
    state: Object = {}
    found = []
    for step in case["steps"]:
        state = merged(state, step.get("record") or {})
        found.append(Recorded(state, step.get("events") or []))
    return found


def differences(case: Object, played: list[Recorded]) -> Iterator[Difference]:
    """What came out otherwise than recorded, but for what differs between Volcano's own runs."""
    unstable = [re.compile(pattern) for pattern in case.get("unstable", ())]
    for step, (wanted, seen) in enumerate(zip(rebuilt(case), played, strict=True)):
        found = [
            *_of_states(step, wanted.state, seen.state),
            *_of_events(step, wanted.events, seen.events),
        ]
        yield from (
            one for one in found if not any(pattern.fullmatch(one.where) for pattern in unstable)
        )


def _of_states(step: int, wanted: Object, seen: Object) -> Iterator[Difference]:
    for change in changes(_plain(wanted), _plain(seen)):
        value = json.dumps(change["value"]) if "value" in change else "(gone)"
        yield Difference(f"{step}{change['path']}", value)


def _plain(state: Object) -> Object:
    """Specs that typed clients write whole: an empty member says nothing."""
    return {
        key: {**found, "spec": without_empty(found["spec"])}
        if key.startswith(("PodGroup/", "Queue/")) and "spec" in found
        else found
        for key, found in state.items()
    }


def _of_events(step: int, wanted: list[Object], seen: list[Object]) -> Iterator[Difference]:
    for one, others, word in (
        *((one, seen, "missing") for one in wanted),
        *((one, wanted, "extra") for one in seen),
    ):
        if one not in others:
            where = f"{step} event {one['object']} {one['reason']}"
            yield Difference(where, f"{word}: {one['message']}", is_event=True)


def changes(before: Any, after: Any, path: str = "") -> Iterator[Object]:
    """The JSON patch (add, remove, replace) that turns one into the other."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            place = f"{path}/{_escaped(key)}"
            if key not in after:
                yield {"op": "remove", "path": place}
            elif key not in before:
                yield {"op": "add", "path": place, "value": after[key]}
            else:
                yield from changes(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from changes(one, other, f"{path}/{index}")
    elif before != after or type(before) is not type(after):
        yield {"op": "replace", "path": path, "value": after}


def patched(found: Object, operations: Iterable[Object]) -> Object:
    """The object after a JSON patch of add, remove and replace."""
    result = copy.deepcopy(found)
    for operation in operations:
        *way, last = (_unescaped(key) for key in operation["path"].split("/")[1:])
        place: Any = result
        for key in way:
            place = place[int(key)] if isinstance(place, list) else place[key]
        _apply(place, last, operation)
    return result


def _apply(place: Any, last: str, operation: Object) -> None:
    if not isinstance(place, list):
        if operation["op"] == "remove":
            place.pop(last)
        else:
            place[last] = operation["value"]
    elif operation["op"] == "remove":
        del place[int(last)]
    elif operation["op"] == "add":
        place.insert(len(place) if last == "-" else int(last), operation["value"])
    else:
        place[int(last)] = operation["value"]


def merged(before: Any, patch: Any) -> Any:
    """The value after a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def without_empty(value: Any) -> Any:
    """Without empty maps, nulls and zeros of maps: typed clients add or drop them at will."""
    if isinstance(value, dict):
        items = ((key, without_empty(item)) for key, item in value.items())
        return {
            key: item
            for key, item in items
            if item is not None and item != {} and (item != 0 or item is False)
        }
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def _escaped(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def _unescaped(key: str) -> str:
    return key.replace("~1", "/").replace("~0", "~")
