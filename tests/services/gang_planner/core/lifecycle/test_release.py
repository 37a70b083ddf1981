"""What cannot become whole is given back: at once where no node could cure it, else by its
deadline; every step can be interrupted by a restart.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.outcomes import Member
from shared.model.objects import Owner, Pod
from tests.services.gang_planner.core.scene import (
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.story import WORDS, Story

FULL = make_shape({"cpu": 4000})
POISONED = "poison-worker-3"


def cluster(nodes: int, **conf: str) -> Story:
    return Story([make_node(f"n{i:02d}") for i in range(nodes)], **conf)


def submit(
    story: Story, name: str, size: int, *, minimum: int | None = None, **pods: Any
) -> list[Pod]:
    made = make_pods(name, size, FULL, **pods)
    story.put(make_group(name, size if minimum is None else minimum), *made)
    return made


def poison(story: Story) -> list[Pod]:
    """A gang of 8 of which one member's binding is always refused, decided and carried out."""
    story.refuses = lambda binding: binding.name == POISONED
    pods = submit(story, "poison", 8)
    story.step()
    story.carry_out()
    return pods


def test_a_poisoned_gang_is_bound_in_part_once_released_at_once_and_preflighted_from_then_on() -> (
    None
):
    story = cluster(8)
    pods = poison(story)
    assert story.bound("poison") == 7
    story.until_quiet()
    (release,) = story.releases
    assert (len(release.victims), release.via, release.reason) == (7, "delete", "BindingRefused")
    assert release.why == f"{POISONED}: {WORDS}"
    assert release.cycle.now_ms == 10_000, "at once"
    story.carry_out()
    assert story.bound("poison") == 0
    story.until_quiet()
    assert story.notes("release") == [("opened", "BindingRefused"), ("closed", "Released")]
    for _ in range(5):
        story.make_again(pods)
        story.until_quiet(within_ms=70_000)
        story.carry_out()
        assert story.bound("poison") == 0, "nothing is bound from the second attempt on"
    story.until_quiet()
    later = [one for _, one in story.decisions[1:]]
    assert len(later) >= 4
    assert all(one.preflight for one in later)
    why = story.verdict("poison").why
    assert why is not None
    assert (why.reason, WORDS in why.sentence, POISONED in why.sentence) == (
        "BindingRefused",
        True,
        True,
    )


def test_pauses_of_a_poisoned_gang_grow() -> None:
    story = cluster(8)
    pods = poison(story)
    for _ in range(6):
        story.until_quiet(within_ms=70_000)
        story.carry_out()
        story.make_again(pods)
    at = [one.cycle.now_ms for _, one in story.decisions]
    gaps = [after - before for before, after in itertools.pairwise(at[1:])]
    assert gaps == sorted(gaps)
    assert len(gaps) >= 3


@pytest.mark.parametrize(
    "owner", [None, Owner(api_version="batch/v1", kind="Job", name="j", uid="o")]
)
def test_of_a_poisoned_gang_that_a_release_would_cost_nothing_is_ever_bound(
    owner: Owner | None,
) -> None:
    story = cluster(8)
    story.refuses = lambda binding: binding.name == POISONED
    submit(story, "poison", 8, owner=owner)
    for _ in range(5):
        story.until_quiet(within_ms=70_000)
        story.carry_out()
        assert story.bound("poison") == 0
    assert len(story.decisions) >= 4
    assert story.releases == []


def test_other_gangs_are_not_delayed_by_a_poisoned_one() -> None:
    story = cluster(16)
    poison(story)
    submit(story, "good", 8)
    story.step()
    story.carry_out()
    story.until_quiet()
    assert story.bound("good") == 8
    assert story.verdict("good").phase == "Running"


def test_room_of_what_is_released_goes_to_others_when_it_is_free_and_not_before() -> None:
    story = cluster(8)
    poison(story)
    submit(story, "good", 8)
    story.until_quiet()
    assert [one.gang for _, one in story.decisions] == ["team/poison"]
    story.carry_out()
    story.until_quiet()
    assert [one.gang for _, one in story.decisions] == ["team/poison", "team/good"]


