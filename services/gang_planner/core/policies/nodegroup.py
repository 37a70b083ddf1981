"""Restricts the gangs of a queue to node groups (label `volcano.sh/nodegroup-name`), excludes
groups and prefers groups, as `spec.affinity` of the queue specifies.

A queue with an affinity uses only nodes of the groups that it names. A queue without an affinity
uses only nodes that belong to no group; with `strict` (the default, as in Volcano) it uses no
nodes.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.node_preferences import Place, PlacePoints, QueueMask
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.scoring import FULL
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.terms import Requirement

LABEL: Final = "volcano.sh/nodegroup-name"


class _Groups:
    """Masks and points of nodes by the node group affinity of a queue."""

    def __init__(
        self, nodes: NodeTable, *, strict: bool, in_order: bool, hierarchical: bool
    ) -> None:
        self._nodes = nodes
        self._strict = strict
        self._in_order = in_order
        self._hierarchical = hierarchical

    def mask(self, queue: QueueEntry) -> Bools | None:
        """See `QueueMask`."""
        said = self._said(queue)
        if not said and self._strict:
            return np.zeros(self._nodes.size, dtype=np.bool_)
        if not said:
            return ~self._holds(Requirement(key=LABEL, operator="Exists"))
        named = (
            *said.get("required", ()),
            *said.get("preferred", ()),
            *said.get("antiPreferred", ()),
        )
        return self._among(named) & ~self._among(said.get("antiRequired", ()))

    def points(self, place: Place) -> tuple[Ints | None, int] | None:
        """See `PlacePoints`."""
        said = self._said(place.queue)
        if not said:
            return None
        found = self._among(said.get("required", ())) * FULL
        preferred = said.get("preferred", ())
        for index, name in enumerate(preferred):
            share = len(preferred) - index if self._in_order else len(preferred)
            found += self._among((name,)) * (FULL // 2 * share // len(preferred))
        return found - self._among(said.get("antiPreferred", ())) * (FULL // 2), 0

    def _said(self, queue: QueueEntry) -> dict[str, tuple[str, ...]]:
        for one in queue.chain if self._hierarchical else (queue,):
            if one.queue is not None and one.queue.node_groups:
                return dict(one.queue.node_groups)
        return {}

    def _among(self, names: tuple[str, ...]) -> Bools:
        return self._holds(Requirement(key=LABEL, operator="In", values=names))

    def _holds(self, requirement: Requirement) -> Bools:
        nodes = self._nodes
        return nodes.labels.matches(requirement, LABEL, nodes.objects, slice(0, nodes.size))


def build(arguments: Arguments) -> Policy:
    """Arguments `strict` (true), `enablePreferredOrder` (false: preferred groups get equal
    points). Flag `enableHierarchy`: a queue without an affinity inherits its nearest ancestor's.
    """
    strict = arguments.boolean("strict", default=True)
    in_order = arguments.boolean("enablePreferredOrder", default=False)
    hierarchical = arguments.flag("enableHierarchy")

    def groups(state: State) -> _Groups:
        return _Groups(state.nodes, strict=strict, in_order=in_order, hierarchical=hierarchical)

    def mask(state: State) -> QueueMask:
        return groups(state).mask

    def points(state: State) -> PlacePoints:
        return groups(state).points

    return Policy(name="nodegroup", queue_mask=mask, place_points=points)
