"""The invariants bite: a state spoilt on purpose is found, and reported with its history."""

from collections.abc import Callable

import pytest

from services.gang_planner.core.state.gang_states import GangState
from services.gang_planner.core.state.planner_state import State
from shared.model.invariants import InvariantViolation
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

WORKER = make_shape({GPU: 1})


def holding() -> Scene:
    """A gang of three that has lost one and has a hold for it."""
    scene = Scene(make_node(f"node-{i}") for i in range(4))
    scene.put(make_group("job", 3), *make_pods("job", 3, WORKER))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    return scene


def no_hold(state: State) -> None:
    hold = state.holds.by_uid.pop("job-worker-1")
    assert hold.gang is not None
    del state.holds._of[hold.gang.key]
    hold.gang.hold(hold.shape, -1)


def no_row(state: State) -> None:
    reservation = state.reservations.replacements["job-worker-1"]
    state.reservations.end_apart(reservation)


def no_note(state: State) -> None:
    state.holds.by_uid["job-worker-1"].logged = False


def no_deadline(state: State) -> None:
    hold = state.holds.by_uid["job-worker-1"]
    hold.until_ms = 0
    assert hold.reservation is not None
    hold.reservation.until_ms = 0


def another_owner(state: State) -> None:
    state.reservations.replacements["job-worker-1"].owner = "somebody"


def another_node(state: State) -> None:
    state.holds.by_uid["job-worker-1"].node = "node-9"


def free_room(state: State) -> None:
    reservation = state.reservations.replacements["job-worker-1"]
    state.node_capacity.give(reservation.slot, reservation.shape)


def no_charge(state: State) -> None:
    hold = state.holds.by_uid["job-worker-1"]
    assert hold.gang is not None
    hold.gang.hold(hold.shape, -1)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (no_hold, "exists without a hold"),
        (no_row, "has a reservation that the table does not contain"),
        (no_note, "differs from its note in the log"),
        (no_deadline, "has no deadline"),
        (another_owner, "has a reservation of another owner"),
        (another_node, "has a reservation on"),
        (free_room, "free"),
        (no_charge, "but its members hold"),
    ],
)
def test_a_spoilt_hold_is_found(spoil: Callable[[State], None], sentence: str) -> None:
    scene = holding()
    validate(scene.planner)
    spoil(scene.state)
    with pytest.raises(InvariantViolation, match=sentence):
        validate(scene.planner)


def test_a_gang_that_stays_bound_in_part_without_repair_is_found() -> None:
    scene = Scene(make_node(f"node-{i}") for i in range(3))
    scene.put(make_group("job", 3), *make_pods("job", 3, WORKER))
    (decision,) = scene.settle()
    scene.bind(decision, only=2)
    scene.settle()
    scene.step(after_ms=2_000)
    gang = next(iter(scene.state.gangs.gangs.values()))
    assert gang.history.state is GangState.REPAIRING
    gang.history.notes.close("repair")
    with pytest.raises(InvariantViolation, match="is Repairing, but its notes are"):
        validate(scene.planner)
    gang.history.enter(GangState.STARTING)
    scene.state.repairs.clear()
    with pytest.raises(InvariantViolation, match="neither under repair nor being released"):
        validate(scene.planner)
    gang.history.enter(GangState.RELEASING)
    with pytest.raises(InvariantViolation, match="is Releasing, but its notes are"):
        validate(scene.planner)
