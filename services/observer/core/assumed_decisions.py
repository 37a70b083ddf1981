"""Assumed decisions: neither carried out nor answered yet.

A decision to bind is assumed until the other scheduler has bound (or a user has deleted) every pod
in it, or its time is over. A decision to evict pods for a gang is answered at once; one to release
the bound pods of a gang is assumed until those pods are gone, since a planner whose release is
refused tries again every ten seconds.
"""

import heapq
from collections.abc import Iterable
from typing import NamedTuple

from services.observer.core.cluster_state import ClusterState
from shared.contracts.codec import requests_of
from shared.contracts.decisions import Act, EvictionDecision, GangDecision
from shared.contracts.outcomes import Member, Outcome
from shared.model.terms import Resources

REASON = "Observed"
WORDS = "Tutti only observes: nothing is bound or evicted"


class AssumedDecision(NamedTuple):
    """One assumed decision, until `due_ms`; None: without a time limit."""

    seq: int
    decision: Act
    due_ms: int | None


class AssumedDecisions:
    """The assumed decisions, by sequence. It is called with every pod that changes, so that it
    checks only decisions that may be over.
    """

    def __init__(self, cluster_state: ClusterState) -> None:
        self._cluster_state = cluster_state
        self._acts: dict[int, AssumedDecision] = {}
        self._by_pod: dict[str, set[int]] = {}
        #: By node: pods that would be there, with their requests.
        self._loads: dict[str, dict[str, Resources]] = {}
        #: Instants at which decisions are over, with their sequences.
        self._due: list[tuple[int, int]] = []
        self._touched: dict[int, None] = {}
        #: Found to be over, and not dropped yet.
        self._over: dict[int, AssumedDecision] = {}

    def __len__(self) -> int:
        return len(self._acts)

    def add(self, decision: AssumedDecision) -> None:
        """Assume a decision from now on."""
        seq = decision.seq
        self._acts[seq] = decision
        self._touched[seq] = None
        if decision.due_ms is not None:
            heapq.heappush(self._due, (decision.due_ms, seq))
        for uid in _pods(decision.decision):
            self._by_pod.setdefault(uid, set()).add(seq)
        for node, uid in _bindings(decision.decision):
            pod = self._cluster_state.pods.get(uid)
            if pod is not None and not pod.node:
                self._loads.setdefault(node, {})[uid] = requests_of(pod.shape)

    def drop(self, seq: int) -> None:
        """Forget a decision that is answered."""
        self._over.pop(seq, None)
        dropped = self._acts.pop(seq, None)
        if dropped is None:
            return
        for node, uid in _bindings(dropped.decision):
            self._loads.get(node, {}).pop(uid, None)
        for uid in _pods(dropped.decision):
            seqs = self._by_pod[uid]
            seqs.discard(seq)
            if not seqs:
                del self._by_pod[uid]

    def changed(self, uids: Iterable[str]) -> None:
        """Pods appeared, changed or went."""
        for uid in uids:
            self._touched.update(dict.fromkeys(self._by_pod.get(uid, ())))

    def loads(self, node: str) -> Iterable[tuple[str, Resources]]:
        """Unbound pods that would be on a node by assumed decisions: UID and requests."""
        for uid, requests in self._loads.get(node, {}).items():
            pod = self._cluster_state.pods.get(uid)
            if pod is not None and not pod.node:
                yield uid, requests

    def over(self, now_ms: int) -> list[AssumedDecision]:
        """Decisions that are to be answered now; returned again until they are dropped."""
        while self._due and self._due[0][0] <= now_ms:
            self._touched[heapq.heappop(self._due)[1]] = None
        for seq in self._touched:
            assumed = self._acts.get(seq)
            if assumed is not None and self._is_over(assumed, now_ms):
                self._over[seq] = assumed
        self._touched = {}
        return list(self._over.values())

    def next_ms(self) -> int | None:
        """The next instant at which the time of a decision is over; None: there is none."""
        while self._due and self._due[0][1] not in self._acts:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def _is_over(self, assumed: AssumedDecision, now_ms: int) -> bool:
        if assumed.due_ms is not None and assumed.due_ms <= now_ms:
            return True
        pods = self._cluster_state.pods
        if isinstance(assumed.decision, EvictionDecision):
            if assumed.decision.via == "eviction":
                return True
            return all(victim.uid not in pods for victim in assumed.decision.victims)
        waiting = (pods.get(binding.uid) for binding in assumed.decision.bindings)
        return all(pod is None or pod.node for pod in waiting)


def answer(
    assumed: AssumedDecision,
    cluster_state: ClusterState,
    *,
    observer: str,
    generation: str,
    now_ms: int,
) -> Outcome:
    """The outcome of an assumed decision: bound are the pods that the other scheduler bound."""
    decision = assumed.decision
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
        decision_seq=assumed.seq,
        epoch=decision.epoch,
        binder=observer,
        # No binder reads these decisions, so there is one delivery.
        delivered=1,
        reason=REASON,
        bound=bound,
        evicted=evicted,
        members=tuple(members),
        generation=generation,
        received_ms=now_ms,
    )


def _unbound(uid: str, node: str) -> Member:
    # A conflict: the planner may try the same pair of pod and node again.
    return Member(uid=uid, node=node, result="conflict", code=409, reason=REASON, message=WORDS)


def _pods(decision: Act) -> list[str]:
    """UIDs of the pods whose changes may end it."""
    if isinstance(decision, EvictionDecision):
        return [victim.uid for victim in decision.victims]
    return [binding.uid for binding in decision.bindings]


def _bindings(decision: Act) -> list[tuple[str, str]]:
    if isinstance(decision, EvictionDecision):
        return []
    return [(binding.node, binding.uid) for binding in decision.bindings]
