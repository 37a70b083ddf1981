"""Structural schemas of custom resources: pruning, defaults and validation.

Supported are types, required fields, enumerations and minima; no other part of OpenAPI, and no CEL.
"""

from tutti.cluster.errors import FieldError, not_supported, required, wrong
from tutti.cluster.objects import Obj, Value, clone, only, without

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
_ROOT_FIELDS = ("apiVersion", "kind", "metadata")


def fit(schema: Obj, obj: Obj) -> tuple[list[str], list[FieldError]]:
    """Prune unknown fields and set defaults, in place; return the pruned paths, and every broken
    rule. Idempotent.
    """
    fitting = _Fitting()
    rest = without(obj, *_ROOT_FIELDS)
    fitting.visit(schema, rest, "")
    own = only(obj, *_ROOT_FIELDS)
    obj.clear()
    obj.update(own | rest)
    return fitting.pruned, fitting.errors


class _Fitting:
    """One traversal of an object: the pruned paths and the violations so far."""

    def __init__(self) -> None:
        self.pruned: list[str] = []
        self.errors: list[FieldError] = []

    def visit(self, schema: Obj, value: Value, path: str) -> None:
        if value is None and (schema.get("nullable") or "type" not in schema):
            return
        if not _has_type(schema, value):
            found = "null" if value is None else _NAMES.get(type(value), "object")
            wanted = schema.get("type", "integer,string")
            text = f'{path} in body must be of type {wanted}: "{found}"'
            self.errors.append(FieldError(path, "TypeInvalid", f'Invalid value: "{found}": {text}'))
            return
        if "enum" in schema and value not in schema["enum"]:
            self.errors.append(not_supported(path, value, schema["enum"]))
        if isinstance(value, int | float) and value < schema.get("minimum", value):
            text = f"{path} in body should be greater than or equal to {schema['minimum']}"
            self.errors.append(wrong(path, value, text))
        if isinstance(value, dict):
            self._visit_map(schema, value, f"{path}." if path else "")
        if isinstance(value, list):
            for index, item in enumerate(value):
                self.visit(schema.get("items") or {}, item, f"{path}[{index}]")

    def _visit_map(self, schema: Obj, value: Obj, prefix: str) -> None:
        properties: Obj = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        keeps_all = schema.get("x-kubernetes-preserve-unknown-fields") or extra is True
        embedded = _ROOT_FIELDS if schema.get("x-kubernetes-embedded-resource") else ()
        for key, inner in properties.items():
            if "default" in inner and value.get(key) is None:
                value[key] = clone(inner["default"])
        absent = [key for key in schema.get("required") or () if key not in value]
        self.errors.extend(required(prefix + key) for key in absent)
        for key in list(value):
            inner = properties.get(key, extra if isinstance(extra, dict) else None)
            if inner is not None:
                self.visit(inner, value[key], prefix + key)
            elif not keeps_all and key not in embedded:
                del value[key]
                self.pruned.append(prefix + key)


def _has_type(schema: Obj, value: Value) -> bool:
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    if isinstance(value, bool):
        return wanted in (None, "boolean")
    return wanted is None or isinstance(value, _TYPES[wanted])
