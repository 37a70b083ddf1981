"""The demo's claims, each checked against what was seen at the API server. Pure.

A claim that cannot be seen to hold does not hold: an empty record proves nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from tutti.demo.record import (
    GPU,
    Job,
    Record,
    Sighting,
    bindings,
    of_job,
    replay,
    spread_ms,
)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was claimed, whether it held, and what was seen."""

    text: str
    held: bool
    evidence: str


def half_starts(text: str, job: Job, record: Record) -> Claim:
    """At the end a job is bound in part: its ps and at least one worker run, a worker waits."""
    now = [each for each in _last(job, record) if not each.gone]
    running = Counter(each.role for each in now if each.running)
    waiting = Counter(each.role for each in now if not each.node)
    gpus = sum(each.requests.get(GPU, 0) for each in now if each.holds_room)
    return Claim(
        text=text,
        held=len(now) == job.size
        and running["ps"] > 0 < running["worker"]
        and gpus > 0
        and waiting["worker"] > 0,
        evidence=f"runs: {_roles(running)}; waits: {_roles(waiting)}; holds {gpus} GPU idle",
    )


def neither_whole(text: str, jobs: Sequence[Job], record: Record) -> Claim:
    """At the end each of the jobs is bound in part, and holds GPUs idle."""
    halves = [half_starts("", job, record) for job in jobs]
    said = "; ".join(f"{job.name} {half.evidence}" for job, half in zip(jobs, halves, strict=True))
    return Claim(text=text, held=len(jobs) > 1 and all(half.held for half in halves), evidence=said)


def runs_whole(text: str, job: Job, record: Record) -> Claim:
    """At one instant all pods of a job ran."""
    most = 0
    for sighting, picture in replay(record):
        if sighting.job == job.uid:
            most = max(most, sum(each.running for each in of_job(job, picture.values())))
    spread = spread_ms(job, record)
    bound = "" if spread is None else f", bound within {_ms(spread)}"
    return Claim(
        text=text, held=most == job.size, evidence=f"{most} of {job.size} ran at once{bound}"
    )


def waits_whole(text: str, job: Job, record: Record, *, from_s: float, until_s: float) -> Claim:
    """From one instant to another all pods of a job exist, and none is bound, the ps included."""
    pods: set[str] = set()
    gone: set[str] = set()
    bound: list[Sighting] = []
    for each in of_job(job, record):
        if each.at_s <= from_s:
            pods.add(each.uid)
        if each.at_s <= until_s and each.gone:
            gone.add(each.uid)
        if each.at_s <= until_s and each.node:
            bound.append(each)
    named = sorted({each.name for each in bound})
    waited = f"{len(pods - gone)} of {job.size} pods pending for {until_s - from_s:.1f} s"
    return Claim(
        text=text,
        held=until_s > from_s and len(pods - gone) == job.size and not bound,
        evidence=f"{waited}, bound: {', '.join(named) or 'none'}",
    )


def gives_reason(text: str, state: str, sentence: str) -> Claim:
    """`tutti why` says in one sentence that a job waits, and for what."""
    held = state == "waiting" and bool(sentence) and "\n" not in sentence
    return Claim(
        text=text, held=held, evidence=sentence or f"no verdict was published; state {state}"
    )


def starts_after(text: str, job: Job, first: Job, record: Record, *, ends: int) -> Claim:
    """No pod of a job is bound before `ends` workers of another have ended."""
    ended: set[str] = set()
    for sighting in record:
        if sighting.job == first.uid and sighting.role == "worker" and sighting.ended:
            ended.add(sighting.uid)
        if sighting.job == job.uid and sighting.node:
            seen = f"{len(ended)} workers of {first.name} had ended when the first pod was bound"
            return Claim(text=text, held=len(ended) >= ends, evidence=seen)
    return Claim(text=text, held=False, evidence="it was never bound")


def never_together(text: str, one: Job, other: Job, record: Record) -> Claim:
    """At no instant do two jobs both hold room, and each is bound whole at its time."""
    together = 0
    for _, picture in replay(record):
        held = {each.job for each in picture.values() if each.holds_room}
        together += {one.uid, other.uid} <= held
    spreads = [spread_ms(job, record) for job in (one, other)]
    whole = sum(spread is not None for spread in spreads)
    return Claim(
        text=text,
        held=whole == 2 and not together,
        evidence=f"{whole} of 2 were bound whole; both held GPUs in {together} sightings",
    )


def takes_place(text: str, dead: Sighting, job: Job, record: Record) -> Claim:
    """After a pod of another job has gone, a pod of this job is bound in its place, before any that
    is made again for it.
    """
    for each in _since_gone(dead, record):
        if each.node == dead.node and each.job in {dead.job, job.uid}:
            return Claim(
                text=text,
                held=each.job == job.uid,
                evidence=f"{each.name} went to {dead.node} when {dead.name} was gone",
            )
    return Claim(text=text, held=False, evidence=f"no pod went to {dead.node}")


