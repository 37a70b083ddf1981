"""Derives the history of gangs from Tutti's API: waits, and stays on nodes. Pure.

A stay begins when the last member of its decision was bound, and ends when the last of its pods has
ended or was deleted. The API does not have the ends of pods before its service started; a stay of
which nothing else is known is left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

import msgspec

from shared.contracts.visibility import DecidedPod, Decision, DecisionStatus, Gang

End = Literal["there", "done", "failed", "evicted", "gone"]

_ENDS: Final[dict[str, End]] = {"Succeeded": "done", "Failed": "failed", "Deleted": "gone"}
_WAITING: Final = frozenset({"Pending", "Inqueue"})
#: The end of a stay whose pods ended differently: the first of these.
WORST_FIRST: Final[tuple[End, ...]] = ("there", "evicted", "failed", "gone", "done")


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """A gang waited. `ended_ms` 0: it still waits, for the reason `why`."""

    gang: str
    began_ms: int
    ended_ms: int = 0
    why: str = ""


class Stay(msgspec.Struct, frozen=True, kw_only=True):
    """Members of a gang were on a node. `ended_ms` 0: they still are."""

    gang: str
    node: str
    pods: int
    began_ms: int
    ended_ms: int = 0
    end: End = "there"


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Waits and stays between two instants, ordered by their start."""

    from_ms: int
    to_ms: int
    waits: tuple[Wait, ...] = ()
    stays: tuple[Stay, ...] = ()

    @property
    def events(self) -> tuple[Wait | Stay, ...]:
        return (*self.waits, *self.stays)

    @property
    def gangs(self) -> list[str]:
        """All gangs, ordered by their first wait or stay."""
        events = sorted((event.began_ms, event.gang) for event in self.events)
        return list(dict.fromkeys(gang for _, gang in events))

    @property
    def nodes(self) -> list[str]:
        """All nodes with stays, by name."""
        return sorted({stay.node for stay in self.stays}, key=_natural)


def _history_of(
    waits: Iterable[Wait], stays: Iterable[Stay], *, from_ms: int, to_ms: int
) -> History:
    """What was between two instants, ordered by its start."""

    def is_within(event: Wait | Stay) -> bool:
        return event.began_ms <= to_ms and (not event.ended_ms or event.ended_ms >= from_ms)

    by_start = sorted(waits, key=lambda wait: (wait.began_ms, wait.gang))
    by_node = sorted(stays, key=lambda stay: (stay.began_ms, stay.gang, _natural(stay.node)))
    return History(
        from_ms=from_ms,
        to_ms=to_ms,
        waits=tuple(filter(is_within, by_start)),
        stays=tuple(filter(is_within, by_node)),
    )


def trimmed(history: History) -> History:
    """The history without the time before the first gang and after the last one."""
    if not history.events:
        return history
    ended = [event.ended_ms for event in history.events]
    return msgspec.structs.replace(
        history,
        from_ms=max(history.from_ms, min(event.began_ms for event in history.events)),
        to_ms=history.to_ms if 0 in ended else min(history.to_ms, max(ended)),
    )


def _left_ms(stays: Iterable[Stay]) -> dict[str, int]:
    """When the last stay of each gang ended; 0: it has not."""
    left_ms: dict[str, int] = {}
    for stay in stays:
        left_ms[stay.gang] = max(left_ms.get(stay.gang, 0), stay.ended_ms)
    return left_ms


