"""Errors of the API service: each is answered with a Status."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from shared.contracts.visibility import GROUP

#: Kubernetes' reasons by HTTP status.
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    408: "Timeout",
    410: "Expired",
    411: "BadRequest",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    # Kubernetes has no reason of its own for it.
    431: "RequestEntityTooLarge",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class RequestFailed(Exception):
    """A request that is answered with an error: an HTTP status with Kubernetes' reason for it, and
    a message for the user.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        retry_after_s: int | None = None,
        details: Mapping[str, str] = MappingProxyType({}),
        causes: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """`retry_after_s`: when the client may ask again; None: no time is named. `details`: of the
        Status, such as the name of a missing object. `causes`: several violations, each with its
        field, which clients print one in a line.
        """
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s
        self.details = details
        self.causes = causes

    @property
    def reason(self) -> str:
        """Kubernetes' CamelCase reason."""
        return _REASONS.get(self.status, "InternalError")


class TokenRefused(RequestFailed):
    """401: the request has a bearer token, and the API server does not accept it. A client that
    sent none learns so that a proxy adds one.
    """

    def __init__(self) -> None:
        super().__init__(401, "the cluster does not accept the bearer token")


def not_found(plural: str, name: str) -> RequestFailed:
    """The failure of a request for an object that does not exist, in Kubernetes' words."""
    return RequestFailed(
        404,
        f'{plural}.{GROUP} "{name}" not found',
        # Kubernetes' `kind` is the resource here.
        details={"name": name, "group": GROUP, "kind": plural},
    )


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`meta.k8s.io/v1` Status of a failure."""

    kind: str = "Status"
    api_version: str = "v1"
    metadata: dict[str, Any] = {}
    status: str = "Failure"
    message: str
    reason: str
    details: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    code: int


def status_of(failure: RequestFailed) -> Status:
    details: dict[str, Any] = dict(failure.details)
    if failure.retry_after_s is not None:
        details["retryAfterSeconds"] = failure.retry_after_s
    if failure.causes:
        details["causes"] = [
            {"reason": "FieldValueInvalid", "field": field, "message": message}
            for field, message in failure.causes
        ]
    return Status(
        message=failure.message,
        reason=failure.reason,
        code=failure.status,
        # Clients decode it strictly: an object, or nothing.
        details=details or msgspec.UNSET,
    )
