"""The patch types: JSON merge patch (RFC 7396), JSON patch (RFC 6902), the part of strategic merge
that kubectl apply, cordon and taint and the binder use, and server-side apply.

Strategic merge: lists of maps merge by the key of their field, finalizers are added, items with
`$patch: delete` are removed, order is not kept, other directives are refused.

Server-side apply: each manager owns the fields that it applied last. A field that a manager leaves
out of its next apply is removed unless another one owns it; a field that another manager owns with
another value is a conflict, unless the apply is forced. Lists are values: they are replaced as a
whole. Only applies own fields: updates and other patches do not, and `managedFields` are not shown.
"""

from collections.abc import Iterator

import jsonpatch

from shared.yaml_documents import InvalidYaml, read_document
from tutti.cluster.errors import ApiError, bad_request, unsupported
from tutti.cluster.objects import Obj, Value, clone, decode
from tutti.cluster.resources import Key
from tutti.cluster.store import Change, Store

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

# Field -> merge key of its items; other lists are replaced. Kubernetes finds the key by type, this
# table by the field's name, which is equivalent for pods and nodes.
MERGE_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "env", "volumes"), "name"),
    **dict.fromkeys(("conditions", "addresses"), "type"),
    "taints": "key",
    "ownerReferences": "uid",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}


# Lists of texts that merge: each text once.
MERGED_TEXTS = frozenset({"finalizers"})

# Directives that are ignored: order of lists, retained fields.
_DROPPED = ("$setElementOrder/", "$retainKeys")


def merge(target: Value, patch: Value, *, strategic: bool = False) -> Value:
    """Null removes a field, maps merge, other values replace; strategic merge: see the module."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif strategic and key.startswith("$"):
            if not key.startswith(_DROPPED):
                raise bad_request(f"the directive {key} is not supported here")
        elif strategic and isinstance(value, list) and key in MERGE_KEYS:
            result[key] = _merged_list(MERGE_KEYS[key], result.get(key) or [], value)
        elif strategic and isinstance(value, list) and key in MERGED_TEXTS:
            result[key] = list(dict.fromkeys([*(result.get(key) or []), *value]))
        else:
            result[key] = merge(result.get(key), value, strategic=strategic)
    return result


def _merged_list(key: str, target: list[Obj], patch: list[Obj]) -> list[Obj]:
    result = {item.get(key): item for item in target}
    for item in patch:
        if item.get("$patch") == "delete":
            result.pop(item.get(key), None)
        else:
            result[item.get(key)] = merge(result.get(item.get(key)), item, strategic=True)
    return list(result.values())


def apply_json_patch(obj: Obj, operations: Value) -> Obj:
    """RFC 6902 on a copy.

    Raises:
        ApiError: 422 if an operation does not apply, 400 if it is not a patch.
    """
    try:
        patched: Obj = jsonpatch.apply_patch(clone(obj), operations)
    except (jsonpatch.InvalidJsonPatch, TypeError, AttributeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        text = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", text) from error
    return patched


def apply(content_type: str, obj: Obj, body: bytes, *, custom: bool) -> Obj:
    """The object after a PATCH request; `obj` is not modified.

    Raises:
        ApiError: 415 for other patch types (strategic merge on custom resources among them), 400
            for a broken body.
    """
    kind = content_type.partition(";")[0].strip()
    allowed = (JSON_PATCH, MERGE_PATCH, *(() if custom else (STRATEGIC_PATCH,)))
    if kind not in allowed:
        raise unsupported(kind, ", ".join(allowed))
    try:
        patch = decode(body)
        if kind == JSON_PATCH:
            return apply_json_patch(obj, patch)
        patched: Obj = merge(obj, dict(patch), strategic=kind == STRATEGIC_PATCH)
    except (ValueError, TypeError, AttributeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error
    return patched


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
