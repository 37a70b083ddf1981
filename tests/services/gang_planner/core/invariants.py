"""The invariants of the planner's state, checked by computing it again from pods and reservations.

Scenes check them after every step.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from services.gang_planner.core.lifecycle import repair
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.inter_pod import profiles
from services.gang_planner.core.state.inter_pod.counts import PairCounts
from services.gang_planner.core.state.member_states import STATES, WAITING
from services.gang_planner.core.state.members import state_of
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.node_uses import disks, host_ports
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reservations import BY_EVENT, Reservation
from services.gang_planner.core.state.storage.demand import claim_keys
from services.gang_planner.core.transitions import NOTES
from shared.model.invariants import InvariantViolation
from tests.services.gang_planner.core import inside

if TYPE_CHECKING:
    from services.gang_planner.core.state.claim_ledger import Key
    from services.gang_planner.core.state.reservations import OpenAct

STATE_NAMES: Final = (
    "waiting",
    "assumed",
    "placed",
    "running",
    "succeeded",
    "failed",
    "lost",
    "leaving",
    "gated",
    "unsupported",
    "foreign",
)

_Contradictions: TypeAlias = Iterator[tuple[str, str]]
"""What contradicts itself, and how."""


def validate(planner: Planner) -> None:
    """Check all invariants as of the time of the planner's last cycle.

    Raises:
        InvariantViolation: One does not hold.
    """
    state = inside.state_of(planner)
    found = chain(
        _check_node_capacity(state),
        *(_check_gang(state, gang) for gang in state.gangs.gangs.values()),
        _check_members(state),
        _check_reservations(state),
        _check_holds(state),
        _check_preemptions(state),
        _check_starts(state, inside.last_cycle_ms(planner)),
        _check_queues(state),
    )
    for what, wrong in found:
        raise InvariantViolation(what, wrong)


def _check_node_capacity(state: State) -> _Contradictions:
    node_capacity, nodes = state.node_capacity, state.nodes
    node_capacity.fit_cells()
    nodes.allocatable.ensure(*node_capacity.free.cells.shape)
    expected = nodes.allocatable.cells[: node_capacity.free.cells.shape[0], : nodes.size].copy()
    ports = host_ports()
    loads = [
        (one.slot, one.shape, uid) for uid, one in state.members.items() if one.slot is not None
    ]
    loads += [
        (reservation.slot, reservation.shape, reservation.uid)
        for reservation in state.reservations.every()
    ]
    for slot, shape, _ in loads:
        for row, amount in shape.pairs:
            expected[row, slot] -= amount
        if shape.shape.host_ports:
            ports.take(slot, shape.shape.host_ports)
    found = node_capacity.free.cells[: len(expected), : nodes.size]
    wrong = np.argwhere(expected != found)
    if len(wrong):
        row, slot = (int(one) for one in wrong[0])
        on_it = sorted(uid for at, _, uid in loads if at == slot)
        yield (
            f"node {nodes.names[slot]}",
            f"{found[row, slot]} {state.resources.names[row]} free, "
            f"{expected[row, slot]} by its pods and reservations {on_it}",
        )
    if ports.content() != node_capacity.ports.content():
        yield "host ports", f"{node_capacity.ports.content()} != {ports.content()}"
    claims = wrong_claims(
        node_capacity, [(slot, shape) for slot, shape, _ in loads if shape.attached]
    )
    if claims:
        yield "claims", claims
    pairs = PairCounts(node_capacity.pairs.domains)
    for slot, shape, _ in loads:
        pairs.add(slot, shape.tallies, 1)
    if pairs.content() != node_capacity.pairs.content():
        yield "pods by terms", f"{node_capacity.pairs.content()} != {pairs.content()}"


def _check_gang(state: State, gang: Gang) -> _Contradictions:
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
            yield gang.full_name, f"its member {uid} refers to another gang"
    held.update(hold.shape.id for hold in state.holds.of(gang) if hold.reservation is not None)
    held.update(reservation.shape.id for reservation in state.preemptions.held_of(gang))
    if counts != gang.counts:
        yield gang.full_name, f"counts {gang.counts} by state, but its members are {counts}"
    if dict(held) != gang.held:
        yield gang.full_name, f"holds {gang.held} by shape, but its members hold {dict(held)}"
    if waiting != {key: set(members) for key, members in gang.waiting.items()}:
        yield gang.full_name, f"lists {gang.waiting} as waiting, but {waiting} wait"
    if state.gangs.by_id.get(gang.gang_id) is not gang:
        yield gang.full_name, f"its id {gang.gang_id} belongs to another gang"
    yield from _check_gang_state(gang)


def _check_gang_state(gang: Gang) -> _Contradictions:
    """The state of a gang agrees with its open notes, from which a restart restores it."""
    history = gang.history
    kinds = [note.kind for note in history.notes]
    own = NOTES.get(history.state)
    if (own is not None and own not in kinds) or history.releasing != ("release" in kinds):
        yield gang.full_name, f"is {history.state}, but its notes are {kinds}"


def _check_members(state: State) -> _Contradictions:
    for uid, member in state.members.items():
        right = state_of(member, state.nodes)
        if member.state != right:
            yield f"pod {uid}", f"is {STATE_NAMES[member.state]} and should be {STATE_NAMES[right]}"
        if member.slot is not None and state.residents.get(member.slot, {}).get(uid) is not member:
            yield f"pod {uid}", "is accounted on a node that does not list it"
        if state.shapes.terms.any and profiles.entry_of(state, member.pod) is not member.shape:
            yield f"pod {uid}", "has a shape entry that does not match its labels"
        if member.reservation is not None and member.reservation not in state.reservations.rows(
            uid
        ):
            yield f"pod {uid}", "refers to a reservation that does not exist"


def _check_reservations(state: State) -> _Contradictions:
    assumed: Counter[str] = Counter()
    rows: Counter[OpenAct | None] = Counter()
    for reservation in state.reservations.of_decisions():
        wrong = _reservation_error(state, reservation)
        if wrong:
            seq = reservation.act.seq if reservation.act is not None else 0
            yield f"{reservation.reason} for {reservation.uid} by decision {seq}", wrong
        assumed[reservation.uid] += reservation.reason == "assumed"
        rows[reservation.act] += 1
    for uid, count in assumed.items():
        if count > 1:
            yield f"pod {uid}", f"has {count} open decisions"
    for act, kept in rows.items():
        if act is not None and act.rows != kept:
            yield f"decision {act.seq}", f"counts {act.rows} reservations, but has {kept}"
    pods_in_flight = sum(kept for act, kept in rows.items() if act is not None and act.counted)
    if state.reservations.pods_in_flight != pods_in_flight:
        wrong = f"are counted as {state.reservations.pods_in_flight}, but are {pods_in_flight}"
        yield "pods in flight", wrong
    for seq, act in state.open.items():
        if not rows[act] and seq not in state.unresolved:
            yield f"decision {seq}", "is open and has no reservation"


def _reservation_error(state: State, reservation: Reservation) -> str:
    member = state.members.get(reservation.uid)
    if not reservation.owner:
        return "has no owner"
    if member is None:
        return "its pod is gone"
    if member.slot is not None:
        return "its pod is on a node already"
    if reservation.reason == "assumed":
        if reservation.until_ms != BY_EVENT or member.reservation is not reservation:
            return "does not end by its pod's event"
    elif reservation.until_ms == BY_EVENT:
        return "has no deadline"
    act = reservation.act
    if act is None or (act.seq and state.open.get(act.seq) is not act):
        return "belongs to a decision that is not open"
    return ""


def _check_holds(state: State) -> _Contradictions:
    """Every reservation for a lost pod has exactly one hold. Every hold has an owner, a reason, a
    deadline and a note in the log with these values.
    """
    table, replacements = state.holds, state.reservations.replacements
    for uid, reservation in replacements.items():
        hold = table.by_uid.get(uid)
        if hold is None or hold.reservation is not reservation:
            yield f"reservation for lost pod {uid}", "exists without a hold"
    for uid, hold in table.by_uid.items():
        wrong = _hold_error(state, hold)
        if wrong:
            yield f"hold for lost pod {uid} ({hold.reason})", wrong
        if hold.reservation is not None and replacements.get(uid) is not hold.reservation:
            yield f"hold for lost pod {uid}", "has a reservation that the table does not contain"
    for gang in state.gangs.gangs.values():
        for hold in table.of(gang):
            if table.by_uid.get(hold.uid) is not hold:
                yield gang.full_name, f"lists the hold for {hold.uid}, which has ended"


def _hold_error(state: State, hold: Hold) -> str:
    if not hold.gang_id or not hold.reason:
        return "has no owner or no reason"
    if hold.until_ms <= 0:
        return "has no deadline"
    if hold.dirty or not hold.logged:
        return "differs from its note in the log"
    reservation = hold.reservation
    if reservation is None:
        return "names a node and has no reservation" if hold.node else ""
    if (
        reservation.owner != hold.gang_id
        or reservation.until_ms != hold.until_ms
        or reservation.shape is not hold.shape
    ):
        return "has a reservation of another owner, shape or deadline"
    if reservation.reason != hold.reservation_reason:
        return f"has a reservation with the reason {reservation.reason}"
    if state.nodes.names[reservation.slot] != hold.node:
        return f"has a reservation on {state.nodes.names[reservation.slot]}, but names {hold.node}"
    return ""


def _check_preemptions(state: State) -> _Contradictions:
    """Every reservation for a preemptor has one open preemption, an owner and a deadline."""
    kept = {reservation.uid: reservation for reservation in state.preemptions.reservations()}
    if kept != state.reservations.promised:
        yield (
            "reservations of preemptors",
            f"{sorted(state.reservations.promised)} exist, {sorted(kept)} belong to preemptions",
        )
    owners: set[str] = set()
    for one in state.preemptions.opened:
        if one.act.gang_id in owners:
            yield one.act.gang, "has two open preemptions"
        owners.add(one.act.gang_id)
        for reservation, gang in one.reservations.values():
            if (
                reservation.reason != "preemptor"
                or reservation.until_ms <= 0
                or not reservation.owner
            ):
                yield (
                    f"reservation for preemptor {reservation.uid}",
                    "has no owner, reason or deadline",
                )
            if gang is not one.gang:
                yield one.act.gang, f"gang {gang.full_name} is charged for its reservations"


def _check_starts(state: State, now_ms: int) -> _Contradictions:
    """A starting gang that is partly bound for longer than a second is under repair or release."""
    for gang in state.gangs.gangs.values():
        history = gang.history
        if gang.key in state.gangs.changed or not repair.partial(gang):
            continue
        if history.releasing or history.repairing:
            continue
        if now_ms >= state.view.local_ms(gang.bound_ms) + repair.QUIET_MS:
            yield (
                gang.full_name,
                f"{gang.bound} members have been bound since {gang.bound_ms}, it is {now_ms}, "
                "and the gang is neither under repair nor being released",
            )
    for key, gang in state.repairs.items():
        if gang.key not in state.gangs.changed and not repair.is_open(gang):
            yield f"gang {key}", "is under repair without a note"


def _check_counts_of_gangs(state: State) -> _Contradictions:
    gangs = Counter(gang.queue.name for gang in state.gangs.gangs.values())
    for name in gangs.keys() | state.queues.entries.keys():
        entry = state.queues.entries.get(name)
        if entry is None or entry.gangs != gangs[name]:
            counted = entry.gangs if entry is not None else 0
            yield f"queue {name}", f"counts {counted} gangs, but has {gangs[name]}"


def _check_queues(state: State) -> _Contradictions:
    yield from _check_counts_of_gangs(state)
    for entry in state.queues.entries.values():
        holders = {one for one in state.gangs.gangs.values() if one.held and one.queue is entry}
        if holders != {one for one in entry.holders if state.gangs.gangs.get(one.key) is one}:
            yield f"queue {entry.name}", "does not list the gangs that hold capacity"
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
            yield (
                f"queue {entry.name}",
                f"counts {entry.shapes} by shape, but its gangs hold {dict(shapes)}",
            )
        found = {row: amount for row, amount in entry.used.items() if amount}
        if found != {row: amount for row, amount in used.items() if amount}:
            yield f"queue {entry.name}", f"is charged {found}, but its gangs hold {dict(used)}"


def wrong_claims(node_capacity: NodeCapacity, loads: Iterable[tuple[int, ShapeEntry]]) -> str:
    """The first inconsistency between the claims and disks in use and all pods and reservations,
    as (slot, shape) in `loads`; "": none.
    """
    storage, devices = node_capacity.storage, node_capacity.devices.grants
    volumes: dict[Key, dict[int, int]] = {}
    claims: dict[Key, dict[int, int]] = {}
    mounted = disks()
    for slot, shape in loads:
        if shape.shape.disks:
            mounted.take(slot, shape.shape.disks)
        for keys, used in (claim_keys(shape.shape), volumes), (shape.device_keys, claims):
            for key in keys:
                users = used.setdefault(key, {})
                users[slot] = users.get(slot, 0) + 1
    for used, counted in (volumes, storage.uses), (claims, devices.uses):
        if used != counted:
            return f"{counted} are in use, pods and reservations use {used}"
    if mounted.content() != node_capacity.disks.content():
        return f"disks {node_capacity.disks.content()} are mounted, by pods {mounted.content()}"
    return storage.contradiction() or devices.contradiction()
