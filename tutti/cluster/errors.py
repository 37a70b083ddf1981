"""Refusals in the API server's own words: an HTTP status with a Kubernetes Status object.

Texts, reasons and details follow k8s.io/apimachinery, because clients and their tests read them.
"""

from typing import TYPE_CHECKING

from tutti.cluster.objects import Obj

if TYPE_CHECKING:
    from tutti.cluster.resources import Resource

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


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
        self.code, self.reason, self.message = code, reason, message
        self.retry_after_s = retry_after_s
        retry = {} if retry_after_s is None else {"retryAfterSeconds": retry_after_s}
        self.details = {**(details or {}), **retry}

    def body(self) -> Obj:
        """The Status object."""
        status: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        rest = {"message": self.message, "reason": self.reason, "details": self.details}
        return status | {key: value for key, value in rest.items() if value} | {"code": self.code}


class FieldError(Exception):
    """One broken rule of one field; several of them become one `invalid`."""

    def __init__(self, path: str, reason: str, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.cause: Obj = {"reason": f"FieldValue{reason}", "message": text, "field": path}


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
    """What a Status says about its object."""
    group = {"group": resource.group} if resource.group else {}
    return {"name": name, **group, "kind": resource.plural}


def not_found(resource: "Resource", name: str) -> ApiError:
    text = f'{resource.qualified} "{name}" not found'
    return ApiError(404, "NotFound", text, details=details_of(resource, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: "Resource", name: str) -> ApiError:
    text = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", text, details=details_of(resource, name))


def conflict(resource: "Resource", name: str, why: str, *, kind: str = "") -> ApiError:
    """409 for a change; `kind` is what the text calls it where that is not the resource."""
    details = details_of(resource, name) | {"kind": kind or resource.plural}
    text = f'Operation cannot be fulfilled on {kind or resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", text, details=details)


def bad_request(text: str) -> ApiError:
    return ApiError(400, "BadRequest", text)


def cannot_be_handled(resource: "Resource", why: object) -> ApiError:
    """400: the body is no object of this kind."""
    version = resource.api_version(resource.versions[0])
    text = f'in version "{version}" cannot be handled as a {resource.kind}: {why}'
    return bad_request(f"{resource.kind} {text}")


def forbidden(resource: "Resource", name: str, why: str) -> ApiError:
    """403 by a rule (not by RBAC, which this server does not have)."""
    text = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", text, details=details_of(resource, name))


def invalid(kind: str, group: str, name: str, errors: list[FieldError]) -> ApiError:
    """422: every broken rule at once."""
    texts = [str(error) for error in errors]
    text = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    causes = {"causes": [error.cause for error in errors]}
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {text}'
    return ApiError(422, "Invalid", message, details=details | causes)


def unsupported(content_type: str, allowed: str) -> ApiError:
    text = "the body of the request was in an unknown format - accepted media types include: "
    return ApiError(415, "UnsupportedMediaType", f"{text}{allowed} (got {content_type})")


def not_allowed() -> ApiError:
    text = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", text)


def expired(text: str) -> ApiError:
    """410: list again."""
    return ApiError(410, "Expired", text)
