"""From the decision to evict to the preemptor's bindings, and every other way that it can end."""

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from services.gang_planner.core.planner import Planner
from shared.contracts import annotations
from shared.contracts.decisions import EvictionDecision
from shared.contracts.outcomes import Member
from shared.model.objects import Queue
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import (
    QUARTER,
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


def asked() -> LoggedScene:
    """Four nodes full of an elastic job; a gang of two of higher priority has asked for room."""
    scene = cluster(4)
    running(scene, "low", 4, minimum=1)
    submit(scene, "high", 2, priority=10)
    scene.until_quiet()
    return scene


def test_a_gang_of_higher_priority_evicts_as_many_as_it_needs_and_is_bound_where_they_were() -> (
    None
):
    scene = asked()
    (eviction,) = evictions(scene)
    assert (eviction.via, eviction.reason, len(eviction.victims)) == ("eviction", "Preempted", 2)
    left = {scene.pods[one.uid].node for one in eviction.victims}
    assert {one.node for one in eviction.bindings} == left
    accept(scene)
    scene.until_quiet()
    assert decided(scene, "high") == [], "its victims are there still"
    leave(scene)
    scene.until_quiet()
    (decision,) = decided(scene, "high")
    assert decision.preemption == next(seq for seq, one in scene.acts if one is eviction)
    assert {one.node for one in decision.bindings} == left
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert (scene.bound("high"), scene.bound("low")) == (2, 2)
    assert ends(scene) == []


def test_a_gang_asks_for_its_next_member_when_the_last_one_is_in_the_log() -> None:
    """Seed 173 of the simulation: its next eviction was stored before the decision that took the
    first one's room over.
    """
    tiers = "  - name: proportion\n"
    scene = cluster(8, configured("enqueue, allocate, reclaim, backfill", more=tiers))
    for name in ("rich", "poor"):
        scene.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1))
    running(scene, "low", 7, minimum=1, group={"queue": "rich"})
    running(scene, "high", 1, group={"queue": "poor"})
    # Their queue deserves three more, not four: two are asked for, and then another one.
    scene.put(*make_pods("high", 5, WHOLE_NODE)[1:])
    scene.until_quiet()
    accept(scene)
    leave(scene)
    # Something else is decided in the same cycle, so that it has a second round.
    submit(scene, "other", 1, shape=make_shape({}))
    step = scene.step()
    assert [one.gang for one in step.decisions] == ["team/high", "team/other"]
    assert not isinstance(step.decisions[0], EvictionDecision)
    assert step.next_wakeup_ms == scene.now_ms
    scene.until_quiet()
    kinds = [isinstance(one, EvictionDecision) for _, one in scene.acts if one.gang == "team/high"]
    assert kinds == [False, True, False, True]


def test_until_all_victims_have_left_no_other_gang_gets_what_some_have_left() -> None:
    scene = asked()
    accept(scene)
    first = next(one for one in scene.pods.values() if one.deleting)
    scene.remove(first)
    submit(scene, "quick", 1)
    scene.until_quiet()
    assert decided(scene, "quick") == []
    leave(scene)
    scene.until_quiet()
    assert len(decided(scene, "high")) == 1
    assert decided(scene, "quick") == []


def test_no_room_is_held_for_pods_that_were_evicted_by_decision() -> None:
    scene = asked()
    accept(scene)
    leave(scene)
    scene.until_quiet()
    assert scene.holds() == []
    assert scene.notes("hold") == []


def test_a_victim_that_ends_by_itself_has_left() -> None:
    scene = asked()
    for victim in evictions(scene)[0].victims:
        scene.change(victim.uid, phase="Succeeded")
    scene.until_quiet()
    assert len(decided(scene, "high")) == 1


def test_a_refused_victim_is_left_alone_and_others_are_sought_after_a_pause() -> None:
    scene = asked()
    (first,) = evictions(scene)
    refused = first.victims[0]
    refuse(scene, {refused.uid})
    scene.until_quiet()
    assert ends(scene) == ["EvictionRefused"]
    assert len(evictions(scene)) == 1, "a pause first"
    scene.until_quiet(within_ms=5_000)
    _, second = evictions(scene)
    assert refused.name not in names(second.victims)
    assert len(second.victims) == 2


