"""The outcome of a write that is to be repeated later."""

from shared.kube.errors import ApiError, KubeError

#: When the API server names no delay: it can recover, and statuses stay current.
RETRY_S = 2.0


class RetryLater(Exception):
    """The write failed for the moment; after `delay_s` it is planned again by the newest
    verdict.
    """

    def __init__(self, what: str, delay_s: float) -> None:
        super().__init__(what)
        self.delay_s = delay_s


def is_temporary(error: KubeError) -> bool:
    """Whether a repeated request may succeed: the API server was overloaded, failed, did not
    answer, or does not know a renewed token yet. All other errors are definite refusals.
    """
    return not isinstance(error, ApiError) or error.status in {401, 429} or error.status >= 500
