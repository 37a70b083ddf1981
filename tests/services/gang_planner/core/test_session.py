"""A session sums the cluster once per change of its nodes, and never reports an older sum."""

from services.gang_planner.core.configuration import parse_configuration
from services.gang_planner.core.feasibility import Masks
from services.gang_planner.core.session import Session
from services.gang_planner.state import State
from tests.services.gang_planner.core.scene import make_node


def test_the_totals_of_a_cycle_follow_nodes_that_come_change_and_go() -> None:
    state = State()
    policies = parse_configuration("").policies()
    session = Session(
        state.ground, state.shapes, Masks(state.nodes, policies.node_filters), policies
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
