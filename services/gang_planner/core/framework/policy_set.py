"""The combined policies of one configuration, as a cycle uses them, and their scores of nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from services.gang_planner.core.constraints.filters import (
    CapacityFilter,
    NodeFilter,
    dynamic_resources,
    resources_fit,
    volume_binding,
    volume_restrictions,
)
from services.gang_planner.core.constraints.inter_pod.rules import Switches
from services.gang_planner.core.framework.eviction_rules import Kind, VictimRules, combined
from services.gang_planner.core.framework.policy import Place, Policy, QueueKey, QueueShare
from services.gang_planner.core.scoring import ClaimScore, NodeScore, ScoredNodes
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.gang_settings import WITHOUT_ROOM
from services.gang_planner.core.state.gangs import Gang, OrderKey
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry

if TYPE_CHECKING:
    from services.gang_planner.core.framework.admission import Voter

_Made = TypeVar("_Made")

#: Shares of queues are compared down to this level; deeper queues are compared by name.
_LEVELS: Final = 8
#: Padding for the levels that a queue does not have.
_NO_LEVELS: Final = (-1,) * _LEVELS
#: Shapes whose scores are kept; all are dropped when there are more.
_SCORED_SHAPES_MAX: Final = 1024


class PolicySet:
    """Keys, filters and scores of all policies, in the order of the configuration."""

    def __init__(
        self, policies: Iterable[Policy], state: State, *, without_room: int = WITHOUT_ROOM
    ) -> None:
        self.policies = tuple(policies)
        self._state = state
        self._group_keys = _given(policy.group_key for policy in self.policies)
        #: The rank of a gang's user, if past use counts, and its position among `_group_keys`.
        self.users_rank = next(iter(_given(policy.users_rank for policy in self.policies)), None)
        named = [policy for policy in self.policies if policy.group_key is not None]
        self._ranks_at = next((at for at, each in enumerate(named) if each.users_rank), 0)
        #: How past use is recorded; None: it is not.
        self.use_rules = next(iter(_given(policy.use_rules for policy in self.policies)), None)
        self._queue_keys = _given(policy.queue_key for policy in self.policies)
        shares = _given(policy.queue_share for policy in self.policies)
        #: If set, queues are compared level by level by this share, and by no key.
        self._queue_share = shares[0] if len(shares) == 1 and not self._queue_keys else None
        if self._queue_share is None:
            self._queue_keys += [_by_level(share) for share in shares]
        #: Groups per queue that are admitted without free capacity.
        self.without_room = without_room
        tiers: dict[int, list[Voter]] = {}
        for policy in self.policies:
            if policy.enqueue is not None:
                tiers.setdefault(policy.tier, []).append(policy.enqueue)
        #: Admission votes, by tier.
        self.voters = tuple(tuple(voters) for _, voters in sorted(tiers.items()))
        self._due = _given(policy.due_ms for policy in self.policies)
        #: Weights and maxima of queues; None: queues do not share the cluster.
        self.deserve = next(iter(_given(policy.deserve for policy in self.policies)), None)
        self.hierarchical = any(policy.hierarchical for policy in self.policies)
        switches = [policy.pairwise for policy in self.policies]
        #: Enabled inter-pod rules and preferences.
        self.pairwise = Switches(
            affinity=any(switch.affinity for switch in switches),
            spread=any(switch.spread for switch in switches),
            affinity_weight=sum(switch.affinity_weight for switch in switches),
            spread_weight=sum(switch.spread_weight for switch in switches),
        )
        self._scores: list[tuple[int, NodeScore]] = []
        self._claim_scores: list[tuple[int, NodeScore]] = []
        for weight, score in chain.from_iterable(policy.scores for policy in self.policies):
            kept = self._claim_scores if isinstance(score, ClaimScore) else self._scores
            kept.append((weight, score))
        self._queue_masks = _given(policy.queue_mask for policy in self.policies)
        self.place_points = _given(policy.place_points for policy in self.policies)
        #: Whether the annotations on a gang's roles are read.
        self.reads_tasks = any(policy.reads_tasks for policy in self.policies)
        self.node_filters: tuple[NodeFilter, ...] = tuple(
            rule for policy in self.policies for rule in policy.node_filters
        )
        #: The last four apply in every configuration: no node is overcommitted, and no pod is bound
        #: without its volumes and devices.
        self.capacity_filters: tuple[CapacityFilter, ...] = (
            *(rule for policy in self.policies for rule in policy.capacity_filters),
            resources_fit.FILTER,
            volume_restrictions.FILTER,
            volume_binding.FILTER,
            dynamic_resources.FILTER,
        )

    def due_ms(self, gang: Gang) -> int:
        """Admission deadline of the group in Unix milliseconds; 0: none."""
        return next((due_ms for due_of in self._due if (due_ms := due_of(gang))), 0)

    def victims(self, kind: Kind) -> VictimRules:
        """The combined restrictions of all policies on victims of this kind of eviction."""
        rules = (
            (policy.tier, policy.victims) for policy in self.policies if policy.victims is not None
        )
        return combined(rules, kind)

    def order(self, gang: Gang) -> OrderKey:
        """Sort key of a gang: partly placed gangs first, then the policies' keys, age and name.

        A gang that holds capacity below its quorum wastes it while it waits, so no key outranks it.
        """
        half_placed = not gang.history.has_started and gang.have() and not gang.quorum_held
        key: OrderKey = (0 if half_placed else 1,)
        for key_of in self._group_keys:
            key += key_of(gang, self._state)
        return (*key, gang.created_ms, gang.namespace, gang.name, gang.gang_id)

    def ranked(self, gang: Gang, order: OrderKey | None = None) -> OrderKey:
        """A gang's `order` (None: that in the backlog) with the present rank of its user. Gangs of
        one user keep their order, however ranks change.
        """
        order = gang.order if order is None else order
        if self.users_rank is None or gang.account is None:
            return order
        before = self._group_keys[: self._ranks_at]
        at = 1 + sum(len(key_of(gang, self._state)) for key_of in before)
        return *order[:at], self.users_rank(gang, self._state), *order[at + 1 :]

    def queue_order(self, queue: QueueEntry, totals: Sequence[int]) -> OrderKey:
        """Sort key of a queue: its priority, then the policies' keys, then its name."""
        return self.queue_order_start(queue, totals) + self.queue_order_end(queue)

    def queue_order_start(self, queue: QueueEntry, totals: Sequence[int]) -> OrderKey:
        """The prefix of `queue_order`, equal for all queues with the same `compared_with`."""
        if self._queue_share is not None:
            return -queue.priority, *_shares(self._queue_share, queue.chain[1:])
        key: list[int | str] = [-queue.priority]
        for key_of in self._queue_keys:
            key.extend(key_of(queue, totals, self._state))
        return tuple(key)

    def queue_order_end(self, queue: QueueEntry) -> OrderKey:
        """The rest of `queue_order`. It differs between all queues with the same `compared_with`,
        and changes only when a gang is charged to the queue itself.
        """
        if self._queue_share is None:
            return (queue.name,)
        depth = len(queue.chain)
        if depth > _LEVELS:
            return (queue.name,)
        return self._queue_share(queue), *_NO_LEVELS[depth:], queue.name

    def compared_with(self, queue: QueueEntry) -> object:
        """A value that is equal for queues with the same `queue_order_start`."""
        return queue.name if self._queue_share is None else (queue.priority, queue.chain[1:])

    def within(self, queue: QueueEntry, mask: Bools | None) -> Bools | None:
        """Restrict a mask of slots to the nodes that gangs of a queue may use; None: all nodes."""
        for mask_of in self._queue_masks:
            allowed = mask_of(queue, self._state.nodes)
            if allowed is not None:
                mask = allowed if mask is None else mask & allowed
        return mask

    def with_points(
        self, place: Place, slots: Ints, score: Ints, slope: Ints | None, *, packed: bool
    ) -> tuple[Ints, Ints | None]:
        """Add the preferences that depend on more than the shape to scores and slopes of slots.

        `packed` leaves the slopes unchanged.
        """
        for points_of in self.place_points:
            said = points_of(place)
            if said is None:
                continue
            points, step = said
            if points is not None:
                score = score + points[slots]
            if step and not packed:
                slope = (np.zeros(len(slots), dtype=np.int64) if slope is None else slope) + step
        return score, slope

    def scores(
        self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints
    ) -> tuple[Ints, Ints | None]:
        """Points of the first pod on each of the slots, and the change per further pod on the same
        node (None: no change).
        """
        nodes = ScoredNodes(shape, node_capacity, slots)
        score: Ints = np.zeros(len(slots), dtype=np.int64)
        slope: Ints | None = None
        for weight, rule in self._scores:
            score += weight * rule.score(nodes)
            part = rule.slope(nodes)
            if part is not None:
                slope = weight * part if slope is None else slope + weight * part
        return score, slope

    def claim_points(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints) -> Ints:
        """Points for the claims of a shape, on each of the slots that hold one more pod of it."""
        nodes = ScoredNodes(shape, node_capacity, slots)
        points: Ints = np.zeros(len(slots), dtype=np.int64)
        for weight, rule in self._claim_scores:
            points += weight * rule.score(nodes)
        return points


