"""The demo's claims, each checked against its only evidence: pods as observed at the API server, in
order. Pure.

A claim whose evidence is missing does not hold: an empty record proves nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

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


class Finding(NamedTuple):
    """Whether a claim held, and the evidence."""

    held: bool
    evidence: str


class Claim(NamedTuple):
    """A claim as a sentence, and its finding."""

    text: str
    finding: Finding


def half_starts(job: Job, record: Record, *, workers: int | None = None) -> Finding:
    """At the end a job is bound in part: its ps runs and a worker waits, beside `workers` that run
    (None: at least one).
    """
    latest = {each.uid: each for each in record}
    now = [each for each in of_job(job, latest.values()) if not each.gone]
    running = Counter(each.role for each in now if each.running)
    waiting = Counter(each.role for each in now if not each.node)
    gpus = sum(each.requests.get(GPU, 0) for each in now if each.uses_capacity)
    half = running["ps"] > 0 < running["worker"] and gpus > 0 and waiting["worker"] > 0
    half = half and workers in {None, running["worker"]}
    return Finding(
        len(now) == job.size and half,
        f"runs: {_roles(running)}; waits: {_roles(waiting)}; holds {gpus} GPU idle",
    )


def neither_whole(jobs: Sequence[Job], record: Record) -> Finding:
    """At the end each of the jobs is bound in part, and holds GPUs idle."""
    halves = [half_starts(job, record) for job in jobs]
    evidence = "; ".join(
        f"{job.name} {half.evidence}" for job, half in zip(jobs, halves, strict=True)
    )
    return Finding(len(jobs) > 1 and all(half.held for half in halves), evidence)


def runs_whole(job: Job, record: Record) -> Finding:
    """At one instant all pods of a job ran."""
    most = 0
    for observation, latest in replay(record):
        if observation.job == job.uid:
            most = max(most, sum(each.running for each in of_job(job, latest.values())))
    spread = spread_ms(job, record)
    bound = "" if spread is None else f", bound within {_ms(spread)}"
    return Finding(most == job.size, f"{most} of {job.size} ran at once{bound}")


def waits_whole(job: Job, record: Record, *, from_s: float, until_s: float) -> Finding:
    """From one instant to another all pods of a job exist, and none is bound, the ps included."""
    pods: set[str] = set()
    gone: set[str] = set()
    bound: set[str] = set()
    for each in of_job(job, record):
        if each.at_s <= from_s:
            pods.add(each.uid)
        if each.at_s <= until_s and each.gone:
            gone.add(each.uid)
        if each.at_s <= until_s and each.node:
            bound.add(each.name)
    waited = f"{len(pods - gone)} of {job.size} pods pending for {until_s - from_s:.1f} s"
    return Finding(
        until_s > from_s and len(pods - gone) == job.size and not bound,
        f"{waited}, bound: {_named(bound)}",
    )


def gives_reason(state: str, sentence: str, *words: str) -> Finding:
    """`tutti why` explains in one sentence that a job waits, and for what: in these words."""
    held = state == "waiting" and bool(sentence) and "\n" not in sentence
    held = held and all(each in sentence for each in words)
    return Finding(held, sentence or f"no verdict was published; state {state}")


def declared_by_budget(job: Job, minimum: int | str | None) -> Finding:
    """A PodDisruptionBudget of the job requires all of its pods; `minimum` is its minAvailable."""
    seen = "no budget was seen" if minimum is None else f"minAvailable is {minimum}"
    return Finding(minimum == job.size, f"{seen}, the job has {job.size} pods")


def starts_after(job: Job, first: Job, record: Record, *, ends: int) -> Finding:
    """No pod of a job is bound before `ends` workers of another have ended."""
    ended: set[str] = set()
    for observation in record:
        if observation.job == first.uid and observation.role == "worker" and observation.ended:
            ended.add(observation.uid)
        if observation.job == job.uid and observation.node:
            evidence = (
                f"{len(ended)} workers of {first.name} had ended when the first pod was bound"
            )
            return Finding(len(ended) >= ends, evidence)
    return Finding(False, "it was never bound")


def never_together(first: Job, second: Job, record: Record) -> Finding:
    """At no instant do two jobs both use capacity, and each is bound whole at its time."""
    together = 0
    for _, latest in replay(record):
        users = {each.job for each in latest.values() if each.uses_capacity}
        together += {first.uid, second.uid} <= users
    whole = sum(spread_ms(job, record) is not None for job in (first, second))
    return Finding(
        whole == 2 and not together,
        f"{whole} of 2 were bound whole; both held GPUs in {together} observations",
    )


def takes_place(dead: PodObservation, job: Job, record: Record) -> Finding:
    """After a pod of another job was deleted, a pod of this job is bound in its place, before its
    replacement.
    """
    for each in _bound_after_deletion(dead, record):
        if each.node == dead.node and each.job in {dead.job, job.uid}:
            evidence = f"{each.name} went to {dead.node} when {dead.name} was gone"
            return Finding(each.job == job.uid, evidence)
    return Finding(False, f"no pod went to {dead.node}")


def gets_place_back(dead: PodObservation, other: Job, record: Record) -> Finding:
    """The replacement of a deleted pod is bound in its old place, and until then no pod of a job
    that waits is bound.
    """
    deleted_s: float | None = None
    waiting: set[str] = set()
    bound: set[str] = set()
    for each in record:
        if each.uid == dead.uid and each.gone:
            deleted_s = each.at_s
        elif each.job == other.uid and each.node:
            bound.add(each.name)
        elif each.job == other.uid:
            waiting.add(each.uid)
        elif deleted_s is not None and each.name == dead.name and each.node:
            after_s = each.at_s - deleted_s
            came = f"{dead.name} left {dead.node}, came back on {each.node} after {after_s:.1f} s"
            return Finding(
                each.node == dead.node and len(waiting) == other.size and not bound,
                f"{came}; of {other.name} {len(waiting)} waited, bound: {_named(bound)}",
            )
    return Finding(False, f"{dead.name} was not bound again")


def reserves_capacity(dead: PodObservation, message: str) -> Finding:
    """The condition of the job's group reports a reservation for a deleted pod, on its node. A
    planner that took over after the deletion knows the pod's role, not its name.
    """
    named = dead.name in message or f"a member (role {dead.role}) was lost before" in message
    held = named and f"reserved on {dead.node} until" in message
    return Finding(held, message or "no verdict was published")


def fits_all_but(job: Job, fit: int, *, short: int) -> Finding:
    """There was free capacity for all pods of a job but `short`."""
    return Finding(fit == job.size - short, f"pod by pod {fit} of {job.size} would have fitted")


def never_in_part(jobs: Collection[Job], record: Record, *, spread_ms_max: float) -> Finding:
    """Each job of which any pod was bound was bound whole, within `spread_ms_max`."""
    worst, in_part, whole = 0.0, set(), 0
    for job in jobs:
        spread = spread_ms(job, record)
        if spread is not None:
            whole += 1
            worst = max(worst, spread)
        elif bindings(job, record):
            in_part.add(job.name)
    left = f", left in part: {_named(in_part)}" if in_part else ""
    evidence = f"{whole} gangs bound whole; first to last binding at most {_ms(worst)}{left}"
    return Finding(
        whole > 0 and not in_part and worst <= spread_ms_max,
        f"{evidence} (limit {spread_ms_max:.0f} ms)",
    )


def never_over_committed(nodes: Mapping[str, Mapping[str, int]], record: Record) -> Finding:
    """At no instant did the pods on a node use more of any resource than is allocatable there."""
    over: set[str] = set()
    most_gpus = 0
    for observation, latest in replay(record):
        if not observation.uses_capacity:
            continue
        node = observation.node
        used: Counter[str] = Counter()
        for each in latest.values():
            if each.uses_capacity and each.node == node:
                used.update(each.requests)
        allocatable = nodes.get(node, {})
        over |= {f"{node}: {name}" for name, n in used.items() if n > allocatable.get(name, 0)}
        most_gpus = max(most_gpus, used[GPU])
    refused = {each.name for each in record if each.phase == "Failed"}
    evidence = f"at most {most_gpus} GPU in use on a node; refused by kubelets: {len(refused)}"
    return Finding(
        most_gpus > 0 and not over and not refused,
        f"{evidence}; over: {_named(over)}" if over else evidence,
    )


def all_survived(
    killed: Mapping[str, int], ready: Mapping[str, int], expected: Sequence[str]
) -> Finding:
    """Each process was killed, and its successor is ready: pids by the process's name."""
    spared = [name for name in expected if name not in killed]
    lost = [name for name in expected if name not in ready or ready[name] == killed.get(name)]
    notes = [f"{len(expected) - len(spared)} of {len(expected)} killed: {', '.join(expected)}"]
    notes += [f"never killed: {', '.join(spared)}"] if spared else []
    notes += [f"not ready again: {', '.join(lost)}"] if lost else []
    return Finding(bool(expected) and not spared and not lost, "; ".join(notes))


def stuck(expected: str, timeout_s: float) -> Finding:
    """The demo could not continue."""
    return Finding(False, f"waited {timeout_s:.0f} s without success for: {expected}")


def _ms(duration_ms: float) -> str:
    """Events of one batch of the watch have the same instant."""
    return f"{duration_ms:.0f} ms" if duration_ms >= 1 else "1 ms"


def _bound_after_deletion(dead: PodObservation, record: Record) -> Iterator[PodObservation]:
    """Observations of living pods that were bound after a pod was deleted."""
    gone = False
    before: set[str] = set()
    for each in record:
        if each.uid == dead.uid and each.gone:
            gone = True
        elif each.node and not gone:
            before.add(each.uid)
        elif each.node and not each.gone and each.uid not in before:
            yield each


def _named(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _roles(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {role}" for role, count in sorted(counts.items())) or "none"
