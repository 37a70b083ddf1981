"""Structural schemas of custom resources: pruning, defaulting and the validation rules that do not need CEL."""

import re
from typing import Any

from tutti.cluster.errors import FieldError, required, wrong
from tutti.cluster.objects import Obj, Value, clone

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_INT_RANGES = {"int32": 2**31, "int64": 2**63}
_ROOT_FIELDS = ("apiVersion", "kind", "metadata")


def fit(schema: Obj, obj: Obj) -> list[str]:
    """Prunes what the schema does not know and fills in its defaults, in place; returns the paths that were pruned."""
    pruned: list[str] = []
    own = {key: obj[key] for key in _ROOT_FIELDS if key in obj}
    rest = {key: value for key, value in obj.items() if key not in own}
    _fit(schema, rest, "", pruned)
    obj.clear()
    obj.update(own | rest)
    return pruned


def _fit(schema: Obj, value: Value, path: str, pruned: list[str]) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _fit(schema.get("items") or {}, item, f"{path}[{index}]", pruned)
    if not isinstance(value, dict):
        return
    properties: Obj = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    keeps_all = schema.get("x-kubernetes-preserve-unknown-fields") or extra is True
    embedded = _ROOT_FIELDS if schema.get("x-kubernetes-embedded-resource") else ()
    for key, inner in properties.items():
        if value.get(key) is None and "default" in inner:
            value[key] = clone({"value": inner["default"]})["value"]
    for key in list(value):
        where = f"{path}.{key}" if path else key
        if key in properties:
            _fit(properties[key], value[key], where, pruned)
        elif isinstance(extra, dict):
            _fit(extra, value[key], where, pruned)
        elif not keeps_all and key not in embedded:
            del value[key]
            pruned.append(where)


def check(schema: Obj, obj: Obj) -> list[FieldError]:
    """Every rule of the schema that the object breaks."""
    errors: list[FieldError] = []
    _check(
        schema, {key: value for key, value in obj.items() if key not in _ROOT_FIELDS}, "", errors
    )
    return errors


def _check(schema: Obj, value: Value, path: str, errors: list[FieldError]) -> None:
    if value is None:
        if path and not schema.get("nullable") and "type" in schema:
            errors.append(_wrong_type(path, "null", schema["type"]))
        return
    if not _has_type(schema, value):
        errors.append(_wrong_type(path, _type_name(value), schema.get("type", "integer or string")))
        return
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(f'"{item}"' for item in schema["enum"])
        text = f'Unsupported value: "{value}": supported values: {supported}'
        errors.append(FieldError(path, "FieldValueNotSupported", text))
    if isinstance(value, dict):
        _check_object(schema, value, path, errors)
    elif isinstance(value, list):
        _check_count(schema, "Items", value, path, errors)
        for index, item in enumerate(value):
            _check(schema.get("items") or {}, item, f"{path}[{index}]", errors)
    elif isinstance(value, str):
        _check_string(schema, value, path, errors)
    elif not isinstance(value, bool):
        _check_number(schema, value, path, errors)


def _check_object(schema: Obj, value: Obj, path: str, errors: list[FieldError]) -> None:
    _check_count(schema, "Properties", value, path, errors)
    properties: Obj = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    prefix = f"{path}." if path else ""
    errors.extend(
        required(prefix + key) for key in schema.get("required") or () if key not in value
    )
    for key, item in value.items():
        inner = properties.get(key, extra if isinstance(extra, dict) else None)
        if inner is not None:
            _check(inner, item, prefix + key, errors)


def _check_count(
    schema: Obj, what: str, value: list[Any] | Obj, path: str, errors: list[FieldError]
) -> None:
    if len(value) < schema.get(f"min{what}", 0):
        text = f"{path} in body should have at least {schema[f'min{what}']} {what.lower()}"
        errors.append(wrong(path, len(value), text))
    if len(value) > schema.get(f"max{what}", len(value)):
        text = f"Too many: {len(value)}: must have at most {schema[f'max{what}']} {what.lower()}"
        errors.append(FieldError(path, "FieldValueTooMany", text))


def _check_string(schema: Obj, value: str, path: str, errors: list[FieldError]) -> None:
    if len(value) < schema.get("minLength", 0):
        errors.append(
            wrong(
                path, value, f"{path} in body should be at least {schema['minLength']} chars long"
            )
        )
    if len(value) > schema.get("maxLength", len(value)):
        text = f"Too long: may not be more than {schema['maxLength']} bytes"
        errors.append(FieldError(path, "FieldValueTooLong", text))
    pattern = schema.get("pattern")
    if pattern and not re.search(pattern, value):
        errors.append(wrong(path, value, f"{path} in body should match '{pattern}'"))


def _check_number(schema: Obj, value: float, path: str, errors: list[FieldError]) -> None:
    bound = _INT_RANGES.get(schema.get("format", ""))
    if bound is not None and not -bound <= value < bound:
        errors.append(
            wrong(
                path, value, f"{path} in body must be of type {schema['format']}: {_shown(value)}"
            )
        )
    if value < schema.get("minimum", value):
        errors.append(
            wrong(
                path,
                value,
                f"{path} in body should be greater than or equal to {schema['minimum']}",
            )
        )
    if value > schema.get("maximum", value):
        errors.append(
            wrong(
                path, value, f"{path} in body should be less than or equal to {schema['maximum']}"
            )
        )


def _shown(value: float) -> str:
    return f'"{value}"'


def _has_type(schema: Obj, value: Value) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    wanted = schema.get("type")
    if wanted is None:
        return True
    if isinstance(value, bool):
        return bool(wanted == "boolean")
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[wanted])


def _type_name(value: Value) -> str:
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names[type(value)]


def _wrong_type(path: str, found: str, wanted: str) -> FieldError:
    text = f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'
    return FieldError(path, "FieldValueTypeInvalid", text)
