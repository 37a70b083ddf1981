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
from tests.services.gang_planner.core.logged_scene import WORDS, LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

FULL = make_shape({"cpu": 4000})
POISONED = "poison-worker-3"


def cluster(nodes: int, **conf: str) -> LoggedScene:
    return LoggedScene([make_node(f"n{i:02d}") for i in range(nodes)], **conf)


def submit(
    scene: LoggedScene, name: str, size: int, *, minimum: int | None = None, **pods: Any
) -> list[Pod]:
    made = make_pods(name, size, FULL, **pods)
    scene.put(make_group(name, size if minimum is None else minimum), *made)
    return made


def poison(scene: LoggedScene) -> list[Pod]:
    """A gang of 8 of which one member's binding is always refused, decided and carried out."""
    scene.refuses = lambda binding: binding.name == POISONED
    pods = submit(scene, "poison", 8)
    scene.step()
    scene.carry_out()
    return pods


def test_a_poisoned_gang_is_bound_in_part_once_released_at_once_and_preflighted_from_then_on() -> (
    None
):
    scene = cluster(8)
    pods = poison(scene)
    assert scene.bound("poison") == 7
    scene.until_quiet()
    (release,) = scene.releases
    assert (len(release.victims), release.via, release.reason) == (7, "delete", "BindingRefused")
    assert release.why == f"{POISONED}: {WORDS}"
    assert release.cycle.now_ms == 10_000, "at once"
    scene.carry_out()
    assert scene.bound("poison") == 0
    scene.until_quiet()
    assert scene.notes("release") == [("opened", "BindingRefused"), ("closed", "Released")]
    for _ in range(5):
        scene.make_again(pods)
        scene.until_quiet(within_ms=70_000)
        scene.carry_out()
        assert scene.bound("poison") == 0, "nothing is bound from the second attempt on"
    scene.until_quiet()
    later = [one for _, one in scene.decisions[1:]]
    assert len(later) >= 4
    assert all(one.preflight for one in later)
    why = scene.verdict("poison").why
    assert why is not None
    assert (why.reason, WORDS in why.sentence, POISONED in why.sentence) == (
        "BindingRefused",
        True,
        True,
    )


def test_pauses_of_a_poisoned_gang_grow() -> None:
    scene = cluster(8)
    pods = poison(scene)
    for _ in range(6):
        scene.until_quiet(within_ms=70_000)
        scene.carry_out()
        scene.make_again(pods)
    at = [one.cycle.now_ms for _, one in scene.decisions]
    gaps = [after - before for before, after in itertools.pairwise(at[1:])]
    assert gaps == sorted(gaps)
    assert len(gaps) >= 3


@pytest.mark.parametrize(
    "owner", [None, Owner(api_version="batch/v1", kind="Job", name="j", uid="o")]
)
def test_of_a_poisoned_gang_that_a_release_would_cost_nothing_is_ever_bound(
    owner: Owner | None,
) -> None:
    scene = cluster(8)
    scene.refuses = lambda binding: binding.name == POISONED
    submit(scene, "poison", 8, owner=owner)
    for _ in range(5):
        scene.until_quiet(within_ms=70_000)
        scene.carry_out()
        assert scene.bound("poison") == 0
    assert len(scene.decisions) >= 4
    assert scene.releases == []


def test_other_gangs_are_not_delayed_by_a_poisoned_one() -> None:
    scene = cluster(16)
    poison(scene)
    submit(scene, "good", 8)
    scene.step()
    scene.carry_out()
    scene.until_quiet()
    assert scene.bound("good") == 8
    assert scene.verdict("good").phase == "Running"


def test_room_of_what_is_released_goes_to_others_when_it_is_free_and_not_before() -> None:
    scene = cluster(8)
    poison(scene)
    submit(scene, "good", 8)
    scene.until_quiet()
    assert [one.gang for _, one in scene.decisions] == ["team/poison"]
    scene.carry_out()
    scene.until_quiet()
    assert [one.gang for _, one in scene.decisions] == ["team/poison", "team/good"]


