"""What a cycle works on: the node capacity, the policies, and how much work it may still do.

Budgets are counted in work, never in time, so that a cycle cut short is cut at the same place in a
replay.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.feasibility import Fits
from services.gang_planner.core.constraints.inter_pod.rules import PairRules
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.framework.node_preferences import Place
from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.placement import dependent_pods
from services.gang_planner.core.placement.dependent_pods import CandidateNodes
from services.gang_planner.core.placement.distribution import distribute, in_turn, take_turns
from services.gang_planner.core.placement.domains import UNIT, DomainDemand, Space, ranked_spaces
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.needs import NO_SUB_GANG, NOTHING_SAID, Structure
from services.gang_planner.core.state.node_capacity import FreeOnUsable, NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry, ShapeTable, stand_in
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.invariants import required
from shared.model.objects import NetworkTopology

#: Node columns examined in one cycle: about 200 ms of numpy on a small core.
WORK_MAX: Final = 8_000_000
#: What each action may do, even if gangs that do not fit have used up the work of those before it.
ACTION_WORK: Final = WORK_MAX // 4
#: Bindings decided in one cycle, a single larger gang excepted: the first decision must not wait
#: for the last.
BINDINGS_MAX: Final = 2_000
#: Fixed cost of looking at a shape once, in node columns.
_LOOK: Final = 2_000
#: The same of a shape with claims: each of its filters works its answer out again (a millisecond).
_LOOK_AT_CLAIMS: Final = 40_000
#: The same of each inter-pod rule that applies to it, beyond the number that real shapes have.
_LOOK_AT_RULE: Final = 200
_RULES_FREE: Final = 64
#: No bound on the pods in flight.
_UNBOUNDED: Final = 1 << 40
#: The next gang is tried when at least this part of the in-flight limit is free.
_LOOKS: Final = 8
_NONE: Final[Ints] = np.zeros(0, dtype=np.int64)

#: Shapes whose scores are kept; all are dropped when there are more.
_SCORED_SHAPES_MAX: Final = 1024


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


class Session:
    """One node capacity under one configuration; cycles share it, questions make their own."""

    def __init__(
        self, node_capacity: NodeCapacity, shapes: ShapeTable, masks: Masks, policies: PolicySet
    ) -> None:
        self.node_capacity = node_capacity
        self.shapes = shapes
        self.policies = policies
        self.pairs = PairRules(node_capacity, shapes.terms, policies.pairwise)
        self.fits = Fits(node_capacity, masks, policies.capacity_filters, self.pairs)
        self.score_cache = ScoreCache(node_capacity, policies)
        self.work_left = WORK_MAX
        self.bindings_left = BINDINGS_MAX
        self._in_flight = 0
        self._in_flight_max = _UNBOUNDED
        self.free_on_usable = FreeOnUsable(node_capacity)
        #: What gangs can use, as worked out in this cycle (`usable_amounts`); None: it is not yet.
        self.usable: list[int] | None = None
        #: What the whole cluster has, by resource row, as of the beginning of the cycle.
        self.totals: list[int] = []
        #: Position in the nodes' changes that the totals are of.
        self._totals_at: int | None = None

    def on_empty_nodes(self) -> "Session":
        """A session for the same nodes without any pods, as if all were in service, to check what
        they could ever hold.
        """
        nodes = self.node_capacity.nodes
        in_service = nodes.in_service()
        masks = self.fits.masks
        if in_service is not nodes:
            masks = Masks(in_service, masks.filters)
        return Session(self.node_capacity.emptied(), self.shapes, masks, self.policies)

    def begin(self, pods_in_flight: int = 0, in_flight_max: int = 0) -> None:
        """Begin a cycle with full budgets, and with this many pods decided and not bound yet; at
        most `in_flight_max` may be (0: any number).
        """
        self.work_left = WORK_MAX
        self.bindings_left = BINDINGS_MAX
        self.usable = None
        self.pairs.trim()
        self._in_flight = pods_in_flight
        self._in_flight_max = in_flight_max or _UNBOUNDED
        nodes = self.node_capacity.nodes
        if self._totals_at != nodes.changes.position:
            self._totals_at = nodes.changes.position
            self.totals = nodes.allocatable.cells[:, : nodes.size].sum(axis=1).tolist()

    @property
    def exhausted(self) -> bool:
        """Whether this cycle's budget is spent."""
        return self.work_left <= 0 or self.bindings_left <= 0

    def spend(self, bindings: int) -> None:
        """Charge decided bindings to the cycle's budget and to the in-flight limit."""
        self.bindings_left -= bindings
        self._in_flight += bindings

    def admits(self, pods: int) -> bool:
        """Whether this many more pods may be in flight; a gang above the limit goes alone."""
        return self._in_flight + pods <= self._in_flight_max or not self._in_flight

    @property
    def admitted(self) -> int:
        """How many more pods may be in flight."""
        return max(self._in_flight_max - self._in_flight, 0)

    @property
    def worth_a_look(self) -> bool:
        """Whether enough more pods may be in flight to try the next gang: each answer of a binder
        admits a few more, and a pass costs the same for few as for many.
        """
        return not self._in_flight or self.admitted * _LOOKS >= self._in_flight_max

    def slots(self, names: Iterable[str]) -> Ints:
        """Slots of the nodes with these names, as far as they are known."""
        found = [self.node_capacity.nodes.find(name) for name in names]
        return np.array([slot for slot in found if slot is not None], dtype=np.int64)

    def allowed_nodes(self, queue: QueueEntry, structure: Structure | None) -> Bools | None:
        """Nodes that a gang of this queue and structure may use, one flag per slot; None: all."""
        mask: Bools | None = None
        nodes = self.node_capacity.nodes
        for one in structure.nodes if structure is not None else ():
            holds = nodes.labels.matches(one, one.key, nodes.objects, slice(0, nodes.size))
            mask = holds if mask is None else mask & holds
        return self.policies.within(queue, mask)

    def spaces(
        self,
        topology: NetworkTopology,
        groups: Sequence[tuple[str, ShapeEntry, int]],
        quorum: int,
        minima: tuple[tuple[str, int], ...],
        *,
        near: Iterable[str] = (),
        home: str | None = None,
        base: Bools | None = None,
    ) -> Iterator[Space]:
        """Spaces in which these members may be placed together, in the order in which to try them.

        Args:
            topology: How close together they have to be.
            groups: (role, shape, members) each.
            quorum: Spaces that certainly cannot hold as many are left out.
            minima: The same by role.
            near: Nodes with members already: only domains that contain all of these count.
            home: Name of the domain to try first; None: it has no preferred domain.
            base: One flag per slot, only these nodes may be used; None: all.
        """
        node_capacity = self.node_capacity
        found = node_capacity.topology.levels(topology)
        self.work_left -= len(found.levels) * node_capacity.nodes.size
        demand = DomainDemand(
            roles=[role for role, _, _ in groups],
            wanted=[wanted for _, _, wanted in groups],
            counts=lambda: [self.fits.counts(shape) for _, shape, _ in groups],
            quorum=quorum,
            minima=minima,
            fractions=lambda: [
                node_capacity.capacity_in_parts(shape, UNIT) for _, shape, _ in groups
            ],
        )
        return ranked_spaces(found, demand, self.slots(near), home, base)

    def total(self, shape: ShapeEntry) -> int:
        """How many pods of the shape fit now, alone."""
        self.work_left -= self._look(shape)
        return self.fits.total(shape)

    def _look(self, shape: ShapeEntry) -> int:
        more = max(self.fits.rules_count(shape) - _RULES_FREE, 0)
        return _look(shape) + _LOOK_AT_RULE * more

    def spread(
        self,
        statement: Statement,
        queue: QueueEntry,
        role: str,
        shape: ShapeEntry,
        wanted: int,
        avoid: Ints,
        *,
        packed: bool = False,
        within: Bools | None = None,
        part: str = NO_SUB_GANG,
        structure: Structure | None = None,
    ) -> int:
        """Allocate members on the nodes with the best scores, as far as they fit.

        Args:
            statement: Records the allocations.
            queue: Its quota and its nodes bound the number.
            role: Role of the members.
            shape: Their shape.
            wanted: How many at most.
            avoid: Slots that are not used.
            packed: Fill nodes one after the other, whatever the scores say of further pods.
            within: One flag per slot, only these are used (a topology domain); None: all.
            part: Name of their sub-gang.
            structure: What their gang demands of nodes beyond numbers; None: nothing.

        Returns:
            How many were allocated.
        """
        place = partial(
            self.spread,
            statement,
            queue,
            role,
            avoid=avoid,
            packed=packed,
            within=within,
            part=part,
            structure=structure,
        )
        if shape.alike and self.policies.place_points:
            # Points depend on the members placed before.
            return sum(place(one, 1) for one in shape.alike[:wanted])
        if wanted > 1 and shape.attached and self.node_capacity.one_by_one(shape):
            placed = 0
            while placed < wanted and place(shape, 1):
                placed += 1
            return placed
        wanted = queue.headroom(shape, wanted)
        if wanted <= 0:
            return 0
        within = self.policies.within(queue, within)
        nodes = self._candidates(shape, avoid, within, packed=packed)
        if nodes is None:
            return 0
        if shape.alike:
            return self._place_alike(statement, role, shape, wanted, nodes, part)
        slots, capacity, score, slope, rank = nodes
        if self.policies.place_points:
            placing = Place(
                queue, role, shape, self.node_capacity, statement, structure or NOTHING_SAID
            )
            score, slope = self.policies.with_points(placing, slots, score, slope, packed=packed)
            nodes = nodes._replace(score=score, slope=slope)
        view = self.pairs.view(shape) if shape.pairwise else None
        if view is not None:
            stepped = dependent_pods.place(self.pairs, view, nodes, wanted)
            self.work_left -= stepped.work
            if stepped.total:
                statement.allocate(Allocation(role, shape, stepped.slots, stepped.counts, part))
            return stepped.total
        wanted = min(wanted, int(capacity.sum()))
        taken = distribute(wanted, capacity, score, slope, rank)
        used = np.flatnonzero(taken)
        statement.allocate(Allocation(role, shape, slots[used], taken[used], part))
        return wanted

    def _place_alike(
        self,
        statement: Statement,
        role: str,
        shape: ShapeEntry,
        wanted: int,
        nodes: CandidateNodes,
        part: str,
    ) -> int:
        """Place up to `wanted` of the pods that the shape stands for, each where it would be placed
        alone after those before it.
        """

        def score_after(slots: Ints, pods: int) -> Ints:
            return self.score_cache.after(shape, slots, pods)

        slots = take_turns(
            wanted, nodes.slots, nodes.capacity, nodes.score, nodes.rank, score_after
        )
        order: list[int] = np.argsort(slots, kind="stable").tolist()
        used, counts = np.unique(slots, return_counts=True)
        placed = stand_in([shape.alike[at] for at in order], shape.counted)
        statement.allocate(Allocation(role, placed, used, counts, part))
        return len(slots)

    def spread_in_turn(
        self,
        statement: Statement,
        role: str,
        shape: ShapeEntry,
        wanted: int,
        within: Bools | None,
    ) -> Ints:
        """Allocate members of many gangs at once.

        The caller knows that their queues may have them and use all of `within` (None: all
        nodes), that they fit there, and that only the scores of nodes decide where.

        Returns:
            The slot of each, in the order in which they would have been placed one by one.
        """
        found = required(
            self._candidates(shape, _NONE, within, packed=False),
            "a batch",
            "was gathered for nodes that hold none of its members",
        )
        slots, capacity, score, slope, rank = found
        taken = distribute(wanted, capacity, score, slope, rank)
        used = np.flatnonzero(taken)
        statement.allocate(Allocation(role, shape, slots[used], taken[used]))
        turns: Ints = slots[in_turn(taken, score, slope, rank)]
        return turns

    def _candidates(
        self, shape: ShapeEntry, avoid: Ints, within: Bools | None, *, packed: bool
    ) -> CandidateNodes | None:
        """Nodes that can hold a member, with their scores; None: there are none."""
        counts = self.fits.counts(shape)
        slots = np.flatnonzero(counts)
        self.work_left -= self._look(shape) + len(counts)
        if len(avoid):
            slots = slots[~np.isin(slots, avoid)]
        if within is not None:
            slots = slots[within[slots]]
        if not len(slots):
            return None
        score, slope = self.score_cache.of(shape)
        # Without a slope nodes are filled up, which leaves the most nodes to other shapes.
        slope = None if packed or slope is None else slope[slots]
        rank = self.node_capacity.nodes.rank()[slots]
        points = score[slots]
        if shape.device_keys:
            points = points + self.policies.claim_points(shape, self.node_capacity, slots)
        return CandidateNodes(slots, counts[slots], points, slope, rank)


def _look(shape: ShapeEntry) -> int:
    if shape.alike:
        return _LOOK * len(shape.alike)
    return _LOOK_AT_CLAIMS if shape.attached else _LOOK
