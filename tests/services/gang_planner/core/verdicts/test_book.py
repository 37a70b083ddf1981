"""The last verdict on each gang: published when its meaning changes, paced when only numbers do."""

import pytest

from shared.contracts import codec
from shared.contracts.subjects import MESSAGE_BYTES_MAX
from shared.contracts.verdicts import Condition, PodRef, Verdict
from shared.model.objects import Queue
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

FULL = make_shape({"cpu": 4000})


def condition(verdict: Verdict, kind: str) -> Condition | None:
    return next((one for one in verdict.conditions if one.type == kind), None)


def test_conditions_speak_volcanos_words_and_turn_false_when_they_no_longer_hold() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    scene.settle()
    waiting = condition(scene.verdict("a"), "Unschedulable")
    assert waiting is not None
    assert (waiting.status, waiting.reason) == ("True", "NotEnoughResources")
    assert waiting.message.startswith(
        "2/2 tasks in gang unschedulable: 1 of 2 pods fit; 4 more cpu needed; "
        "for the others 0/1 nodes are available"
    )
    scene.put(make_node("n1"))
    (decision,) = scene.settle()
    scene.now_ms += 500
    scene.run(decision)
    scene.settle()
    running = scene.verdict("a")
    turned = condition(running, "Unschedulable")
    scheduled = condition(running, "Scheduled")
    assert turned is not None
    assert scheduled is not None
    assert (turned.status, scheduled.status) == ("False", "True")
    assert scheduled.reason == "tasks in gang are ready to be scheduled"
    assert scheduled.since_ms == turned.since_ms == scene.now_ms


def test_a_gang_never_lacks_more_members_than_it_has(golden: Golden) -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 3), make_group("b", 3), *make_pods("b", 1, FULL))
    scene.step()
    bare = condition(scene.verdict("a"), "Unschedulable")
    assert bare is not None
    golden(bare.message)
    some = condition(scene.verdict("b"), "Unschedulable")
    assert some is not None
    golden(some.message)


def test_phases_follow_the_gangs_life() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (decision,) = scene.settle()
    scene.bind(decision)
    scene.step()
    scene.change("a-worker-0", phase="Failed")
    scene.step()
    scene.change("a-worker-1", phase="Succeeded")
    scene.step()
    scene.remove(*list(scene.pods.values()))
    scene.step()
    scene.remove(make_group("a", 2))
    scene.step()
    assert [one.phase for one in scene.published] == [
        "Running",
        "Unknown",
        "Completed",
        "Gone",
    ]
    assert dict(scene.planner.gangs_by_phase())["Completed"] == 0


@pytest.mark.parametrize("members", [1, 2])
def test_a_member_that_is_being_deleted_counts_until_it_is_gone(members: int) -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    pods = make_pods("a", members, FULL)
    scene.put(make_group("a", members), *pods)
    (decision,) = scene.settle()
    scene.bind(decision, phase="Running")
    scene.step()
    scene.change("a-worker-0", deleting=True)
    scene.step(after_ms=20_000)
    assert {one.phase for one in scene.published} == {"Running"}
    assert condition(scene.verdict("a"), "Unschedulable") is None
    scene.remove(scene.pods["a-worker-0"])
    scene.step()
    assert scene.published[-1].phase == ("Inqueue" if members == 1 else "Unknown")


def test_placed_members_are_named_with_their_nodes_once_the_gang_has_started() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (decision,) = scene.settle()
    scene.step(after_ms=20_000)
    assert scene.verdict("a").placed == ()
    scene.bind(decision)
    scene.step()
    assert scene.verdict("a").placed == tuple(
        PodRef(uid=one.uid, name=one.name, node=one.node) for one in decision.bindings
    )


def test_placed_members_of_two_decisions_are_named_if_both_are_bound_after_the_second() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    (first,) = scene.settle()
    scene.put(*make_pods("a", 2, FULL)[1:])
    (second,) = scene.settle()
    scene.bind(first)
    scene.bind(second)
    scene.step()
    assert [one.name for one in scene.verdict("a").placed] == ["a-worker-0", "a-worker-1"]


