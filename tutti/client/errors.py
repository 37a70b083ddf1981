"""Errors of the client, beside those of requests (`shared.kube.errors`) and `Refusal`."""

from shared.contracts.visibility import GROUP, Gang
from shared.kube.errors import KubeError


class ApiNotServed(KubeError):
    """The cluster does not serve Tutti's API, or the API server does not reach its service."""

    def __init__(self, answer: str) -> None:
        super().__init__(
            f"the cluster does not serve {GROUP} ({answer}): an administrator installs it with the "
            "chart (api.enabled), or runs `tutti up --api`"
        )


class WaitTimeout(TimeoutError):
    """The time for which a caller wanted to wait has passed.

    Attributes:
        gang: The gang in its last known state; None: no gang of that name was seen.
    """

    def __init__(self, message: str, gang: Gang | None) -> None:
        super().__init__(message)
        self.gang = gang


class GangDeleted(Exception):
    """A gang was deleted while a caller waited for it.

    Attributes:
        gang: The gang in its last state.
    """

    def __init__(self, gang: Gang) -> None:
        super().__init__(
            f"{gang.metadata.namespace}/{gang.metadata.name} was deleted: "
            f"it was {gang.status.phase} before"
        )
        self.gang = gang
