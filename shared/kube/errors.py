"""Errors of requests to the API server.

* `ApiError`: the answer is an error (one subclass for each that a caller catches),
* `TransportError`: there was no answer; the request may or may not have been carried out,
* `MalformedAnswer`: the answer is not what the API promises,
* `CredentialsError`: there are no credentials, or a kubeconfig is missing, wrong or refused.

No exception of a client library leaves this package; cancellation always does.
"""

from typing import Final

import msgspec

from shared.kube.objects import Status, StatusDetails


class KubeError(Exception):
    """The base of this package's errors."""

    #: Seconds after which the API server wants the request again; None if it named none.
    retry_after_s: float | None = None


class CredentialsError(KubeError):
    """A kubeconfig or service account cannot be used; the message names the file, the field and the
    rule.
    """


class TransportError(KubeError):
    """No answer: the request may or may not have reached the API server and may or may not have
    been carried out.
    """


class ConnectionLost(TransportError):
    """The connection could not be made, or broke before the answer was complete."""


class RequestTimeout(TransportError):
    """No complete answer within the given time."""


class MalformedAnswer(KubeError):
    """The answer is not what the API promises: no JSON, no list, a line without end."""


class ApiError(KubeError):
    """The API server's answer is an error (status 400 or above).

    Attributes:
        status: HTTP status, or the code of a watch's ERROR event.
        reason: Kubernetes' CamelCase reason ("NotFound", "Expired"); "" when the answer was not a
            Status.
        message: The API server's message, in full.
        details: Kind, name and causes, if the answer has them.
        retry_after_s: By header or Status.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: StatusDetails | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{status} {reason or 'no reason'}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details if details is not None else StatusDetails()
        self.retry_after_s = retry_after_s


class Unauthorized(ApiError):
    """401: the credentials are missing, expired or unknown."""


class Forbidden(ApiError):
    """403: RBAC, an admission plugin or a webhook refused."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class Conflict(ApiError):
    """409: another resourceVersion or UID, exists already, or is bound already."""


class Gone(ApiError):
    """410: the requested resourceVersion is too old; list again."""


class Invalid(ApiError):
    """422: the object is not valid; `details.causes` has the fields."""


class TooManyRequests(ApiError):
    """429: the API server sheds load, or a disruption budget refuses an eviction."""


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}

#: Codes in the 400s that another write, a retry or a new token may end.
_OF_THE_MOMENT: Final = frozenset({401, 404, 408, 409, 410, 429})

_decode_status: Final = msgspec.json.Decoder(Status).decode

#: Limit of the message from an answer that is no Status: proxies answer with pages of HTML.
_TEXT_CHARACTERS_MAX: Final = 512


def api_error(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error for an answer with status 400 or above, with any body: a Status, plain text, HTML,
    or nothing. `retry_after` is the header `Retry-After`; a date in it is ignored.
    """
    try:
        answer = _decode_status(body)
    except msgspec.MsgspecError:
        answer = Status()
    if answer.kind == "Status":
        return _from_status(status, answer, retry_after)
    text = (
        body[: 4 * _TEXT_CHARACTERS_MAX].decode("utf-8", "replace").strip()[:_TEXT_CHARACTERS_MAX]
    )
    kind = _BY_STATUS.get(status, ApiError)
    return kind(status, "", text or "empty answer", None, _retry_after_s(retry_after, 0))


def in_terminating_namespace(error: KubeError) -> bool:
    """Whether an object was not created because its namespace is being deleted."""
    return isinstance(error, Forbidden) and any(
        cause.reason == "NamespaceTerminating" for cause in error.details.causes
    )


def is_refusal(error: ApiError) -> bool:
    """Whether the same request fails until a user changes something: a quota, a policy, a webhook,
    the object. A webhook answers with a status of its choice, and with 500 if it cannot be called.
    """
    if "admission webhook" in error.message or "failed calling webhook" in error.message:
        return True
    return 400 <= error.status < 500 and error.status not in _OF_THE_MOMENT


def watch_error(answer: Status) -> ApiError:
    """The error that a watch's ERROR event carries."""
    return _from_status(answer.code or 500, answer, None)


def _from_status(status: int, answer: Status, retry_after: str | None) -> ApiError:
    kind = _BY_STATUS.get(status, ApiError)
    pause_s = _retry_after_s(retry_after, answer.details.retry_after_seconds)
    return kind(status, answer.reason, answer.message, answer.details, pause_s)


def _retry_after_s(header: str | None, in_status: int) -> float | None:
    if header is not None and header.strip().isascii() and header.strip().isdigit():
        return float(header.strip())
    return float(in_status) if in_status > 0 else None
