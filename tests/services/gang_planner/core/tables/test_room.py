"""The table of kept room: whatever comes and goes, free = allocatable - pods - rows, exactly."""

from collections import Counter
from typing import Any

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.gang_planner.core.decisions.open_acts import OpenAct
from services.gang_planner.core.tables.columns import ResourceIndex
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.members import Member, Seats
from services.gang_planner.core.tables.nodes import NodeTable
from services.gang_planner.core.tables.room import UNDATED, Room, RoomTable
from services.gang_planner.core.tables.shapes import ShapeEntry, ShapeTable
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
        self.ground = Ground(self.nodes)
        self.capacity: list[Any] = []
        for i in range(NODES):
            amounts = {"cpu": 4000, "memory": 8 << 30, GPU: 2, "pods": 9}
            slot = self.nodes.put(make_node(f"n{i}", amounts))
            self.capacity.append(self.nodes.allocatable.cells[:, slot].copy())
            self.ground.add_capacity(slot, self.capacity[-1])
        table = ShapeTable(resources)
        self.shapes = [table.make(i, one) for i, one in enumerate(SHAPES)]
        self.rooms = RoomTable(self.ground)
        #: What pods have on nodes.
        self.pods: list[tuple[int, ShapeEntry]] = []
        self.acts: list[OpenAct] = []

    def row(self, uid: str, slot: int, shape: int) -> Room:
        return Room(owner="g", uid=uid, shape=self.shapes[shape], slot=slot)

    @rule(uid=st.sampled_from(UIDS), slot=SLOTS, shape=st.integers(0, 3), adopted=st.booleans())
    def decide(self, uid: str, slot: int, shape: int, adopted: bool) -> None:
        if any(room.reason == "assumed" for room in self.rooms.rows(uid)):
            return
        entry = self.shapes[shape]
        if not adopted:
            room = self.row(uid, slot, shape)
            room.act = self.act()
            self.rooms.keep(room, adopted=False)
            return
        self.ground.take_many(np.array([slot]), np.array([1]), entry)
        (pod,) = make_pods("g", 1, SHAPES[shape])
        member = Member(msgspec.structs.replace(pod, uid=uid), entry)
        self.rooms.adopt(self.act(), Seats([member], [slot]))
        assert member.room is self.rooms.rows(uid)[-1]

    def act(self) -> OpenAct:
        """One more decision."""
        self.acts.append(OpenAct(0, DECISION))
        return self.acts[-1]

    @rule(uid=st.sampled_from(UIDS))
    def an_outcome_leaves_it_open(self, uid: str) -> None:
        for room in self.rooms.rows(uid):
            if room.reason == "assumed":
                self.rooms.becomes_late(room)
                assert room.until_ms == UNDATED
                assert uid in self.rooms.late

    @rule(uid=st.sampled_from(UIDS), handed_over=st.booleans(), data=st.data())
    def a_row_ends(self, uid: str, handed_over: bool, data: st.DataObject) -> None:
        rows = self.rooms.rows(uid)
        if rows:
            room = data.draw(st.sampled_from(rows))
            self.rooms.end(room, handed_over=handed_over)
            if handed_over:
                self.pods.append((room.slot, room.shape))

    @rule(uid=st.sampled_from(UIDS), data=st.data())
    def a_pod_is_lost_and_its_room_kept(self, uid: str, data: st.DataObject) -> None:
        if uid in self.rooms.owed or not self.pods:
            return
        slot, shape = data.draw(st.sampled_from(self.pods))
        self.pods.remove((slot, shape))
        room = Room(owner="g", uid=uid, shape=shape, slot=slot)
        room.reason = "debt"
        self.rooms.keep_owed(room, adopted=True)

    @rule(uid=st.sampled_from(UIDS), slot=SLOTS, shape=st.integers(0, 3))
    def room_is_found_for_a_lost_pod(self, uid: str, slot: int, shape: int) -> None:
        if uid not in self.rooms.owed:
            self.rooms.keep_owed(self.row(uid, slot, shape), adopted=False)

    @rule(uid=st.sampled_from(UIDS), handed_over=st.booleans())
    def a_debt_ends(self, uid: str, handed_over: bool) -> None:
        room = self.rooms.owed.get(uid)
        if room is not None:
            self.rooms.end_owed(room, handed_over=handed_over)
            if handed_over:
                self.pods.append((room.slot, room.shape))

    @rule(data=st.data())
    def a_pod_goes(self, data: st.DataObject) -> None:
        if self.pods:
            slot, shape = data.draw(st.sampled_from(self.pods))
            self.pods.remove((slot, shape))
            self.ground.give(slot, shape)

    @invariant()
    def free_is_what_pods_and_rows_leave(self) -> None:
        wanted = [column.copy() for column in self.capacity]
        ports: Counter[tuple[int, int]] = Counter()
        rows = [(room.slot, room.shape) for room in self.rooms.every()]
        for slot, shape in [*self.pods, *rows]:
            for row, amount in shape.pairs:
                wanted[slot][row] -= amount
            ports.update((slot, port.port) for port in shape.shape.host_ports)
        for slot, column in enumerate(wanted):
            found = self.ground.free.cells[: len(column), slot]
            assert found.tolist() == column.tolist()
            taken = bool(self.ground.ports.conflicts(slot, SHAPES_PORT))
            assert taken == (ports[slot, 80] > 0)

    @invariant()
    def counts_agree_with_rows(self) -> None:
        on = Counter(room.slot for room in self.rooms.every())
        assert {slot: self.rooms.on(slot) for slot in range(NODES)} == {
            slot: on[slot] for slot in range(NODES)
        }
        rows = Counter(room.act for room in self.rooms.of_decisions())
        assert all(act.rows == rows[act] for act in self.acts)
        late = {room.uid for room in self.rooms.of_decisions() if room.reason == "late"}
        assert late <= set(self.rooms.late)


SHAPES_PORT = (HostPort(port=80),)
TestRoomTable = RoomMachine.TestCase
TestRoomTable.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
