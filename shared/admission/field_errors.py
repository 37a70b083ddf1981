"""Violations in the words of Kubernetes' own (`field.Required`, `field.Invalid`, and so on)."""

from shared.dialects.field_checks import shown
from shared.dialects.protocol import FieldError


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
    choices = ", ".join(f'"{one}"' for one in supported)
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
