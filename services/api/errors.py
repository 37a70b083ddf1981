"""Errors of the API service: each is answered with a Status."""

from typing import Final

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
    503: "ServiceUnavailable",
    504: "Timeout",
}


class RequestFailed(Exception):
    """A request that is answered with an error: an HTTP status with Kubernetes' reason for it, and
    a message for the user.
    """

    def __init__(self, status: int, message: str, *, retry_after_s: int | None = None) -> None:
        """`retry_after_s`: when the client may ask again; None: no time is named."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def reason(self) -> str:
        """Kubernetes' CamelCase reason."""
        return _REASONS.get(self.status, "InternalError")
