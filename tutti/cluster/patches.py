"""The patch types: JSON merge patch (RFC 7396), JSON patch (RFC 6902) and the simple part of strategic merge.

Strategic merge here: maps merge, lists of maps merge by the well-known key of their field, `$patch: delete|replace` is
understood; the ordering directives are dropped and `$deleteFromPrimitiveList` is applied. Kubernetes reads keys per type,
we read them per field name, which agrees on the kinds that are served here.
"""

import jsonpatch

from tutti.cluster.errors import ApiError, bad_request, unsupported
from tutti.cluster.objects import Obj, Value, clone, decode

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)

# Field name -> the key its items are merged by. `tolerations` and `args` are absent: atomic lists.
MERGE_KEYS = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "addresses": "type",
    "taints": "key",
    "ownerReferences": "uid",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "webhooks": "name",
}
MERGED_PRIMITIVES = frozenset({"finalizers", "podCIDRs"})


def merge(target: Value, patch: Value) -> Value:
    """RFC 7396: null removes, maps merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(target: Value, patch: Value) -> Value:
    """Strategic merge as far as this module goes (see its docstring)."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            result[name] = [item for item in result.get(name) or [] if item not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, list):
            result[key] = _strategic_list(key, result.get(key) or [], value)
        else:
            result[key] = strategic(result.get(key), value)
    return result


def _strategic_list(field: str, target: list[Value], patch: list[Value]) -> list[Value]:
    if field in MERGED_PRIMITIVES:
        return target + [item for item in patch if item not in target]
    merge_key = MERGE_KEYS.get(field)
    if merge_key is None:
        return patch
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    result = list(target)
    for item in patch:
        place = next(
            (i for i, old in enumerate(result) if old.get(merge_key) == item.get(merge_key)), None
        )
        if item.get("$patch") == "delete":
            if place is not None:
                del result[place]
        elif place is None:
            result.append(item)
        else:
            result[place] = strategic(result[place], item)
    return result


def apply_json_patch(obj: Obj, operations: Value) -> Obj:
    """RFC 6902 on a copy.

    Raises:
        ApiError: 422 when an operation does not apply (a failed test, a path that is not there), 400 for no patch at all.
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
    """The object that a PATCH request asks for; `obj` is left as it was.

    Raises:
        ApiError: 415 for other patch types (strategic merge on custom resources among them), 400 for a broken body.
    """
    kind = content_type.partition(";")[0].strip()
    if kind not in PATCH_TYPES or (custom and kind == STRATEGIC_PATCH):
        allowed = PATCH_TYPES[:2] if custom else PATCH_TYPES
        raise unsupported(kind, ", ".join(allowed))
    try:
        patch = decode(body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if kind == JSON_PATCH:
        return apply_json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch is a JSON object")
    patched: Obj = (merge if kind == MERGE_PATCH else strategic)(obj, patch)
    return patched
