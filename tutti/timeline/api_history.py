"""Derives the history of gangs from Tutti's API: decisions, and the gangs that exist. Pure.

A stay begins when its decision was made, and ends when its last pod has ended. The API does not
have the ends of pods before its service started; a stay of which nothing else is known is left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from shared.contracts.visibility import DecidedPod, Decision, DecisionStatus, Gang
from tutti.timeline.history import WORST_FIRST, End, History, Stay, Wait, history_of

_WAITING: Final = frozenset({"Pending", "Inqueue"})
_ENDS: Final[dict[str, End]] = {"Succeeded": "done", "Failed": "failed", "Deleted": "gone"}


class ApiHistory(NamedTuple):
    """A history, and the number of stays whose end is not known, which it does not have."""

    history: History
    left_out: int


def api_history(
    decisions: Sequence[Decision], gangs: Iterable[Gang], *, from_ms: int, to_ms: int
) -> ApiHistory:
    """The history between two instants, of all gangs that the decisions and gangs are of."""
    existing = {_place(one): one for one in gangs}
    evicted = {
        pod.uid for one in decisions if one.status.action == "Evict" for pod in one.status.pods
    }
    binds = [one for one in decisions if one.status.action == "Bind"]
    # The planner repeats decisions that the log will drop: a pod's first decision bound it, its
    # last one has its end.
    newest = {pod.uid: pod for one in binds for pod in one.status.pods}
    stays: list[Stay] = []
    left_out = 0
    for one in binds:
        pods = [newest.pop(pod.uid) for pod in one.status.pods if pod.uid in newest]
        for stay in _stays(one.status, pods, gang_of(one, existing), evicted):
            if stay is None:
                left_out += 1
            else:
                stays.append(stay)
    waits = [*_waited(decisions, existing), *_waits(existing, stays)]
    return ApiHistory(history_of(waits, stays, from_ms=from_ms, to_ms=to_ms), left_out)


def _stays(
    decision: DecisionStatus, bound: Iterable[DecidedPod], gang: Gang | None, evicted: set[str]
) -> Iterator[Stay | None]:
    """A stay for each node; None: its end is not known."""
    by_node: dict[str, list[DecidedPod]] = {}
    for pod in bound:
        by_node.setdefault(pod.node, []).append(pod)
    present = set() if gang is None else {one.node for one in gang.status.placement}
    for node, pods in by_node.items():
        ended = [_ms(pod.ended) for pod in pods if pod.ended is not None]
        is_over = len(ended) == len(pods)
        if not is_over and node not in present:
            yield None
            continue
        ends = {_end(pod, evicted) for pod in pods}
        yield Stay(
            gang=_title(decision, gang),
            node=node,
            pods=len(pods),
            began_ms=_ms(decision.time),
            ended_ms=max(ended) if is_over else 0,
            end=next(end for end in WORST_FIRST if end in ends) if is_over else "there",
        )


def _end(pod: DecidedPod, evicted: set[str]) -> End:
    if pod.uid in evicted and pod.end == "Deleted":
        return "evicted"
    return _ENDS.get(pod.end, "gone")


def _waited(decisions: Iterable[Decision], existing: dict[str, Gang]) -> Iterator[Wait]:
    """Waits before the first decision for gangs that still exist; of others it is not known when
    they began.
    """
    for one in decisions:
        gang = gang_of(one, existing)
        created = gang.metadata.creation_timestamp if gang is not None else None
        if one.status.action == "Bind" and one.status.attempt == 1 and created is not None:
            began_ms, ended_ms = _ms(created), _ms(one.status.time)
            if began_ms <= ended_ms:
                yield Wait(gang=_title(one.status, gang), began_ms=began_ms, ended_ms=ended_ms)


def _waits(existing: dict[str, Gang], stays: Iterable[Stay]) -> Iterator[Wait]:
    """Waits of gangs that wait now."""
    left_ms: dict[str, int] = {}
    for stay in stays:
        left_ms[stay.gang] = max(left_ms.get(stay.gang, 0), stay.ended_ms)
    for gang in existing.values():
        title = f"{gang.metadata.namespace}/{gang.status.title or gang.metadata.name}"
        created = gang.metadata.creation_timestamp
        is_there = bool(gang.status.placement)
        if gang.status.phase in _WAITING and created is not None and not is_there:
            pending = gang.status.pending
            yield Wait(
                gang=title,
                began_ms=max(_ms(created), left_ms.get(title, 0)),
                why=pending.reason if pending is not None else "",
            )


def gang_of(decision: Decision, existing: Mapping[str, Gang]) -> Gang | None:
    """The gang that a decision was made for; None: it is gone. `existing`: gangs by
    "namespace/name".

    A former gang of the same name has decisions with another id, made before this one was seen.
    Pods that get a group later keep their decisions under their former id, which are younger.
    """
    gang = existing.get(decision.status.gang)
    if gang is None or gang.metadata.uid == decision.status.gang_id:
        return gang
    created = gang.metadata.creation_timestamp
    return gang if created is not None and decision.status.time >= created else None


def _title(decision: DecisionStatus, gang: Gang | None) -> str:
    """The name of a decision's gang for users, as that of the gang if it exists."""
    namespace, _, name = decision.gang.partition("/")
    title = (gang.status.title if gang is not None else "") or decision.title or name
    return f"{namespace}/{title}"


def _place(gang: Gang) -> str:
    return f"{gang.metadata.namespace}/{gang.metadata.name}"


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
