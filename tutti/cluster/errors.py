"""Refusals in the API server's own words: an HTTP status with a Kubernetes Status object.

Texts, reasons and details follow k8s.io/apimachinery, because clients and their tests read them.
"""

from typing import TYPE_CHECKING

from tutti.cluster.objects import Obj

if TYPE_CHECKING:
    from tutti.cluster.resources import Resource


class ApiError(Exception):
    """An answer other than success. `body()` is what the client receives."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Obj | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s

    def body(self) -> Obj:
        """The Status object."""
        status: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        details = dict(self.details or {})
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = self.retry_after_s
        if details:
            status["details"] = details
        return status | {"code": self.code}


class FieldError(Exception):
    """One broken rule of one field; several of them become one `invalid`."""

    def __init__(self, path: str, reason: str, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.cause: Obj = {"reason": reason, "message": text, "field": path}


def required(path: str, text: str = "") -> FieldError:
    """A field that must be there."""
    return FieldError(path, "FieldValueRequired", "Required value" + (f": {text}" if text else ""))


def wrong(path: str, value: object, text: str) -> FieldError:
    """A field with a value that breaks a rule."""
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {text}")


def _shown(value: object) -> str:
    return (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def details_of(resource: "Resource", name: str) -> Obj:
    """What a Status says about its object."""
    group = {"group": resource.group} if resource.group else {}
    return {"name": name, **group, "kind": resource.plural}


def not_found(resource: "Resource", name: str) -> ApiError:
    """404: no such object."""
    text = f'{resource.qualified} "{name}" not found'
    return ApiError(404, "NotFound", text, details=details_of(resource, name))


def no_such_path() -> ApiError:
    """404: no such kind of object here (what a cluster without a CRD answers)."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: "Resource", name: str) -> ApiError:
    """409 for a create."""
    text = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", text, details=details_of(resource, name))


def conflict(resource: "Resource", name: str, why: str, *, kind: str = "") -> ApiError:
    """409 for a change; `kind` is what the text calls it where that is not the resource."""
    called = kind or resource.qualified
    details = details_of(resource, name) | {"kind": kind or resource.plural}
    text = f'Operation cannot be fulfilled on {called} "{name}": {why}'
    return ApiError(409, "Conflict", text, details=details)


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def bad_request(text: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", text)


def forbidden(resource: "Resource", name: str, why: str) -> ApiError:
    """403 by a rule (not by RBAC, which this server does not have)."""
    text = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", text, details=details_of(resource, name))


def invalid(resource: "Resource", name: str, errors: list[FieldError]) -> ApiError:
    """422: every broken rule at once."""
    kind = resource.kind + (f".{resource.group}" if resource.group else "")
    texts = [str(error) for error in errors]
    text = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = details_of(resource, name) | {
        "kind": resource.kind,
        "causes": [error.cause for error in errors],
    }
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details=details)


def unsupported(content_type: str, allowed: str) -> ApiError:
    """415."""
    text = f"the body of the request was in an unknown format - accepted media types include: {allowed}"
    return ApiError(
        415, "UnsupportedMediaType", text + (f" (got {content_type})" if content_type else "")
    )


def not_allowed() -> ApiError:
    """405."""
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
    )


def expired(text: str) -> ApiError:
    """410: list again."""
    return ApiError(410, "Expired", text)
