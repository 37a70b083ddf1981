"""What must always hold, worked out a second time from the pods and rooms themselves.

Run after every step in tests and simulation, and on a setting in production. A violation is a bug
of ours: it carries its story and must end the process.
"""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from services.gang_planner.core.decisions import attaching
from services.gang_planner.core.pairwise import labelling
from services.gang_planner.core.pairwise.counts import PairCounts
from services.gang_planner.core.recovery import repairing
from services.gang_planner.core.recovery.debts import Debt
from services.gang_planner.core.tables.gangs import Gang
from services.gang_planner.core.tables.members import STATE_NAMES, STATES, WAITING, state_of
from services.gang_planner.core.tables.ports import PortTable
from services.gang_planner.core.tables.room import BY_EVENT, Room
from services.gang_planner.state import State

if TYPE_CHECKING:
    from services.gang_planner.core.decisions.open_acts import OpenAct


class InvariantViolation(AssertionError):
    """The planner's state contradicts itself: `subject` is what it is about, the message tells the
    story.
    """

    def __init__(self, subject: str, story: str) -> None:
        super().__init__(f"{subject}: {story}")
        self.subject = subject


def validate(state: State, now_ms: int) -> None:
    """Check all invariants as of the last cycle's instant.

    Raises:
        InvariantViolation: One does not hold.
    """
    _check_ground(state)
    for gang in state.gangs.gangs.values():
        _check_gang(state, gang)
    _check_members(state)
    _check_rooms(state)
    _check_debts(state)
    _check_preemptions(state)
    _check_starts(state, now_ms)
    _check_queues(state)


def _check_ground(state: State) -> None:
    ground, nodes = state.ground, state.nodes
    ground.fit_cells()
    nodes.allocatable.ensure(*ground.free.cells.shape)
    expected = nodes.allocatable.cells[: ground.free.cells.shape[0], : nodes.size].copy()
    ports = PortTable()
    loads = [(one.slot, one.shape, uid) for uid, one in state.members.items() if one.slot >= 0]
    loads += [(room.slot, room.shape, room.uid) for room in state.rooms.every()]
    for slot, shape, _ in loads:
        for row, amount in shape.pairs:
            expected[row, slot] -= amount
        if shape.shape.host_ports:
            ports.take(slot, shape.shape.host_ports)
    found = ground.free.cells[: len(expected), : nodes.size]
    wrong = np.argwhere(expected != found)
    if len(wrong):
        row, slot = (int(one) for one in wrong[0])
        on_it = sorted(uid for at, _, uid in loads if at == slot)
        raise InvariantViolation(
            f"node {nodes.names[slot]}",
            f"{found[row, slot]} {state.resources.names[row]} free, "
            f"{expected[row, slot]} by its pods and room {on_it}",
        )
    if ports.content() != ground.ports.content():
        raise InvariantViolation("host ports", f"{ground.ports.content()} != {ports.content()}")
    wrong_claims = attaching.contradiction(
        ground, [(slot, shape) for slot, shape, _ in loads if shape.attached]
    )
    if wrong_claims:
        raise InvariantViolation("claims", wrong_claims)
    pairs = PairCounts(ground.pairs.domains)
    for slot, shape, _ in loads:
        pairs.add(slot, shape.tallies, 1)
    if pairs.content() != ground.pairs.content():
        raise InvariantViolation("pods by terms", f"{ground.pairs.content()} != {pairs.content()}")


def _check_gang(state: State, gang: Gang) -> None:
    counts = [0] * STATES
    held: Counter[int] = Counter()
    waiting: dict[tuple[str, int], set[str]] = {}
    for uid, member in gang.members.items():
        counts[member.state] += 1
        if member.charged:
            held[member.shape.id] += 1
        if member.state == WAITING:
            waiting.setdefault((member.pod.role, member.shape.id), set()).add(uid)
        if member.gang is not gang:
            raise InvariantViolation(gang.full_name, f"{uid} believes to be in another gang")
    held.update(debt.shape.id for debt in state.debts.of(gang) if debt.room is not None)
    held.update(room.shape.id for room in state.preemptions.held_of(gang))
    if counts != gang.counts:
        raise InvariantViolation(gang.full_name, f"counts {gang.counts}, members say {counts}")
    if dict(held) != gang.held:
        raise InvariantViolation(gang.full_name, f"holds {gang.held}, members say {dict(held)}")
    if waiting != {key: set(members) for key, members in gang.waiting.items()}:
        raise InvariantViolation(gang.full_name, f"waiting {gang.waiting}, members say {waiting}")
    if state.gangs.by_id.get(gang.gang_id) is not gang:
        raise InvariantViolation(gang.full_name, f"its id {gang.gang_id} stands for another gang")