def test_pauses_between_refused_evictions_grow() -> None:
    scene = cluster(1)
    running(scene, "low", 1)
    submit(scene, "high", 1, priority=10)
    at = []
    for _ in range(4):
        scene.until_quiet(within_ms=400_000)
        act = evictions(scene)[-1]
        at.append(act.cycle.now_ms)
        refuse(scene, {act.victims[0].uid})
    assert len(set(at)) == 4
    assert all(later - earlier >= 60_000 for earlier, later in itertools.pairwise(at))


def test_without_an_answer_the_room_is_given_up() -> None:
    scene = asked()
    scene.until_quiet(within_ms=89_000)
    assert ends(scene) == []
    scene.until_quiet(within_ms=2_000)
    assert ends(scene) == ["Unanswered"]


def test_victims_that_never_leave_do_not_keep_the_room_for_ever() -> None:
    scene = asked()
    accept(scene)
    scene.until_quiet(within_ms=590_000)
    assert ends(scene) == []
    scene.until_quiet(within_ms=11_000)
    assert ends(scene)[0] == "VictimsStayed"


def test_when_room_comes_elsewhere_the_gang_does_not_wait_for_its_victims() -> None:
    scene = asked()
    scene.put(make_node("spare-0"), make_node("spare-1"))
    scene.until_quiet()
    (decision,) = decided(scene, "high")
    assert {one.node for one in decision.bindings} == {"spare-0", "spare-1"}


def test_a_preemptor_that_is_deleted_leaves_the_room_to_others() -> None:
    scene = asked()
    scene.remove(*scene.pods_of("high"))
    scene.remove(scene.objects["group-high"])
    scene.until_quiet()
    assert ends(scene) == ["Gone"]
    accept(scene)
    leave(scene)
    submit(scene, "quick", 2)
    scene.until_quiet()
    assert len(decided(scene, "quick")) == 1


def test_a_preemptor_that_shrank_below_its_quorum_waits_for_its_pods_instead() -> None:
    scene = asked()
    scene.remove(scene.pods["high-worker-0"])
    scene.until_quiet()
    assert ends(scene) == ["NotNeeded"]


def test_a_node_that_is_gone_when_the_victims_are_makes_the_gang_ask_again() -> None:
    scene = asked()
    accept(scene)
    gone = evictions(scene)[0].bindings[0].node
    scene.remove(scene.objects[f"uid-{gone}"])
    leave(scene)
    scene.until_quiet(within_ms=5_000)
    assert ends(scene) == ["PlacementLost"]
    assert len(evictions(scene)) == 2


def test_a_gang_evicted_whole_is_placed_whole_again_and_not_while_some_of_it_is_there() -> None:
    scene = cluster(3)
    running(scene, "low", 3)
    submit(scene, "high", 2, priority=10)
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert len(eviction.victims) == 3, "a gang without its quorum is worth nothing"
    accept(scene)
    first = scene.pods["low-worker-0"]
    scene.remove(first)
    scene.make_again([first])
    scene.until_quiet()
    assert len(decided(scene, "low")) == 1, "the free node is not for a part of it"
    why = scene.verdict("low").why
    assert why is not None
    assert why.reason == "Evicted"


def evicted_whole_and_short() -> LoggedScene:
    """A gang of two and one member above its minimum, which waits; both placed members are asked
    for by a gang of higher priority.
    """
    scene = cluster(2)
    submit(scene, "low", 3, minimum=2)
    scene.until_quiet()
    scene.carry_out(phase="Running")
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert len(eviction.victims) == 2
    assert reason_of(scene, "low") == "Evicted"
    return scene


def reason_of(scene: LoggedScene, gang: str) -> str:
    why = scene.verdict(gang).why
    return why.reason if why is not None else ""


