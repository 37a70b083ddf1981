"""Reads parts of JSON objects of unknown types.

A value of the wrong type counts as absent. (Validation uses `shared.dialects.field_checks`, which
reports wrong types.)
"""

from collections.abc import Iterator
from typing import Any, TypeGuard

import msgspec

from shared.dialects.field_checks import shown
from shared.dialects.protocol import FieldError, JsonObject

# Violations in the words of Kubernetes' own (`field.Required`, `field.Invalid`, and so on).


def violation(path: str, message: str) -> FieldError:
    """A violation in words that are not Kubernetes' own."""
    return FieldError(path=path, message=message)


def required(path: str, detail: str = "") -> FieldError:
    """A field that must be set."""
    return violation(path, f"Required value: {detail}" if detail else "Required value")


def invalid(path: str, value: object, detail: str) -> FieldError:
    """A value that breaks the rule in `detail`."""
    return violation(path, f"Invalid value: {shown(value)}: {detail}")


def not_supported(path: str, value: str, supported: tuple[str, ...]) -> FieldError:
    """A value that is none of the supported ones."""
    choices = ", ".join(f'"{choice}"' for choice in supported)
    return violation(path, f"Unsupported value: {shown(value)}: supported values: {choices}")


def not_found(path: str, value: str, detail: str = "") -> FieldError:
    """A value that refers to something that does not exist."""
    suffix = f": {detail}" if detail else ""
    return violation(path, f"Not found: {shown(value)}{suffix}")


def duplicate(path: str, value: str) -> FieldError:
    """A value that must occur once."""
    return violation(path, f"Duplicate value: {shown(value)}")


def forbidden(path: str, detail: str) -> FieldError:
    """A field that must not be set, or must not change."""
    return violation(path, f"Forbidden: {detail}")


def is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def as_object(value: object) -> JsonObject | None:
    """The value if it is a JSON object, else None."""
    return value if is_object(value) else None


def as_list(value: object) -> list[Any]:
    """The value if it is an array, else an empty one."""
    return value if is_list(value) else []


def objects_at(parent: JsonObject, path: str) -> Iterator[tuple[str, JsonObject]]:
    """The items of the array that is the last member in `path`, each with its own path; {} for an
    item that is no object.
    """
    for index, item in enumerate(as_list(parent.get(path.rpartition(".")[2]))):
        yield f"{path}[{index}]", as_object(item) or {}


def as_int(value: object) -> int | None:
    """The value if it is a whole number, else None; true and false are no numbers."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def member(parent: JsonObject, *keys: str) -> object:
    """The value at the end of a path of members; None when any of them is missing."""
    value: object = parent
    for key in keys:
        if not is_object(value):
            return None
        value = value.get(key)
    return value


def decoded_member(parent: JsonObject, key: str) -> object:
    """A member, decoded if it was kept raw."""
    value = parent.get(key)
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def text_at(parent: JsonObject, *keys: str) -> str:
    """The text at the end of a path of members; "" when there is none."""
    value = member(parent, *keys)
    return value if isinstance(value, str) else ""


def lacks_text(parent: JsonObject, key: str) -> bool:
    """Whether the member is absent, null or ""."""
    value = parent.get(key)
    return value is None or value == ""


def lacks_number(parent: JsonObject, key: str) -> bool:
    """Whether the member is absent, null or 0, which Go does not distinguish."""
    value = parent.get(key)
    return value is None or as_int(value) == 0
