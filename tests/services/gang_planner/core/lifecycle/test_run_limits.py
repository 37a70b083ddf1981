"""A run limit counts from when the minimum runs; at its end the gang has had a notice and is
evicted whole, once. A planner that takes over continues it.
"""

from typing import Any

import pytest

from shared.contracts.decisions import NoteOpened
from shared.model.objects import Queue, RunLimits
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.support.golden import Golden

FULL = make_shape({"cpu": 4000})
HOUR = 3_600_000
MINUTE = 60_000


def queue(**limits: Any) -> Queue:
    return Queue(
        uid="q", dialect="volcano", name="q", resource_version=1, run_limits=RunLimits(**limits)
    )


def running(
    *, limits: dict[str, Any] | None = None, pods: dict[str, Any] | None = None, **group: Any
) -> LoggedScene:
    """A gang of three on nodes of its own, whose minimum runs since now."""
    scene = LoggedScene([make_node(f"n{i}") for i in range(4)])
    scene.put(queue(**limits or {}))
    scene.put(make_group("a", 3, queue="q", **group), *make_pods("a", 3, FULL, **(pods or {})))
    scene.step()
    scene.carry_out()
    for index in range(3):
        scene.change(f"a-worker-{index}", phase="Running")
    scene.until_quiet()
    return scene


def notes(scene: LoggedScene) -> list[tuple[str, int]]:
    return [
        (record.reason, record.until_ms - record.since_ms)
        for _, record in scene.records
        if isinstance(record, NoteOpened) and record.kind == "run"
    ]


def test_a_gang_gets_a_notice_and_is_evicted_whole_once_at_its_limit(golden: Golden) -> None:
    scene = running(run_limit_s=3_600)
    assert notes(scene) == [("Running", HOUR)]
    scene.until_quiet(within_ms=HOUR - MINUTE - 1)
    assert notes(scene) == [("Running", HOUR)]
    scene.until_quiet(within_ms=1)
    assert notes(scene)[1:] == [("EvictionNotice", HOUR)]
    scene.until_quiet(within_ms=MINUTE - 1)
    assert not scene.releases
    scene.until_quiet(within_ms=1)
    (release,) = scene.releases
    assert (release.reason, len(release.victims)) == ("RunLimitExceeded", 3)
    golden(release.why)


def test_a_member_that_fits_at_the_instant_of_the_eviction_is_not_placed() -> None:
    """Found by the simulation (seed 597): the planner decided both in one cycle, and ended."""
    scene = running(run_limit_s=600)
    (free,) = {f"n{index}" for index in range(4)} - {pod.node for pod in scene.pods_of("a")}
    filler = make_pods("filler", 1, FULL, node=free, phase="Running")
    scene.put(*filler, *make_pods("a", 1, FULL, role="more"))
    scene.until_quiet(within_ms=600_000 - 1)
    assert (len(scene.decisions), len(scene.releases)) == (1, 0)
    scene.remove(*filler)
    scene.step(after_ms=1)
    scene.until_quiet()
    assert (len(scene.decisions), len(scene.releases)) == (1, 1)


def test_pods_that_no_controller_makes_again_are_evicted_as_well() -> None:
    scene = running(run_limit_s=600, pods={"owner": None})
    scene.until_quiet(within_ms=600_000)
    (release,) = scene.releases
    assert len(release.victims) == 3


@pytest.mark.parametrize(
    ("group_s", "pod_s", "limits", "limit_s"),
    [
        (900, 0, {}, 900),
        (900, 600, {}, 600),
        (0, 600, {}, 600),
        (0, 0, {"usual_s": 1_200}, 1_200),
        (900, 0, {"usual_s": 1_200}, 900),
        (0, 0, {"most_s": 1_800}, 1_800),
        (7_200, 0, {"most_s": 1_800}, 1_800),
        (0, 0, {"usual_s": 600, "most_s": 1_800}, 600),
        (0, 0, {}, None),
    ],
)
def test_the_smallest_stated_limit_counts_within_the_queues_maximum(
    group_s: int, pod_s: int, limits: dict[str, Any], limit_s: int | None
) -> None:
    scene = running(run_limit_s=group_s, pods={"run_limit_s": pod_s}, limits=limits)
    assert notes(scene) == ([] if limit_s is None else [("Running", 1_000 * limit_s)])


def test_a_limit_that_changes_while_the_gang_runs_counts_from_the_same_instant() -> None:
    scene = running(run_limit_s=3_600, limits={"most_s": 7_200})
    scene.until_quiet(within_ms=10 * MINUTE)
    scene.put(make_group("a", 3, queue="q", run_limit_s=7_200, resource_version=2))
    scene.until_quiet()
    scene.put(make_group("a", 3, queue="q", run_limit_s=300, resource_version=3))
    scene.until_quiet()
    assert [reason for reason, _ in notes(scene)] == ["Running", "Running", "EvictionNotice"]
    assert notes(scene)[1:] == [("Running", 2 * HOUR), ("EvictionNotice", 11 * MINUTE)]
    scene.until_quiet(within_ms=MINUTE - 1)
    assert not scene.releases
    scene.until_quiet(within_ms=1)
    assert len(scene.releases) == 1