def test_a_refused_extra_releases_nothing_and_keeps_nobody_from_starting() -> None:
    story = cluster(8)
    story.refuses = lambda binding: binding.name == "a-worker-2"
    submit(story, "a", 4, minimum=3, owner=None)
    story.step()
    story.carry_out()
    assert story.bound("a") == 0, "bare pods are pre-flighted, and one of four is refused"
    story.until_quiet(within_ms=1_000)
    again = story.decisions[1][1]
    assert "a-worker-2" not in {one.name for one in again.bindings}
    story.carry_out()
    story.until_quiet()
    assert story.verdict("a").phase == "Running"
    assert story.releases == []


def test_another_member_takes_the_place_of_a_refused_one_where_the_quorum_allows() -> None:
    story = cluster(3)
    story.refuses = lambda binding: binding.name == "a-worker-0"
    pods = submit(story, "a", 3)
    story.step()
    story.put(*make_pods("a", 4, FULL)[3:])
    story.put(make_node("n99"))
    story.carry_out()
    assert len(pods) - 1 == story.bound("a")
    story.until_quiet(within_ms=1_000)
    story.carry_out()
    story.until_quiet()
    assert story.verdict("a").phase == "Running"
    assert story.releases == []


def test_deciding_waits_for_the_outcome_of_what_may_still_be_bound() -> None:
    story = cluster(8)
    submit(story, "a", 2)
    submit(story, "b", 2)
    story.step()
    (seq, first), _ = story.decisions
    one, other = first.bindings
    story.change(one.uid, node=one.node)
    story.done.add(seq)
    # The repair's deadline passes while no binder has said anything.
    story.until_quiet(within_ms=40_000)
    assert story.notes("release") == [("opened", "RepairDeadline")]
    assert story.releases == []
    story.answer(seq, first, [Member(uid=other.uid, node=other.node, result="conflict", code=409)])
    story.until_quiet()
    (release,) = story.releases
    assert [victim.uid for victim in release.victims] == [one.uid]


def test_what_is_shown_bound_later_is_released_too() -> None:
    story = cluster(4)
    submit(story, "a", 3)
    story.step()
    ((seq, decision),) = story.decisions
    first, second, third = decision.bindings
    story.done.add(seq)
    story.change(first.uid, node=first.node)
    unknown = Member(uid=second.uid, node=second.node, result="unknown", code=504)
    story.answer(seq, decision, [unknown, Story.refusal(third)])
    story.until_quiet()
    assert [len(one.victims) for one in story.releases] == [1]
    story.carry_out()
    story.until_quiet()
    assert story.notes("release") == [("opened", "BindingRefused")], "a late POST may still land"
    story.change(second.uid, node=second.node)
    story.until_quiet()
    assert [one.victims[0].uid for one in story.releases] == [first.uid, second.uid]
    story.carry_out()
    story.until_quiet()
    assert story.notes("release")[-1] == ("closed", "Released")


def test_a_late_post_that_never_lands_is_waited_for_and_no_longer() -> None:
    story = cluster(4)
    submit(story, "a", 2)
    story.step()
    ((seq, decision),) = story.decisions
    first, second = decision.bindings
    story.done.add(seq)
    story.answer(
        seq,
        decision,
        [Member(uid=first.uid, node=first.node, result="unknown"), Story.refusal(second)],
    )
    assert story.bound("a") == 0
    story.until_quiet(within_ms=119_000)
    assert story.releases == []
    assert len(story.decisions) == 1 or all(one.preflight for _, one in story.decisions[1:])


def test_victims_that_are_still_there_are_decided_again_after_an_answer() -> None:
    story = cluster(8)
    poison(story)
    story.until_quiet()
    ((seq, release),) = [(s, one) for s, one in story.acts if isinstance(one, EvictionDecision)]
    story.done.add(seq)
    story.until_quiet(within_ms=60_000)
    assert len(story.releases) == 1, "its outcome is awaited: a binder has the message"
    story.answer(seq, release, evicted=7)
    story.until_quiet(within_ms=9_000)
    assert len(story.releases) == 2, "the answer is a minute younger than the decision"
    story.carry_out()
    story.until_quiet()
    assert story.notes("release")[-1] == ("closed", "Released")


