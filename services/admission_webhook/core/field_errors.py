"""Violations in the words of Kubernetes' own (`field.Required`, `field.Invalid`, and so on)."""

from shared.dialects.field_checks import shown
from shared.dialects.protocol import FieldError


def required(path: str, detail: str = "") -> FieldError:
    """A field that must be set."""
    return FieldError(
        path=path, message=f"Required value: {detail}" if detail else "Required value"
    )


def invalid(path: str, value: object, detail: str) -> FieldError:
    """A value that breaks the rule in `detail`."""
    return FieldError(path=path, message=f"Invalid value: {shown(value)}: {detail}")


def not_supported(path: str, value: str, supported: tuple[str, ...]) -> FieldError:
    """A value that is none of the supported ones."""
    choices = ", ".join(f'"{one}"' for one in supported)
    message = f"Unsupported value: {shown(value)}: supported values: {choices}"
    return FieldError(path=path, message=message)


def not_found(path: str, value: str, detail: str = "") -> FieldError:
    """A value that refers to something that does not exist."""
    suffix = f": {detail}" if detail else ""
    return FieldError(path=path, message=f"Not found: {shown(value)}{suffix}")


def duplicate(path: str, value: str) -> FieldError:
    """A value that must occur once."""
    return FieldError(path=path, message=f"Duplicate value: {shown(value)}")


def forbidden(path: str, detail: str) -> FieldError:
    """A field that must not be set, or must not change."""
    return FieldError(path=path, message=f"Forbidden: {detail}")
