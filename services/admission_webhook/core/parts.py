"""Taking JSON of unknown shape apart for code that fills in defaults.

What is of the wrong type is as if it were not there. (Validation uses
`shared.dialects.field_checks`, which notes it.)
"""

from typing import Any, TypeGuard

from shared.dialects.protocol import JsonObject


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether it is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether it is a JSON array."""
    return isinstance(value, list)


def as_object(value: object) -> JsonObject | None:
    """The JSON object that it is, or None."""
    return value if is_object(value) else None


def as_list(value: object) -> list[Any]:
    """The array that it is, or an empty one."""
    return value if is_list(value) else []


def as_int(value: object) -> int | None:
    """The whole number that it is, or None; JSON's true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def member(parent: JsonObject, *keys: str) -> object:
    """What stands at the end of a path of members; None when anything on the way is missing."""
    found: object = parent
    for key in keys:
        if not is_object(found):
            return None
        found = found.get(key)
    return found


def text_at(parent: JsonObject, *keys: str) -> str:
    """The text at the end of a path of members; "" when there is none."""
    found = member(parent, *keys)
    return found if isinstance(found, str) else ""


def lacks_text(parent: JsonObject, key: str) -> bool:
    """Whether the member is absent, null or ""."""
    value = parent.get(key)
    return value is None or value == ""


def lacks_number(parent: JsonObject, key: str) -> bool:
    """Whether the member is absent, null or 0, which all mean the same to Go."""
    value = parent.get(key)
    return value is None or as_int(value) == 0