def _check_members(state: State) -> None:
    for uid, member in state.members.items():
        node_exists = member.slot >= 0 and bool(state.nodes.exists[member.slot])
        right = state_of(member, node_exists=node_exists)
        if member.state != right:
            raise InvariantViolation(
                f"pod {uid}", f"is {STATE_NAMES[member.state]}, should be {STATE_NAMES[right]}"
            )
        if member.slot >= 0 and state.residents.get(member.slot, {}).get(uid) is not member:
            raise InvariantViolation(f"pod {uid}", "is accounted on a node that does not know it")
        if state.shapes.terms.any and labelling.entry_of(state, member.pod) is not member.shape:
            raise InvariantViolation(f"pod {uid}", "means something else to others by its labels")
        if member.room is not None and member.room not in state.rooms.rows(uid):
            raise InvariantViolation(f"pod {uid}", "believes in room that nobody keeps")


def _check_rooms(state: State) -> None:
    assumed: Counter[str] = Counter()
    rows: Counter[OpenAct | None] = Counter()
    for room in state.rooms.of_decisions():
        wrong = _room_error(state, room)
        if wrong:
            seq = room.act.seq if room.act is not None else 0
            raise InvariantViolation(f"{room.reason} for {room.uid} by decision {seq}", wrong)
        assumed[room.uid] += room.reason == "assumed"
        rows[room.act] += 1
    for uid, count in assumed.items():
        if count > 1:
            raise InvariantViolation(f"pod {uid}", f"has {count} open decisions")
    for act, kept in rows.items():
        if act is not None and act.rows != kept:
            wrong = f"believes to have {act.rows} rows of room, and has {kept}"
            raise InvariantViolation(f"decision {act.seq}", wrong)
    under_way = sum(kept for act, kept in rows.items() if act is not None and act.counted)
    if state.rooms.under_way != under_way:
        wrong = f"are believed to be {state.rooms.under_way}, and are {under_way}"
        raise InvariantViolation("pods under way", wrong)
    for seq, act in state.open.items():
        if not rows[act] and seq not in state.unresolved:
            raise InvariantViolation(f"decision {seq}", "is open and keeps no room")


def _room_error(state: State, room: Room) -> str:
    member = state.members.get(room.uid)
    if not room.owner:
        return "has no owner"
    if member is None:
        return "its pod is gone"
    if member.slot >= 0:
        return "its pod is on a node already"
    if room.reason == "assumed":
        if room.until_ms != BY_EVENT or member.room is not room:
            return "does not end by its pod's event"
    elif room.until_ms == BY_EVENT:
        return "has no deadline"
    act = room.act
    if act is None or (act.seq and state.open.get(act.seq) is not act):
        return "belongs to a decision that is not open"
    return ""


def _check_debts(state: State) -> None:
    """Every row for a lost pod has exactly one debt, and every debt an owner, a reason, a deadline
    and a note in the log that says so.
    """
    table, owed = state.debts, state.rooms.owed
    for uid, room in owed.items():
        debt = table.by_uid.get(uid)
        if debt is None or debt.room is not room:
            raise InvariantViolation(f"room for lost pod {uid}", "is kept and not owed")
    for uid, debt in table.by_uid.items():
        wrong = _debt_error(state, debt)
        if wrong:
            raise InvariantViolation(f"debt for lost pod {uid} ({debt.reason})", wrong)
        if debt.room is not None and owed.get(uid) is not debt.room:
            raise InvariantViolation(f"debt for lost pod {uid}", "has room that nobody keeps")
    for gang in state.gangs.gangs.values():
        for debt in table.of(gang):
            if table.by_uid.get(debt.uid) is not debt:
                raise InvariantViolation(gang.full_name, f"is owed for {debt.uid}, which is over")


