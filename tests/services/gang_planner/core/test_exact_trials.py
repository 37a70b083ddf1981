"""Only a few modules take capacity and give it back, and what they try is undone exactly."""

import ast
from pathlib import Path

import pytest

import services.gang_planner.core as core
from services.gang_planner.core.allocation.gang_allocation import ReleasedReservations
from services.gang_planner.core.preemption.trial import Trial
from tests.services.gang_planner.core.exact_trials import Counts
from tests.services.gang_planner.core.losing import running
from tests.services.gang_planner.core.scene import make_pods

CORE = Path(core.__path__[0])
#: Everything else that wants to know what would be, asks one of these.
CHANGE_NODE_CAPACITY = {
    "state/accounting.py",
    "allocation/gang_allocation.py",
    "framework/statement.py",
    # On a copy.
    "foresight/plan.py",
    "preemption/trial.py",
    "state/reservations.py",
}
CHANGES = {"take", "give", "take_many", "give_many"}


def changes_node_capacity(source: str) -> bool:
    """Whether a module takes capacity of a node capacity, or gives it back."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in CHANGES
        and ast.unparse(node.value).rpartition(".")[2].lstrip("_") == "node_capacity"
        for node in ast.walk(ast.parse(source))
    )


def test_nothing_but_trials_loans_and_statements_takes_capacity_for_a_while() -> None:
    found = {
        str(path.relative_to(CORE))
        for path in CORE.rglob("*.py")
        if changes_node_capacity(path.read_text())
    }
    assert found == CHANGE_NODE_CAPACITY


def test_a_trial_that_is_left_by_an_error_has_put_everything_back(exact_trials: Counts) -> None:
    scene = running()
    state = scene.state
    free = state.node_capacity.free.cells.copy()

    def fail() -> None:
        with Trial(state) as trial:
            trial.take_away(state.members.values())
            trial.put_back([state.members["job-worker-1"]])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (state.node_capacity.free.cells == free).all()
    assert exact_trials["Trial"] == 1


def test_a_trial_that_leaves_anything_is_found() -> None:
    scene = running()
    state = scene.state
    with pytest.raises(AssertionError, match="a trial left other free amounts"), Trial(state):
        state.node_capacity.give(0, state.members["job-worker-0"].shape)
    with pytest.raises(AssertionError, match="a trial left other charges"), Trial(state):
        state.queues.entries["default"].charge(state.members["job-worker-0"].shape, 1)


def test_a_temporary_release_that_is_reversed_in_part_is_found() -> None:
    scene = running()
    scene.remove(make_pods("job", 2, b"")[1])
    scene.settle()
    state = scene.state
    (hold,) = scene.holds()
    reservations = ReleasedReservations(state, [hold])
    reservations.give_up(hold)
    with pytest.raises(AssertionError, match="a restored reservation left other free amounts"):
        reservations.restore()
