"""Gangs for callers of the client: which one is meant, how it changes, until when to wait. Pure."""

from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from shared.contracts.visibility import GROUP, Gang
from shared.kube.errors import KubeError
from tutti.client.submission import Submitted
from tutti.why.expected_starts import expected_words


class ApiNotServed(KubeError):
    """The cluster does not serve Tutti's API, or the API server does not reach its service."""

    def __init__(self, answer: str) -> None:
        super().__init__(
            f"the cluster does not serve {GROUP} ({answer}): run `tutti up --api` on the API "
            "server's machine, or set api.enabled in the chart"
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


Goal: TypeAlias = Literal["running", "finished"]
"""`running`: its minimum runs, or has run; `finished`: all its members have ended."""


class GangEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A gang exists (`ADDED`, the first event of each), has changed, or was deleted, which has its
    last state.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    gang: Gang


def is_reached(gang: Gang, goal: Goal) -> bool:
    """Whether a gang is where a caller waits for it. A gang is Running as soon as its minimum is
    bound; containers start after that, so for `running` the members that run are counted.
    """
    status = gang.status
    if status.phase == "Completed":
        return True
    started = status.members.running + status.members.succeeded >= status.min_member
    return goal == "running" and status.phase == "Running" and started


def describe(gang: Gang) -> str:
    """A gang's state in a sentence, as far as the API says it."""
    status = gang.status
    counts = f"{status.members.running} of {status.min_member} members run"
    text = f"{gang.metadata.namespace}/{gang.metadata.name} is {status.phase}, {counts}"
    if status.pending is not None:
        text += f": {status.pending.reason}: {status.pending.message}"
    if status.expected_start is not None:
        text += f"; {expected_words(status.expected_start, status.position, status.queue)}"
    return text


_UUID_CHARACTERS: Final = 36


class WantedGang(msgspec.Struct, frozen=True, kw_only=True):
    """A gang by its name in a namespace ("": the client's)."""

    namespace: str
    name: str
    #: Its possible names, if they are known; otherwise `is_named` compares with `name`.
    names: frozenset[str] = frozenset()

    def is_named(self, gang: str) -> bool:
        """Whether a gang of this name is meant."""
        return gang in self.names if self.names else is_named(gang, self.name)


def wanted_gang(given: str | Submitted | Gang, namespace: str) -> WantedGang:
    """The gang of a name, of an object that was submitted, or of a gang as it was read."""
    match given:
        case str():
            return WantedGang(namespace=namespace, name=given)
        case Submitted():
            names = frozenset({given.name, f"{given.name}-{given.uid}"})
            return WantedGang(namespace=given.namespace, name=given.name, names=names)
        case Gang(metadata=metadata):
            return WantedGang(
                namespace=metadata.namespace,
                name=metadata.name,
                names=frozenset({metadata.name}),
            )


def is_named(gang: str, name: str) -> bool:
    """Whether a gang's name is this name, or the one that the group of a Volcano Job of this name
    has: the Job's name and UID.
    """
    stem, end = gang[:-_UUID_CHARACTERS], gang[-_UUID_CHARACTERS:]
    return gang == name or (stem == f"{name}-" and is_uuid(end))


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID, as Kubernetes writes it."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
