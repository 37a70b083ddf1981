"""Places what is owed before anything else: members that come in for lost ones, then room for
those that are still to come.

A waiting member of the same gang and role fills a debt: of the same shape in the very place that is
held, of another shape wherever it fits now that the held place is given up; if it fits nowhere, the
debt becomes one for the new shape and stays first in line. A gang of which nothing is left is
placed whole, with all its held room at its disposal.

Gangs of higher priority may take held room (`attempt`): the debt then looks for another place.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.decisions import deciding
from services.gang_planner.core.placement.lending import Loan
from services.gang_planner.core.placement.placing import Attempt, slots_of
from services.gang_planner.core.placement.statement import Allocation, Statement
from services.gang_planner.core.placement.sub_gangs import nodes_of
from services.gang_planner.core.queueing.backlog import RESERVED, Bucket, Need
from services.gang_planner.core.queueing.sharing import UNLIMITED, Limit
from services.gang_planner.core.recovery import reservation
from services.gang_planner.core.recovery.debts import RESTARTED, Debt, keep_room
from services.gang_planner.core.tables.columns import Bools
from services.gang_planner.core.tables.gangs import Gang, OrderKey
from services.gang_planner.core.tables.shapes import ShapeEntry
from services.gang_planner.core.telling import shortfalls
from services.gang_planner.core.topology.spaces import where_it_stays
from services.gang_planner.state import State


class Placed(NamedTuple):
    """An attempt that came off, not yet decided."""

    statement: Statement
    #: Debts that end with it.
    filled: list[Debt]
    #: The topology domain that all of it is in; "": none.
    domain: str = ""
    #: Sequence of the eviction that made room for it; 0: none did.
    preemption: int = 0


def run(work: CycleWork) -> None:
    """Serve every gang that is owed something, in the order of gangs, until the cycle's budget is
    spent.
    """
    state = work.state
    full: set[tuple[object, ...]] = set()
    gangs = [state.gangs.gangs[key] for key in state.debts.debtors()]
    for gang in sorted(gangs, key=lambda one: _order(work, one)):
        if work.session.exhausted:
            return
        if gang.bucket is not None and _worth_trying(work, gang):
            if _is_plain(state, gang):
                _fill(work, gang)
            elif (placed := attempt(work, gang)) is not None:
                decide(work, gang, placed)
            else:
                _release_other_shapes(state, gang)
        for debt in state.debts.of(gang):
            if debt.room is None and not work.session.exhausted:
                _find_room(work, debt, gang, full)


def attempt(work: CycleWork, gang: Gang, limit: Limit = UNLIMITED) -> Placed | None:
    """Try to place a gang of the backlog within what fairness allows it; None: it does not fit,
    and nothing has changed.

    A gang that has not started, or whose members have to be close together, has the room that is
    owed to it at its disposal. When that does not help, room held for gangs of lower priority is
    tried, too: what it does not need of it stays held, the debts that lose theirs look for another
    place.
    """
    state = work.state
    assert gang.bucket is not None
    need = gang.bucket.need
    owed = () if _is_plain(state, gang) else state.debts.of(gang)
    for number, lent in enumerate(_lendings(state, gang, owed)):
        if number:
            gang.bucket.over = _over_mark(state, gang)
        loan = Loan(state, lent)
        most = deciding.members_max(state, gang, need)
        if limit.members_max is not None:
            most = min(most, limit.members_max)
        # What was found with room that somebody lends, or leaves to others, is true for this once.
        usual = not lent and limit is UNLIMITED
        tried = Attempt(
            work.session,
            gang.queue,
            need,
            members_max=most,
            withheld=limit.withheld,
            spent=gang.bucket.spent_spaces(state.ground) if usual else None,
        )
        fits = tried.run()
        gang.bucket.exceeded = tried.exceeded
        if not fits:
            shortfalls.note(work.session, gang.bucket, tried.short_by)
            loan.take_back()
            continue
        # Units of `minResources` stand for all that is still to come of the gang.
        filled = list(owed) if need.reserved else _filled(owed, tried)
        units = [debt for debt in owed if debt.reserving and debt not in filled]
        members = tried.statement.allocations
        filled += reservation.consumed(state, gang, units, members, lent=True)
        for debt in loan.take_back_if_fits(work.session, filled):
            debt.dirty = True
            if debt.gang is not None:
                state.gangs.touch(debt.gang)
        return Placed(tried.statement, filled, tried.domain)
    return None


def would_fit(work: CycleWork, gang: Gang, limit: Limit) -> bool:
    """Whether `attempt` would succeed; nothing has changed."""
    assert gang.bucket is not None
    need, state = gang.bucket.need, work.state
    owed = () if _is_plain(state, gang) else state.debts.of(gang)
    for lent in _lendings(state, gang, owed):
        loan = Loan(state, lent)
        tried = Attempt(
            work.session,
            gang.queue,
            need,
            members_max=need.least,
            withheld=limit.withheld,
        )
        fits = tried.run()
        if fits:
            tried.statement.discard()
        loan.take_back()
        if fits:
            return True
    return False


def decide(work: CycleWork, gang: Gang, placed: Placed) -> None:
    """Decide what was placed; the debts that it fills end with the same record."""
    state = work.state
    assert gang.bucket is not None
    need = gang.bucket.need
    state.backlog.take(gang)
    gang.queue.promise(gang.gang_id, {})
    allocations = placed.statement.commit()
    reserves = reservation.open_units(work, gang, allocations) if need.reserved else ()
    decision = deciding.decide(
        state,
        gang,
        need,
        deciding.assign(state, gang, [one for one in allocations if one.role != RESERVED]),
        work.cycle,
        fills=placed.filled,
        domain=placed.domain,
        preemption=placed.preemption,
        reserves=reserves,
    )
    work.session.spend(len(decision.bindings))
    work.decisions.append(decision)
    for debt in placed.filled:
        state.debts.close(state, debt, "Filled")
        state.gangs.touch(gang)


def _is_plain(state: State, gang: Gang) -> bool:
    """Whether members that come in for lost ones are placed one by one: of a started gang that
    neither asks to be close together nor has capacity reserved for pods still to come.
    """
    assert gang.bucket is not None
    started = gang.history.started and gang.bucket.need.structure is None
    return started and not reservation.units_of(state, gang)


def _lendings(state: State, gang: Gang, owed: Iterable[Debt]) -> Iterator[list[Debt]]:
    """What to borrow for the first attempt, and for the second."""
    own = [debt for debt in owed if debt.room is not None]
    yield own
    lower = [debt for debt in _held(state) if _priority(debt) < gang.priority]
    if lower:
        yield own + lower


def _filled(owed: Iterable[Debt], tried: Attempt) -> list[Debt]:
    """Debts for which a member of their role was placed."""
    left: dict[str, int] = {}
    for group in tried.groups:
        left[group.role] = left.get(group.role, 0) + group.placed
    filled: list[Debt] = []
    for debt in owed:
        if left.get(debt.role, 0):
            left[debt.role] -= 1
            filled.append(debt)
    return filled


def outranking(state: State) -> list[Bucket]:
    """Buckets whose first gang may take held room, and has not tried since anything changed."""
    held = _held(state)
    if not held:
        return []
    lowest = min(_priority(debt) for debt in held)
    return [
        bucket
        for bucket in state.backlog.buckets.values()
        if (first := bucket.entries[0][2]).priority > lowest
        and bucket.over != _over_mark(state, first)
    ]


def _held(state: State) -> list[Debt]:
    """Debts whose room a gang of higher priority may take."""
    return [
        debt
        for debt in state.debts.by_uid.values()
        if debt.room is not None and debt.gang is not None and not debt.repairing
    ]


def _priority(debt: Debt) -> int:
    assert debt.gang is not None
    return debt.gang.priority


def _over_mark(state: State, gang: Gang) -> tuple[object, ...]:
    return state.ground.freed, state.debts.kept, gang.key


def _order(work: CycleWork, gang: Gang) -> OrderKey:
    return work.session.policies.order(gang)


def _worth_trying(work: CycleWork, gang: Gang) -> bool:
    """Whether anything changed since the same was tried in vain.

    All that an attempt looks at is in the mark: a replay, which leaves out cycles that wrote
    nothing, must not try what was not tried, nor leave out what was.
    """
    assert gang.bucket is not None
    table = work.state.debts
    owed = tuple((debt.uid, debt.node, debt.shape.id) for debt in table.of(gang))
    mark = (work.state.ground.freed, gang.bucket.need.signature, owed)
    if table.tried.get(gang.key) == mark:
        return False
    table.tried[gang.key] = mark
    return True


def _fill(work: CycleWork, gang: Gang) -> None:
    """Bind waiting members of a started gang in the place of its lost ones."""
    state, session = work.state, work.session
    assert gang.bucket is not None
    need = gang.bucket.need
    avoid = set(slots_of(session, need.avoid).tolist())
    exact, loose = _match(state.debts.of(gang), need, avoid)
    if not exact and not loose:
        return
    loan = Loan(state, [debt for debt, _ in (*exact, *loose) if debt.room is not None])
    statement = Statement(state.ground, gang.queue)
    for allocation in _exactly(exact, state.shapes.entries):
        statement.allocate(allocation)
    filled = [debt for debt, _ in exact]
    slots = slots_of(session, need.avoid)
    full: set[int] = set()
    for debt, (role, shape_id) in loose:
        shape = state.shapes.entries[shape_id]
        if shape_id not in full and session.spread(statement, gang.queue, role, shape, 1, slots):
            filled.append(debt)
            continue
        full.add(shape_id)
        if shape is not debt.shape:
            loan.give_up(debt)
            # What it held is free for the others.
            full.clear()
            debt.shape, debt.dirty = shape, True
            debt.labels = next(iter(gang.waiting[role, shape_id].values())).pod.labels
    for debt in loan.take_back_if_fits(session, filled):
        debt.dirty = True
    if filled:
        decide(work, gang, Placed(statement, filled))
    else:
        statement.discard()


def _match(
    owed: Iterable[Debt], need: Need, avoid: set[int]
) -> tuple[list[tuple[Debt, tuple[str, int]]], list[tuple[Debt, tuple[str, int]]]]:
    """Which debts waiting members can fill: in the held place, and otherwise."""
    left = {(role, shape_id): count for role, shape_id, count in need.wanted}
    exact: list[tuple[Debt, tuple[str, int]]] = []
    others: list[Debt] = []
    for debt in owed:
        key = (debt.role, debt.shape.id)
        # A place that was held says nothing of claims that the successor has: it is looked for.
        # Nor of what has come near it meanwhile, where terms between pods look.
        plain = not debt.shape.attached and not debt.shape.pairwise
        held = debt.room is not None and plain and debt.room.slot not in avoid
        if held and left.get(key):
            left[key] -= 1
            exact.append((debt, key))
        else:
            others.append(debt)
    loose: list[tuple[Debt, tuple[str, int]]] = []
    for debt in others:
        keys = [key for key, count in left.items() if count and key[0] == debt.role]
        if keys:
            key = min(keys, key=lambda one: (one[1] != debt.shape.id, one[1]))
            left[key] -= 1
            loose.append((debt, key))
    return exact, loose


def _exactly(
    exact: Iterable[tuple[Debt, tuple[str, int]]], shapes: list[ShapeEntry]
) -> list[Allocation]:
    """Allocations of the held places themselves."""
    counts: dict[tuple[str, int], dict[int, int]] = {}
    for debt, key in exact:
        assert debt.room is not None
        per_slot = counts.setdefault(key, {})
        per_slot[debt.room.slot] = per_slot.get(debt.room.slot, 0) + 1
    return [
        Allocation(
            role,
            shapes[shape_id],
            np.fromiter(per_slot.keys(), dtype=np.int64),
            np.fromiter(per_slot.values(), dtype=np.int64),
        )
        for (role, shape_id), per_slot in counts.items()
    ]


def _release_other_shapes(state: State, gang: Gang) -> None:
    """A gang that was made again does not fit even with what is held for it: what none of its
    members could use is free for others.
    """
    assert gang.bucket is not None
    if gang.bucket.exceeded:
        return
    shapes = {shape_id for _, shape_id, _ in gang.bucket.need.wanted}
    for debt in state.debts.of(gang):
        if debt.reason == RESTARTED and debt.shape.id not in shapes:
            state.debts.close(state, debt, "OtherShape")
            state.gangs.touch(gang)


def _find_room(work: CycleWork, debt: Debt, gang: Gang, full: set[tuple[object, ...]]) -> None:
    """Keep room wherever the shape fits; without any the debt stays first in line.

    Args:
        work: This cycle.
        debt: It has no room.
        gang: Its owner.
        full: What has found no room in this cycle: a rack that dies leaves hundreds of equal debts.
    """
    state, session = work.state, work.session
    bad = tuple(sorted({node for _, node in gang.history.bad} | set(gang.history.failed_on)))
    mark = (state.ground.freed, debt.shape.id, bad)
    if debt.tried == mark:
        return
    debt.tried = mark
    topology = gang.group.topology if gang.group is not None else None
    equal = (gang.queue.name if topology is None else gang.full_name, *mark)
    if equal in full:
        return
    statement = Statement(state.ground, gang.queue)
    avoid = slots_of(session, bad)
    within = _domain(work, gang)
    if not session.spread(statement, gang.queue, debt.role, debt.shape, 1, avoid, within=within):
        statement.discard()
        full.add(equal)
        return
    (allocation,) = statement.commit()
    keep_room(state, debt, int(allocation.slots[0]), adopted=True)
    debt.dirty = True
    state.gangs.touch(gang)


def _domain(work: CycleWork, gang: Gang) -> Bools | None:
    """Where the gang's topology wants its next member; None: anywhere."""
    group = gang.group
    if group is None or group.topology is None:
        return None
    names = nodes_of(gang.members.values(), work.state.nodes.names)
    found = work.state.nodes.topology.levels(group.topology)
    return where_it_stays(found, slots_of(work.session, names))
