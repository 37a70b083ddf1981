"""Which values have the type that a schema names."""

from collections.abc import Mapping
from typing import Any, Final

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
