"""Derives the history of gangs: waits, and stays on nodes. Pure.

From the logs in NATS: a stay begins when the last member of its decision was bound, and ends when
CLUSTER shows that the last of its pods has ended or was deleted. A decision without an outcome has
no stay yet.

From Tutti's API (decisions, and the gangs that exist): a stay begins when its decision was made,
and ends when its last pod has ended. The API does not have the ends of pods before its service
started; a stay of which nothing else is known is left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

import msgspec

from shared.contracts.cluster import ClusterRecord, PodChanges
from shared.contracts.decisions import DecisionRecord, EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome, OutcomeRecord
from shared.contracts.verdicts import Verdict
from shared.contracts.visibility import DecidedPod, Decision, DecisionStatus, Gang
from shared.model.gang_keys import title_of_place

End = Literal["there", "done", "failed", "evicted", "gone"]

_ENDS: Final[dict[str, End]] = {"Succeeded": "done", "Failed": "failed"}
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
        events = sorted((one.began_ms, one.gang) for one in self.events)
        return list(dict.fromkeys(gang for _, gang in events))

    @property
    def nodes(self) -> list[str]:
        """All nodes with stays, by name."""
        return sorted({stay.node for stay in self.stays}, key=_natural)


class Logs(msgspec.Struct, frozen=True, kw_only=True):
    """Records of the streams, each in its order."""

    decisions: tuple[tuple[int, DecisionRecord], ...] = ()
    outcomes: tuple[OutcomeRecord, ...] = ()
    cluster: tuple[ClusterRecord, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    #: The streams of which older records were left out.
    cut: tuple[str, ...] = ()


def build_history(logs: Logs, *, from_ms: int, to_ms: int, namespace: str = "") -> History:
    """The history in the logs between two instants, of one namespace or, for "", of all."""
    decided = {
        seq: record
        for seq, record in logs.decisions
        if isinstance(record, GangDecision)
        and not record.again
        and (not namespace or record.gang.startswith(f"{namespace}/"))
    }
    stays = _stays(decided, logs)
    waits = [
        Wait(gang=title_of_place(one.gang), began_ms=one.first_seen_ms, ended_ms=one.cycle.now_ms)
        for one in decided.values()
        if one.attempt == 1 and one.quorum
    ]
    waits += _waiting(logs.verdicts, stays, namespace)
    return history_of(waits, stays, from_ms=from_ms, to_ms=to_ms)


def history_of(
    waits: Iterable[Wait], stays: Iterable[Stay], *, from_ms: int, to_ms: int
) -> History:
    """What was between two instants, ordered by its start."""

    def is_within(one: Wait | Stay) -> bool:
        return one.began_ms <= to_ms and (not one.ended_ms or one.ended_ms >= from_ms)

    by_start = sorted(waits, key=lambda one: (one.began_ms, one.gang))
    by_node = sorted(stays, key=lambda one: (one.began_ms, one.gang, _natural(one.node)))
    return History(
        from_ms=from_ms,
        to_ms=to_ms,
        waits=tuple(filter(is_within, by_start)),
        stays=tuple(filter(is_within, by_node)),
    )


def _waiting(verdicts: Iterable[Verdict], stays: Sequence[Stay], namespace: str) -> Iterator[Wait]:
    """Waits of gangs that wait now: since their creation, or since their last stay ended."""
    left_ms = _left_ms(stays)
    there = {stay.gang for stay in stays if not stay.ended_ms}
    for one in verdicts:
        gang = title_of_place(f"{one.namespace}/{one.name}")
        if (
            one.phase in _WAITING
            and one.first_seen_ms
            and gang not in there
            and (not namespace or one.namespace == namespace)
        ):
            yield Wait(
                gang=gang,
                began_ms=max(one.first_seen_ms, left_ms.get(gang, 0)),
                why=one.why.reason if one.why is not None else "",
            )


def trimmed(history: History) -> History:
    """The history without the time before the first gang and after the last one."""
    if not history.events:
        return history
    ended = [one.ended_ms for one in history.events]
    return msgspec.structs.replace(
        history,
        from_ms=max(history.from_ms, min(one.began_ms for one in history.events)),
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


def _stays(decided: dict[int, GangDecision], logs: Logs) -> list[Stay]:
    ends = _ends(logs)
    found: list[Stay] = []
    for outcome in logs.outcomes:
        if not isinstance(outcome, Outcome) or not outcome.last_bound_ms:
            continue
        decision = decided.get(outcome.decision_seq)
        if decision is None or decision.gang_id != outcome.gang_id:
            continue
        unbound = {member.uid for member in outcome.members if member.result != "bound"}
        by_node: dict[str, list[str]] = {}
        for binding in decision.bindings:
            if binding.uid not in unbound:
                by_node.setdefault(binding.node, []).append(binding.uid)
        gang, began_ms = title_of_place(decision.gang), outcome.last_bound_ms
        for node, uids in by_node.items():
            ended = [ends[uid] for uid in uids if uid in ends]
            found.append(_stay(gang, node, began_ms, len(uids), ended))
    return found


def _ends(logs: Logs) -> dict[str, tuple[int, End]]:
    """When and how pods ended, by UID."""
    evicted = {
        victim.uid
        for _, record in logs.decisions
        if isinstance(record, EvictionDecision)
        for victim in record.victims
    }
    ends: dict[str, tuple[int, End]] = {}
    for record in logs.cluster:
        if not isinstance(record, PodChanges):
            continue
        for pod in record.changed:
            end = _ENDS.get(pod.phase)
            if end is not None:
                ends.setdefault(pod.uid, (record.at_ms, end))
        for gone in record.removed:
            end = "evicted" if gone.uid in evicted else "gone"
            ends.setdefault(gone.uid, (record.at_ms, end))
    return ends


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key by which `node-2` comes before `node-10`."""
    parts = re.findall(r"[0-9]+|[^0-9]", f"{name} ")
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def lanes(stays: Iterable[Stay]) -> list[list[Stay]]:
    """As few lanes as possible in which no two stays overlap; at least one."""
    found: list[list[Stay]] = []
    for stay in sorted(stays, key=lambda one: (one.began_ms, one.gang)):
        for lane in found:
            last = lane[-1]
            if last.ended_ms and last.ended_ms <= stay.began_ms:
                lane.append(stay)
                break
        else:
            found.append([stay])
    return found or [[]]


