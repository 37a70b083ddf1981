"""The reservation of a gang's `minResources`: capacity on nodes for pods that do not exist yet.

The decision that places the gang's first pods opens it, as one row of the reservation table per
unit (`queueing.min_resources`). Each unit is a hold: charged to the queue, kept in checkpoints,
moved when its node goes. The gang may use the reservation whenever members of it wait. A unit ends
when pods of the gang hold the same amounts, at the deadline, or with the gang.

The decision itself carries the rows (`GangDecision.reserves`) and names those that it consumes
(`fills`), so a restart never finds one without the other.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.statement import Allocation
from services.gang_planner.core.queueing.min_resources import reservable
from services.gang_planner.core.queueing.namespace_quota import (
    QUOTA_EXCEEDED,
    QuotaRoom,
    exceeding,
)
from services.gang_planner.core.state.columns import add_amounts
from services.gang_planner.core.state.gang_settings import Defaults, reserve_ms
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import MIN_RESOURCES, Hold, HoldTable
from services.gang_planner.core.state.needs import RESERVED
from shared.contracts.decisions import GangDecision, NoteOpened, ReservedRoom

if TYPE_CHECKING:
    from services.gang_planner.core.state.planner_state import State
    from shared.model.gang_keys import GangKey


def open_units(
    work: CycleContext, gang: Gang, allocations: Iterable[Allocation], ending: Collection[Hold]
) -> tuple[ReservedRoom, ...]:
    """Reserve the units among these allocations, whose capacity is taken from the nodes already.

    Units that a quota of the namespace leaves no room for are given up. `ending`: holds of the gang
    that the decision fills.

    Returns:
        The rows, for the decision that is about to be made of the gang.
    """
    state = work.state
    until_ms = work.now_ms + reserve_ms(gang, work.state.defaults)
    stem = f"{gang.gang_id}/{gang.history.attempt + 1}"
    number = 0
    rows: list[ReservedRoom] = []
    room = QuotaRoom(state, gang, ending)
    for allocation in allocations:
        if allocation.role != RESERVED:
            continue
        slots: list[int] = allocation.slots.tolist()
        for slot, count in zip(slots, allocation.counts.tolist(), strict=True):
            uids = [f"{stem}/{number + at}" for at in range(count)]
            number += count
            for uid in tuple(uids):
                hold = Hold(
                    uid=uid,
                    gang_id=gang.gang_id,
                    role=RESERVED,
                    shape=allocation.shape,
                    reason=MIN_RESOURCES,
                    message="",
                    lost_on="",
                    namespace="",
                    labels=b"",
                    at_ms=work.now_ms,
                    until_ms=until_ms,
                )
                state.holds.add(state, hold, gang)
                state.holds.reserve(state, hold, slot, adopted=True)
                if room.take(allocation.shape):
                    hold.dirty, hold.logged = False, True
                else:
                    state.holds.close(state, hold, QUOTA_EXCEEDED)
                    uids.remove(uid)
            if uids:
                node, encoded = state.nodes.names[slot], allocation.shape.encoded
                rows.append(
                    ReservedRoom(node=node, shape=encoded, uids=tuple(uids), until_ms=until_ms)
                )
    return tuple(rows)


def recall(state: "State", decision: GangDecision) -> None:
    """Restore the units that a decision in the log reserves; a repeated decision reserves none."""
    if decision.again:
        return
    for row in decision.reserves:
        note = NoteOpened(
            gang_id=decision.gang_id,
            epoch=decision.epoch,
            kind="hold",
            at_ms=decision.cycle.now_ms,
            until_ms=row.until_ms,
            reason=MIN_RESOURCES,
            pod_uids=row.uids,
            role=RESERVED,
            shape=row.shape,
            node=row.node,
            cycle=decision.cycle,
        )
        state.holds.recall(state, note)


def units_of(holds: HoldTable, gang: Gang) -> list[Hold]:
    """The units that are reserved for a gang."""
    return [hold for hold in holds.of(gang) if hold.reserving]


def consumed(
    state: "State",
    gang: Gang,
    units: Sequence[Hold],
    placed: Iterable[Allocation] = (),
    *,
    released: bool = False,
) -> list[Hold]:
    """Units that the gang no longer needs when these members are placed, too.

    Args:
        state: The planner's state.
        gang: Their owner.
        units: All units of the gang.
        placed: Allocations that are not decided yet. Units on their nodes end first.
        released: Its reservations are released for the attempt, and the gang is not charged for
            them.
    """
    if not units or gang.group is None:
        return list(units)
    members = list(placed)
    left = _left(state, gang, members, released=released)
    used = {slot for allocation in members for slot in allocation.slots.tolist()}
    kept: dict[int, int] = {}
    for hold in units:
        add_amounts(kept, hold.shape.pairs)
    ended: list[Hold] = []
    for hold in sorted(units, key=lambda unit: _first_to_end(unit, used)):
        if all(kept[row] - amount >= left.get(row, 0) for row, amount in hold.shape.pairs):
            ended.append(hold)
            add_amounts(kept, hold.shape.pairs, -1)
    return ended


def review(state: "State") -> None:
    """End units whose amounts the pods of their gangs hold by now, and holds that the quotas of
    their namespaces no longer leave room for.
    """
    owners: dict[GangKey, Gang] = {}
    for hold in state.holds.by_uid.values():
        if hold.reserving and hold.gang is not None:
            owners[hold.gang.key] = hold.gang
    for gang in owners.values():
        for hold in consumed(state, gang, units_of(state.holds, gang)):
            state.holds.close(state, hold, "Consumed")
            state.gangs.touch(gang)
    for hold in exceeding(state):
        state.holds.close(state, hold, QUOTA_EXCEEDED)
        if hold.gang is not None:
            state.gangs.touch(hold.gang)


def end_of(defaults: Defaults, gang: Gang) -> str:
    """Why all units of a gang end now, apart from the ends of every hold; "" while they last."""
    if not gang.have():
        # Its first pods were not bound, or are gone: it is admitted again with its next ones.
        return "NotPlaced"
    return "" if reserve_ms(gang, defaults) else "NotWanted"


def _left(
    state: "State", gang: Gang, placed: Iterable[Allocation], *, released: bool
) -> dict[int, int]:
    """What `minResources` need beyond the amounts of the gang's pods, by resource row."""
    held = state.shapes.sums(gang.held.items())
    for hold in state.holds.of(gang):
        if hold.reservation is not None and not released:
            add_amounts(held, hold.shape.pairs, -1)
    for allocation in placed:
        add_amounts(held, allocation.shape.pairs, allocation.total)
    return {
        row: amount - held.get(row, 0)
        for row, amount in reservable(state, gang).items()
        if amount > held.get(row, 0)
    }


def _first_to_end(hold: Hold, used: set[int]) -> tuple[bool, bool, str]:
    """Units without a reservation first, then those on nodes that members take now."""
    if hold.reservation is None:
        return False, False, hold.uid
    return True, hold.reservation.slot not in used, hold.uid
