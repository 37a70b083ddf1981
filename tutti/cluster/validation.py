"""Rules of every object's metadata, and the shapes that typed kinds must have before anyone reads them."""

import re

import msgspec

from shared.kube.objects import DisruptionBudget, KubeStruct, Node, ObjectMeta, Pod
from tutti.cluster.errors import ApiError, FieldError, bad_request, required, wrong
from tutti.cluster.objects import Obj
from tutti.cluster.resources import BUDGETS, NODES, PODS, Key, Resource

_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_LABEL_NAME = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
ANNOTATIONS_BYTES_MAX = 256 * 1024


class _Typed(KubeStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


_SHAPES: dict[Key, type[KubeStruct]] = {PODS: Pod, NODES: Node, BUDGETS: DisruptionBudget}


def check_shape(resource: Resource, obj: Obj) -> None:
    """Refuses values of the wrong JSON type where the server's own code, or any scheduler, reads them.

    Raises:
        ApiError: 400, with the field's path.
    """
    try:
        msgspec.convert(obj, _Typed if resource.custom else _SHAPES.get(resource.key, _Typed))
    except msgspec.ValidationError as error:
        raise cannot_be_handled(resource, error) from error


def cannot_be_handled(resource: Resource, why: object) -> ApiError:
    """400: the body is not an object of its kind."""
    version = resource.api_version(resource.versions[0])
    return bad_request(
        f'{resource.kind} in version "{version}" cannot be handled as a {resource.kind}: {why}'
    )


def check_metadata(metadata: Obj, before: Obj) -> list[FieldError]:
    """Every broken rule of names, labels, annotations and owner references."""
    errors: list[FieldError] = []
    name = metadata.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    elif len(name) > 253 or not _SUBDOMAIN.match(name):
        errors.append(wrong("metadata.name", name, _SUBDOMAIN_RULE))
    for key, value in (metadata.get("labels") or {}).items():
        prefix, _, short = key.rpartition("/")
        if not _LABEL_NAME.match(short) or (prefix and not _SUBDOMAIN.match(prefix)):
            errors.append(
                wrong(
                    "metadata.labels",
                    key,
                    "name part must consist of alphanumeric characters, '-', '_' or '.'",
                )
            )
        if value and not _LABEL_NAME.match(value):
            errors.append(wrong("metadata.labels", value, _LABEL_RULE))
    size = sum(
        len(key.encode()) + len(value.encode())
        for key, value in (metadata.get("annotations") or {}).items()
    )
    if size > ANNOTATIONS_BYTES_MAX:
        text = f"Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes"
        errors.append(FieldError("metadata.annotations", "FieldValueTooLong", text))
    owners = metadata.get("ownerReferences") or []
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        errors.extend(
            wrong(f"{path}.{key}", "", "must not be empty")
            for key in _OWNER_KEYS
            if not owner.get(key)
        )
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        text = "Only one reference can have Controller set to true"
        errors.append(wrong("metadata.ownerReferences", "", text))
    known = before.get("finalizers") or []
    if before.get("deletionTimestamp") and set(metadata.get("finalizers") or ()) - set(known):
        text = "Forbidden: no new finalizers can be added if the object is being deleted"
        errors.append(FieldError("metadata.finalizers", "FieldValueForbidden", text))
    return errors


_OWNER_KEYS = ("apiVersion", "kind", "name", "uid")