def test_terminating_pods_are_waited_for_and_not_deleted_again() -> None:
    story = cluster(8)
    poison(story)
    story.until_quiet()
    ((seq, release),) = [(s, one) for s, one in story.acts if isinstance(one, EvictionDecision)]
    story.done.add(seq)
    story.answer(seq, release, evicted=7)
    for victim in release.victims:
        story.change(victim.uid, deleting=True)
    story.until_quiet(within_ms=60_000)
    assert len(story.releases) == 1
    assert story.notes("release") == [("opened", "BindingRefused")]
    for victim in release.victims:
        story.remove(story.pods[victim.uid])
    story.until_quiet()
    assert story.notes("release")[-1] == ("closed", "Released")


def test_a_pod_made_again_under_its_name_is_no_victim() -> None:
    story = cluster(8)
    pods = poison(story)
    story.until_quiet()
    story.carry_out()
    again = {pod.uid for pod in story.make_again(pods)}
    story.until_quiet(within_ms=70_000)
    assert not again & {victim.uid for one in story.releases for victim in one.victims}


def test_bare_pods_that_were_bound_are_left_and_named() -> None:
    story = cluster(4)
    submit(story, "a", 3, owner=None)
    story.step()
    ((seq, decision),) = story.decisions
    story.done.add(seq)
    first, *_, third = decision.bindings
    story.change(first.uid, node=first.node)
    rest = [Member(uid=one.uid, node=one.node, result="skipped") for one in decision.bindings[1:-1]]
    story.answer(seq, decision, [*rest, Story.refusal(third)])
    story.until_quiet(within_ms=40_000)
    assert story.releases == []
    found = story.condition("a", "PartlyBound")
    assert found is not None
    assert first.name in found.message
    assert found.reason == "BindingRefused"


def test_what_a_controller_makes_again_is_released_and_bare_members_stay() -> None:
    story = cluster(4)
    pods = [*make_pods("a", 2, FULL), *make_pods("a", 1, FULL, role="bare", owner=None)]
    story.put(make_group("a", 4), *pods, *make_pods("a", 3, FULL)[2:])
    story.refuses = lambda binding: binding.name == "a-worker-2"
    story.step()
    ((seq, decision),) = story.decisions
    story.done.add(seq)
    for one in decision.bindings:
        if one.name != "a-worker-2":
            story.change(one.uid, node=one.node)
    refused = next(one for one in decision.bindings if one.name == "a-worker-2")
    story.answer(seq, decision, [Story.refusal(refused)])
    story.until_quiet()
    (release,) = story.releases
    assert sorted(one.name for one in release.victims) == ["a-worker-0", "a-worker-1"]
    story.carry_out()
    story.until_quiet(within_ms=40_000)
    found = story.condition("a", "PartlyBound")
    assert found is not None
    assert "a-bare-0" in found.message


def test_while_it_is_released_the_verdict_says_so() -> None:
    story = cluster(8)
    poison(story)
    story.until_quiet()
    found = story.condition("poison", "Releasing")
    assert found is not None
    assert (found.reason, found.message) == (
        "BindingRefused",
        f"BindingRefused: {POISONED}: {WORDS}",
    )
    why = story.verdict("poison").why
    assert why is not None
    assert why.reason == "BindingRefused"
    assert story.planner.gangs_by_phase()["Releasing"] == 1
    story.carry_out()
    story.until_quiet(within_ms=100)
    assert story.planner.gangs_by_phase()["Releasing"] == 0
    assert story.condition("poison", "Releasing") is None
    over = next(one for one in story.verdict("poison").conditions if one.type == "Releasing")
    # Whoever did not read it in time still reads what was released, and why.
    assert (over.status, over.reason, over.message) == ("False", "Released", found.message)


def test_a_release_goes_on_while_the_picture_is_stale_and_nothing_else_is_decided() -> None:
    story = cluster(16)
    poison(story)
    submit(story, "good", 8)
    story.now_ms += 60_000
    for _ in range(3):
        story.step(fresh=False)
    assert len(story.releases) == 1
    assert [one.gang for _, one in story.decisions] == ["team/poison"]


