"""Records as the logs hold them, for stories."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shared.contracts.cluster import Gone, PodChanges
from shared.contracts.decisions import Binding, Cycle, EvictionDecision, GangDecision, Victim
from shared.contracts.outcomes import Member, Outcome
from shared.contracts.verdicts import Verdict, Why
from shared.model.objects import Pod
from tutti.timeline.history import Logs


def logs(**streams: Iterable[Any]) -> Logs:
    """Everything that is not given is empty."""
    return Logs(**{name: tuple(records) for name, records in streams.items()})


def decided(
    seq: int, gang: str, nodes: Mapping[str, str], *, at_ms: int = 4_000
) -> tuple[int, GangDecision]:
    """A gang, first seen at 1000, whose pods go to these nodes."""
    return seq, GangDecision(
        gang_id=gang,
        gang=f"team/{gang}",
        dialect="volcano",
        epoch=1,
        attempt=1,
        bindings=tuple(
            Binding(uid=uid, namespace="team", name=uid, node=node) for uid, node in nodes.items()
        ),
        quorum=len(nodes),
        trace_id="",
        first_seen_ms=1_000,
        cycle=_cycle(at_ms),
    )


def evicted(seq: int, gang: str, uids: Iterable[str]) -> tuple[int, EvictionDecision]:
    """These pods have to go."""
    return seq, EvictionDecision(
        gang_id=gang,
        gang=f"team/{gang}",
        epoch=1,
        attempt=1,
        victims=tuple(Victim(uid=uid, namespace="team", name=uid) for uid in uids),
        via="eviction",
        reason="Preempted",
        trace_id="",
        cycle=_cycle(5_000),
    )


def outcome(
    seq: int, gang: str, *, last_bound_ms: int = 5_000, unbound: Iterable[str] = ()
) -> Outcome:
    """All members were bound but these."""
    return Outcome(
        gang_id=gang,
        decision_seq=seq,
        epoch=1,
        binder="binder-0",
        delivered=1,
        members=tuple(Member(uid=uid, node="n", result="refused") for uid in unbound),
        last_bound_ms=last_bound_ms,
    )


def pods(
    at_ms: int, *, ended: Mapping[str, str] | None = None, gone: Iterable[str] = ()
) -> PodChanges:
    """Pods that ended in a phase, and pods that went."""
    changed = [
        msgspec.convert(
            {
                "uid": uid,
                "namespace": "team",
                "name": uid,
                "resource_version": 1,
                "shape": b"",
                "phase": phase,
            },
            Pod,
        )
        for uid, phase in (ended or {}).items()
    ]
    removed = tuple(Gone(uid=uid, resource_version=2) for uid in gone)
    return PodChanges(epoch=1, at_ms=at_ms, changed=tuple(changed), removed=removed)


def waiting(gang: str, reason: str) -> Verdict:
    """A gang, first seen at 2000, that waits."""
    return Verdict(
        gang_id=gang,
        epoch=1,
        at_ms=3_000,
        dialect="volcano",
        namespace="team",
        name=gang,
        phase="Inqueue",
        first_seen_ms=2_000,
        why=Why(reason=reason, sentence="s"),
    )


def _cycle(at_ms: int) -> Cycle:
    return Cycle(cluster_seq=1, outcomes_seq=0, now_ms=at_ms, configuration="")
