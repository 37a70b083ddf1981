"""Derives the history of gangs from the logs: waits, and stays on nodes. Pure.

A stay begins when the last member of its decision was bound, and ends when CLUSTER shows that the
last of its pods has ended or was deleted. A decision without an outcome has no stay yet.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from shared.contracts.cluster import ClusterRecord, PodChanges
from shared.contracts.decisions import DecisionRecord, EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome, OutcomeRecord
from shared.contracts.verdicts import Verdict
from shared.model.gang_titles import title_of_place

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


def _waiting(verdicts: Iterable[Verdict], stays: Iterable[Stay], namespace: str) -> Iterator[Wait]:
    """Waits of gangs that wait now: since their creation, or since their last stay ended."""
    left_ms: dict[str, int] = {}
    there = set()
    for stay in stays:
        left_ms[stay.gang] = max(left_ms.get(stay.gang, 0), stay.ended_ms)
        if not stay.ended_ms:
            there.add(stay.gang)
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
        for node, uids in by_node.items():
            ended = [ends[uid] for uid in uids if uid in ends]
            over = len(ended) == len(uids)
            kinds = {end for _, end in ended}
            found.append(
                Stay(
                    gang=title_of_place(decision.gang),
                    node=node,
                    pods=len(uids),
                    began_ms=outcome.last_bound_ms,
                    ended_ms=max(at_ms for at_ms, _ in ended) if over else 0,
                    end=next(end for end in WORST_FIRST if end in kinds) if over else "there",
                )
            )
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
