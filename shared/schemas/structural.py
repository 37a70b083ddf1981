"""Generates the structural schema of a CRD from its kind's struct."""

import inspect
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.inspect import (
    BoolType,
    DateTimeType,
    DictType,
    IntType,
    LiteralType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from shared.kinds.fields import BUILT_IN, REQUIRED, SHALLOW
from shared.schemas.kubernetes_schemas import Schema, inlined, with_inner

_TEXT: Final[Schema] = {"type": "string"}
_INT32_MAX: Final = 2**31 - 1


class BuiltInSchema(dict[str, Any]):
    """One of Kubernetes' own schemas, which is written on one line."""


def root_schema(struct: type[msgspec.Struct]) -> Schema:
    """The openAPIV3Schema of a kind; the API server validates apiVersion, kind and metadata."""
    kind = type_info(struct)
    if not isinstance(kind, StructType):
        raise TypeError(f"{struct.__name__} is not a struct")
    schema = _schema(kind)
    properties = schema["properties"]
    properties["apiVersion"] = properties["kind"] = {"type": "string"}
    properties["metadata"] = {"type": "object"}
    return schema


def _schema(kind: Type) -> Schema:
    """The schema of a type. Raises TypeError for a type that is not supported yet."""
    if isinstance(kind, Metadata):
        return _with_rules(kind)
    maker = _MAKERS.get(type(kind))
    if maker is None:
        raise TypeError(f"no schema is known for {kind!r}")
    return maker(kind)


def _with_rules(annotated: Metadata) -> Schema:
    extra = dict(annotated.extra_json_schema or {})
    built_in = extra.pop(BUILT_IN, None)
    if built_in:
        return BuiltInSchema({**inlined(built_in), **extra})
    if "x-kubernetes-int-or-string" in extra:
        return extra
    shallow = extra.pop(SHALLOW, False)
    inner = _schema(annotated.type)
    inner.update(extra)
    if inner.get("format", "") is None:
        del inner["format"]
    return _without_built_in(inner) if shallow else inner


def _without_built_in(schema: Schema) -> Schema:
    if isinstance(schema, BuiltInSchema):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return with_inner(schema, _without_built_in)


def _struct(kind: StructType) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field in kind.fields:
        schema = _schema(field.type)
        if schema.pop(REQUIRED, False):
            required.append(field.encode_name)
        properties[field.encode_name] = schema
    doc = inspect.getdoc(kind.cls)
    schema = {"type": "object", "properties": properties}
    if doc:
        schema["description"] = " ".join(doc.split("\n\n")[0].split())
    if required:
        schema["required"] = sorted(required)
    return schema


def _union(union: UnionType) -> Schema:
    """A type or None (absent on the wire), or one of some names or "" (not written yet)."""
    kinds = [kind for kind in union.types if not isinstance(kind, NoneType)]
    if all(isinstance(kind, LiteralType) for kind in kinds):
        return _TEXT.copy()
    (kind,) = kinds
    return _schema(kind)


def _integer(kind: IntType) -> Schema:
    return {"type": "integer", **({"format": "int32"} if kind.le == _INT32_MAX else {})}


def _map(kind: DictType) -> Schema:
    return {"type": "object", "additionalProperties": _schema(kind.value_type)}


def _array(kind: VarTupleType) -> Schema:
    return {"type": "array", "items": _schema(kind.item_type)}


_MAKERS: Final[dict[type[Type], Callable[[Any], Schema]]] = {
    StructType: _struct,
    UnionType: _union,
    IntType: _integer,
    DictType: _map,
    VarTupleType: _array,
    StrType: lambda _: _TEXT.copy(),
    BoolType: lambda _: {"type": "boolean"},
    DateTimeType: lambda _: {"type": "string", "format": "date-time"},
}