def gets_place_back(text: str, dead: Sighting, other: Job, record: Record) -> Claim:
    """A pod that has gone is made again and bound in its old place, and until then no pod of a job
    that waits is bound.
    """
    went_s: float | None = None
    waiting: set[str] = set()
    bound: list[str] = []
    for each in record:
        if each.uid == dead.uid and each.gone:
            went_s = each.at_s
        elif each.job == other.uid:
            if each.node:
                bound.append(each.name)
            else:
                waiting.add(each.uid)
        elif went_s is not None and each.name == dead.name and each.node:
            gone_s = each.at_s - went_s
            seen = f"{dead.name} left {dead.node}, came back on {each.node} after {gone_s:.1f} s"
            return Claim(
                text=text,
                held=each.node == dead.node and len(waiting) == other.size and not bound,
                evidence=f"{seen}; of {other.name} {len(waiting)} waited, bound: "
                f"{', '.join(bound) or 'none'}",
            )
    return Claim(text=text, held=False, evidence=f"{dead.name} was not bound again")


def holds_room(text: str, dead: Sighting, message: str) -> Claim:
    """The job's group says that capacity is reserved for a pod that has gone, on its node."""
    held = dead.name in message and f"reserved on {dead.node} until" in message
    return Claim(text=text, held=held, evidence=message or "no verdict was published")


def has_room_for(text: str, job: Job, fit: int, *, short: int) -> Claim:
    """There was room for all pods of a job but `short`."""
    return Claim(
        text=text,
        held=fit == job.size - short,
        evidence=f"pod by pod {fit} of {job.size} would have fitted",
    )


def never_in_part(
    text: str, jobs: Collection[Job], record: Record, *, spread_ms_max: float
) -> Claim:
    """Each job that was bound at all was bound whole, within the time that its bindings take."""
    worst, in_part, whole = 0.0, [], 0
    for job in jobs:
        spread = spread_ms(job, record)
        if spread is not None:
            whole += 1
            worst = max(worst, spread)
        elif bindings(job, record):
            in_part.append(job.name)
    names = f", left in part: {', '.join(in_part)}" if in_part else ""
    seen = f"{whole} gangs bound whole; first to last binding at most {_ms(worst)}{names}"
    return Claim(
        text=text,
        held=whole > 0 and not in_part and worst <= spread_ms_max,
        evidence=f"{seen} (limit {spread_ms_max:.0f} ms)",
    )


def never_over_committed(
    text: str, nodes: Mapping[str, Mapping[str, int]], record: Record
) -> Claim:
    """At no instant did the pods on a node take more of anything than it has.

    Args:
        text: The claim in words.
        nodes: What each node has, by resource.
        record: What was seen.
    """
    over: set[str] = set()
    most_gpus = 0
    for sighting, picture in replay(record):
        if not sighting.holds_room:
            continue
        used: Counter[str] = Counter()
        for each in picture.values():
            if each.holds_room and each.node == sighting.node:
                used.update(each.requests)
        room = nodes.get(sighting.node, {})
        over |= {f"{sighting.node}: {name}" for name, n in used.items() if n > room.get(name, 0)}
        most_gpus = max(most_gpus, used[GPU])
    refused = sorted({each.name for each in record if each.phase == "Failed"})
    seen = f"at most {most_gpus} GPU in use on a node; refused by kubelets: {len(refused)}"
    return Claim(
        text=text,
        held=most_gpus > 0 and not over and not refused,
        evidence=f"{seen}; over: {', '.join(sorted(over))}" if over else seen,
    )


def all_survived(
    text: str, killed: Mapping[str, int], ready: Mapping[str, int], expected: Sequence[str]
) -> Claim:
    """Each process was killed, and another of its name is ready.

    Args:
        text: The claim in words.
        killed: The pid that was killed, by the process's name.
        ready: The pid that is ready at the end, by name.
        expected: Every name.
    """
    spared = [name for name in expected if name not in killed]
    lost = [name for name in expected if name not in ready or ready[name] == killed.get(name)]
    notes = [f"{len(expected) - len(spared)} of {len(expected)} killed: {', '.join(expected)}"]
    notes += [f"never killed: {', '.join(spared)}"] if spared else []
    notes += [f"not ready again: {', '.join(lost)}"] if lost else []
    return Claim(
        text=text, held=bool(expected) and not spared and not lost, evidence="; ".join(notes)
    )


def stuck(what: str, timeout_s: float) -> Claim:
    """The story could not continue."""
    return Claim(
        text="The demo continues", held=False, evidence=f"waited {timeout_s:.0f} s in vain: {what}"
    )


def _ms(duration_ms: float) -> str:
    """What arrived in one piece of the watch was seen at one instant."""
    return f"{duration_ms:.0f} ms" if duration_ms >= 1 else "1 ms"


def _since_gone(dead: Sighting, record: Record) -> Iterator[Sighting]:
    """Sightings of living pods with a node that were first seen with it after another had gone."""
    gone = False
    before: set[str] = set()
    for each in record:
        if each.uid == dead.uid and each.gone:
            gone = True
        elif each.node and not gone:
            before.add(each.uid)
        elif each.node and not each.gone and each.uid not in before:
            yield each


def _last(job: Job, record: Record) -> list[Sighting]:
    return of_job(job, {each.uid: each for each in record}.values())


def _roles(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {role}" for role, count in sorted(counts.items())) or "none"
