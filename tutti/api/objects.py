"""Objects as the API server sent them, and how to read a field that may be missing."""

from typing import Any, TypeAlias

from shared.kube.resources import Resource

Object: TypeAlias = dict[str, Any]
"""One Kubernetes object, whole."""


def new_object(resource: Resource, metadata: Object, **content: Any) -> Object:
    """A manifest of a kind."""
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    return head | content


def field(obj: object, path: str, default: Any = None) -> Any:
    """The field at a dotted path, or the default where anything on the way is missing or null."""
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return default
    return value


def text(obj: Object, path: str) -> str:
    """The field at a dotted path as text; "" where it is missing."""
    return str(field(obj, path, ""))


def number(obj: Object, path: str) -> int:
    """The field at a dotted path as a number; 0 where it is missing or not a number."""
    value = field(obj, path, 0)
    return value if isinstance(value, int) else 0


def name_of(obj: Object) -> str:
    return text(obj, "metadata.name")


def namespace_of(obj: Object) -> str:
    """`metadata.namespace`; "" for cluster-scoped objects."""
    return text(obj, "metadata.namespace")


def created(obj: Object) -> str:
    """`metadata.creationTimestamp`, RFC 3339."""
    return text(obj, "metadata.creationTimestamp")


def labels_of(obj: Object) -> dict[str, str]:
    labels = field(obj, "metadata.labels", {})
    return labels if isinstance(labels, dict) else {}


def without_managed_fields(obj: Object) -> Object:
    """The object without the managed fields of server-side apply."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**obj, "metadata": kept}


def condition_of(obj: Object, kind: str) -> Object:
    """The condition of a type; {} if there is none."""
    conditions: list[Object] = field(obj, "status.conditions", [])
    return next((each for each in conditions if text(each, "type") == kind), {})


def why_unschedulable(group: Object) -> str:
    """The message of a PodGroup's condition Unschedulable, while that is True; otherwise ""."""
    condition = condition_of(group, "Unschedulable")
    return text(condition, "message") if text(condition, "status") == "True" else ""
