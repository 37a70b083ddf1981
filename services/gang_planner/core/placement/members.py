"""Places members of one role and shape, as many as fit, on the nodes with the best scores.

Where the members do not depend on each other their numbers are distributed over all nodes at once
(`distribution`). Three things make them depend on each other: points that a policy gives for
members placed before, claims or terms about other pods (`dependent_pods`), and scores that are not
linear because they stand for several pods that are alike.
"""

from dataclasses import dataclass, replace

import numpy as np

from services.gang_planner.core.framework.node_preferences import Place
from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.placement import dependent_pods
from services.gang_planner.core.placement.dependent_pods import CandidateNodes
from services.gang_planner.core.placement.distribution import distribute, in_turn, take_turns
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.needs import NO_SUB_GANG, NOTHING_SAID, Structure
from services.gang_planner.core.state.pod_shapes import ShapeEntry, stand_in
from shared.model.invariants import required


@dataclass(frozen=True, kw_only=True, slots=True)
class MembersRequest:
    """Members to place."""

    #: Records the allocations. The quota and the nodes of its queue bound the number.
    statement: Statement
    role: str
    shape: ShapeEntry
    #: How many at most.
    wanted: int
    #: Slots that are not used; None: all are.
    avoid: Ints | None = None
    #: Fill nodes one after the other, whatever the scores say of further pods.
    packed: bool = False
    #: One flag per slot, only these are used (a topology domain); None: all.
    within: Bools | None = None
    #: Name of their sub-gang.
    part: str = NO_SUB_GANG
    #: What their gang demands of nodes beyond numbers; None: nothing.
    structure: Structure | None = None


def place_members(session: Session, request: MembersRequest) -> int:
    """Allocate as many of the members as fit; returns how many."""
    shape, wanted, policies = request.shape, request.wanted, session.policies
    if shape.alike and policies.place_points:
        # Points depend on the members placed before.
        each = (replace(request, shape=one, wanted=1) for one in shape.alike[:wanted])
        return sum(place_members(session, one) for one in each)
    if wanted > 1 and shape.attached and session.node_capacity.one_by_one(shape):
        placed, one = 0, replace(request, wanted=1)
        while placed < wanted and place_members(session, one):
            placed += 1
        return placed
    queue = required(request.statement.queue, request.role, "is placed for no queue")
    wanted = queue.headroom(shape, wanted)
    if wanted <= 0:
        return 0
    within = policies.within(queue, request.within)
    nodes = _candidates(session, request, within)
    if nodes is None:
        return 0
    if shape.alike:
        return _place_alike(session, request, wanted, nodes)
    if policies.place_points:
        place = Place(
            queue,
            request.role,
            shape,
            session.node_capacity,
            request.statement,
            request.structure or NOTHING_SAID,
        )
        score, slope = policies.with_points(
            place, nodes.slots, nodes.score, nodes.slope, packed=request.packed
        )
        nodes = nodes._replace(score=score, slope=slope)
    view = session.pairs.view(shape) if shape.pairwise else None
    if view is not None:
        stepped = dependent_pods.place(session.pairs, view, nodes, wanted)
        session.work_left -= stepped.work
        if stepped.total:
            _allocate(request, shape, stepped.slots, stepped.counts)
        return stepped.total
    wanted = min(wanted, int(nodes.capacity.sum()))
    taken = distribute(wanted, nodes.capacity, nodes.score, nodes.slope, nodes.rank)
    used = np.flatnonzero(taken)
    _allocate(request, shape, nodes.slots[used], taken[used])
    return wanted


def place_batch(session: Session, request: MembersRequest) -> Ints:
    """Allocate members of many gangs at once.

    The caller knows that their queues may have them and use all of `within`, that they fit there,
    and that only the scores of nodes decide where.

    Returns:
        The slot of each, in the order in which they would have been placed one by one.
    """
    slots, capacity, score, slope, rank = required(
        _candidates(session, request, request.within),
        "a batch",
        "was gathered for nodes that hold none of its members",
    )
    taken = distribute(request.wanted, capacity, score, slope, rank)
    used = np.flatnonzero(taken)
    _allocate(request, request.shape, slots[used], taken[used])
    turns: Ints = slots[in_turn(taken, score, slope, rank)]
    return turns


def _candidates(
    session: Session, request: MembersRequest, within: Bools | None
) -> CandidateNodes | None:
    """Nodes that can hold a member, with their scores; None: there are none."""
    shape = request.shape
    counts = session.fits.counts(shape)
    session.work_left -= session.fits.cost(shape) + len(counts)
    slots = np.flatnonzero(counts)
    if request.avoid is not None and len(request.avoid):
        slots = slots[~np.isin(slots, request.avoid)]
    if within is not None:
        slots = slots[within[slots]]
    if not len(slots):
        return None
    score, slope = session.score_cache.of(shape)
    # Without a slope nodes are filled up, which leaves the most nodes to other shapes.
    slope = None if request.packed or slope is None else slope[slots]
    rank = session.node_capacity.nodes.rank()[slots]
    points = score[slots]
    if shape.device_keys:
        points = points + session.policies.claim_points(shape, session.node_capacity, slots)
    return CandidateNodes(slots, counts[slots], points, slope, rank)


def _place_alike(
    session: Session, request: MembersRequest, wanted: int, nodes: CandidateNodes
) -> int:
    """Place up to `wanted` of the pods that the shape stands for, each where it would be placed
    alone after those before it.
    """
    shape = request.shape

    def score_after(slots: Ints, pods: int) -> Ints:
        return session.score_cache.after(shape, slots, pods)

    slots = take_turns(wanted, nodes.slots, nodes.capacity, nodes.score, nodes.rank, score_after)
    order: list[int] = np.argsort(slots, kind="stable").tolist()
    used, counts = np.unique(slots, return_counts=True)
    _allocate(request, stand_in([shape.alike[at] for at in order], shape.counted), used, counts)
    return len(slots)


def _allocate(request: MembersRequest, shape: ShapeEntry, slots: Ints, counts: Ints) -> None:
    request.statement.allocate(Allocation(request.role, shape, slots, counts, request.part))
