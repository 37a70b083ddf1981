"""Schemas of Kubernetes' own types in the form that a CRD allows: structural, without references.

The schemas that the API server publishes are reduced to the parts that decide what a CRD prunes and
refuses: types, required fields, keys of lists, and defaults of those keys. Enumerations are left
out: the webhook checks values such as the restart policy, with all other errors of a pod.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

Schema = dict[str, Any]

#: The extracted schemas, in this package.
DATA_FILE: Final = "kubernetes.json"
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_PREFIX: Final = "#/components/schemas/"
#: The types that are extracted, with all types that they refer to.
_ROOTS: Final = {
    "PodTemplateSpec": "io.k8s.api.core.v1.PodTemplateSpec",
    "PersistentVolumeClaimSpec": "io.k8s.api.core.v1.PersistentVolumeClaimSpec",
    "LabelSelector": "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "JobSpec": "io.k8s.api.batch.v1.JobSpec",
    "DeploymentSpec": "io.k8s.api.apps.v1.DeploymentSpec",
    "ReplicaSetSpec": "io.k8s.api.apps.v1.ReplicaSetSpec",
    "StatefulSetSpec": "io.k8s.api.apps.v1.StatefulSetSpec",
}
_KEPT: Final = frozenset(
    {
        "type",
        "format",
        "required",
        "properties",
        "items",
        "additionalProperties",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    }
)
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}

#: Metadata of an object inside another one: the fields that a template may set.
EMBEDDED_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": _TEXT},
        "labels": _TEXTS,
        "name": _TEXT,
        "namespace": _TEXT,
    },
}
#: Types that are not objects in JSON.
_SPECIAL: Final[dict[str, Schema]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": (r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"),
        "x-kubernetes-int-or-string": True,
    },
    _METADATA: EMBEDDED_METADATA,
}


def with_inner(schema: Mapping[str, Any], change: Callable[[Any], Schema]) -> Schema:
    """A copy of a schema with the schemas of its properties and items changed."""
    whole = dict(schema)
    if "properties" in schema:
        whole["properties"] = {key: change(inner) for key, inner in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in schema:
            whole[key] = change(schema[key])
    return whole


def inlined(name: str, metadata: Schema = EMBEDDED_METADATA) -> Schema:
    """One of _ROOTS with its references resolved, that of metadata to the given schema. Raises
    KeyError for another type.
    """
    return _resolved({"$ref": _ROOTS[name]}, {**_definitions(), **_SPECIAL, _METADATA: metadata})


@cache
def _definitions() -> Mapping[str, Schema]:
    definitions: dict[str, Schema] = json.loads(
        files("shared.schemas").joinpath(DATA_FILE).read_text("utf-8")
    )
    return definitions


def _resolved(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _resolved(definitions[schema["$ref"]], definitions)
    whole = with_inner(schema, lambda inner: _resolved(inner, definitions))
    keys = schema.get("x-kubernetes-list-map-keys", ())
    if keys:
        whole["items"] = _with_key_defaults(whole["items"], keys)
    return whole


def _with_key_defaults(items: Schema, keys: list[str]) -> Schema:
    """Keys of a list must be set: they are required, or have a default (Kubernetes' own, or "")."""
    optional = [key for key in keys if key not in items.get("required", ())]
    properties = dict(items["properties"])
    for key in optional:
        default = "TCP" if key == "protocol" else ""
        properties[key] = {**properties[key], "default": default}
    return {**items, "properties": properties}


def extracted(published: Iterable[Mapping[str, Any]]) -> str:
    """The text of kubernetes.json from published documents of OpenAPI."""
    known: dict[str, Schema] = {}
    for document in published:
        known |= document["components"]["schemas"]
    taken: dict[str, Schema] = {}
    waiting = sorted(_ROOTS.values())
    while waiting:
        name = waiting.pop()
        if name not in taken and name not in _SPECIAL:
            taken[name] = _cut_down(known[name], waiting)
    lines = [
        f"{json.dumps(name)}: {json.dumps(taken[name], separators=(',', ':'), sort_keys=True)}"
        for name in sorted(taken)
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _cut_down(schema: Mapping[str, Any], referred: list[str]) -> Schema:
    """The relevant part of one schema; the types that it refers to are added to `referred`."""
    (reference,) = schema.get("allOf", [schema])
    if "$ref" in reference:
        name = str(reference["$ref"]).removeprefix(_PREFIX)
        referred.append(name)
        return {"$ref": name}
    whole = with_inner(schema, lambda inner: _cut_down(inner, referred))
    return {key: value for key, value in whole.items() if key in _KEPT}
