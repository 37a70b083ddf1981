"""Errors as the API server returns them: an HTTP status with a Kubernetes Status object.

Texts, reasons and details follow k8s.io/apimachinery: clients and their tests depend on them.
"""

from typing import TYPE_CHECKING, NamedTuple

from tutti.cluster.objects import Obj

if TYPE_CHECKING:
    from tutti.cluster.resources import Resource


class ApiError(Exception):
    """An error response; `body()` is its content."""

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
        self.code, self.reason, self.message = code, reason, message
        self.retry_after_s = retry_after_s
        retry = {} if retry_after_s is None else {"retryAfterSeconds": retry_after_s}
        self.details = {**(details or {}), **retry}

    def body(self) -> Obj:
        status: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        rest = {"message": self.message, "reason": self.reason, "details": self.details}
        return status | {key: value for key, value in rest.items() if value} | {"code": self.code}


class FieldError(NamedTuple):
    """One violation of a field's rule; `invalid` combines several."""

    path: str
    reason: str
    text: str


def required(path: str, text: str = "") -> FieldError:
    return FieldError(path, "Required", "Required value" + (f": {text}" if text else ""))


def wrong(path: str, value: object, text: str) -> FieldError:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return FieldError(path, "Invalid", f"Invalid value: {shown}: {text}")


def not_supported(path: str, value: object, supported: list[str]) -> FieldError:
    choices = ", ".join(f'"{item}"' for item in supported)
    text = f'Unsupported value: "{value}": supported values: {choices}'
    return FieldError(path, "NotSupported", text)


def not_permitted(path: str, text: str) -> FieldError:
    return FieldError(path, "Forbidden", f"Forbidden: {text}")


def details_of(resource: "Resource", name: str) -> Obj:
    """The details of a Status about an object."""
    group = {"group": resource.group} if resource.group else {}
    return {"name": name, **group, "kind": resource.plural}


def _about(code: int, reason: str, resource: "Resource", name: str, what: str) -> ApiError:
    text = f'{resource.qualified} "{name}" {what}'
    return ApiError(code, reason, text, details=details_of(resource, name))


def not_found(resource: "Resource", name: str) -> ApiError:
    return _about(404, "NotFound", resource, name, "not found")


def already_exists(resource: "Resource", name: str) -> ApiError:
    return _about(409, "AlreadyExists", resource, name, "already exists")


def forbidden(resource: "Resource", name: str, why: str) -> ApiError:
    """403 by a rule; this server has no RBAC."""
    return _about(403, "Forbidden", resource, name, f"is forbidden: {why}")


def conflict(resource: "Resource", name: str, why: str, *, kind: str = "") -> ApiError:
    """409 for a change; `kind` replaces the resource in the text."""
    details = details_of(resource, name) | {"kind": kind or resource.plural}
    text = f'Operation cannot be fulfilled on {kind or resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", text, details=details)


def invalid(kind: str, group: str, name: str, errors: list[FieldError]) -> ApiError:
    """422: every broken rule at once."""
    texts = [f"{error.path}: {error.text}" for error in errors]
    causes = [
        {"reason": f"FieldValue{error.reason}", "message": error.text, "field": error.path}
        for error in errors
    ]
    qualified = f"{kind}.{group}" if group else kind
    text = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    message = f'{qualified} "{name}" is invalid: {text}'
    details = {"name": name, "group": group, "kind": kind, "causes": causes}
    return ApiError(422, "Invalid", message, details={k: v for k, v in details.items() if v})


def bad_request(text: str) -> ApiError:
    return ApiError(400, "BadRequest", text)


def cannot_be_handled(resource: "Resource", why: object) -> ApiError:
    """400: the body is not an object of this kind."""
    version = resource.api_version(resource.versions[0])
    text = f'in version "{version}" cannot be handled as a {resource.kind}: {why}'
    return bad_request(f"{resource.kind} {text}")


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def not_allowed() -> ApiError:
    text = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", text)


def unsupported(content_type: str, allowed: str) -> ApiError:
    text = "the body of the request was in an unknown format - accepted media types include: "
    return ApiError(415, "UnsupportedMediaType", f"{text}{allowed} (got {content_type})")


def expired(text: str) -> ApiError:
    """410: list again."""
    return ApiError(410, "Expired", text)
