"""The table of kept room: whatever comes and goes, free = allocatable - pods - rows, exactly."""

from collections import Counter
from typing import Any

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry, ShapeTable
from services.gang_planner.core.state.reservations import (
    UNDATED,
    OpenAct,
    Reservation,
    ReservationTable,
)
from shared.contracts.decisions import Cycle, GangDecision
from shared.model.objects import HostPort
from tests.services.gang_planner.core.scene import GPU, make_node, make_pods, make_shape

NODES = 3
DECISION = GangDecision(
    gang_id="g",
    gang="team/g",
    dialect="",
    epoch=1,
    attempt=1,
    bindings=(),
    quorum=1,
    trace_id="",
    first_seen_ms=0,
    cycle=Cycle(cluster_seq=1, outcomes_seq=0, now_ms=0, configuration=""),
)
SHAPES = (
    make_shape({"cpu": 500}),
    make_shape({"cpu": 300, "memory": 1 << 30}),
    make_shape({GPU: 1}),
    make_shape({"cpu": 100}, host_ports=(HostPort(port=80),)),
)
UIDS = tuple(f"pod-{i}" for i in range(5))
SLOTS = st.integers(0, NODES - 1)


class RoomMachine(RuleBasedStateMachine):
    """Decisions, outcomes, losses, pods and nodes, in any order; nothing looks whether it fits."""

    def __init__(self) -> None:
        super().__init__()
        resources = ResourceIndex()
        self.nodes = NodeTable(resources)
        self.node_capacity = NodeCapacity(self.nodes)
        self.capacity: list[Any] = []
        for i in range(NODES):
            amounts = {"cpu": 4000, "memory": 8 << 30, GPU: 2, "pods": 9}
            slot = self.nodes.put(make_node(f"n{i}", amounts))
            self.capacity.append(self.nodes.allocatable.cells[:, slot].copy())
            self.node_capacity.add_capacity(slot, self.capacity[-1])
        table = ShapeTable(resources)
        self.shapes = [table.make(i, one) for i, one in enumerate(SHAPES)]
        self.reservations = ReservationTable(self.node_capacity)
        #: What pods have on nodes.
        self.pods: list[tuple[int, ShapeEntry]] = []
        self.acts: list[OpenAct] = []

    def row(self, uid: str, slot: int, shape: int) -> Reservation:
        return Reservation(owner="g", uid=uid, shape=self.shapes[shape], slot=slot)

    @rule(uid=st.sampled_from(UIDS), slot=SLOTS, shape=st.integers(0, 3), adopted=st.booleans())
    def decide(self, uid: str, slot: int, shape: int, adopted: bool) -> None:
        if any(reservation.reason == "assumed" for reservation in self.reservations.rows(uid)):
            return
        entry = self.shapes[shape]
        if not adopted:
            reservation = self.row(uid, slot, shape)
            reservation.act = self.act()
            self.reservations.keep(reservation, adopted=False)
            return
        self.node_capacity.take_many(np.array([slot]), np.array([1]), entry)
        (pod,) = make_pods("g", 1, SHAPES[shape])
        member = Member(msgspec.structs.replace(pod, uid=uid), entry)
        self.reservations.adopt(self.act(), [member], [slot])
        assert member.reservation is self.reservations.rows(uid)[-1]

    def act(self) -> OpenAct:
        """One more decision."""
        self.acts.append(OpenAct(0, DECISION))
        return self.acts[-1]

    @rule(uid=st.sampled_from(UIDS))
    def an_outcome_leaves_it_open(self, uid: str) -> None:
        for reservation in self.reservations.rows(uid):
            if reservation.reason == "assumed":
                self.reservations.becomes_late(reservation)
                assert reservation.until_ms == UNDATED
                assert uid in self.reservations.late

    @rule(uid=st.sampled_from(UIDS), handed_over=st.booleans(), data=st.data())
    def a_row_ends(self, uid: str, handed_over: bool, data: st.DataObject) -> None:
        rows = self.reservations.rows(uid)
        if rows:
            reservation = data.draw(st.sampled_from(rows))
            self.reservations.end(reservation, handed_over=handed_over)
            if handed_over:
                self.pods.append((reservation.slot, reservation.shape))

    @rule(uid=st.sampled_from(UIDS), data=st.data())
    def a_pod_is_lost_and_its_room_kept(self, uid: str, data: st.DataObject) -> None:
        if uid in self.reservations.replacements or not self.pods:
            return
        slot, shape = data.draw(st.sampled_from(self.pods))
        self.pods.remove((slot, shape))
        reservation = Reservation(owner="g", uid=uid, shape=shape, slot=slot)
        reservation.reason = "hold"
        self.reservations.keep_apart(reservation, adopted=True)

    @rule(uid=st.sampled_from(UIDS), slot=SLOTS, shape=st.integers(0, 3))
    def room_is_found_for_a_lost_pod(self, uid: str, slot: int, shape: int) -> None:
        if uid not in self.reservations.replacements:
            self.reservations.keep_apart(self.row(uid, slot, shape), adopted=False)

    @rule(uid=st.sampled_from(UIDS), handed_over=st.booleans())
    def a_hold_ends(self, uid: str, handed_over: bool) -> None:
        reservation = self.reservations.replacements.get(uid)
        if reservation is not None:
            self.reservations.end_apart(reservation, handed_over=handed_over)
            if handed_over:
                self.pods.append((reservation.slot, reservation.shape))

    @rule(data=st.data())
    def a_pod_goes(self, data: st.DataObject) -> None:
        if self.pods:
            slot, shape = data.draw(st.sampled_from(self.pods))
            self.pods.remove((slot, shape))
            self.node_capacity.give(slot, shape)

    @invariant()
    def free_is_what_pods_and_rows_leave(self) -> None:
        wanted = [column.copy() for column in self.capacity]
        ports: Counter[tuple[int, int]] = Counter()
        rows = [(reservation.slot, reservation.shape) for reservation in self.reservations.every()]
        for slot, shape in [*self.pods, *rows]:
            for row, amount in shape.pairs:
                wanted[slot][row] -= amount
            ports.update((slot, port.port) for port in shape.shape.host_ports)
        for slot, column in enumerate(wanted):
            found = self.node_capacity.free.cells[: len(column), slot]
            assert found.tolist() == column.tolist()
            taken = slot in self.node_capacity.ports.conflicts(SHAPES_PORT)
            assert taken == (ports[slot, 80] > 0)

    @invariant()
    def counts_agree_with_rows(self) -> None:
        on = Counter(reservation.slot for reservation in self.reservations.every())
        assert {slot: self.reservations.on(slot) for slot in range(NODES)} == {
            slot: on[slot] for slot in range(NODES)
        }
        rows = Counter(reservation.act for reservation in self.reservations.of_decisions())
        assert all(act.rows == rows[act] for act in self.acts)
        late = {
            reservation.uid
            for reservation in self.reservations.of_decisions()
            if reservation.reason == "late"
        }
        assert late <= set(self.reservations.late)


SHAPES_PORT = (HostPort(port=80),)
TestRoomTable = RoomMachine.TestCase
TestRoomTable.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
