"""Restricts the gangs of a queue to node groups (label `volcano.sh/nodegroup-name`), excludes
groups and prefers groups, as `spec.affinity` of the queue specifies.

A queue with an affinity uses only nodes of the groups that it names. A queue without an affinity
uses only nodes that belong to no group; with `strict` (the default, as in Volcano) it uses no
nodes.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Place, Policy
from services.gang_planner.core.scoring import FULL
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.terms import Requirement

LABEL: Final = "volcano.sh/nodegroup-name"


class _Groups:
    """Masks and points of nodes by the node group affinity of a queue."""

    def __init__(self, *, strict: bool, in_order: bool, hierarchical: bool) -> None:
        self._strict = strict
        self._in_order = in_order
        self._hierarchical = hierarchical

    def mask(self, queue: QueueEntry, nodes: NodeTable) -> Bools | None:
        said = self._said(queue)
        if not said and self._strict:
            return np.zeros(nodes.size, dtype=np.bool_)
        if not said:
            return ~nodes.holding(Requirement(key=LABEL, operator="Exists"))
        named = (
            *said.get("required", ()),
            *said.get("preferred", ()),
            *said.get("antiPreferred", ()),
        )
        return _among(nodes, named) & ~_among(nodes, said.get("antiRequired", ()))

    def points(self, place: Place) -> tuple[Ints | None, int] | None:
        said = self._said(place.queue)
        if not said:
            return None
        nodes = place.node_capacity.nodes
        points = _among(nodes, said.get("required", ())) * FULL
        preferred = said.get("preferred", ())
        for index, name in enumerate(preferred):
            share = len(preferred) - index if self._in_order else len(preferred)
            points += _among(nodes, (name,)) * (FULL // 2 * share // len(preferred))
        return points - _among(nodes, said.get("antiPreferred", ())) * (FULL // 2), 0

    def _said(self, queue: QueueEntry) -> dict[str, tuple[str, ...]]:
        for entry in queue.chain if self._hierarchical else (queue,):
            if entry.queue is not None and entry.queue.node_groups:
                return dict(entry.queue.node_groups)
        return {}


def _among(nodes: NodeTable, names: tuple[str, ...]) -> Bools:
    return nodes.holding(Requirement(key=LABEL, operator="In", values=names))


def build(arguments: Arguments) -> Policy:
    """Arguments `strict` (true), `enablePreferredOrder` (false: preferred groups get equal
    points). Flag `enableHierarchy`: a queue without an affinity inherits its nearest ancestor's.
    """
    groups = _Groups(
        strict=arguments.boolean("strict", default=True),
        in_order=arguments.boolean("enablePreferredOrder", default=False),
        hierarchical=arguments.flag("enableHierarchy"),
    )
    return Policy(name="nodegroup", queue_mask=groups.mask, place_points=groups.points)