def _stay(gang: str, node: str, began_ms: int, pods: int, ended: Sequence[tuple[int, End]]) -> Stay:
    """A stay of so many pods, of which these have ended: when, and how."""
    over = len(ended) == pods
    kinds = {end for _, end in ended}
    return Stay(
        gang=gang,
        node=node,
        pods=pods,
        began_ms=began_ms,
        ended_ms=max(at_ms for at_ms, _ in ended) if over else 0,
        end=next(end for end in WORST_FIRST if end in kinds) if over else "there",
    )


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key by which `node-2` comes before `node-10`."""
    parts = re.findall(r"[0-9]+|[^0-9]", f"{name} ")
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def lanes(stays: Iterable[Stay]) -> list[list[Stay]]:
    """As few lanes as possible in which no two stays overlap; at least one."""
    rows: list[list[Stay]] = []
    for stay in sorted(stays, key=lambda stay: (stay.began_ms, stay.gang)):
        for lane in rows:
            last = lane[-1]
            if last.ended_ms and last.ended_ms <= stay.began_ms:
                lane.append(stay)
                break
        else:
            rows.append([stay])
    return rows or [[]]


class BuiltHistory(NamedTuple):
    """A history, and the number of stays whose end is not known, which it does not have."""

    history: History
    left_out: int


def build_history(
    decisions: Sequence[Decision], gangs: Iterable[Gang], *, from_ms: int, to_ms: int
) -> BuiltHistory:
    """The history between two instants, of all gangs that the decisions and gangs are of."""
    existing = {_place(gang): gang for gang in gangs}
    evicted = {
        pod.uid
        for decision in decisions
        if decision.status.action == "Evict"
        for pod in decision.status.pods
    }
    binds = [decision for decision in decisions if decision.status.action == "Bind"]
    # The planner repeats decisions that the log will drop: a pod's first decision bound it, its
    # last one has its end.
    newest = {pod.uid: pod for decision in binds for pod in decision.status.pods}
    stays: list[Stay] = []
    left_out = 0
    for decision in binds:
        bound = [pod for pod in decision.status.pods if not pod.unbound]
        pods = [newest.pop(pod.uid) for pod in bound if pod.uid in newest]
        for stay in _stays(decision.status, pods, gang_of(decision, existing), evicted):
            if stay is None:
                left_out += 1
            else:
                stays.append(stay)
    waits = [*_waited(decisions, existing), *_waits(existing, stays)]
    return BuiltHistory(_history_of(waits, stays, from_ms=from_ms, to_ms=to_ms), left_out)


def _stays(
    decision: DecisionStatus, bound: Iterable[DecidedPod], gang: Gang | None, evicted: set[str]
) -> Iterator[Stay | None]:
    """A stay for each node; None: its end is not known."""
    by_node: dict[str, list[DecidedPod]] = {}
    for pod in bound:
        by_node.setdefault(pod.node, []).append(pod)
    present = set() if gang is None else {placed.node for placed in gang.status.placement}
    for node, pods in by_node.items():
        ended: list[tuple[int, End]] = [
            (instant_ms(pod.ended), _end(pod, evicted)) for pod in pods if pod.ended is not None
        ]
        if len(ended) < len(pods) and node not in present:
            yield None
        else:
            yield _stay(_title(decision, gang), node, _bound_ms(decision), len(pods), ended)


def _bound_ms(decision: DecisionStatus) -> int:
    """When its last member was bound; when it was made, while that is not known."""
    bound = [event.time for event in decision.events if event.type == "Bound"]
    return instant_ms(max(bound, default=decision.time))


def _end(pod: DecidedPod, evicted: set[str]) -> End:
    if pod.uid in evicted and pod.end == "Deleted":
        return "evicted"
    return _ENDS.get(pod.end, "gone")


def _waited(decisions: Iterable[Decision], existing: dict[str, Gang]) -> Iterator[Wait]:
    """Waits before the first decision for each gang."""
    known: set[str] = set()
    for decision in decisions:
        status = decision.status
        if status.action != "Bind" or status.attempt != 1 or status.gang_id in known:
            continue
        known.add(status.gang_id)
        gang = gang_of(decision, existing)
        created = gang.metadata.creation_timestamp if gang is not None else None
        began = status.first_seen or created
        if began is not None and began <= status.time:
            began_ms, ended_ms = instant_ms(began), instant_ms(status.time)
            yield Wait(gang=_title(status, gang), began_ms=began_ms, ended_ms=ended_ms)


def _waits(existing: dict[str, Gang], stays: Iterable[Stay]) -> Iterator[Wait]:
    """Waits of gangs that wait now."""
    left_ms = _left_ms(stays)
    for gang in existing.values():
        title = f"{gang.metadata.namespace}/{gang.status.title or gang.metadata.name}"
        created = gang.metadata.creation_timestamp
        is_there = bool(gang.status.placement)
        if gang.status.phase in _WAITING and created is not None and not is_there:
            pending = gang.status.pending
            yield Wait(
                gang=title,
                began_ms=max(instant_ms(created), left_ms.get(title, 0)),
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


def instant_ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