def test_a_refused_extra_releases_nothing_and_keeps_no_gang_from_starting() -> None:
    scene = cluster(8)
    scene.refuses = lambda binding: binding.name == "a-worker-2"
    submit(scene, "a", 4, minimum=3, owner=None)
    scene.step()
    scene.carry_out()
    assert scene.bound("a") == 0, "bare pods are pre-flighted, and one of four is refused"
    scene.until_quiet(within_ms=1_000)
    again = scene.decisions[1][1]
    assert "a-worker-2" not in {one.name for one in again.bindings}
    scene.carry_out()
    scene.until_quiet()
    assert scene.verdict("a").phase == "Running"
    assert scene.releases == []


def test_another_member_takes_the_place_of_a_refused_one_where_the_quorum_allows() -> None:
    scene = cluster(3)
    scene.refuses = lambda binding: binding.name == "a-worker-0"
    pods = submit(scene, "a", 3)
    scene.step()
    scene.put(*make_pods("a", 4, FULL)[3:])
    scene.put(make_node("n99"))
    scene.carry_out()
    assert len(pods) - 1 == scene.bound("a")
    scene.until_quiet(within_ms=1_000)
    scene.carry_out()
    scene.until_quiet()
    assert scene.verdict("a").phase == "Running"
    assert scene.releases == []


def test_deciding_waits_for_the_outcome_of_what_may_still_be_bound() -> None:
    scene = cluster(8)
    submit(scene, "a", 2)
    submit(scene, "b", 2)
    scene.step()
    (seq, first), _ = scene.decisions
    one, other = first.bindings
    scene.change(one.uid, node=one.node)
    scene.done.add(seq)
    # The repair's deadline passes while no binder has said anything.
    scene.until_quiet(within_ms=40_000)
    assert scene.notes("release") == [("opened", "RepairDeadline")]
    assert scene.releases == []
    scene.answer(seq, first, [Member(uid=other.uid, node=other.node, result="conflict", code=409)])
    scene.until_quiet()
    (release,) = scene.releases
    assert [victim.uid for victim in release.victims] == [one.uid]


def test_what_is_shown_bound_later_is_released_too() -> None:
    scene = cluster(4)
    submit(scene, "a", 3)
    scene.step()
    ((seq, decision),) = scene.decisions
    first, second, third = decision.bindings
    scene.done.add(seq)
    scene.change(first.uid, node=first.node)
    unknown = Member(uid=second.uid, node=second.node, result="unknown", code=504)
    scene.answer(seq, decision, [unknown, LoggedScene.refusal(third)])
    scene.until_quiet()
    assert [len(one.victims) for one in scene.releases] == [1]
    scene.carry_out()
    scene.until_quiet()
    assert scene.notes("release") == [("opened", "BindingRefused")], "a late POST may still land"
    scene.change(second.uid, node=second.node)
    scene.until_quiet()
    assert [one.victims[0].uid for one in scene.releases] == [first.uid, second.uid]
    scene.carry_out()
    scene.until_quiet()
    assert scene.notes("release")[-1] == ("closed", "Released")


def test_a_late_post_that_never_lands_is_waited_for_and_no_longer() -> None:
    scene = cluster(4)
    submit(scene, "a", 2)
    scene.step()
    ((seq, decision),) = scene.decisions
    first, second = decision.bindings
    scene.done.add(seq)
    scene.answer(
        seq,
        decision,
        [Member(uid=first.uid, node=first.node, result="unknown"), LoggedScene.refusal(second)],
    )
    assert scene.bound("a") == 0
    scene.until_quiet(within_ms=119_000)
    assert scene.releases == []
    assert len(scene.decisions) == 1 or all(one.preflight for _, one in scene.decisions[1:])


def test_victims_that_are_still_there_are_decided_again_after_an_answer() -> None:
    scene = cluster(8)
    poison(scene)
    scene.until_quiet()
    ((seq, release),) = [(s, one) for s, one in scene.acts if isinstance(one, EvictionDecision)]
    scene.done.add(seq)
    scene.until_quiet(within_ms=60_000)
    assert len(scene.releases) == 1, "its outcome is awaited: a binder has the message"
    scene.answer(seq, release, evicted=7)
    scene.until_quiet(within_ms=9_000)
    assert len(scene.releases) == 2, "the answer is a minute younger than the decision"
    scene.carry_out()
    scene.until_quiet()
    assert scene.notes("release")[-1] == ("closed", "Released")