def interrupted(restart: Callable[[Story], None]) -> list[str]:
    """The poisoned gang's release, with a restart wherever there is one: what was decided."""
    story = cluster(8)
    pods = poison(story)
    restart(story)
    for _ in range(4):
        story.step()
        restart(story)
    story.carry_out()
    restart(story)
    for _ in range(4):
        story.step()
        restart(story)
    story.make_again(pods)
    for _ in range(3):
        story.step(after_ms=5_000)
        restart(story)
        story.carry_out()
        restart(story)
    assert story.bound("poison") == 0
    told: list[str] = []
    for _, one in story.acts:
        if isinstance(one, GangDecision):
            told.append(
                f"bind {len(one.bindings)} {'preflighted' if one.preflight else ''}".strip()
            )
        else:
            told.append(f"release {len(one.victims)}")
    return told


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_release_that_is_interrupted_anywhere_goes_on_where_it_was(checkpoint: bool) -> None:
    whole = interrupted(lambda _: None)
    assert whole[:2] == ["bind 8", "release 7"]
    assert set(whole[2:]) == {"bind 8 preflighted"}
    assert interrupted(lambda story: story.restart(checkpoint=checkpoint)) == whole


def test_a_gang_without_object_is_known_again_when_its_pods_come_back() -> None:
    story = cluster(8)
    story.refuses = lambda binding: binding.name == POISONED
    pods = make_pods("poison", 8, FULL, group_name="", group_min_member=8)
    story.put(*pods)
    story.step()
    story.carry_out()
    assert sum(1 for pod in story.pods.values() if pod.node) == 7
    story.until_quiet()
    story.carry_out()
    story.remove(*story.pods.copy().values())
    story.until_quiet(within_ms=30_000)
    story.make_again(pods)
    story.until_quiet()
    _, second = story.decisions
    assert second[1].preflight
    assert second[1].attempt == 2


def test_an_answer_read_before_a_checkpoint_is_known_behind_it() -> None:
    story = cluster(8)
    poison(story)
    story.until_quiet()
    ((seq, release),) = [(s, one) for s, one in story.acts if isinstance(one, EvictionDecision)]
    story.done.add(seq)
    story.answer(seq, release, evicted=7)
    story.until_quiet()
    story.restart(checkpoint=True)
    story.until_quiet(within_ms=10_000)
    assert len(story.releases) == 2, "the victims are still there"


def test_room_that_an_outcome_ended_before_a_checkpoint_is_not_assumed_behind_it() -> None:
    story = cluster(4)
    submit(story, "a", 3)
    story.step()
    ((seq, decision),) = story.decisions
    story.done.add(seq)
    first, second, third = decision.bindings
    story.answer(seq, decision, [Story.refusal(third)])
    story.until_quiet()
    before = {reservation.uid for reservation in story.planner._state.reservations.every()}
    story.restart(checkpoint=True)
    assert {reservation.uid for reservation in story.planner._state.reservations.every()} == before
    assert before == {first.uid, second.uid}


@pytest.mark.parametrize("restarted", [False, True])
def test_a_gang_that_becomes_whole_before_anything_is_deleted_is_not_released(
    restarted: bool,
) -> None:
    story = cluster(2)
    submit(story, "a", 2)
    story.step()
    ((seq, decision),) = story.decisions
    story.done.add(seq)
    first, last = decision.bindings
    story.change(first.uid, node=first.node)
    story.until_quiet(within_ms=31_000)
    assert story.notes("release") == [("opened", "RepairDeadline")]
    # The binder was away, and the picture was late.
    story.change(last.uid, node=last.node)
    story.answer(seq, decision)
    if restarted:
        story.restart()
    story.until_quiet(within_ms=5_000)
    assert story.notes("release")[-1] == ("closed", "Started")
    assert story.verdict("a").phase == "Running"
    if restarted:
        story.restart()
        story.until_quiet(within_ms=5_000)
    assert story.releases == []
    assert len(story.notes("release")) == 2
