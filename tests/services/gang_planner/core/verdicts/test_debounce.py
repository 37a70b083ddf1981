"""Starting is reported when it lasts, Running after a rush, and corrections soon."""

from services.gang_planner.core.verdicts.debounce import RUSH, Debouncer
from shared.contracts.decisions import GangDecision
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

FULL = make_shape({"cpu": 4000})


def two_nodes() -> Scene:
    return Scene([make_node("n0"), make_node("n1")])


def test_a_gang_that_runs_a_moment_after_its_decision_needs_one_verdict() -> None:
    scene = two_nodes()
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (decision,) = scene.settle()
    scene.bind(decision, only=1)
    scene.step(after_ms=2_000)
    scene.bind(decision)
    scene.step(after_ms=2_000)
    scene.step(after_ms=20_000)
    assert [one.phase for one in scene.published] == ["Running"]


def test_a_gang_that_keeps_starting_is_reported_once_after_twenty_seconds() -> None:
    scene = two_nodes()
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    scene.settle()
    decided_ms = scene.now_ms
    assert scene.wakeup_ms == decided_ms + 20_000
    scene.step(after_ms=19_999)
    assert scene.published == []
    scene.step(after_ms=1)
    for _ in range(3):
        scene.step(after_ms=20_000)
    assert [(one.phase, one.at_ms) for one in scene.published] == [
        ("Starting", decided_ms + 20_000)
    ]


def test_a_member_that_is_bound_does_not_end_the_wait() -> None:
    scene = two_nodes()
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (decision,) = scene.settle()
    scene.bind(decision, only=1)
    scene.step(after_ms=19_000)
    assert scene.published == []
    scene.step(after_ms=1_000)
    assert [one.phase for one in scene.published] == ["Starting"]


def decided_after_waiting() -> tuple[Scene, GangDecision]:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    scene.settle()
    assert scene.verdict("a").waiting
    scene.put(make_node("n1"))
    (decision,) = scene.settle()
    return scene, decision


def test_a_waiting_gangs_verdict_is_corrected_half_a_second_after_its_decision() -> None:
    scene, _ = decided_after_waiting()
    assert scene.verdict("a").waiting
    decided_ms = scene.now_ms
    assert scene.wakeup_ms == decided_ms + 500
    scene.step(after_ms=500)
    corrected = scene.verdict("a")
    assert (corrected.phase, corrected.why, corrected.waiting) == ("Starting", None, ())
    scene.step(after_ms=20_000)
    assert scene.verdict("a").at_ms == decided_ms + 500


def test_a_waiting_gang_that_runs_in_half_a_second_needs_one_verdict_more() -> None:
    scene, decision = decided_after_waiting()
    published = len(scene.published)
    scene.bind(decision)
    scene.step(after_ms=100)
    scene.step(after_ms=20_000)
    assert [one.phase for one in scene.published[published:]] == ["Running"]


def test_a_waiting_gang_that_is_deleted_before_its_decision_is_reported_ends_its_attempt() -> None:
    scene, decision = decided_after_waiting()
    scene.remove(make_group("a", 2), *make_pods("a", 2, FULL))
    scene.step(after_ms=100)
    gone = scene.published[-1]
    assert (gone.phase, gone.attempt, gone.trace_id) == ("Gone", 1, decision.trace_id)


def test_a_gang_deleted_before_its_first_verdict_is_reported_as_gone() -> None:
    scene = two_nodes()
    group, pods = make_group("a", 2), make_pods("a", 2, FULL)
    scene.put(group, *pods)
    (decision,) = scene.settle()
    scene.remove(group, *pods)
    scene.step(after_ms=1_000)
    scene.step(after_ms=20_000)
    (gone,) = scene.published
    assert (gone.phase, gone.gang_id, gone.attempt) == ("Gone", decision.gang_id, 1)
    assert gone.trace_id == decision.trace_id


def test_a_clock_that_is_set_back_makes_no_gang_wait_longer() -> None:
    scene = two_nodes()
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    scene.settle()
    scene.step(after_ms=-3_600_000)
    assert [one.phase for one in scene.published] == ["Starting"]


def test_nothing_is_due_where_nothing_is_held_back() -> None:
    assert Debouncer().next_ms() is None
    assert Debouncer().take_due(0, 10, rush=False) == []


def in_a_rush() -> tuple[Scene, GangDecision]:
    """Two gangs are decided; the pods of the large one are still being bound."""
    pods = 2 + RUSH
    scene = Scene([make_node(f"n{index}") for index in range(pods)])
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (small,) = scene.settle()
    scene.put(make_group("rush", RUSH), *make_pods("rush", RUSH, FULL))
    scene.settle()
    return scene, small


def test_a_running_gang_is_reported_twenty_seconds_late_while_a_rush_lasts() -> None:
    scene, small = in_a_rush()
    scene.bind(small)
    scene.step(after_ms=1_000)
    scene.step(after_ms=19_999)
    assert "a" not in {one.name for one in scene.published}
    scene.step(after_ms=1)
    assert scene.verdict("a").phase == "Running"


def test_running_gangs_are_reported_in_the_cycle_in_which_the_rush_ends() -> None:
    scene, small = in_a_rush()
    scene.bind(small)
    scene.step(after_ms=1_000)
    (large,) = [one for _, one in scene.decisions if one.gang.endswith("/rush")]
    scene.bind(large)
    scene.step(after_ms=100)
    assert sorted((one.name, one.phase) for one in scene.published) == [
        ("a", "Running"),
        ("rush", "Running"),
    ]


def test_a_gang_reported_as_waiting_is_reported_as_running_in_the_middle_of_a_rush() -> None:
    scene, _ = in_a_rush()
    scene.put(make_group("late", 1), *make_pods("late", 1, FULL))
    scene.settle()
    assert scene.verdict("late").why is not None
    scene.put(make_node("one-more"))
    (decision,) = scene.settle()
    scene.bind(decision)
    scene.step(after_ms=100)
    assert scene.verdict("late").phase == "Running"


def made_again(scene: Scene) -> None:
    """Run a gang of two, and make its group again while its pods are there."""
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.step()
    scene.remove(make_group("a", 2))
    scene.put(make_group("a", 2, uid="group-a-again"))
    scene.settle()


def phases_of(scene: Scene, uid: str) -> list[str]:
    return [one.phase for one in scene.published if one.uid == uid]


def test_a_group_made_again_is_not_reported_as_scheduled_for_pods_that_were_deleted_with_it() -> (
    None
):
    scene = two_nodes()
    made_again(scene)
    scene.step(after_ms=1_999)
    scene.remove_together(*scene.pods_of("a"))
    scene.put(*make_pods("a", 1, FULL, role="again"))
    scene.settle()
    scene.step(after_ms=2_000)
    assert phases_of(scene, "group-a-again") == ["Inqueue"]
    assert "Scheduled" not in {one.type for one in scene.verdict("a").conditions}


def test_a_group_made_again_for_pods_that_run_is_reported_after_two_seconds() -> None:
    scene = two_nodes()
    made_again(scene)
    assert phases_of(scene, "group-a-again") == []
    made_again_ms = scene.now_ms
    scene.step(after_ms=2_000)
    assert phases_of(scene, "group-a-again") == ["Running"]
    assert scene.verdict("a").at_ms == made_again_ms + 2_000
