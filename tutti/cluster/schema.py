"""Structural schemas of custom resources: pruning, defaults and the rules that do not need CEL.

Left out: string lengths below a minimum, counts of properties, uniqueness, logical junctors.
"""

import re

from tutti.cluster.errors import FieldError, not_supported, required, wrong
from tutti.cluster.objects import Obj, Value, decode, encode

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
_RANGES = {"int32": 2**31, "int64": 2**63}
_ROOT_FIELDS = ("apiVersion", "kind", "metadata")


def fit(schema: Obj, obj: Obj) -> list[str]:
    """Prunes what the schema does not know and fills in its defaults, in place.

    Returns the paths that were pruned.
    """
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
        if "default" in inner and value.get(key) is None:
            value[key] = decode(encode(inner["default"]))
    for key in list(value):
        where = f"{path}.{key}" if path else key
        inner = properties.get(key, extra if isinstance(extra, dict) else None)
        if inner is not None:
            _fit(inner, value[key], where, pruned)
        elif not keeps_all and key not in embedded:
            del value[key]
            pruned.append(where)


def check(schema: Obj, obj: Obj) -> list[FieldError]:
    """Every rule of the schema that the object breaks."""
    errors: list[FieldError] = []
    rest = {key: value for key, value in obj.items() if key not in _ROOT_FIELDS}
    _check(schema, rest, "", errors)
    return errors


def _check(schema: Obj, value: Value, path: str, errors: list[FieldError]) -> None:
    if value is None and (schema.get("nullable") or "type" not in schema):
        return
    if not _has_type(schema, value):
        found = "null" if value is None else _NAMES.get(type(value), "object")
        wanted = schema.get("type", "integer,string")
        text = f'{path} in body must be of type {wanted}: "{found}"'
        errors.append(FieldError(path, "TypeInvalid", f'Invalid value: "{found}": {text}'))
        return
    if "enum" in schema and value not in schema["enum"]:
        errors.append(not_supported(path, value, schema["enum"]))
    if isinstance(value, dict):
        properties: Obj = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        prefix = f"{path}." if path else ""
        absent = [key for key in schema.get("required") or () if key not in value]
        errors.extend(required(prefix + key) for key in absent)
        for key, item in value.items():
            inner = properties.get(key, extra if isinstance(extra, dict) else {})
            _check(inner, item, prefix + key, errors)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(schema.get("items") or {}, item, f"{path}[{index}]", errors)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(schema, value, path, errors)
    _check_size(schema, value, path, errors)


def _check_number(schema: Obj, value: float, path: str, errors: list[FieldError]) -> None:
    bound = _RANGES.get(schema.get("format", ""), float("inf"))
    rules = (
        (not -bound <= value < bound, f'be of type {schema.get("format")}: "{value}"', "must"),
        (
            value < schema.get("minimum", value),
            f"be greater than or equal to {schema.get('minimum')}",
            "should",
        ),
        (
            value > schema.get("maximum", value),
            f"be less than or equal to {schema.get('maximum')}",
            "should",
        ),
    )
    for broken, rule, word in rules:
        if broken:
            errors.append(wrong(path, value, f"{path} in body {word} {rule}"))


def _check_size(schema: Obj, value: Value, path: str, errors: list[FieldError]) -> None:
    if isinstance(value, list) and len(value) > schema.get("maxItems", len(value)):
        text = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        errors.append(FieldError(path, "TooMany", text))
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        text = f"Too long: may not be more than {schema['maxLength']} bytes"
        errors.append(FieldError(path, "TooLong", text))
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        errors.append(wrong(path, value, f"{path} in body should match '{schema['pattern']}'"))


def _has_type(schema: Obj, value: Value) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    wanted = schema.get("type")
    if isinstance(value, bool):
        return wanted in (None, "boolean")
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return wanted is None or isinstance(value, _TYPES[wanted])
