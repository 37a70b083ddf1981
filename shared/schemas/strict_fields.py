"""Compares the fields of an object with its schema, as the API server's strict validation does."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, cast

from shared.kinds.catalogue import CATALOGUE
from shared.schemas.kubernetes_schemas import Schema, inlined
from shared.schemas.structural import root_schema

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def has_type(schema: Mapping[str, Any], value: object, *, fractions: bool = False) -> bool:
    """Whether a value of JSON has the schema's type. `fractions`: an amount may be a number with a
    fraction, as Go decodes it; a CRD's schema takes whole ones only.
    """
    if isinstance(value, bool):
        return schema.get("type") in {None, "boolean"} and not _is_int_or_string(schema)
    if _is_int_or_string(schema):
        return isinstance(value, int | str) or (fractions and isinstance(value, float))
    wanted = schema.get("type")
    return wanted is None or isinstance(value, _TYPES[wanted])


def _is_int_or_string(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string"))


#: Characters of a value in an error.
_SHOWN_MAX: Final = 100
#: The API server validates them itself; ours are checked by the rules of admission.
_ROOT_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
#: Kinds of Kubernetes with their API group: the schema of their spec.
_BUILT_IN: Final = {
    ("batch", "Job"): "JobSpec",
    ("apps", "Deployment"): "DeploymentSpec",
    ("apps", "ReplicaSet"): "ReplicaSetSpec",
    ("apps", "StatefulSet"): "StatefulSetSpec",
}
_UNKNOWN: Final = "unknown field "
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_ANYTHING: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
#: Of any object. The types of fields that the API server sets are not checked.
_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace"), _TEXT),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"type": "array", "items": _TEXT},
        **dict.fromkeys(
            (
                *("uid", "resourceVersion", "generation", "selfLink", "creationTimestamp"),
                *("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"),
                "ownerReferences",
            ),
            _ANYTHING,
        ),
    },
}
_POD_TEMPLATE: Final = "PodTemplateSpec"
_POD_KINDS: Final = frozenset({("", "Pod")})


def field_errors(manifest: dict[str, Any]) -> Iterator[str]:
    """Unknown fields and versions, values of a wrong type and missing required fields, each with
    its path. Only those of the metadata for kinds whose schemas are not known here: those of
    operators.
    """
    yield from _of_value(_METADATA, manifest.get("metadata"), "metadata", is_built_in=True)
    api_version = manifest.get("apiVersion")
    group, _, version = str(api_version or "").rpartition("/")
    key = group, str(manifest.get("kind", ""))
    known = _versions(*key)
    if not api_version:
        yield "apiVersion: Required value"
    elif known and version not in known:
        versions = (f"{group}/{each}".removeprefix("/") for each in known)
        served = ", ".join(f'"{each}"' for each in versions)
        yield f"apiVersion: Unsupported value: {_shown(api_version)}: supported values: {served}"
    own = _own_schema(*key, version)
    schema = own or _built_in_schema(*key)
    if schema is not None:
        fields = {field: value for field, value in manifest.items() if field not in _ROOT_FIELDS}
        yield from _of_object(schema, fields, "", is_built_in=own is None)


def unknown_fields(manifest: dict[str, Any]) -> list[str]:
    """Those errors of `field_errors` that name an unknown field."""
    return [error for error in field_errors(manifest) if error.startswith(_UNKNOWN)]


@cache
def _versions(group: str, kind: str) -> tuple[str, ...]:
    """Of a kind whose schema is known; () for another one."""
    if (group, kind) in _BUILT_IN or (group, kind) in _POD_KINDS:
        return ("v1",)
    own = (description.resource for description in CATALOGUE)
    return tuple(each.version for each in own if (each.group, each.kind) == (group, kind))


@cache
def _own_schema(group: str, kind: str, version: str) -> Schema | None:
    for each in CATALOGUE:
        resource = each.resource
        if (resource.group, resource.kind, resource.version) == (group, kind, version):
            schema = root_schema(each.struct)
            known = {k: v for k, v in schema["properties"].items() if k not in _ROOT_FIELDS}
            return {**schema, "properties": known}
    return None


@cache
def _built_in_schema(group: str, kind: str) -> Schema | None:
    name = _BUILT_IN.get((group, kind))
    if (group, kind) in _POD_KINDS:
        return {"properties": {"spec": inlined(_POD_TEMPLATE, _METADATA)["properties"]["spec"]}}
    return {"properties": {"spec": inlined(name, _METADATA)}} if name else None


def _of_value(schema: Schema, value: object, path: str, *, is_built_in: bool) -> Iterator[str]:
    if value is None:
        return
    if not has_type(schema, value, fractions=is_built_in):
        wanted = schema.get("type", "integer or string")
        yield f"{path}: Invalid value: {_shown(value)}: must be of type {wanted}"
        return
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(f'"{each}"' for each in schema["enum"])
        yield f"{path}: Unsupported value: {_shown(value)}: supported values: {known}"
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        least = schema["minimum"]
        yield f"{path}: Invalid value: {value}: must be greater than or equal to {least}"
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        yield from _of_object(schema, members, f"{path}.", is_built_in=is_built_in)
    elif isinstance(value, list):
        items: Schema = schema.get("items") or {}
        for index, item in enumerate(cast("list[object]", value)):
            yield from _of_value(items, item, f"{path}[{index}]", is_built_in=is_built_in)


def _of_object(
    schema: Schema, value: dict[str, object], prefix: str, *, is_built_in: bool
) -> Iterator[str]:
    properties: dict[str, Schema] = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    keeps_all = (
        bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        or extra is True
        or not (properties or isinstance(extra, dict))
    )
    for key in schema.get("required") or ():
        if value.get(key) is None and "default" not in properties.get(key, {}):
            yield f"{prefix}{key}: Required value"
    for key, inner in value.items():
        known = properties.get(key, cast("Schema", extra) if isinstance(extra, dict) else None)
        if known is not None:
            yield from _of_value(known, inner, f"{prefix}{key}", is_built_in=is_built_in)
        elif not keeps_all:
            yield f'{_UNKNOWN}"{prefix}{key}"'


def _shown(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
