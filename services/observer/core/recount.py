"""Recounts a decision to bind: whether its members and nodes exist, its nodes have the capacity,
and it has the quorum.

It uses other means than the planner: no columns, no caches, plain sums over the pods of each node.
Constraints on nodes (affinity, taints, claims) are not recounted; the planner's oracle tests cover
them.
"""

from typing import NamedTuple

from services.observer.core.assumed_decisions import AssumedDecisions
from services.observer.core.cluster_state import ClusterState
from shared.contracts.codec import requests_of
from shared.contracts.decisions import GangDecision
from shared.contracts.observing import Proof
from shared.model.terms import Resources


class Recount(NamedTuple):
    """The result; `reason` is set unless it is proved."""

    proof: Proof
    reason: str = ""


def recount(
    decision: GangDecision, cluster_state: ClusterState, assumed: AssumedDecisions
) -> Recount:
    """Check a decision against the cluster state, which is at least as new as the decision's."""
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
            by_node.setdefault(binding.node, {})[binding.uid] = requests_of(pod.shape)
    for node, members in by_node.items():
        node_recount = _check_node(decision, cluster_state, assumed, node, members)
        if node_recount.proof == "failed":
            return node_recount
        if node_recount.proof == "overtaken":
            taken.append(node_recount.reason)
    return Recount("overtaken", taken[0]) if taken else Recount("proved")


def _check_node(
    decision: GangDecision,
    cluster_state: ClusterState,
    assumed: AssumedDecisions,
    name: str,
    members: dict[str, Resources],
) -> Recount:
    known = cluster_state.nodes.get(name)
    decided_at = decision.cycle.cluster_seq
    if known is None:
        # It existed: the planner reads nodes from the same log.
        return Recount("overtaken", f"node {name} is gone")
    node, changed = known
    free = dict(node.allocatable)
    for requests in members.values():
        _subtract(free, requests)
    for uid, requests in assumed.loads(name):
        if uid not in members:
            _subtract(free, requests)
    now = dict(free)
    for uid, load in cluster_state.loads.get(name, {}).items():
        if uid in members:
            continue
        _subtract(now, load.requests)
        if load.seq <= decided_at:
            _subtract(free, load.requests)
    asked = {resource for requests in members.values() for resource, _ in requests}
    short = _short(free, asked)
    if short and changed <= decided_at:
        return Recount("failed", f"node {name} lacks {short}")
    short = short or _short(now, asked)
    return Recount("overtaken", f"node {name} lacks {short}") if short else Recount("proved")


def _subtract(free: dict[str, int], requests: Resources) -> None:
    for resource, amount in requests:
        free[resource] = free.get(resource, 0) - amount


def _short(free: dict[str, int], asked: set[str]) -> str:
    """The first resource of which too little is free, with the amount; "": there is enough."""
    for resource in sorted(asked):
        if free.get(resource, 0) < 0:
            return f"{-free[resource]} {resource}"
    return ""