_API_ENDS: Final[dict[str, End]] = {"Succeeded": "done", "Failed": "failed", "Deleted": "gone"}


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
        for stay in _api_stays(one.status, pods, gang_of(one, existing), evicted):
            if stay is None:
                left_out += 1
            else:
                stays.append(stay)
    waits = [*_waited(decisions, existing), *_waits(existing, stays)]
    return ApiHistory(history_of(waits, stays, from_ms=from_ms, to_ms=to_ms), left_out)


def _api_stays(
    decision: DecisionStatus, bound: Iterable[DecidedPod], gang: Gang | None, evicted: set[str]
) -> Iterator[Stay | None]:
    """A stay for each node; None: its end is not known."""
    by_node: dict[str, list[DecidedPod]] = {}
    for pod in bound:
        by_node.setdefault(pod.node, []).append(pod)
    present = set() if gang is None else {one.node for one in gang.status.placement}
    for node, pods in by_node.items():
        ended: list[tuple[int, End]] = [
            (instant_ms(pod.ended), _end(pod, evicted)) for pod in pods if pod.ended is not None
        ]
        if len(ended) < len(pods) and node not in present:
            yield None
        else:
            yield _stay(_title(decision, gang), node, instant_ms(decision.time), len(pods), ended)


def _end(pod: DecidedPod, evicted: set[str]) -> End:
    if pod.uid in evicted and pod.end == "Deleted":
        return "evicted"
    return _API_ENDS.get(pod.end, "gone")


def _waited(decisions: Iterable[Decision], existing: dict[str, Gang]) -> Iterator[Wait]:
    """Waits before the first decision for gangs that still exist; of others it is not known when
    they began.
    """
    for one in decisions:
        gang = gang_of(one, existing)
        created = gang.metadata.creation_timestamp if gang is not None else None
        if one.status.action == "Bind" and one.status.attempt == 1 and created is not None:
            began_ms, ended_ms = instant_ms(created), instant_ms(one.status.time)
            if began_ms <= ended_ms:
                yield Wait(gang=_title(one.status, gang), began_ms=began_ms, ended_ms=ended_ms)


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
    return int(at.timestamp() * 1000)
