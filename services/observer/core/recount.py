"""Recounts a decision to bind: are its members and nodes there, is there room, is it the quorum.

By other means than the planner's: no columns, no caches, plain sums over the pods of each node. Not
recounted are rules that say where pods may go (affinity, taints, claims); the planner's oracle
tests are about those.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from services.observer.core.cluster_state import ClusterState
from shared.contracts.decisions import GangDecision
from shared.contracts.observing import Proof
from shared.model.terms import Resources


class Recount(NamedTuple):
    """What came of it; `words` say why unless it is proved."""

    proof: Proof
    words: str = ""


class Loads(Protocol):
    """What else may be counted on a node."""

    def loads(self, node: str) -> Iterable[tuple[str, Resources]]:
        """UID and requests of pods that would be there."""
        ...


def recount(decision: GangDecision, cluster_state: ClusterState, standing: Loads) -> Recount:
    """Judge a decision by the cluster state, which is at least as new as the one it was made of."""
    if len(decision.bindings) < decision.quorum:
        return Recount("failed", f"{len(decision.bindings)} bindings, {decision.quorum} needed")
    taken: list[str] = []
    by_node: dict[str, dict[str, Resources]] = {}
    for binding in decision.bindings:
        pod = cluster_state.pods.get(binding.uid)
        if pod is None:
            taken.append(f"{binding.name} is gone")
        elif pod.node:
            taken.append(f"{binding.name} is on {pod.node}")
        else:
            by_node.setdefault(binding.node, {})[binding.uid] = cluster_state.requests(pod)
    for node, members in by_node.items():
        found = _room(decision, cluster_state, standing, node, members)
        if found.proof == "failed":
            return found
        if found.proof == "overtaken":
            taken.append(found.words)
    return Recount("overtaken", taken[0]) if taken else Recount("proved")


def _room(
    decision: GangDecision,
    cluster_state: ClusterState,
    standing: Loads,
    name: str,
    members: dict[str, Resources],
) -> Recount:
    known = cluster_state.nodes.get(name)
    made_of = decision.cycle.cluster_seq
    if known is None:
        # It was there: a planner knows nodes from the same log.
        return Recount("overtaken", f"node {name} is gone")
    node, changed = known
    free = dict(node.allocatable)
    for requests in members.values():
        _subtract(free, requests)
    for uid, requests in standing.loads(name):
        if uid not in members:
            _subtract(free, requests)
    now = dict(free)
    for uid, load in cluster_state.loads.get(name, {}).items():
        if uid in members:
            continue
        _subtract(now, load.requests)
        if load.seq <= made_of:
            _subtract(free, load.requests)
    asked = {resource for requests in members.values() for resource, _ in requests}
    short = _short(free, asked)
    if short and changed <= made_of:
        return Recount("failed", f"node {name} lacks {short}")
    short = short or _short(now, asked)
    return Recount("overtaken", f"node {name} lacks {short}") if short else Recount("proved")


def _subtract(free: dict[str, int], requests: Resources) -> None:
    for resource, amount in requests:
        free[resource] = free.get(resource, 0) - amount


def _short(free: dict[str, int], asked: set[str]) -> str:
    """What is missing, of what the members ask for; "": nothing."""
    for resource in sorted(asked):
        if free.get(resource, 0) < 0:
            return f"{-free[resource]} {resource}"
    return ""
