"""The patch types: JSON merge patch (RFC 7396), JSON patch (RFC 6902), simple strategic merge.

Strategic merge here: maps merge, lists of maps merge by the well-known key of their field,
`$patch: delete|replace` and `$deleteFromPrimitiveList` are applied, ordering directives dropped.
Kubernetes finds merge keys by type, we by field name, which agrees on the kinds served here.
"""

import jsonpatch

from tutti.cluster.errors import ApiError, bad_request, unsupported
from tutti.cluster.objects import Obj, Value, clone, decode

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

# Field -> the key its items are merged by. `tolerations` and `args` are absent: atomic lists.
MERGE_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "env", "volumes", "webhooks"), "name"),
    **dict.fromkeys(("imagePullSecrets", "schedulingGates", "secrets"), "name"),
    **dict.fromkeys(("conditions", "addresses"), "type"),
    "taints": "key",
    "ownerReferences": "uid",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}
MERGED_PRIMITIVES = ("finalizers", "podCIDRs")


def merge(target: Value, patch: Value, *, strategic: bool = False) -> Value:
    """Null removes, maps merge, everything else replaces; or as the module says of strategic."""
    if not isinstance(patch, dict):
        return patch
    if strategic and patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif strategic and key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            result[name] = [item for item in result.get(name) or [] if item not in value]
        elif strategic and key.startswith("$"):
            continue
        elif strategic and isinstance(value, list):
            result[key] = _merged_list(key, result.get(key) or [], value)
        else:
            result[key] = merge(result.get(key), value, strategic=strategic)
    return result


def _merged_list(field: str, target: list[Value], patch: list[Value]) -> list[Value]:
    if field in MERGED_PRIMITIVES:
        return target + [item for item in patch if item not in target]
    key = MERGE_KEYS.get(field)
    if key is None:
        return patch
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
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
        ApiError: 422 when an operation does not apply, 400 for what is no patch at all.
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
        ApiError: 415 for other patch types (strategic merge on custom resources among them), 400
            for a broken body.
    """
    kind = content_type.partition(";")[0].strip()
    allowed = (JSON_PATCH, MERGE_PATCH, *(() if custom else (STRATEGIC_PATCH,)))
    if kind not in allowed:
        raise unsupported(kind, ", ".join(allowed))
    try:
        patch = decode(body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if kind == JSON_PATCH:
        return apply_json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch is a JSON object")
    try:
        patched: Obj = merge(obj, patch, strategic=kind == STRATEGIC_PATCH)
    except (AttributeError, TypeError) as error:  # its lists are not what their fields hold
        raise bad_request(f"error decoding patch: {error}") from error
    return patched
