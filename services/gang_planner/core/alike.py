"""Places gangs that ask for the same, one behind the other in line, in one pass over the nodes.

What an attempt costs does not depend on a gang's size, so thousands of small gangs would cost
thousands of passes. Equal gangs are placed as if they were one: the members of all of them are
spread at once, and every gang gets its part of the places in the order in which they would have
been given out.

Which gangs are placed is the same as one by one: as many are taken at once as surely find room
whatever goes where (`_room_for`). Which nodes they get may differ a little, and no rule depends on
it: scores are straight lines for a whole pass, where one by one they are worked out anew, and
rounded, for each gang; and members of several shapes are spread shape by shape. What does depend on
places one by one is left to `placing`: pods that look at other pods, claims, sub-gangs, nodes to
avoid, room owed to a gang, gangs whose turn is another queue's.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from services.gang_planner.core import deciding
from services.gang_planner.core.backlog import Bucket, Need
from services.gang_planner.core.columns import Ints
from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.gangs import Gang
from services.gang_planner.core.placing import slots_of
from services.gang_planner.core.queues import QueueEntry
from services.gang_planner.core.session import Session
from services.gang_planner.core.shapes import ShapeEntry
from services.gang_planner.core.statement import Statement
from services.gang_planner.core.topology.spaces import Demand, Space, spaces
from services.gang_planner.core.turns import Turns

#: Fewer gangs are placed one by one.
_GANGS_MIN: Final = 2


class _Group(NamedTuple):
    """Members of one role and shape, of each gang."""

    role: str
    shape: ShapeEntry
    members: int


def place(work: CycleWork, bucket: Bucket, gangs: Sequence[Gang]) -> int:
    """Place as many of a bucket's first gangs as fit for sure, and decide them; returns how many,
    0 when they have to be tried one by one.

    Args:
        work: This cycle.
        bucket: They are its first.
        gangs: In order; nobody is to be placed between them, and nobody claims what they take.
    """
    session, need = work.session, bucket.need
    if not suits(session, need):
        return 0
    groups = _groups(session, need)
    size = need.quorum
    owed = work.state.debts.of
    # Of who was refused lately more may wait than is wanted.
    special = (at for at, gang in enumerate(gangs) if gang.history.bad or owed(gang))
    most = next(special, len(gangs))
    most = min(most, -(-session.bindings_left // size), _quota(gangs[0].queue, groups))
    if most < _GANGS_MIN:
        return 0
    space = _space(session, bucket, groups, gangs[0].queue)
    if space is None:
        return 0
    most = min(most, _room_for(session, groups, space))
    if most < _GANGS_MIN:
        return 0
    _decide(work, bucket, gangs[:most], groups, space)
    return most


def suits(session: Session, need: Need) -> bool:
    """Whether gangs with this need can be placed at once: all that waits of them is placed or
    nothing, and places are chosen by the nodes' scores alone.
    """
    if need.best_effort or need.avoid or session.policies.place_points:
        return False
    structure = need.structure
    if structure is not None and (
        structure.near or structure.home or structure.sub_gangs or structure.tasks is not None
    ):
        return False
    wanted = sum(count for _, _, count in need.wanted)
    if wanted != need.quorum or wanted > deciding.ALWAYS_FIT:
        return False
    shapes = [session.shapes.entries[shape_id] for _, shape_id, _ in need.wanted]
    return not any(
        one.attached or one.pairwise or (len(shapes) > 1 and one.shape.host_ports) for one in shapes
    )


def turns_kept(work: CycleWork, queue: QueueEntry, need: Need, most: int, turns: Turns) -> int:
    """How many gangs with this need the queue that has the turn may place, at most `most`, before
    it is another one's; each that is placed makes its own key greater.
    """
    groups = _groups(work.session, need)

    def has_turn(placed: int) -> bool:
        for group in groups:
            queue.charge(group.shape, group.members * placed)
        kept = turns.stays_first()
        for group in groups:
            queue.charge(group.shape, -group.members * placed)
        return kept

    kept = 1
    # Doubled rather than bisected: the greatest number costs more looks than a second pass.
    while kept < most and has_turn(min(2 * kept, most) - 1):
        kept = min(2 * kept, most)
    return kept


def _groups(session: Session, need: Need) -> list[_Group]:
    """What each gang wants, in the order in which `placing` places it."""
    found = [
        _Group(role, session.shapes.entries[shape_id], count)
        for role, shape_id, count in need.wanted
    ]
    return sorted(found, key=lambda one: (one.role, one.shape.order))


def _quota(queue: QueueEntry, groups: Iterable[_Group]) -> int:
    """How many gangs the ceilings of their queue allow."""
    amounts: dict[int, int] = {}
    for group in groups:
        for row, amount in group.shape.pairs:
            amounts[row] = amounts.get(row, 0) + amount * group.members
    most = np.iinfo(np.int64).max
    for entry in queue.chain:
        for row, limit in entry.ceiling.items():
            if row in amounts:
                most = min(most, (limit - entry.used.get(row, 0)) // amounts[row])
    return most


def _space(
    session: Session, bucket: Bucket, groups: Sequence[_Group], queue: QueueEntry
) -> Space | None:
    """Where the first of the gangs would be placed; the others follow it while there is room, as
    its domain has become the fullest that holds them.
    """
    base = session.policies.within(queue, None)
    need = bucket.need
    structure = need.structure
    if structure is None or structure.topology is None:
        return Space(base)
    found = session.ground.nodes.topology.levels(structure.topology)
    session.work_left -= len(found.levels) * session.ground.nodes.size
    demand = Demand(
        roles=[group.role for group in groups],
        wanted=[group.members for group in groups],
        counts=lambda: [session.fits.counts(group.shape) for group in groups],
        quorum=need.quorum,
        minima=need.minima,
    )
    spent = bucket.spent_spaces(session.ground)
    for space in spaces(found, demand, slots_of(session, ()), "", base):
        if (space.level, space.domain) not in spent:
            return space
    return None


def _room_for(session: Session, groups: Sequence[_Group], space: Space) -> int:
    """How many gangs surely find room in a space, in whatever order and wherever they go.

    A pod takes at most so many places from another shape as its request is larger, rounded up, in
    the resource in which it is the largest.
    """
    most = np.iinfo(np.int64).max
    for group in groups:
        counts = session.fits.counts(group.shape)
        room = int(counts.sum() if space.mask is None else counts[space.mask].sum())
        taken = sum(one.members * _displaced(group.shape, one.shape) for one in groups)
        most = min(most, room // taken)
    return most


def _displaced(shape: ShapeEntry, other: ShapeEntry) -> int:
    """How many pods of a shape find no room on a node because of one of another shape, at most."""
    if shape is other:
        return 1
    amounts = dict(other.pairs)
    return max((-(-amounts.get(row, 0) // amount) for row, amount in shape.pairs), default=0)


def _decide(
    work: CycleWork, bucket: Bucket, gangs: Sequence[Gang], groups: Sequence[_Group], space: Space
) -> None:
    """Spread the members of all, and decide gang by gang."""
    state, session, need = work.state, work.session, bucket.need
    queue = gangs[0].queue
    statement = Statement(state.ground, queue)
    topology = need.structure.topology if need.structure is not None else None
    order = state.nodes.topology.order(topology)
    places: dict[tuple[str, int], list[list[int]]] = {}
    for role, shape, count in groups:
        slots = session.spread_in_turn(
            statement, queue, role, shape, count * len(gangs), space.mask
        ).reshape(len(gangs), count)
        places[role, shape.id] = _sorted_rows(slots, order).tolist()
    statement.commit()
    bucket.exceeded = False
    in_order = sorted(places.items())
    state.backlog.take_first(bucket, len(gangs))
    for at, gang in enumerate(gangs):
        parts = [(role, shape_id, rows[at]) for (role, shape_id), rows in in_order]
        placed = deciding.assign_all(gang, parts)
        queue.promise(gang.gang_id, {})
        work.decisions.append(
            deciding.decide(state, gang, need, placed, work.cycle, domain=space.name)
        )
        state.gangs.touch(gang)
    session.bindings_left -= need.quorum * len(gangs)


def _sorted_rows(slots: Ints, order: Ints) -> Ints:
    """Each gang's slots in the order of topology and names."""
    if slots.shape[1] == 1:
        return slots
    found: Ints = np.take_along_axis(slots, np.argsort(order[slots], axis=1, kind="stable"), axis=1)
    return found
