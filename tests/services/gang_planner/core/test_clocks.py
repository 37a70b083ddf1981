"""Clocks of machines disagree: nothing that the planner decides depends on by how much."""

import pytest

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.lifecycle.repair import QUIET_MS
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.tables import FRESH_MS
from shared.contracts import codec
from shared.contracts.decisions import Cycle, GangDecision, NoteOpened
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

_SKEWS_MS = [-60_000, -6_000, 0, 6_000, 60_000]


def a_scene(watcher_ahead_ms: int, nodes: int = 3) -> Scene:
    """A scene whose watcher has a clock of its own, and the cluster state came from it."""
    scene = Scene()
    scene.now_ms = 1_000_000
    scene.watcher_ahead_ms = watcher_ahead_ms
    scene.load_snapshot(nodes=[make_node(f"n{i}") for i in range(nodes)])
    return scene


def submit(scene: Scene, name: str, size: int) -> None:
    """A gang of so many GPUs."""
    scene.put(make_group(name, size), *make_pods(name, size, make_shape({GPU: 1})))


@pytest.mark.parametrize("ahead_ms", _SKEWS_MS)
def test_a_planner_decides_whatever_the_watchers_clock_says(ahead_ms: int) -> None:
    scene = a_scene(ahead_ms)
    submit(scene, "train", 3)
    (decision,) = scene.step().decisions
    assert isinstance(decision, GangDecision)


@pytest.mark.parametrize("ahead_ms", _SKEWS_MS)
def test_a_dead_watcher_is_stale_after_five_seconds_whatever_its_clock_said(ahead_ms: int) -> None:
    scene = a_scene(ahead_ms)
    scene.heartbeat()
    submit(scene, "train", 3)
    assert scene.step(after_ms=FRESH_MS + 1, fresh=False).decisions == []
    assert scene.step(fresh=True).decisions != []


@pytest.mark.parametrize("ahead_ms", _SKEWS_MS)
def test_a_gang_bound_in_part_is_repaired_after_a_second_whatever_the_watchers_clock_says(
    ahead_ms: int,
) -> None:
    scene = a_scene(ahead_ms, nodes=3)
    submit(scene, "train", 3)
    (decision,) = scene.step().decisions
    assert isinstance(decision, GangDecision)
    first = decision.bindings[0]
    scene.change(first.uid, node=first.node)
    opened: list[NoteOpened] = []
    for _ in range(4):
        step = scene.step(after_ms=QUIET_MS // 2)
        opened += [one for one in step.notes if isinstance(one, NoteOpened)]
    (repair,) = [one for one in opened if one.kind == "repair"]
    assert repair.at_ms - (scene.now_ms - 2 * QUIET_MS) in {QUIET_MS, QUIET_MS * 3 // 2}
    assert 27_000 <= repair.until_ms - repair.at_ms <= 30_000


def test_a_new_watcher_whose_clock_is_a_minute_behind_puts_no_repair_off() -> None:
    scene = a_scene(60_000, nodes=3)
    submit(scene, "train", 3)
    (decision,) = scene.step().decisions
    assert isinstance(decision, GangDecision)
    first = decision.bindings[0]
    scene.change(first.uid, node=first.node)
    scene.step()
    scene.watcher_ahead_ms = -60_000
    scene.load_snapshot(
        nodes=[make_node(f"n{i}") for i in range(3)], epoch=2, objects=[make_group("train", 3)]
    )
    notes = [one for _ in range(4) for one in scene.step(after_ms=QUIET_MS // 2).notes]
    assert [one.kind for one in notes if isinstance(one, NoteOpened)] == ["repair"]


@pytest.mark.parametrize("ahead_ms", _SKEWS_MS)
def test_a_cycle_records_when_the_watchers_report_arrived_and_is_reproduced(ahead_ms: int) -> None:
    first, second = a_scene(ahead_ms), a_scene(ahead_ms)
    for scene in (first, second):
        submit(scene, "train", 3)
    first.now_ms += 4_000  # a long cycle before this one: nothing else arrived
    (decided,) = first.step(fresh=False).decisions
    cycle = decided.cycle
    assert cycle.synced_ms == first.now_ms - 4_000
    # Beside the recorded cycles there were others, which wrote nothing.
    (again,) = second.planner.step(cycle.now_ms, cycle.in_flight_max, cycle.synced_ms).decisions
    assert codec.encode(again) == codec.encode(decided)


def test_a_cycle_of_an_older_version_is_reproduced_by_the_watchers_instant() -> None:
    planner = Planner(parse_configuration(""))
    scene = a_scene(0)
    scene.planner = planner
    scene.load_snapshot(nodes=[make_node(f"n{i}") for i in range(3)])
    planner.lead(1)
    submit(scene, "train", 3)
    cycle = Cycle(cluster_seq=1, outcomes_seq=0, now_ms=scene.now_ms, configuration="")
    assert cycle.synced_ms is None
    (decision,) = planner.step(cycle.now_ms, cycle.in_flight_max, cycle.synced_ms).decisions
    assert decision.cycle.synced_ms is None, "the same bytes as the older version wrote"