def test_nothing_is_reported_twice() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    scene.settle()
    published = len(scene.published)
    for _ in range(5):
        scene.step(after_ms=10_000)
    assert len(scene.published) == published


def test_changed_counts_alone_are_reported_once_a_second() -> None:
    scene = Scene(make_node(f"n{i}") for i in range(5))
    scene.put(make_group("a", 5), *make_pods("a", 5, FULL))
    (decision,) = scene.settle()
    scene.bind(decision)
    scene.step()
    published = len(scene.published)
    for index in range(4):
        scene.change(f"a-worker-{index}", phase="Running")
        scene.step(after_ms=10)
    assert len(scene.published) == published
    assert scene.wakeup_ms is not None
    scene.step(after_ms=scene.wakeup_ms - scene.now_ms)
    assert len(scene.published) == published + 1
    assert scene.verdict("a").running == 4


def test_a_change_from_lacking_quota_to_lacking_nodes_is_reported_once_a_second() -> None:
    scene = Scene([make_node("n0", {"cpu": 8_000, "pods": 110})])
    scene.put(
        Queue(
            uid="q", dialect="volcano", name="q", resource_version=1, capability=(("cpu", 5_000),)
        )
    )
    group, pods = make_group("a", 1, queue="q"), make_pods("a", 1, make_shape({"cpu": 2_000}))
    scene.put(group, *pods, make_group("b", 1), *make_pods("b", 1, make_shape({"cpu": 6_000})))
    for decision in scene.settle():
        scene.bind(decision)
    scene.put(make_group("w", 1, queue="q"), *make_pods("w", 1, FULL))
    scene.settle()
    asked_ms = scene.now_ms

    def reason() -> str:
        why = scene.verdict("w").why
        assert why is not None
        return why.reason

    assert reason() == "NotEnoughQuota"
    scene.remove(group, *pods)
    scene.step(after_ms=100)
    assert reason() == "NotEnoughQuota"
    assert scene.wakeup_ms == asked_ms + 1_000
    scene.step(after_ms=900)
    scene.settle()
    assert reason() == "NotEnoughResources"
    (one,) = [one for one in scene.verdict("w").conditions if one.type == "Unschedulable"]
    assert (one.reason, one.since_ms) == ("NotEnoughResources", asked_ms)


def test_a_thousand_waiting_gangs_are_not_reported_again_with_every_change_of_the_cluster() -> None:
    scene = Scene([make_node("n0")])
    for index in range(1000):
        scene.put(make_group(f"g{index:04d}", 2), *make_pods(f"g{index:04d}", 2, FULL))
    scene.settle()
    assert len(scene.published) == 1000
    for serial in range(20):
        # A node comes and goes that no gang may use: numbers change, meanings do not.
        scene.put(make_node(f"cordoned-{serial}", unschedulable=True))
        step = scene.step(after_ms=1_000)
        assert len(step.verdicts) <= 100
    assert 0 < len(scene.published) - 1000 <= 2000
    assert "0/21 nodes" in next(
        one.why.sentence for one in reversed(scene.published) if one.why is not None
    )


def test_one_attempt_answers_for_all_equal_gangs_and_unrelated_changes_cost_none() -> None:
    scene = Scene([make_node("n0")])
    for index in range(200):
        scene.put(make_group(f"g{index:03d}", 2), *make_pods(f"g{index:03d}", 2, FULL))
    scene.settle()
    backlog = scene.state.backlog
    (bucket,) = backlog.buckets.values()
    assert len(bucket.entries) == 200
    refused_at = bucket.refused_at
    scene.put(make_group("other", 1))
    scene.step()
    assert bucket.refused_at == refused_at
    assert not backlog.fresh


def test_a_stale_cluster_state_decides_nothing_and_gangs_that_come_then_read_so() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    step = scene.step(after_ms=5_001, fresh=False)
    assert step.decisions == []
    why = scene.verdict("a").why
    assert why is not None
    assert why.reason == "ClusterViewStale"
    assert scene.step(fresh=True).decisions
    scene.step(after_ms=500)
    assert scene.verdict("a").phase == "Starting"


