"""From the decision to evict to the preemptor's bindings, and every other way that it can end."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from shared.contracts.decisions import EvictionDecision
from shared.model.objects import Queue
from tests.services.gang_planner.core.preemption.crowd import (
    WHOLE_NODE,
    accept,
    cluster,
    configured,
    decided,
    ends,
    evictions,
    leave,
    names,
    refuse,
    running,
    submit,
)
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.services.gang_planner.core.story import Story


def asked() -> Story:
    """Four nodes full of an elastic job; a gang of two of higher priority has asked for room."""
    story = cluster(4)
    running(story, "low", 4, minimum=1)
    submit(story, "high", 2, priority=10)
    story.until_quiet()
    return story


def test_a_gang_of_higher_priority_evicts_as_many_as_it_needs_and_is_bound_where_they_were() -> (
    None
):
    story = asked()
    (eviction,) = evictions(story)
    assert (eviction.via, eviction.reason, len(eviction.victims)) == ("eviction", "Preempted", 2)
    left = {story.pods[one.uid].node for one in eviction.victims}
    assert {one.node for one in eviction.bindings} == left
    accept(story)
    story.until_quiet()
    assert decided(story, "high") == [], "its victims are there still"
    leave(story)
    story.until_quiet()
    (decision,) = decided(story, "high")
    assert decision.preemption == next(seq for seq, one in story.acts if one is eviction)
    assert {one.node for one in decision.bindings} == left
    story.carry_out(phase="Running")
    story.until_quiet()
    assert (story.bound("high"), story.bound("low")) == (2, 2)
    assert ends(story) == []


def test_a_gang_asks_for_its_next_member_when_the_last_one_is_in_the_log() -> None:
    """Seed 173 of the simulation: its next eviction was stored before the decision that took the
    first one's room over.
    """
    tiers = "  - name: proportion\n"
    story = cluster(8, configured("enqueue, allocate, reclaim, backfill", more=tiers))
    for name in ("rich", "poor"):
        story.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1))
    running(story, "low", 7, minimum=1, group={"queue": "rich"})
    running(story, "high", 1, group={"queue": "poor"})
    # Their queue deserves three more, not four: two are asked for, and then another one.
    story.put(*make_pods("high", 5, WHOLE_NODE)[1:])
    story.until_quiet()
    accept(story)
    leave(story)
    # Something else is decided in the same cycle, so that it has a second round.
    submit(story, "other", 1, shape=make_shape({}))
    step = story.step()
    assert [one.gang for one in step.decisions] == ["team/high", "team/other"]
    assert not isinstance(step.decisions[0], EvictionDecision)
    assert step.next_wakeup_ms == story.now_ms
    story.until_quiet()
    kinds = [isinstance(one, EvictionDecision) for _, one in story.acts if one.gang == "team/high"]
    assert kinds == [False, True, False, True]


def test_until_all_victims_have_left_nobody_else_gets_what_some_have_left() -> None:
    story = asked()
    accept(story)
    first = next(one for one in story.pods.values() if one.deleting)
    story.remove(first)
    submit(story, "quick", 1)
    story.until_quiet()
    assert decided(story, "quick") == []
    leave(story)
    story.until_quiet()
    assert len(decided(story, "high")) == 1
    assert decided(story, "quick") == []


def test_nobody_is_owed_room_for_pods_that_were_evicted_by_decision() -> None:
    story = asked()
    accept(story)
    leave(story)
    story.until_quiet()
    assert story.holds() == []
    assert story.notes("hold") == []


def test_a_victim_that_ends_by_itself_has_left() -> None:
    story = asked()
    for victim in evictions(story)[0].victims:
        story.change(victim.uid, phase="Succeeded")
    story.until_quiet()
    assert len(decided(story, "high")) == 1


def test_a_refused_victim_is_left_alone_and_others_are_sought_after_a_pause() -> None:
    story = asked()
    (first,) = evictions(story)
    refused = first.victims[0]
    refuse(story, {refused.uid})
    story.until_quiet()
    assert ends(story) == ["EvictionRefused"]
    assert len(evictions(story)) == 1, "a pause first"
    story.until_quiet(within_ms=5_000)
    _, second = evictions(story)
    assert refused.name not in names(second.victims)
    assert len(second.victims) == 2


def test_pauses_between_refused_evictions_grow() -> None:
    story = cluster(1)
    running(story, "low", 1)
    submit(story, "high", 1, priority=10)
    at = []
    for _ in range(4):
        story.until_quiet(within_ms=400_000)
        act = evictions(story)[-1]
        at.append(act.cycle.now_ms)
        refuse(story, {act.victims[0].uid})
    assert len(set(at)) == 4
    assert all(later - earlier >= 60_000 for earlier, later in itertools.pairwise(at))


def test_without_an_answer_the_room_is_given_up() -> None:
    story = asked()
    story.until_quiet(within_ms=89_000)
    assert ends(story) == []
    story.until_quiet(within_ms=2_000)
    assert ends(story) == ["Unanswered"]


def test_victims_that_never_leave_do_not_keep_the_room_for_ever() -> None:
    story = asked()
    accept(story)
    story.until_quiet(within_ms=590_000)
    assert ends(story) == []
    story.until_quiet(within_ms=11_000)
    assert ends(story)[0] == "VictimsStayed"


def test_when_room_comes_elsewhere_the_gang_does_not_wait_for_its_victims() -> None:
    story = asked()
    story.put(make_node("spare-0"), make_node("spare-1"))
    story.until_quiet()
    (decision,) = decided(story, "high")
    assert {one.node for one in decision.bindings} == {"spare-0", "spare-1"}


def test_a_preemptor_that_is_deleted_leaves_the_room_to_others() -> None:
    story = asked()
    story.remove(*story.pods_of("high"))
    story.remove(story.objects["group-high"])
    story.until_quiet()
    assert ends(story) == ["Gone"]
    accept(story)
    leave(story)
    submit(story, "quick", 2)
    story.until_quiet()
    assert len(decided(story, "quick")) == 1


def test_a_preemptor_that_shrank_below_its_quorum_waits_for_its_pods_instead() -> None:
    story = asked()
    story.remove(story.pods["high-worker-0"])
    story.until_quiet()
    assert ends(story) == ["NotNeeded"]


def test_a_node_that_is_gone_when_the_victims_are_makes_the_gang_ask_again() -> None:
    story = asked()
    accept(story)
    gone = evictions(story)[0].bindings[0].node
    story.remove(story.objects[f"uid-{gone}"])
    leave(story)
    story.until_quiet(within_ms=5_000)
    assert ends(story) == ["PlacementLost"]
    assert len(evictions(story)) == 2


def test_a_gang_evicted_whole_is_placed_whole_again_and_not_while_some_of_it_is_there() -> None:
    story = cluster(3)
    running(story, "low", 3)
    submit(story, "high", 2, priority=10)
    story.until_quiet()
    (eviction,) = evictions(story)
    assert len(eviction.victims) == 3, "a gang without its quorum is worth nothing"
    accept(story)
    first = story.pods["low-worker-0"]
    story.remove(first)
    story.make_again([first])
    story.until_quiet()
    assert len(decided(story, "low")) == 1, "the node that is nobody's is not for a part of it"
    why = story.verdict("low").why
    assert why is not None
    assert why.reason == "Evicted"


def at_once(story: Story) -> None:
    pass


def answered(story: Story) -> None:
    accept(story)


def half_gone(story: Story) -> None:
    accept(story)
    story.remove(next(one for one in story.pods.values() if one.deleting))


def all_gone(story: Story) -> None:
    accept(story)
    leave(story)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("picture_first", [False, True])
@pytest.mark.parametrize("until", [at_once, answered, half_gone, all_gone])
def test_a_planner_that_takes_over_keeps_the_room_and_binds_the_gang(
    until: Callable[[Story], None], picture_first: bool, checkpoint: bool
) -> None:
    story = asked()
    until(story)
    if checkpoint:
        story.pages = story.planner.checkpoint(story.outcome_seq)
    story.restart(checkpoint=checkpoint, picture_first=picture_first)
    submit(story, "quick", 1)
    story.until_quiet()
    accept(story)
    leave(story)
    story.until_quiet()
    (decision,) = decided(story, "high")
    assert len(decision.bindings) == 2
    assert decided(story, "quick") == []
    assert len(evictions(story)) == 1
    assert story.notes("hold") == []
    story.restart(picture_first=picture_first)
    story.until_quiet()
    assert ends(story) == []
    assert len(decided(story, "high")) == 1


def test_a_planner_that_takes_over_knows_that_the_gang_was_admitted() -> None:
    """Found by the simulation (seed 261): its object did not say so yet, the preemption was given
    up, and in the same cycle others were evicted.
    """
    story = cluster(4)
    running(story, "low", 4, minimum=1)
    operated: dict[str, Any] = {"dialect": "volcano", "waits_for_inqueue": True}
    submit(story, "high", 2, priority=10, group={**operated, "phase": "Pending"})
    story.until_quiet()
    assert len(evictions(story)) == 1
    story.restart()
    story.until_quiet()
    assert (ends(story), len(evictions(story))) == ([], 1)


def test_a_planner_with_a_picture_from_before_the_preemptor_waits_for_a_newer_one() -> None:
    """Found by the simulation (seed 330): it crashed."""
    story = asked()
    newest = story.cluster_seq
    group = story.objects.pop("group-high")
    pods = [story.pods.pop(one.uid) for one in story.pods_of("high")]
    story.cluster_seq = 0
    story.restart()
    story.step()
    assert ends(story) == []
    story.cluster_seq = newest
    story.put(group, *pods)
    story.until_quiet()
    accept(story)
    leave(story)
    story.until_quiet()
    assert len(decided(story, "high")) == len(evictions(story)) == 1


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_planner_that_takes_over_knows_who_was_refused_and_how_long_to_wait(
    checkpoint: bool,
) -> None:
    story = asked()
    refused = evictions(story)[0].victims[0]
    refuse(story, {refused.uid})
    story.until_quiet()
    story.restart(checkpoint=checkpoint)
    story.until_quiet(within_ms=1_000)
    assert len(evictions(story)) == 1
    story.until_quiet(within_ms=5_000)
    assert len(evictions(story)) == 2
    assert refused.uid not in {one.uid for one in evictions(story)[-1].victims}


def test_a_victim_is_owed_nothing_even_by_a_planner_that_begins_when_it_has_half_left() -> None:
    story = asked()
    accept(story)
    story.remove(next(one for one in story.pods.values() if one.deleting))
    story.until_quiet()
    victim = next(one for one in story.pods.values() if one.deleting)
    # It fails on its way out, which is no news.
    story.change(victim.uid, phase="Failed")
    story.until_quiet()
    story.restart(checkpoint=True)
    story.remove(story.pods[victim.uid])
    story.until_quiet()
    assert story.notes("hold") == []


def test_evictions_are_decided_only_under_a_fresh_picture() -> None:
    story = cluster(1)
    running(story, "low", 1)
    submit(story, "high", 1, priority=10)
    story.step(after_ms=60_000, fresh=False)
    assert evictions(story) == []


def test_an_eviction_names_until_when_it_may_be_begun_with() -> None:
    (eviction,) = evictions(asked())
    assert isinstance(eviction, EvictionDecision)
    assert eviction.until_ms == eviction.cycle.now_ms + 60_000


def test_of_members_that_are_only_assumed_none_makes_another_one_surplus() -> None:
    """Found by the simulation (seed 51): its binding may still come to nothing, and the victim's
    gang would be below its quorum.
    """
    story = cluster(4)
    running(story, "low", 3)
    story.put(make_pods("low", 4, WHOLE_NODE)[3])
    story.until_quiet()
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert evictions(story) == []
    story.carry_out(phase="Running")
    story.until_quiet()
    (eviction,) = evictions(story)
    assert len(eviction.victims) == 1


def test_members_of_a_decision_that_is_under_way_are_not_evicted() -> None:
    """Found by the simulation (seed 93): its group needs fewer since, and a pod that it had bound
    was evicted before the last of its requests was answered.
    """
    story = cluster(4)
    low = submit(story, "low", 4)
    story.until_quiet()
    ((_, decision),) = story.decisions
    for binding in decision.bindings[:3]:
        story.change(binding.uid, node=binding.node, phase="Running")
    story.put(make_group("low", 1))
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert evictions(story) == []
    story.carry_out(phase="Running")
    story.until_quiet()
    (eviction,) = evictions(story)
    assert len(eviction.victims) == 1
    assert eviction.victims[0].uid in {one.uid for one in low}


def test_who_waits_for_victims_says_so_and_their_gangs_say_what_happened() -> None:
    story = asked()
    why = story.verdict("high").why
    assert why is not None
    assert why.reason == "Preempting"
    assert why.sentence.startswith("waits for 2 pods to leave, evicted for it: priority 10")
    assert story.condition("low", "Evicted") is None, "nobody has been evicted yet"
    accept(story)
    story.until_quiet()
    told = story.condition("low", "Evicted")
    assert told is not None
    assert told.reason == "Preempted"
    assert told.message.startswith("2 of its pods were preempted for gang team/high")
    gone = {one.name for one in story.verdict("low").evicted}
    assert gone == {one.name for one in evictions(story)[0].victims}
    leave(story)
    story.until_quiet()
    story.carry_out(phase="Running")
    story.until_quiet()
    assert story.condition("low", "Evicted") is not None


def test_a_gang_whose_eviction_came_to_nothing_says_why() -> None:
    story = asked()
    refuse(story, {evictions(story)[0].victims[0].uid}, "would violate the budget")
    story.until_quiet(within_ms=1_500)
    why = story.verdict("high").why
    assert why is not None
    assert why.reason == "NotEnoughResources"
    assert "EvictionRefused: would violate the budget" in why.sentence
