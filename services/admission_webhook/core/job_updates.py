"""What an update of a Job may change: how many pods, how many of them at least, and its priority.

Everything else is in its pods already.
"""

from typing import Any, Final

from services.admission_webhook.core.parts import as_list, as_object, is_list, is_object
from shared.dialects.protocol import FieldError, JsonObject

_FREE: Final = ("minAvailable", "priorityClassName", "tasks", "volumes", "plugins")
_FREE_IN_TASKS: Final = ("replicas", "minAvailable")
FROZEN: Final = (
    "job updates may not change fields other than `minAvailable`, "
    "`tasks[*].replicas under spec` and `PriorityClassName`"
)


def update_errors(spec: JsonObject, old: JsonObject) -> list[FieldError]:
    """Every part of the spec that changed and may not have."""
    tasks, were = as_list(spec.get("tasks")), as_list(old.get("tasks"))
    if len(tasks) != len(were):
        told = "Forbidden: job updates may not add or remove tasks"
        return [FieldError(path="spec.tasks", message=told)]
    changed = _changed(spec, old, "spec", _FREE)
    for index, (task, was) in enumerate(zip(tasks, were, strict=True)):
        changed += _changed(
            as_object(task) or {}, as_object(was) or {}, f"spec.tasks[{index}]", _FREE_IN_TASKS
        )
    if _plugins(spec) != _plugins(old):
        changed.append("spec.plugins")
    if _volumes(spec) != _volumes(old):
        changed.append("spec.volumes")
    return [FieldError(path=path, message=f"Forbidden: {FROZEN}") for path in changed]


def _changed(new: JsonObject, old: JsonObject, path: str, free: tuple[str, ...]) -> list[str]:
    keys = sorted((new.keys() | old.keys()) - set(free))
    return [f"{path}.{key}" for key in keys if _said(new.get(key)) != _said(old.get(key))]


def _plugins(spec: JsonObject) -> dict[str, list[Any]]:
    """A plugin without flags is one too."""
    return {name: as_list(flags) for name, flags in (as_object(spec.get("plugins")) or {}).items()}


def _volumes(spec: JsonObject) -> list[Any]:
    """Without the names of claims that the controller made and wrote."""
    volumes = [as_object(one) or {} for one in as_list(spec.get("volumes"))]
    return [
        _said({k: v for k, v in one.items() if not (k == "volumeClaimName" and _makes(one))})
        for one in volumes
    ]


def _makes(volume: JsonObject) -> bool:
    return volume.get("volumeClaim") is not None


def _said(value: Any) -> Any:
    """What a value says: members that are null, {} or [] are as good as absent."""
    if is_object(value):
        said = {key: _said(item) for key, item in value.items()}
        return {key: item for key, item in said.items() if item is not None} or None
    if is_list(value):
        return [_said(item) for item in value] or None
    return value
