"""What nobody answered is decided again before the log drops it, and is still one decision."""

from services.gang_planner.core.lifecycle.reissue import REISSUE_AFTER_MS
from services.gang_planner.core.state.in_flight import LATE_RESERVATION_MS
from shared.bus.setup import Sizes
from shared.contracts.decisions import GangDecision
from tests.services.gang_planner.core.scene import (
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.story import Story

FULL = make_shape({"cpu": 4000})
DAY_MS = 86_400_000


def story_of_one(nodes: int = 2) -> tuple[Story, GangDecision]:
    """A gang of two that fills two nodes, decided, and nobody carries it out."""
    story = Story(make_node(f"n{index}") for index in range(nodes))
    story.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (decision,) = story.settle()
    return story, decision


def nothing_fits(story: Story, name: str = "probe") -> bool:
    story.put(make_group(name, 1), *make_pods(name, 1, FULL))
    return not story.settle()


def test_an_old_decision_without_answer_is_decided_again_as_it_was() -> None:
    story, first = story_of_one()
    story.step(after_ms=REISSUE_AFTER_MS - 1)
    assert [one for _, one in story.decisions] == [first]
    story.restart()
    (again,) = story.step(after_ms=1).decisions
    assert isinstance(again, GangDecision)
    assert (again.bindings, again.attempt, again.again) == (first.bindings, first.attempt, 2)
    assert again.epoch > first.epoch
    assert again.cycle.now_ms == story.now_ms
    assert story.step().decisions == [], "once"
    assert nothing_fits(story), "its room is taken once, and still"


def test_it_is_repeated_a_day_before_the_log_forgets_it() -> None:
    assert Sizes().decisions_age_s * 1000 - DAY_MS == REISSUE_AFTER_MS


def test_an_answered_decision_is_left_alone_however_long_its_binding_is_not_shown() -> None:
    story, first = story_of_one()
    story.outcome(first)
    assert story.step(after_ms=REISSUE_AFTER_MS).decisions == []


def test_the_repetition_is_answered_under_its_own_number() -> None:
    story, _ = story_of_one()
    (again,) = story.step(after_ms=REISSUE_AFTER_MS).decisions
    assert isinstance(again, GangDecision)
    story.bind(again)
    story.outcome(again)
    story.step()
    assert not story.planner._state.open
    assert not story.planner._state.reservations.every()


def test_its_refusal_frees_no_room_at_once_because_the_first_may_be_under_way() -> None:
    story, _ = story_of_one()
    (again,) = story.step(after_ms=REISSUE_AFTER_MS).decisions
    assert isinstance(again, GangDecision)
    story.remove(*[one for one in story.pods.values() if one.uid == again.bindings[1].uid])
    story.outcome(again, {again.bindings[0].uid: "skipped"})
    story.step()
    (late,) = [one for one in story.planner._state.reservations.every() if one.reason == "late"]
    assert late.uid == again.bindings[0].uid
    assert late.until_ms == story.now_ms + LATE_RESERVATION_MS


def test_an_answer_to_the_first_that_comes_after_all_changes_nothing() -> None:
    story, first = story_of_one()
    story.step(after_ms=REISSUE_AFTER_MS)
    story.outcome(first, {first.bindings[0].uid: "conflict"})
    story.step()
    assert nothing_fits(story)


def test_a_restart_reads_two_records_and_knows_one_decision() -> None:
    story, _ = story_of_one()
    story.step(after_ms=REISSUE_AFTER_MS)
    before = story.planner.checkpoint(0)
    story.restart()
    story.step()
    after = story.planner.checkpoint(0)
    assert [one.seq for page in after for one in page.decisions] == [3]
    assert [page.decisions for page in after] == [page.decisions for page in before]
    assert nothing_fits(story)
    story.restart(checkpoint=True)
    story.step()
    assert nothing_fits(story, "another")


def test_a_release_that_nobody_answers_is_decided_again() -> None:
    story = Story(make_node(f"n{index}") for index in range(3))
    story.refuses = lambda binding: binding.name == "a-worker-2"
    story.put(make_group("a", 3), *make_pods("a", 3, FULL))
    story.step()
    story.carry_out()
    story.until_quiet()
    (release,) = story.releases
    story.step(after_ms=REISSUE_AFTER_MS)
    story.until_quiet()
    assert len(story.releases) == 2
    assert story.releases[1].victims == release.victims
    assert len(story.planner._state.evictions) == 1