def test_a_gang_whose_eviction_is_refused_is_assessed_again() -> None:
    """Seed 153 of the simulation. A gang was bound in part when NATS lost its storage; the next
    planner decided its eviction in its first cycle, and a disruption budget refused it. The end of
    the preemption was recorded for the preemptor only: the gang stayed out of the backlog, and was
    reported as being evicted for ever.
    """
    scene = evicted_whole_and_short()
    refuse(scene, {one.uid for one in evictions(scene)[0].victims})
    scene.until_quiet()
    assert ends(scene) == ["EvictionRefused"]
    assert reason_of(scene, "low") != "Evicted"
    scene.put(make_node("spare-0"), make_node("spare-1"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    assert (scene.bound("high"), scene.bound("low")) == (1, 3)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_victim_that_stays_counts_as_evicted_only_while_a_request_may_be_in_flight(
    restarts: bool,
) -> None:
    """The API server did not answer the evictions, and carried none of them out."""
    scene = evicted_whole_and_short()
    (act,) = evictions(scene)
    seq = next(seq for seq, one in scene.acts if one is act)
    unknown = [Member(uid=one.uid, node="", result="unknown") for one in act.victims]
    scene.done.add(seq)
    scene.answer(seq, act, unknown, "BinderGaveUp")
    scene.until_quiet()
    if restarts:
        scene.restart(checkpoint=True)
    scene.until_quiet(within_ms=179_000)
    assert ends(scene)[0] == "EvictionRefused"
    assert len(evictions(scene)) == 1
    assert reason_of(scene, "low") == "Evicted"
    scene.until_quiet(within_ms=2_000)
    assert reason_of(scene, "low") == "Evicted"
    assert len(evictions(scene)) == 2, "they may be evicted again"


def at_once(scene: LoggedScene) -> None:
    pass


def answered(scene: LoggedScene) -> None:
    accept(scene)


def half_gone(scene: LoggedScene) -> None:
    accept(scene)
    scene.remove(next(one for one in scene.pods.values() if one.deleting))


def all_gone(scene: LoggedScene) -> None:
    accept(scene)
    leave(scene)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("snapshot_first", [False, True])
@pytest.mark.parametrize("until", [at_once, answered, half_gone, all_gone])
def test_a_planner_that_takes_over_keeps_the_room_and_binds_the_gang(
    until: Callable[[LoggedScene], None], snapshot_first: bool, checkpoint: bool
) -> None:
    scene = asked()
    until(scene)
    if checkpoint:
        scene.pages = scene.planner.checkpoint(scene.outcome_seq)
    scene.restart(checkpoint=checkpoint, snapshot_first=snapshot_first)
    submit(scene, "quick", 1)
    scene.until_quiet()
    accept(scene)
    leave(scene)
    scene.until_quiet()
    (decision,) = decided(scene, "high")
    assert len(decision.bindings) == 2
    assert decided(scene, "quick") == []
    assert len(evictions(scene)) == 1
    assert scene.notes("hold") == []
    scene.restart(snapshot_first=snapshot_first)
    scene.until_quiet()
    assert ends(scene) == []
    assert len(decided(scene, "high")) == 1


def test_a_planner_that_takes_over_knows_that_the_gang_was_admitted() -> None:
    """Found by the simulation (seed 261): its object did not say so yet, the preemption was given
    up, and in the same cycle others were evicted.
    """
    scene = cluster(4)
    running(scene, "low", 4, minimum=1)
    operated: dict[str, Any] = {"dialect": "volcano", "waits_for_inqueue": True}
    submit(scene, "high", 2, priority=10, group={**operated, "phase": "Pending"})
    scene.until_quiet()
    assert len(evictions(scene)) == 1
    scene.restart()
    scene.until_quiet()
    assert (ends(scene), len(evictions(scene))) == ([], 1)


def test_a_planner_with_a_snapshot_from_before_the_preemptor_waits_for_a_newer_one() -> None:
    """Found by the simulation (seed 330): it crashed."""
    scene = asked()
    newest = scene.cluster_seq
    group = scene.objects.pop("group-high")
    pods = [scene.pods.pop(one.uid) for one in scene.pods_of("high")]
    scene.cluster_seq = 0
    scene.restart()
    scene.step()
    assert ends(scene) == []
    scene.cluster_seq = newest
    scene.put(group, *pods)
    scene.until_quiet()
    accept(scene)
    leave(scene)
    scene.until_quiet()
    assert len(decided(scene, "high")) == len(evictions(scene)) == 1


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_planner_that_takes_over_knows_the_refused_gangs_and_their_backoff(
    checkpoint: bool,
) -> None:
    scene = asked()
    refused = evictions(scene)[0].victims[0]
    refuse(scene, {refused.uid})
    scene.until_quiet()
    scene.restart(checkpoint=checkpoint)
    scene.until_quiet(within_ms=1_000)
    assert len(evictions(scene)) == 1
    scene.until_quiet(within_ms=5_000)
    assert len(evictions(scene)) == 2
    assert refused.uid not in {one.uid for one in evictions(scene)[-1].victims}


def test_a_refusal_that_is_read_before_its_eviction_ends_the_preemption() -> None:
    scene = asked()
    refuse(scene, {evictions(scene)[0].victims[0].uid})
    scene.restart(outcomes_first=True)
    scene.until_quiet(within_ms=6_000)
    assert ends(scene) == ["EvictionRefused"]
    assert len(evictions(scene)) == 2


def test_a_gang_that_keeps_its_quorum_gets_members_while_others_are_evicted() -> None:
    scene = asked()
    scene.put(make_node("small", {"cpu": 1000, "pods": 10}), make_pods("low", 5, QUARTER)[4])
    scene.until_quiet()
    assert names(decided(scene, "low")[-1].bindings) == ["low-worker-4"]


def test_a_placement_deadline_waits_for_victims_to_leave() -> None:
    scene = cluster(4)
    running(scene, "low", 4, minimum=1)
    deadline = ((annotations.PLACEMENT_DEADLINE_SECONDS, "60"),)
    submit(scene, "high", 2, priority=10, group={"settings": deadline})
    scene.until_quiet()
    accept(scene)
    scene.until_quiet(within_ms=120_000)
    leave(scene)
    scene.until_quiet()
    assert len(decided(scene, "high")) == 1


def test_a_victim_is_owed_nothing_even_by_a_planner_that_begins_when_it_has_half_left() -> None:
    scene = asked()
    accept(scene)
    scene.remove(next(one for one in scene.pods.values() if one.deleting))
    scene.until_quiet()
    victim = next(one for one in scene.pods.values() if one.deleting)
    # It fails on its way out, which is no news.
    scene.change(victim.uid, phase="Failed")
    scene.until_quiet()
    scene.restart(checkpoint=True)
    scene.remove(scene.pods[victim.uid])
    scene.until_quiet()
    assert scene.notes("hold") == []


def test_a_victim_whose_end_is_read_before_its_eviction_is_owed_nothing() -> None:
    scene = asked()
    standby = scene.planner = Planner(scene.conf)
    scene.load_present_snapshot()
    *before, (seq, eviction) = scene.records
    for at, record in before:
        standby.apply_decision(at, record)
    accept(scene)
    leave(scene)
    standby.apply_decision(seq, eviction)
    scene.decision_seq += 1
    scene.take_over(standby)
    scene.until_quiet()
    assert scene.notes("hold") == []


def test_evictions_are_decided_only_from_a_fresh_cluster_state() -> None:
    scene = cluster(1)
    running(scene, "low", 1)
    submit(scene, "high", 1, priority=10)
    scene.step(after_ms=60_000, fresh=False)
    assert evictions(scene) == []


def test_an_eviction_names_until_when_it_may_be_begun_with() -> None:
    (eviction,) = evictions(asked())
    assert isinstance(eviction, EvictionDecision)
    assert eviction.until_ms == eviction.cycle.now_ms + 60_000


def test_of_members_that_are_only_assumed_none_makes_another_one_surplus() -> None:
    """Found by the simulation (seed 51): its binding may still come to nothing, and the victim's
    gang would be below its quorum.
    """
    scene = cluster(4)
    running(scene, "low", 3)
    scene.put(make_pods("low", 4, WHOLE_NODE)[3])
    scene.until_quiet()
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert evictions(scene) == []
    scene.carry_out(phase="Running")
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert len(eviction.victims) == 1


def test_members_of_a_decision_that_is_under_way_are_not_evicted() -> None:
    """Found by the simulation (seed 93): its group needs fewer since, and a pod that it had bound
    was evicted before the last of its requests was answered.
    """
    scene = cluster(4)
    low = submit(scene, "low", 4)
    scene.until_quiet()
    ((_, decision),) = scene.decisions
    for binding in decision.bindings[:3]:
        scene.change(binding.uid, node=binding.node, phase="Running")
    scene.put(make_group("low", 1))
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert evictions(scene) == []
    scene.carry_out(phase="Running")
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert len(eviction.victims) == 1
    assert eviction.victims[0].uid in {one.uid for one in low}


def test_verdicts_of_a_preemptor_and_of_its_victims_report_the_eviction() -> None:
    scene = asked()
    why = scene.verdict("high").why
    assert why is not None
    assert why.reason == "Preempting"
    assert why.sentence.startswith(
        "waits for 2 pods that Tutti evicts for it to leave: priority 10"
    )
    assert scene.condition("low", "Evicted") is None, "no pod has been evicted yet"
    accept(scene)
    scene.until_quiet()
    published = scene.condition("low", "Evicted")
    assert published is not None
    assert published.reason == "Preempted"
    assert published.message.startswith("2 of its pods were preempted for gang team/tfjob/high")
    gone = {one.name for one in scene.verdict("low").evicted}
    assert gone == {one.name for one in evictions(scene)[0].victims}
    leave(scene)
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.condition("low", "Evicted") is not None


def test_a_gang_whose_eviction_came_to_nothing_says_why() -> None:
    scene = asked()
    refuse(scene, {evictions(scene)[0].victims[0].uid}, "would violate the budget")
    scene.until_quiet(within_ms=1_500)
    why = scene.verdict("high").why
    assert why is not None
    assert why.reason == "NotEnoughResources"
    assert "EvictionRefused: a disruption budget protects a pod" in why.sentence


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (429, "a disruption budget protects a pod"),
        (500, "a disruption budget protects a pod"),
        (403, "the API server refuses to evict a pod (status 403)"),
    ],
)
def test_words_about_a_victim_reach_no_record_or_verdict_of_its_preemptor(
    code: int, kind: str
) -> None:
    """They may name anything of another namespace: the budget, the policy, labels of the pod."""
    scene = asked()
    (victim, *_) = evictions(scene)[0].victims
    refuse(scene, {victim.uid}, "the-secret", code=code, reason="the-secret-reason")
    scene.until_quiet(within_ms=1_500)
    why = scene.verdict("high").why
    assert why is not None
    assert f"EvictionRefused: {kind}" in why.sentence
    written = msgspec.json.encode([scene.published, [one for _, one in scene.records]]).decode()
    pages = scene.planner.checkpoint(scene.outcome_seq)
    written += msgspec.json.encode([page.gangs for page in pages]).decode()
    assert "the-secret" not in written


def test_words_about_a_pod_of_the_preemptor_itself_reach_its_users() -> None:
    scene = asked()
    seq, act = next((seq, one) for seq, one in scene.acts if isinstance(one, EvictionDecision))
    scene.done.add(seq)
    own = Member(
        uid=act.bindings[0].uid, node="n00", result="refused", code=403, message="not by policy"
    )
    skipped = [Member(uid=one.uid, node="", result="skipped") for one in act.victims]
    scene.answer(seq, act, [own, *skipped], "PreflightFailed")
    scene.until_quiet(within_ms=1_500)
    why = scene.verdict("high").why
    assert why is not None
    assert "EvictionRefused: not by policy" in why.sentence
