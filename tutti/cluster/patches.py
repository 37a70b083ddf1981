"""The patch types: JSON merge patch (RFC 7396), JSON patch (RFC 6902), and the part of strategic
merge that kubectl's apply, cordon and taint and the binder use: lists of maps merge by the key of
their field, finalizers are added, items with `$patch: delete` are removed, order is not kept, other
directives are refused.
"""

import jsonpatch

from tutti.cluster.errors import ApiError, bad_request, unsupported
from tutti.cluster.objects import Obj, Value, clone, decode

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
