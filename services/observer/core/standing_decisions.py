"""Decisions that stand: made, not carried out, and not answered yet.

A decision to bind stands until the other scheduler has bound (or a user has deleted) every pod in
it, or its time is over. A decision to evict pods for a gang is answered at once; one to release
what is bound of a gang stands until those pods have gone, since a planner that is refused asks
again every ten seconds.
"""

import heapq
from collections.abc import Iterable
from typing import NamedTuple

from services.observer.core.cluster_state import ClusterState
from shared.contracts.decisions import Act, EvictionDecision, GangDecision
from shared.contracts.outcomes import Member, Outcome
from shared.model.terms import Resources

REASON = "Observed"
WORDS = "Tutti only observes: nothing is bound or evicted"


class Stands(NamedTuple):
    """One decision that stands, until `due_ms`; 0: without end."""

    seq: int
    decision: Act
    due_ms: int


class Standing:
    """The decisions that stand, by sequence. Called with every pod that changes, so that it looks
    only at decisions that may be over.
    """

    def __init__(self, cluster_state: ClusterState) -> None:
        self._cluster_state = cluster_state
        self._acts: dict[int, Stands] = {}
        self._by_pod: dict[str, set[int]] = {}
        #: By node: pods that would be there, with what they ask for.
        self._loads: dict[str, dict[str, Resources]] = {}
        #: Instants at which decisions are over, with their sequences.
        self._due: list[tuple[int, int]] = []
        self._touched: dict[int, None] = {}
        #: Found to be over, and not dropped yet.
        self._over: dict[int, Stands] = {}

    def __len__(self) -> int:
        return len(self._acts)

    def add(self, stands: Stands) -> None:
        """Have a decision stand."""
        seq = stands.seq
        self._acts[seq] = stands
        self._touched[seq] = None
        if stands.due_ms:
            heapq.heappush(self._due, (stands.due_ms, seq))
        for uid in _pods(stands.decision):
            self._by_pod.setdefault(uid, set()).add(seq)
        for node, uid in _bindings(stands.decision):
            pod = self._cluster_state.pods.get(uid)
            if pod is not None and not pod.node:
                self._loads.setdefault(node, {})[uid] = self._cluster_state.requests(pod)

    def drop(self, seq: int) -> None:
        """It is answered."""
        self._over.pop(seq, None)
        stands = self._acts.pop(seq, None)
        if stands is None:
            return
        for node, uid in _bindings(stands.decision):
            self._loads.get(node, {}).pop(uid, None)
        for uid in _pods(stands.decision):
            seqs = self._by_pod[uid]
            seqs.discard(seq)
            if not seqs:
                del self._by_pod[uid]

    def changed(self, uids: Iterable[str]) -> None:
        """Pods appeared, changed or went."""
        for uid in uids:
            self._touched.update(dict.fromkeys(self._by_pod.get(uid, ())))

    def loads(self, node: str) -> Iterable[tuple[str, Resources]]:
        """Pods that would be on a node by decisions that stand, and are still unbound: UID, and
        what they ask for.
        """
        for uid, requests in self._loads.get(node, {}).items():
            pod = self._cluster_state.pods.get(uid)
            if pod is not None and not pod.node:
                yield uid, requests

    def over(self, now_ms: int) -> list[Stands]:
        """Decisions that have stood long enough; returned again until they are dropped."""
        while self._due and self._due[0][0] <= now_ms:
            self._touched[heapq.heappop(self._due)[1]] = None
        for seq in self._touched:
            one = self._acts.get(seq)
            if one is not None and self._is_over(one, now_ms):
                self._over[seq] = one
        self._touched = {}
        return list(self._over.values())

    def next_ms(self) -> int | None:
        """The next instant at which one is over by the clock alone."""
        while self._due and self._due[0][1] not in self._acts:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def _is_over(self, one: Stands, now_ms: int) -> bool:
        if one.due_ms and one.due_ms <= now_ms:
            return True
        pods = self._cluster_state.pods
        if isinstance(one.decision, EvictionDecision):
            if one.decision.via == "eviction":
                return True
            return all(victim.uid not in pods for victim in one.decision.victims)
        waiting = (pods.get(binding.uid) for binding in one.decision.bindings)
        return all(pod is None or pod.node for pod in waiting)


def answer(
    one: Stands, cluster_state: ClusterState, *, observer: str, generation: str, now_ms: int
) -> Outcome:
    """What is said of a decision that stood: what the other scheduler bound is bound, nothing else
    is.
    """
    decision = one.decision
    members: list[Member] = []
    bound = evicted = 0
    if isinstance(decision, GangDecision):
        for binding in decision.bindings:
            pod = cluster_state.pods.get(binding.uid)
            if pod is None:
                members.append(Member(uid=binding.uid, node=binding.node, result="gone", code=404))
            elif pod.node:
                bound += 1
            else:
                members.append(_unbound(binding.uid, binding.node))
    else:
        there = [victim for victim in decision.victims if victim.uid in cluster_state.pods]
        evicted = len(decision.victims) - len(there)
        members = [
            Member(uid=victim.uid, node="", result="refused", reason=REASON, message=WORDS)
            for victim in there
        ]
    return Outcome(
        gang_id=decision.gang_id,
        decision_seq=one.seq,
        epoch=decision.epoch,
        binder=observer,
        # No binder gets these decisions, and nothing is sent for them.
        delivered=1,
        reason=REASON,
        bound=bound,
        evicted=evicted,
        members=tuple(members),
        generation=generation,
        received_ms=now_ms,
    )


def _unbound(uid: str, node: str) -> Member:
    # A conflict: the pair of pod and node is not to blame, and another try may do.
    return Member(uid=uid, node=node, result="conflict", code=409, reason=REASON, message=WORDS)


def _pods(decision: Act) -> list[str]:
    """UIDs of the pods by which it may be over."""
    if isinstance(decision, EvictionDecision):
        return [victim.uid for victim in decision.victims]
    return [binding.uid for binding in decision.bindings]


def _bindings(decision: Act) -> list[tuple[str, str]]:
    if isinstance(decision, EvictionDecision):
        return []
    return [(binding.node, binding.uid) for binding in decision.bindings]
