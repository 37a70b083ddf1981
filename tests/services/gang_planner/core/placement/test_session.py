"""A session sums the cluster once per change of its nodes, and spreads only where it may."""

import msgspec
import numpy as np

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.placement.members import MembersRequest, place_members
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.planner_state import State
from shared.model.objects import Shape
from tests.services.gang_planner.core.scene import make_node


def test_the_totals_of_a_cycle_follow_nodes_that_come_change_and_go() -> None:
    state = State()
    policies = parse_configuration("").policies(state)
    session = Session(
        state.node_capacity, state.shapes, Masks(state.nodes, policies.node_filters), policies
    )
    cpu = state.resources.row("cpu")
    seen: list[int] = []
    for change in (
        lambda: state.nodes.put(make_node("a", {"cpu": 4000})),
        lambda: state.nodes.put(make_node("b", {"cpu": 2000})),
        lambda: None,
        lambda: state.nodes.put(make_node("b", {"cpu": 1000})),
        lambda: state.nodes.remove(0),
    ):
        change()
        session.begin()
        seen.append(session.totals[cpu])
    assert seen == [4000, 6000, 6000, 5000, 1000]


def test_members_are_spread_only_within_the_nodes_given() -> None:
    state = State()
    policies = parse_configuration("").policies(state)
    session = Session(
        state.node_capacity, state.shapes, Masks(state.nodes, policies.node_filters), policies
    )
    for name in ("a", "b", "c"):
        slot = state.nodes.put(make_node(name, {"cpu": 2000, "memory": 1 << 40, "pods": 9}))
        state.node_capacity.add_capacity(slot, state.nodes.allocatable.cells[:, slot])
    shape = state.shapes.intern(
        msgspec.msgpack.encode(Shape(requests=(("cpu", 1000), ("pods", 1))))
    )
    queue = state.queues.entry("default")
    statement = Statement(state.node_capacity, queue)
    within = np.array([False, True, False])
    request = MembersRequest(statement=statement, role="", shape=shape, wanted=5, within=within)
    assert place_members(session, request) == 2
    assert [one.slots.tolist() for one in statement.commit()] == [[1]]
    assert place_members(session, request) == 0
