"""A decision without an answer is issued again before the log drops it, and stays one decision."""

from services.gang_planner.core.state.in_flight import LATE_RESERVATION_MS, REISSUE_AFTER_MS
from shared.bus.setup import DECISIONS_AGE_S
from shared.contracts.decisions import GangDecision
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

FULL = make_shape({"cpu": 4000})
DAY_MS = 86_400_000


def scene_of_one(nodes: int = 2) -> tuple[LoggedScene, GangDecision]:
    """A gang of two that fills two nodes, decided, and no binder carries it out."""
    scene = LoggedScene(make_node(f"n{index}") for index in range(nodes))
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (decision,) = scene.settle()
    return scene, decision


def nothing_fits(scene: LoggedScene, name: str = "probe") -> bool:
    scene.put(make_group(name, 1), *make_pods(name, 1, FULL))
    return not scene.settle()


def test_an_old_decision_without_answer_is_decided_again_as_it_was() -> None:
    scene, first = scene_of_one()
    scene.step(after_ms=REISSUE_AFTER_MS - 1)
    assert [one for _, one in scene.decisions] == [first]
    scene.restart()
    (again,) = scene.step(after_ms=1).decisions
    assert isinstance(again, GangDecision)
    assert (again.bindings, again.attempt, again.again) == (first.bindings, first.attempt, 2)
    assert again.epoch > first.epoch
    assert again.cycle.now_ms == scene.now_ms
    assert scene.step().decisions == [], "once"
    assert nothing_fits(scene), "its room is taken once, and still"


def test_it_is_repeated_a_day_before_the_log_forgets_it() -> None:
    assert DECISIONS_AGE_S * 1000 - DAY_MS == REISSUE_AFTER_MS


def test_an_answered_decision_is_left_alone_however_long_its_binding_is_not_shown() -> None:
    scene, first = scene_of_one()
    scene.outcome(first)
    assert scene.step(after_ms=REISSUE_AFTER_MS).decisions == []


def test_the_repetition_is_answered_under_its_own_number() -> None:
    scene, _ = scene_of_one()
    (again,) = scene.step(after_ms=REISSUE_AFTER_MS).decisions
    assert isinstance(again, GangDecision)
    scene.bind(again)
    scene.outcome(again)
    scene.step()
    assert not scene.state.open
    assert not scene.state.reservations.every()


def test_its_refusal_frees_no_room_at_once_because_the_first_may_be_under_way() -> None:
    scene, _ = scene_of_one()
    (again,) = scene.step(after_ms=REISSUE_AFTER_MS).decisions
    assert isinstance(again, GangDecision)
    scene.remove(*[one for one in scene.pods.values() if one.uid == again.bindings[1].uid])
    scene.outcome(again, {again.bindings[0].uid: "skipped"})
    scene.step()
    (late,) = [one for one in scene.state.reservations.every() if one.reason == "late"]
    assert late.uid == again.bindings[0].uid
    assert late.until_ms == scene.now_ms + LATE_RESERVATION_MS


def test_an_answer_to_the_first_that_comes_after_all_changes_nothing() -> None:
    scene, first = scene_of_one()
    scene.step(after_ms=REISSUE_AFTER_MS)
    scene.outcome(first, {first.bindings[0].uid: "conflict"})
    scene.step()
    assert nothing_fits(scene)


def test_a_restart_reads_two_records_and_knows_one_decision() -> None:
    scene, _ = scene_of_one()
    scene.step(after_ms=REISSUE_AFTER_MS)
    before = scene.planner.checkpoint(0)
    scene.restart()
    scene.step()
    after = scene.planner.checkpoint(0)
    assert [one.seq for page in after for one in page.decisions] == [3]
    assert [page.decisions for page in after] == [page.decisions for page in before]
    assert nothing_fits(scene)
    scene.restart(checkpoint=True)
    scene.step()
    assert nothing_fits(scene, "another")


def test_a_release_without_an_answer_is_decided_again() -> None:
    scene = LoggedScene(make_node(f"n{index}") for index in range(3))
    scene.refuses = lambda binding: binding.name == "a-worker-2"
    scene.put(make_group("a", 3), *make_pods("a", 3, FULL))
    scene.step()
    scene.carry_out()
    scene.until_quiet()
    (release,) = scene.releases
    scene.step(after_ms=REISSUE_AFTER_MS)
    scene.until_quiet()
    assert len(scene.releases) == 2
    assert scene.releases[1].victims == release.victims
    assert len(scene.state.evictions) == 1
