"""Everything that can go wrong between us and the API server.

* `ApiError`: it answered, and the answer is an error (one subclass for each that a caller catches),
* `TransportError`: it did not answer, what was asked may or may not have happened,
* `MalformedAnswer`: it answered with something that makes no sense,
* `CredentialsError`: we have no credentials, or a kubeconfig is missing, wrong or refused.

No exception of a client library passes this package's border; cancellation always does.
"""

from typing import Final

import msgspec

from shared.kube.objects import Status, StatusDetails


class KubeError(Exception):
    """The base of this package's errors."""


class CredentialsError(KubeError):
    """A kubeconfig or service account cannot be used; the message names the file, the field and the
    rule.
    """


class TransportError(KubeError):
    """No answer: the request may or may not have reached the API server and may or may not have
    been carried out.
    """


class ConnectionLost(TransportError):
    """The connection could not be made, or broke before the whole answer was here."""


class RequestTimeout(TransportError):
    """No whole answer within the time given."""


class MalformedAnswer(KubeError):
    """The answer is not what the API promises: no JSON, no list, a line without end."""


class ApiError(KubeError):
    """The API server's answer is an error (status 400 or above).

    Attributes:
        status: HTTP status, or the code of a watch's ERROR event.
        reason: Kubernetes' CamelCase reason ("NotFound", "Expired"); "" when the answer was not a
            Status.
        message: What the API server said, in full.
        details: Kind, name and causes as far as given.
        retry_after_s: Seconds after which to try again, by header or Status; None when not said.
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
    """403: RBAC, an admission plugin or a webhook said no."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class Conflict(ApiError):
    """409: another resourceVersion or UID, exists already, or is bound already."""


class Gone(ApiError):
    """410: the resourceVersion asked for is too old; list again."""


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

_decode_status: Final = msgspec.json.Decoder(Status).decode

#: So much of an answer that is no Status goes into the message; proxies answer with whole pages of
#: HTML.
_TEXT_CHARACTERS_MAX: Final = 512


def api_error(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error that an answer of 400 or above stands for, whatever its body is.

    Args:
        status: HTTP status.
        body: The answer: a Status, plain text, HTML, or nothing.
        retry_after: The header `Retry-After` as it came; a date in it is ignored.
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
