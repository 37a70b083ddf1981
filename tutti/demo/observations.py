"""Pods as observed at the API server, in order: the only evidence for the demo's claims. Pure."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

GPU = "nvidia.com/gpu"
_ENDED = ("Succeeded", "Failed")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A TFJob that was submitted, and the number of its pods."""

    uid: str
    namespace: str
    name: str
    size: int

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodObservation(msgspec.Struct, frozen=True, kw_only=True):
    """One pod as the API server showed it at one instant."""

    #: Seconds of a monotonic clock.
    at_s: float
    uid: str
    name: str
    #: UID of its controller.
    job: str
    #: "ps" or "worker".
    role: str = ""
    #: "" until it is bound.
    node: str = ""
    phase: str = "Pending"
    #: Whether it was deleted; the other fields are its last state.
    gone: bool = False
    #: Its requests, by resource.
    requests: dict[str, int] = {}

    @property
    def ended(self) -> bool:
        """Whether its containers have ended, or it was deleted."""
        return self.gone or self.phase in _ENDED

    @property
    def uses_capacity(self) -> bool:
        """Whether its requests count on a node."""
        return bool(self.node) and not self.ended

    @property
    def running(self) -> bool:
        return self.phase == "Running" and not self.gone


Record = Sequence[PodObservation]
LatestPods = dict[str, PodObservation]
"""The last observation of each pod that was ever seen, by UID."""


def replay(record: Record) -> Iterator[tuple[PodObservation, LatestPods]]:
    """Each observation, with the state that it leads to: one dict, which changes in place."""
    latest: LatestPods = {}
    for observation in record:
        latest[observation.uid] = observation
        yield observation, latest


def of_job(job: Job, observations: Iterable[PodObservation]) -> list[PodObservation]:
    return [each for each in observations if each.job == job.uid]


def bindings(job: Job, record: Record) -> dict[str, float]:
    """When each pod of a job was first seen bound, by UID."""
    first: dict[str, float] = {}
    for each in of_job(job, record):
        if each.node:
            first.setdefault(each.uid, each.at_s)
    return first


def spread_ms(job: Job, record: Record) -> float | None:
    """Milliseconds from a job's first binding until it was bound whole; None if it never was.

    Later replacements of pods do not count.
    """
    instants = sorted(bindings(job, record).values())
    if len(instants) < job.size:
        return None
    return (instants[job.size - 1] - instants[0]) * 1000