def _debt_error(state: State, debt: Debt) -> str:
    if not debt.gang_id or not debt.reason:
        return "has no owner or no reason"
    if debt.until_ms <= 0:
        return "has no deadline"
    if debt.dirty or not debt.logged:
        return "is not what the log says"
    room = debt.room
    if room is None:
        return "names a node and keeps no room" if debt.node else ""
    if room.owner != debt.gang_id or room.until_ms != debt.until_ms or room.shape is not debt.shape:
        return "keeps room for somebody else, of another shape or until another instant"
    if room.reason != debt.room_reason:
        return f"keeps room as {room.reason}"
    if state.nodes.names[room.slot] != debt.node:
        return f"keeps room on {state.nodes.names[room.slot]}, says {debt.node}"
    return ""


def _check_preemptions(state: State) -> None:
    """Every row for a preemptor belongs to one open preemption, and ends by its deadline."""
    kept = {room.uid: room for room in state.preemptions.rooms()}
    if kept != state.rooms.promised:
        raise InvariantViolation(
            "room for preemptors", f"{sorted(state.rooms.promised)} kept, {sorted(kept)} promised"
        )
    owners: set[str] = set()
    for one in state.preemptions.opened:
        if one.act.gang_id in owners:
            raise InvariantViolation(one.act.gang, "has two open preemptions")
        owners.add(one.act.gang_id)
        for room, gang in one.rooms.values():
            if room.reason != "preemptor" or room.until_ms <= 0 or not room.owner:
                raise InvariantViolation(
                    f"room for preemptor {room.uid}", "has no owner, reason or deadline"
                )
            if gang is not one.gang:
                raise InvariantViolation(one.act.gang, f"{gang.full_name} is charged for its room")


def _check_starts(state: State, now_ms: int) -> None:
    """A starting gang that is bound in part has somebody who completes or releases it: for a second
    nobody needs to, then a repair, and in its end a release.
    """
    for gang in state.gangs.gangs.values():
        history = gang.history
        if gang.key in state.gangs.changed or not repairing.partial(gang):
            continue
        if history.releasing or "repair" in history.notes:
            continue
        if now_ms >= state.view.local_ms(gang.bound_ms) + repairing.QUIET_MS:
            raise InvariantViolation(
                gang.full_name,
                f"{gang.bound} members are bound since {gang.bound_ms}, it is {now_ms}, "
                "and it is neither repaired nor released",
            )
    for key, gang in state.repairs.items():
        if gang.key not in state.gangs.changed and "repair" not in gang.history.notes:
            raise InvariantViolation(f"gang {key}", "is repaired, and no note says so")


def _check_queues(state: State) -> None:
    for entry in state.queues.entries.values():
        holders = {one for one in state.gangs.gangs.values() if one.held and one.queue is entry}
        if holders != {one for one in entry.holders if state.gangs.gangs.get(one.key) is one}:
            raise InvariantViolation(f"queue {entry.name}", "does not know which gangs hold room")
        used: Counter[int] = Counter()
        shapes: Counter[int] = Counter()
        for gang in state.gangs.gangs.values():
            if gang.queue is entry:
                shapes.update(gang.held)
            if entry not in gang.queue.chain:
                continue
            for shape_id, count in gang.held.items():
                for row, amount in state.shapes.entries[shape_id].pairs:
                    used[row] += amount * count
        if entry.shapes != shapes:
            raise InvariantViolation(
                f"queue {entry.name}", f"counts {entry.shapes}, its gangs hold {dict(shapes)}"
            )
        found = {row: amount for row, amount in entry.used.items() if amount}
        if found != {row: amount for row, amount in used.items() if amount}:
            raise InvariantViolation(
                f"queue {entry.name}", f"charged {found}, its gangs hold {dict(used)}"
            )
