"""A Statement restores exactly what it found: free amounts, ports, the queue's charge."""

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeTable
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.invariants import InvariantViolation
from shared.model.objects import HostPort
from tests.services.gang_planner.core.scene import GPU, make_node, make_shape

NODES = 4
SHAPES = (
    make_shape({"cpu": 500}),
    make_shape({"cpu": 300, "memory": 1 << 30}),
    make_shape({GPU: 1}),
    make_shape({"cpu": 100}, host_ports=(HostPort(port=80),)),
)


class StatementMachine(RuleBasedStateMachine):
    """Statements open, allocate, roll back, and end in either way, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        resources = ResourceIndex()
        self.nodes = NodeTable(resources)
        self.node_capacity = NodeCapacity(self.nodes)
        for i in range(NODES):
            slot = self.nodes.put(
                make_node(f"n{i}", {"cpu": 4000, "memory": 8 << 30, GPU: 2, "pods": 9})
            )
            self.node_capacity.add_capacity(slot, self.nodes.allocatable.cells[:, slot])
        self.shapes = [ShapeTable(resources).make(i, one) for i, one in enumerate(SHAPES)]
        self.queue = QueueEntry("q", resources)
        self.statement: Statement | None = None
        self.marks: list[tuple[int, Any]] = []
        self.committed: list[Allocation] = []

    def charges(self) -> Any:
        free = self.node_capacity.free.cells.tolist()
        used = {row: amount for row, amount in self.queue.used.items() if amount}
        return free, self.node_capacity.ports.content(), used

    @precondition(lambda self: self.statement is None)
    @rule()
    def open(self) -> None:
        self.statement = Statement(self.node_capacity, self.queue)
        self.marks = [(0, self.charges())]

    @precondition(lambda self: self.statement is not None)
    @rule(
        shape=st.integers(0, len(SHAPES) - 1),
        slots=st.sets(st.integers(0, NODES - 1), min_size=1),
        data=st.data(),
    )
    def allocate(self, shape: int, slots: set[int], data: st.DataObject) -> None:
        assert self.statement is not None
        entry = self.shapes[shape]
        chosen: list[int] = []
        counts: list[int] = []
        for slot in sorted(slots):
            reservation = min(
                int(self.node_capacity.free.cells[row, slot]) // amount
                for row, amount in entry.pairs
            )
            if entry.shape.host_ports:
                reservation = min(
                    reservation,
                    0 if slot in self.node_capacity.ports.conflicts(entry.shape.host_ports) else 1,
                )
            if reservation > 0:
                chosen.append(slot)
                counts.append(data.draw(st.integers(1, reservation)))
        if chosen:
            self.statement.allocate(Allocation("r", entry, np.array(chosen), np.array(counts)))

    @precondition(lambda self: self.statement is not None)
    @rule()
    def mark(self) -> None:
        assert self.statement is not None
        self.marks.append((self.statement.checkpoint(), self.charges()))

    @precondition(lambda self: self.statement is not None)
    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        assert self.statement is not None
        at = data.draw(st.integers(0, len(self.marks) - 1))
        mark, before = self.marks[at]
        self.statement.rollback(mark)
        assert self.charges() == before
        del self.marks[at + 1 :]

    @precondition(lambda self: self.statement is not None)
    @rule()
    def discard(self) -> None:
        assert self.statement is not None
        self.statement.discard()
        assert self.charges() == self.marks[0][1]
        self.statement = None

    @precondition(lambda self: self.statement is not None)
    @rule()
    def commit(self) -> None:
        assert self.statement is not None
        allocations = self.statement.commit()
        # The caller that commits takes the charge over, member by member.
        for one in allocations:
            self.queue.charge(one.shape, one.total)
        self.committed.extend(allocations)
        self.statement = None

    @invariant()
    def nothing_is_over_committed(self) -> None:
        cells = self.node_capacity.free.cells[: len(self.nodes.resources.names), :NODES]
        assert int(cells.min()) >= 0


TestStatement = StatementMachine.TestCase
TestStatement.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_a_statement_refuses_to_over_commit_a_node() -> None:
    machine = StatementMachine()
    statement = Statement(machine.node_capacity, machine.queue)
    with pytest.raises(InvariantViolation, match="overcommitted"):
        statement.allocate(Allocation("r", machine.shapes[0], np.array([0]), np.array([9])))


def test_a_discarded_statement_takes_nothing_more() -> None:
    machine = StatementMachine()
    statement = Statement(machine.node_capacity, machine.queue)
    statement.discard()
    with pytest.raises(InvariantViolation):
        statement.allocate(Allocation("r", machine.shapes[0], np.array([0]), np.array([1])))
