"""Validation of metadata, and of the JSON types of fields that the server or schedulers read."""

import re

import msgspec

from shared.kube.objects import DisruptionBudget, KubeStruct, Node, ObjectMeta, Pod
from tutti.cluster.errors import FieldError, cannot_be_handled, not_permitted, required, wrong
from tutti.cluster.objects import Obj
from tutti.cluster.resources import BUDGETS, NODES, PODS, Key, Resource

_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character"
)
ANNOTATIONS_BYTES_MAX = 256 * 1024


class _Typed(KubeStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


_SHAPES: dict[Key, type[KubeStruct]] = {PODS: Pod, NODES: Node, BUDGETS: DisruptionBudget}


def check_shape(resource: Resource, obj: Obj) -> None:
    """Check the JSON types of values. Raises ApiError 400 with the field's path."""
    try:
        msgspec.convert(obj, _Typed if resource.custom else _SHAPES.get(resource.key, _Typed))
    except msgspec.ValidationError as error:
        raise cannot_be_handled(resource, error) from error


def check_metadata(metadata: Obj, before: Obj) -> list[FieldError]:
    """Every broken rule; `before` is the stored metadata, or the same for a new object."""
    errors: list[FieldError] = []
    name = metadata.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    elif len(name) > 253 or not _SUBDOMAIN.match(name):
        errors.append(wrong("metadata.name", name, _NAME_RULE))
    odd = [v for v in (metadata.get("labels") or {}).values() if not _LABEL_VALUE.match(v)]
    errors += [wrong("metadata.labels", value, _VALUE_RULE) for value in odd]
    texts = (metadata.get("annotations") or {}).items()
    if sum(len(key.encode()) + len(text.encode()) for key, text in texts) > ANNOTATIONS_BYTES_MAX:
        text = f"Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes"
        errors.append(FieldError("metadata.annotations", "TooLong", text))
    known = set(before.get("finalizers") or ())
    if before.get("deletionTimestamp") and set(metadata.get("finalizers") or ()) - known:
        text = "no new finalizers can be added if the object is being deleted"
        errors.append(not_permitted("metadata.finalizers", text))
    return errors