def test_terminating_pods_are_waited_for_and_not_deleted_again() -> None:
    scene = cluster(8)
    poison(scene)
    scene.until_quiet()
    ((seq, release),) = [(s, one) for s, one in scene.acts if isinstance(one, EvictionDecision)]
    scene.done.add(seq)
    scene.answer(seq, release, evicted=7)
    for victim in release.victims:
        scene.change(victim.uid, deleting=True)
    scene.until_quiet(within_ms=60_000)
    assert len(scene.releases) == 1
    assert scene.notes("release") == [("opened", "BindingRefused")]
    for victim in release.victims:
        scene.remove(scene.pods[victim.uid])
    scene.until_quiet()
    assert scene.notes("release")[-1] == ("closed", "Released")


def test_a_pod_made_again_under_its_name_is_no_victim() -> None:
    scene = cluster(8)
    pods = poison(scene)
    scene.until_quiet()
    scene.carry_out()
    again = {pod.uid for pod in scene.make_again(pods)}
    scene.until_quiet(within_ms=70_000)
    assert not again & {victim.uid for one in scene.releases for victim in one.victims}


def test_bare_pods_that_were_bound_are_left_and_named() -> None:
    scene = cluster(4)
    submit(scene, "a", 3, owner=None)
    scene.step()
    ((seq, decision),) = scene.decisions
    scene.done.add(seq)
    first, *_, third = decision.bindings
    scene.change(first.uid, node=first.node)
    rest = [Member(uid=one.uid, node=one.node, result="skipped") for one in decision.bindings[1:-1]]
    scene.answer(seq, decision, [*rest, LoggedScene.refusal(third)])
    scene.until_quiet(within_ms=40_000)
    assert scene.releases == []
    found = scene.condition("a", "PartlyBound")
    assert found is not None
    assert first.name in found.message
    assert found.reason == "BindingRefused"


def test_what_a_controller_makes_again_is_released_and_bare_members_stay() -> None:
    scene = cluster(4)
    pods = [*make_pods("a", 2, FULL), *make_pods("a", 1, FULL, role="bare", owner=None)]
    scene.put(make_group("a", 4), *pods, *make_pods("a", 3, FULL)[2:])
    scene.refuses = lambda binding: binding.name == "a-worker-2"
    scene.step()
    ((seq, decision),) = scene.decisions
    scene.done.add(seq)
    for one in decision.bindings:
        if one.name != "a-worker-2":
            scene.change(one.uid, node=one.node)
    refused = next(one for one in decision.bindings if one.name == "a-worker-2")
    scene.answer(seq, decision, [LoggedScene.refusal(refused)])
    scene.until_quiet()
    (release,) = scene.releases
    assert sorted(one.name for one in release.victims) == ["a-worker-0", "a-worker-1"]
    scene.carry_out()
    scene.until_quiet(within_ms=40_000)
    found = scene.condition("a", "PartlyBound")
    assert found is not None
    assert "a-bare-0" in found.message


def test_while_it_is_released_the_verdict_says_so() -> None:
    scene = cluster(8)
    poison(scene)
    scene.until_quiet()
    found = scene.condition("poison", "Releasing")
    assert found is not None
    assert (found.reason, found.message) == (
        "BindingRefused",
        f"BindingRefused: {POISONED}: {WORDS}",
    )
    why = scene.verdict("poison").why
    assert why is not None
    assert why.reason == "BindingRefused"
    assert scene.planner.gangs_by_phase()["Releasing"] == 1
    scene.carry_out()
    scene.until_quiet(within_ms=100)
    assert scene.planner.gangs_by_phase()["Releasing"] == 0
    assert scene.condition("poison", "Releasing") is None
    over = next(one for one in scene.verdict("poison").conditions if one.type == "Releasing")
    # A binder that did not read it in time still reads the released pods and the reason.
    assert (over.status, over.reason, over.message) == ("False", "Released", found.message)


def test_a_release_continues_while_the_cluster_state_is_stale_and_nothing_else_is_decided() -> None:
    scene = cluster(16)
    poison(scene)
    submit(scene, "good", 8)
    scene.now_ms += 60_000
    for _ in range(3):
        scene.step(fresh=False)
    assert len(scene.releases) == 1
    assert [one.gang for _, one in scene.decisions] == ["team/poison"]


