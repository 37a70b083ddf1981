"""The fields that an update of a Job may change: the numbers of pods, and its PriorityClass.

All other fields are already part of its pods.
"""

from typing import Any, Final

from services.admission_webhook.core.field_errors import forbidden
from services.admission_webhook.core.parts import as_list, as_object, is_list, is_object
from shared.dialects.protocol import FieldError, JsonObject

_FREE: Final = ("minAvailable", "priorityClassName", "tasks", "volumes", "plugins")
_FREE_IN_TASKS: Final = ("replicas", "minAvailable")
FROZEN: Final = (
    "job updates may not change fields other than `minAvailable`, "
    "`tasks[*].replicas under spec` and `PriorityClassName`"
)


def update_errors(spec: JsonObject, old: JsonObject) -> list[FieldError]:
    """Every field of the spec that changed and must not change."""
    tasks, were = as_list(spec.get("tasks")), as_list(old.get("tasks"))
    if len(tasks) != len(were):
        return [forbidden("spec.tasks", "job updates may not add or remove tasks")]
    changed = _changed(spec, old, "spec", _FREE)
    for index, (task, was) in enumerate(zip(tasks, were, strict=True)):
        changed += _changed(
            as_object(task) or {}, as_object(was) or {}, f"spec.tasks[{index}]", _FREE_IN_TASKS
        )
    if _plugins(spec) != _plugins(old):
        changed.append("spec.plugins")
    if _volumes(spec) != _volumes(old):
        changed.append("spec.volumes")
    return [forbidden(path, FROZEN) for path in changed]


def _changed(new: JsonObject, old: JsonObject, path: str, free: tuple[str, ...]) -> list[str]:
    keys = sorted((new.keys() | old.keys()) - set(free))
    return [
        f"{path}.{key}" for key in keys if _normalized(new.get(key)) != _normalized(old.get(key))
    ]


def _plugins(spec: JsonObject) -> dict[str, list[Any]]:
    """The flags of each plugin; null counts as no flags."""
    return {name: as_list(flags) for name, flags in (as_object(spec.get("plugins")) or {}).items()}


def _volumes(spec: JsonObject) -> list[Any]:
    """The volumes without the claim names that the Job controller has written."""
    volumes = [as_object(one) or {} for one in as_list(spec.get("volumes"))]
    return [
        _normalized(
            {k: v for k, v in one.items() if not (k == "volumeClaimName" and _has_template(one))}
        )
        for one in volumes
    ]


def _has_template(volume: JsonObject) -> bool:
    return volume.get("volumeClaim") is not None


def _normalized(value: Any) -> Any:
    """The value without members that are null, {} or [], which count as absent."""
    if is_object(value):
        members = {key: _normalized(item) for key, item in value.items()}
        return {key: item for key, item in members.items() if item is not None} or None
    if is_list(value):
        return [_normalized(item) for item in value] or None
    return value