@pytest.mark.parametrize("later_s", [0, 36_000], ids=["removed", "longer"])
@pytest.mark.parametrize("of_pods", [True, False], ids=["its pods", "its group"])
def test_without_a_maximum_of_its_queue_the_limit_of_a_running_gang_never_grows(
    later_s: int, of_pods: bool
) -> None:
    """No webhook sees annotations of running pods change, or a group that is created again."""
    if of_pods:
        scene = running(pods={"run_limit_s": 600})
        for index in range(3):
            scene.change(f"a-worker-{index}", run_limit_s=later_s)
    else:
        scene = running(run_limit_s=600)
        scene.put(make_group("a", 3, queue="q", run_limit_s=later_s, resource_version=2))
    scene.until_quiet(within_ms=600_000)
    assert [reason for reason, _ in notes(scene)] == ["Running", "EvictionNotice"]
    assert len(scene.releases) == 1


def test_a_longer_limit_withdraws_the_notice() -> None:
    scene = running(run_limit_s=120, limits={"most_s": 600})
    scene.until_quiet(within_ms=90_000)
    scene.put(make_group("a", 3, queue="q", run_limit_s=600, resource_version=2))
    scene.until_quiet(within_ms=5 * MINUTE)
    assert [reason for reason, _ in notes(scene)] == ["Running", "EvictionNotice", "Running"]
    assert not scene.releases


def test_a_planner_that_takes_over_continues_the_run_and_its_notice() -> None:
    scene = running(run_limit_s=600)
    scene.until_quiet(within_ms=5 * MINUTE)
    scene.restart()
    scene.until_quiet(within_ms=4 * MINUTE)
    assert [reason for reason, _ in notes(scene)] == ["Running", "EvictionNotice"]
    scene.restart()
    scene.until_quiet(within_ms=MINUTE)
    assert len(scene.releases) == 1
    assert notes(scene)[0] == ("Running", 10 * MINUTE)


def test_a_planner_that_was_away_at_the_end_gives_the_notice_first() -> None:
    scene = running(run_limit_s=600)
    scene.now_ms += HOUR
    scene.restart()
    scene.until_quiet()
    assert not scene.releases
    assert notes(scene)[-1] == ("EvictionNotice", HOUR + MINUTE)
    scene.until_quiet(within_ms=MINUTE)
    assert len(scene.releases) == 1


def test_where_limits_only_plan_an_overrun_is_noted_and_nothing_is_evicted() -> None:
    scene = running(run_limit_s=600, limits={"enforced": False})
    scene.until_quiet(within_ms=HOUR)
    assert notes(scene) == [("Running", 600_000), ("Overrun", 600_000)]
    assert not scene.releases


def test_a_gang_that_ends_in_time_closes_its_run() -> None:
    scene = running(run_limit_s=600)
    for index in range(3):
        scene.change(f"a-worker-{index}", phase="Succeeded")
    scene.until_quiet(within_ms=HOUR)
    assert not scene.releases
    assert scene.notes("run") == [("opened", "Running"), ("closed", "Ended")]


def test_the_next_run_begins_when_a_member_runs_beside_those_that_have_succeeded() -> None:
    scene = running(run_limit_s=600)
    scene.put(make_group("a", 2, queue="q", run_limit_s=600, resource_version=2))
    scene.change("a-worker-0", phase="Succeeded")
    scene.change("a-worker-1", phase="Succeeded")
    scene.until_quiet(within_ms=600_000)
    made = [scene.pods["a-worker-2"]]
    scene.carry_out()
    scene.remove(*made)
    (again,) = scene.make_again(made)
    scene.until_quiet()
    before = notes(scene)
    scene.until_quiet(within_ms=MINUTE)
    scene.carry_out()
    scene.until_quiet()
    assert notes(scene) == before, "the pod does not run yet"
    scene.change(again.uid, phase="Running")
    scene.until_quiet()
    assert notes(scene) == [*before, ("Running", 600_000)]


def test_a_notice_of_no_length_is_in_the_log_before_the_eviction() -> None:
    scene = running(run_limit_s=600, limits={"notice_s": 0})
    scene.until_quiet(within_ms=600_000 - 1)
    step = scene.step(after_ms=1)
    assert notes(scene)[-1] == ("EvictionNotice", 600_000)
    assert len(step.notes) == 1, "nothing else"
    scene.until_quiet()
    assert len(scene.releases) == 1