def interrupted(restart: Callable[[LoggedScene], None]) -> list[str]:
    """The poisoned gang's release, with a restart wherever there is one: what was decided."""
    scene = cluster(8)
    pods = poison(scene)
    restart(scene)
    for _ in range(4):
        scene.step()
        restart(scene)
    scene.carry_out()
    restart(scene)
    for _ in range(4):
        scene.step()
        restart(scene)
    scene.make_again(pods)
    for _ in range(3):
        scene.step(after_ms=5_000)
        restart(scene)
        scene.carry_out()
        restart(scene)
    assert scene.bound("poison") == 0
    published: list[str] = []
    for _, one in scene.acts:
        if isinstance(one, GangDecision):
            published.append(
                f"bind {len(one.bindings)} {'preflighted' if one.preflight else ''}".strip()
            )
        else:
            published.append(f"release {len(one.victims)}")
    return published


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_release_that_is_interrupted_anywhere_goes_on_where_it_was(checkpoint: bool) -> None:
    whole = interrupted(lambda _: None)
    assert whole[:2] == ["bind 8", "release 7"]
    assert set(whole[2:]) == {"bind 8 preflighted"}
    assert interrupted(lambda scene: scene.restart(checkpoint=checkpoint)) == whole


def test_a_gang_without_object_is_known_again_when_its_pods_come_back() -> None:
    scene = cluster(8)
    scene.refuses = lambda binding: binding.name == POISONED
    pods = make_pods("poison", 8, FULL, group_name="", group_min_member=8)
    scene.put(*pods)
    scene.step()
    scene.carry_out()
    assert sum(1 for pod in scene.pods.values() if pod.node) == 7
    scene.until_quiet()
    scene.carry_out()
    scene.remove(*scene.pods.copy().values())
    scene.until_quiet(within_ms=30_000)
    scene.make_again(pods)
    scene.until_quiet()
    _, second = scene.decisions
    assert second[1].preflight
    assert second[1].attempt == 2


def test_an_answer_read_before_a_checkpoint_is_known_behind_it() -> None:
    scene = cluster(8)
    poison(scene)
    scene.until_quiet()
    ((seq, release),) = [(s, one) for s, one in scene.acts if isinstance(one, EvictionDecision)]
    scene.done.add(seq)
    scene.answer(seq, release, evicted=7)
    scene.until_quiet()
    scene.restart(checkpoint=True)
    scene.until_quiet(within_ms=10_000)
    assert len(scene.releases) == 2, "the victims are still there"


def test_room_that_an_outcome_ended_before_a_checkpoint_is_not_assumed_behind_it() -> None:
    scene = cluster(4)
    submit(scene, "a", 3)
    scene.step()
    ((seq, decision),) = scene.decisions
    scene.done.add(seq)
    first, second, third = decision.bindings
    scene.answer(seq, decision, [LoggedScene.refusal(third)])
    scene.until_quiet()
    before = {reservation.uid for reservation in scene.state.reservations.every()}
    scene.restart(checkpoint=True)
    assert {reservation.uid for reservation in scene.state.reservations.every()} == before
    assert before == {first.uid, second.uid}


@pytest.mark.parametrize("restarted", [False, True])
def test_a_gang_that_becomes_whole_before_anything_is_deleted_is_not_released(
    restarted: bool,
) -> None:
    scene = cluster(2)
    submit(scene, "a", 2)
    scene.step()
    ((seq, decision),) = scene.decisions
    scene.done.add(seq)
    first, last = decision.bindings
    scene.change(first.uid, node=first.node)
    scene.until_quiet(within_ms=31_000)
    assert scene.notes("release") == [("opened", "RepairDeadline")]
    # The binder was away, and the cluster state was late.
    scene.change(last.uid, node=last.node)
    scene.answer(seq, decision)
    if restarted:
        scene.restart()
    scene.until_quiet(within_ms=5_000)
    assert scene.notes("release")[-1] == ("closed", "Started")
    assert scene.verdict("a").phase == "Running"
    if restarted:
        scene.restart()
        scene.until_quiet(within_ms=5_000)
    assert scene.releases == []
    assert len(scene.notes("release")) == 2