def _given(contributions: Iterable[_Made | None]) -> list[_Made]:
    """The contributions of the policies that make one."""
    return [contribution for contribution in contributions if contribution is not None]


def _by_level(share: QueueShare) -> QueueKey:
    def key(queue: QueueEntry, _totals: Sequence[int], _: State) -> tuple[int, ...]:
        shares = _shares(share, queue.chain)
        return *shares, *_NO_LEVELS[len(shares) :]

    return key


def _shares(share: QueueShare, chain: Sequence[QueueEntry]) -> list[int]:
    """Shares of the queues of a chain, from the top."""
    return [share(queue) for queue in chain[::-1][:_LEVELS]]


@dataclass(eq=False, slots=True)
class _Rating:
    score: Ints
    slope: Ints | None
    position: int
    nodes_position: int


class ScoreCache:
    """Scores and slopes of all nodes of one node capacity table under one set of policies.

    A score depends on one node at a time, so only nodes that changed since the last use are scored
    again: after a gang of twenty on five thousand nodes these are twenty nodes at most.
    """

    def __init__(self, node_capacity: NodeCapacity, policies: PolicySet) -> None:
        self._node_capacity = node_capacity
        self._policies = policies
        self._cache: dict[bytes, _Rating] = {}

    def of(self, shape: ShapeEntry) -> tuple[Ints, Ints | None]:
        """Points of the first pod on each node, and their change per further pod (None: none).

        Not to be written to.
        """
        changes, nodes = self._node_capacity.changes, self._node_capacity.nodes
        rating = self._cache.get(shape.rated)
        position, nodes_position = changes.position, nodes.changes.position
        if rating is not None and rating.nodes_position == nodes_position:
            if rating.position == position:
                return rating.score, rating.slope
            changed = changes.since(rating.position, max(16, nodes.size // 4))
            if changed is not None:
                score, slope = self._policies.scores(shape, self._node_capacity, changed)
                rating.score[changed] = score
                if rating.slope is not None and slope is not None:
                    rating.slope[changed] = slope
                rating.position = position
                return rating.score, rating.slope
        if len(self._cache) >= _SCORED_SHAPES_MAX:
            self._cache.clear()
        slots = np.arange(nodes.size, dtype=np.int64)
        score, slope = self._policies.scores(shape, self._node_capacity, slots)
        self._cache[shape.rated] = _Rating(score, slope, position, nodes_position)
        return score, slope

    def after(self, shape: ShapeEntry, slots: Ints, pods: int) -> Ints:
        """Points of the next pod on each of these nodes, after this many more pods there."""
        node_capacity = self._node_capacity
        cells = node_capacity.free.cells
        where = np.ix_(shape.rows, slots)
        cells[where] -= shape.column * pods
        score, _ = self._policies.scores(shape, node_capacity, slots)
        cells[where] += shape.column * pods
        return score