def test_a_new_planner_repeats_no_verdict_of_the_old_one_and_withdraws_those_of_gone_gangs() -> (
    None
):
    old = Scene([make_node("n0")])
    groups = [make_group("a", 2), make_group("b", 2)]
    for group in groups:
        old.put(group, *make_pods(group.name, 2, FULL))
    old.settle()
    new = Scene(leading=False)
    new.pods = {uid: pod for uid, pod in old.pods.items() if pod.group_name == "a"}
    new.now_ms = old.now_ms + 3_000
    new.load_snapshot([make_node("n0")], objects=groups[:1])
    for verdict in old.published:
        new.planner.apply_verdict(verdict)
    new.planner.lead(9)
    new.settle()
    assert [(one.name, one.phase) for one in new.published] == [("b", "Gone")]


def test_a_running_gang_is_not_reported_again_by_a_new_planner() -> None:
    old = Scene([make_node("n0"), make_node("n1")])
    old.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (decision,) = old.settle()
    old.run(decision)
    old.settle()
    new = Scene(leading=False)
    new.pods = old.pods
    new.now_ms = old.now_ms + 3_000
    new.planner.restore(old.planner.checkpoint(old.outcome_seq))
    new.cluster_seq = old.cluster_seq
    new.load_snapshot([make_node("n0"), make_node("n1")], objects=[make_group("a", 2)])
    new.planner.apply_verdict(old.verdict("a"))
    new.planner.lead(99)
    new.decision_seq = 99
    new.settle()
    assert new.published == []
    assert new.records == []


def test_a_gang_of_twelve_thousand_is_reported_in_one_message() -> None:
    scene = Scene([make_node("n0")])
    name = "a-job-with-a-name-of-usual-length"
    scene.put(make_group(name, 12_000), *make_pods(name, 12_000, FULL))
    scene.settle()
    verdict = scene.verdict(name)
    assert verdict.members == 12_000
    assert len(codec.encode(verdict)) < MESSAGE_BYTES_MAX
    assert len(verdict.waiting) > 3_000


def test_a_gang_that_runs_holds_what_is_missing_and_is_not_ahead() -> None:
    scene = Scene(make_node(f"n{i}") for i in range(7))
    for index in range(7):
        scene.put(make_group(f"h{index}", 1, created_ms=index), *make_pods(f"h{index}", 1, FULL))
    scene.settle()
    scene.put(make_group("late", 1, created_ms=99), *make_pods("late", 1, FULL))
    scene.settle()
    why = scene.verdict("late").why
    assert why is not None
    assert why.holders == tuple(f"team/tfjob/h{index}" for index in range(5))
    assert why.holders_count == 7
    assert (why.ahead, why.ahead_count) == ((), 0)
    (report,) = why.shapes
    assert (report.wanted, report.fit, report.nodes) == (1, 0, 7)
    assert [(one.reason, one.count, one.short) for one in report.reasons] == [
        ("Insufficient cpu", 7, 4000)
    ]


def test_bare_pods_that_come_after_their_group_are_published_until_they_name_it() -> None:
    """The podgroup controller writes the group's name on whatever pods the verdict lists."""
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(*make_pods("a", 1, FULL, group_implied=True))
    scene.settle()
    wanting = scene.verdict("a")
    assert (wanting.uid, wanting.group_wanted) == ("", "a")
    assert [one.name for one in wanting.unnamed] == ["a-worker-0"]
    scene.put(make_group("a", 1))
    scene.change("a-worker-0", group_implied=False)
    scene.settle()
    assert scene.verdict("a").group_wanted == ""
    assert scene.verdict("a").unnamed == ()
    scene.put(make_pods("a", 2, FULL, group_implied=True)[1])
    scene.settle()
    later = scene.verdict("a")
    assert later.uid
    assert later.group_wanted == "a"
    assert [one.name for one in later.unnamed] == ["a-worker-1"]
    scene.remove(scene.pods["a-worker-1"])
    scene.settle()
    assert scene.verdict("a").group_wanted == ""
