"""Server-side apply: each manager owns the fields that it applied last.

A field that a manager leaves out of its next apply is removed unless another one owns it; a field
that another manager owns with another value is a conflict, unless the apply is forced. Lists are
values: they are replaced as a whole. Only applies own fields: updates and other patches do not, and
`managedFields` are not shown.
"""

from collections.abc import Iterator

from shared.yaml_documents import InvalidYaml, read_document
from tutti.cluster.errors import ApiError, bad_request
from tutti.cluster.objects import Obj, Value
from tutti.cluster.resources import Key
from tutti.cluster.store import Change, Store

APPLY_PATCH = "application/apply-patch+yaml"

Path = tuple[str, ...]


def read_configuration(body: bytes) -> Obj:
    """The object in a request. Raises ApiError 400."""
    try:
        given = read_document(body)
    except InvalidYaml as error:
        raise bad_request(f"error decoding YAML: {error}") from error
    if not isinstance(given, dict):
        raise bad_request("the body of the request is not an object")
    return given


class Applied:
    """What each manager applied last, by the object's UID. It ends with the object."""

    def __init__(self, store: Store) -> None:
        self._known: dict[str, dict[str, dict[Path, Value]]] = {}
        store.listeners.append(self._on_change)

    def _on_change(self, _key: Key, change: Change) -> None:
        if change.type == "DELETED":
            self._known.pop(change.stored.obj["metadata"]["uid"], None)

    def note(self, obj: Obj, manager: str, given: Obj) -> None:
        """A manager has applied this; other managers own what it has forced to another value no
        more.
        """
        leaves = dict(_leaves(given))
        owners = self._known.setdefault(obj["metadata"]["uid"], {})
        owners[manager] = leaves
        for other, owned in owners.items():
            if other != manager:
                for path in owned.keys() & leaves.keys():
                    if owned[path] != leaves[path]:
                        del owned[path]

    def merged(self, obj: Obj, manager: str, given: Obj, *, force: bool) -> Obj:
        """The object after an apply; `obj` is not modified. Raises ApiError 409."""
        owners = self._known.get(obj["metadata"]["uid"], {})
        leaves = dict(_leaves(given))
        others = {name: owned for name, owned in owners.items() if name != manager}
        taken = [
            f'conflict with "{name}": .{".".join(path)}'
            for name, owned in others.items()
            for path in sorted(owned.keys() & leaves.keys())
            if owned[path] != leaves[path]
        ]
        if taken and not force:
            plural = "s" if len(taken) > 1 else ""
            text = f"Apply failed with {len(taken)} conflict{plural}: {'; '.join(taken)}"
            raise ApiError(409, "Conflict", text)
        result = obj
        kept = {path for owned in others.values() for path in owned}
        for path in owners.get(manager, {}).keys() - leaves.keys() - kept:
            result = _without(result, path)
        for path, value in leaves.items():
            result = _with(result, path, value)
        return result


def _leaves(value: Obj, above: Path = ()) -> Iterator[tuple[Path, Value]]:
    """Each value that is no map, with its path; empty maps too."""
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _leaves(inner, (*above, str(key)))
        elif inner is not None:
            yield (*above, str(key)), inner


def _with(obj: Obj, path: Path, value: Value) -> Obj:
    key, *below = path
    if below:
        inner = obj.get(key)
        value = _with(inner if isinstance(inner, dict) else {}, tuple(below), value)
    elif value == {} and isinstance(obj.get(key), dict):
        return obj
    return obj | {key: value}


def _without(obj: Obj, path: Path) -> Obj:
    """Without a value, and without the maps that are empty then."""
    key, *below = path
    rest = {name: value for name, value in obj.items() if name != key}
    inner = obj.get(key)
    if below and isinstance(inner, dict):
        left = _without(inner, tuple(below))
        return {**rest, key: left} if left else rest
    return rest
