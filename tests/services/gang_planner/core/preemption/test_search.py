"""Who is evicted, and who is not: the fewest that let the gang in, and nobody in vain."""

from typing import Any

import msgspec
import pytest

from shared.contracts.cluster import BudgetChanges
from shared.model.objects import PriorityClass, Queue, Taint, Toleration
from shared.model.reference_objects import Budget
from shared.model.terms import Requirement, Selector
from tests.services.gang_planner.core.preemption.crowd import (
    QUARTER,
    WHOLE_GANGS,
    WHOLE_NODE,
    accept,
    cluster,
    configured,
    decided,
    evictions,
    leave,
    running,
    submit,
)
from tests.services.gang_planner.core.scene import (
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.story import Story


def gangs_of(story: Story) -> dict[str, int]:
    """Victims of the only eviction, by gang."""
    (eviction,) = evictions(story)
    found: dict[str, int] = {}
    for victim in eviction.victims:
        name = victim.name.rpartition("-worker-")[0]
        found[name] = found.get(name, 0) + 1
    return found


def test_one_pod_of_ten_goes_for_a_gang_of_one_volcano_5984() -> None:
    story = cluster(10)
    running(story, "low", 10, minimum=0)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"low": 1}


def test_members_above_the_quorum_go_before_whole_gangs() -> None:
    story = cluster(4)
    running(story, "elastic", 3, minimum=1)
    running(story, "single", 1)
    submit(story, "high", 2, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"elastic": 2}


def test_a_gang_that_loses_its_quorum_goes_whole_and_no_other_with_it() -> None:
    story = cluster(6)
    running(story, "one", 3)
    running(story, "two", 3)
    submit(story, "high", 2, priority=10)
    story.until_quiet()
    assert sorted(gangs_of(story).values()) == [3]


def test_where_the_policy_gang_protects_quorums_only_members_above_them_go() -> None:
    story = cluster(4, configured())
    running(story, "whole", 4)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert evictions(story) == []
    assert story.verdict("high").why is not None


def test_gangpreempt_takes_whole_gangs_whatever_the_policy_gang_says() -> None:
    story = cluster(4, configured("enqueue, allocate, gangpreempt, backfill"))
    running(story, "whole", 4)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"whole": 4}


def test_gangpreempt_is_asked_after_preempt_has_asked_in_vain() -> None:
    story = cluster(4, configured("enqueue, allocate, preempt, gangpreempt, backfill"))
    running(story, "whole", 4)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"whole": 4}


def test_who_is_behind_another_in_a_strict_queue_evicts_nobody() -> None:
    story = cluster(2)
    strict = Queue(
        uid="q", dialect="volcano", name="q", resource_version=1, dequeue_strategy="fifo"
    )
    story.put(strict)
    running(story, "low", 2, minimum=0, group={"queue": "q"})
    submit(story, "large", 3, priority=10, group={"queue": "q"})
    submit(story, "behind", 1, priority=9, group={"queue": "q"})
    story.until_quiet()
    assert evictions(story) == []


def test_without_the_action_nobody_is_evicted() -> None:
    story = cluster(1, configured("enqueue, allocate, backfill"))
    running(story, "low", 1)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert evictions(story) == []


@pytest.mark.parametrize("priority", [5, 6])
def test_only_strictly_lower_priorities_are_evicted(priority: int) -> None:
    story = cluster(1)
    running(story, "there", 1, priority=6)
    submit(story, "asks", 1, priority=priority)
    story.until_quiet()
    assert evictions(story) == []


def test_the_lowest_priority_that_suffices_goes() -> None:
    story = cluster(3)
    running(story, "middle", 1, priority=5)
    running(story, "lowest", 1, priority=1)
    running(story, "upper", 1, priority=7)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"lowest": 1}


def test_of_equals_the_one_that_has_run_the_shortest_goes() -> None:
    story = cluster(2)
    running(story, "older", 1, started_ms=1_000)
    running(story, "newer", 1, started_ms=9_000)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"newer": 1}


def test_one_large_pod_goes_rather_than_four_small_ones() -> None:
    story = cluster(2)
    running(story, "large", 1, minimum=0)
    running(story, "small", 4, minimum=0, shape=QUARTER)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"large": 1}


def test_nobody_is_evicted_when_it_would_not_be_enough() -> None:
    story = cluster(3)
    running(story, "low", 2, minimum=0)
    running(story, "peer", 1, priority=10)
    submit(story, "high", 3, priority=10)
    story.until_quiet()
    assert evictions(story) == []


def test_nobody_is_evicted_from_nodes_that_the_gang_cannot_use() -> None:
    taint = Taint(key="reserved", value="", effect="NoSchedule")
    tolerant = make_shape(
        {"cpu": 4000}, tolerations=(Toleration(key="reserved", operator="Exists"),)
    )
    story = Story([make_node("tainted", taints=(taint,)), make_node("open")], conf=WHOLE_GANGS)
    running(story, "elsewhere", 2, minimum=0, shape=tolerant)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    (eviction,) = evictions(story)
    assert {story.pods[one.uid].node for one in eviction.victims} == {"open"}
    assert {one.node for one in eviction.bindings} == {"open"}


def test_a_gang_that_only_has_to_wait_for_pods_that_are_leaving_evicts_nobody() -> None:
    story = cluster(2)
    running(story, "low", 2, minimum=0)
    story.change("low-worker-0", deleting=True)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert evictions(story) == []
    leave(story)
    story.until_quiet()
    assert len(decided(story, "high")) == 1


def test_two_gangs_do_not_count_on_the_same_victims() -> None:
    story = cluster(4)
    running(story, "low", 4, minimum=0)
    submit(story, "first", 2, priority=10)
    submit(story, "second", 2, priority=9)
    story.until_quiet()
    one, two = evictions(story)
    assert not {v.uid for v in one.victims} & {v.uid for v in two.victims}
    assert len(one.victims) == len(two.victims) == 2
    accept(story)
    leave(story)
    story.until_quiet()
    assert len(decided(story, "first")) == len(decided(story, "second")) == 1


def test_a_gang_whose_priority_class_never_preempts_waits() -> None:
    story = cluster(1)
    running(story, "low", 1)
    story.put(PriorityClass(uid="pc", name="calm", resource_version=1, value=10, preempts=False))
    submit(story, "high", 1, priority=10, group={"priority_class": "calm"})
    story.until_quiet()
    assert evictions(story) == []


def test_a_pod_that_never_preempts_waits() -> None:
    story = cluster(1)
    running(story, "low", 1)
    submit(story, "high", 1, priority=10, preempts=False)
    story.until_quiet()
    assert evictions(story) == []


@pytest.mark.parametrize(
    ("pods", "group"),
    [
        ({"preemptable": "false"}, {}),
        ({}, {"preemptable": "false"}),
        ({"priority_class": "system-node-critical"}, {}),
        ({"ours": False}, {}),
    ],
    ids=["a pod says so", "its group says so", "critical", "another scheduler's"],
)
def test_protected_pods_are_never_evicted(pods: dict[str, Any], group: dict[str, Any]) -> None:
    story = cluster(1)
    submit(story, "low", 1, group=group, node="n00", phase="Running", **pods)
    story.until_quiet()
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert evictions(story) == []
    assert decided(story, "high") == []


def test_an_unprotected_one_in_their_place_is() -> None:
    story = cluster(1)
    submit(story, "low", 1, node="n00", phase="Running", preemptable="true")
    story.until_quiet()
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert len(evictions(story)) == 1


def test_kube_system_is_left_alone() -> None:
    story = cluster(1)
    submit(
        story,
        "low",
        1,
        group={"namespace": "kube-system"},
        namespace="kube-system",
        node="n00",
        phase="Running",
    )
    story.until_quiet()
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert evictions(story) == []


def test_a_gang_runs_for_its_minimum_before_it_is_evicted() -> None:
    story = cluster(1)
    running(
        story,
        "low",
        1,
        started_ms=10_000,
        group={"settings": (("tutti.dev/minimum-run-seconds", "30"),)},
    )
    submit(story, "high", 1, priority=10)
    story.until_quiet(within_ms=29_000)
    assert evictions(story) == []
    story.until_quiet(within_ms=2_000)
    assert len(evictions(story)) == 1
    assert evictions(story)[0].cycle.now_ms == 40_000


def test_a_pod_cools_down_where_the_policy_cdp_is_named() -> None:
    story = cluster(1, WHOLE_GANGS + "  - name: cdp\n")
    running(story, "low", 1, started_ms=10_000, cooldown_ms=20_000)
    submit(story, "high", 1, priority=10)
    story.until_quiet(within_ms=19_000)
    assert evictions(story) == []
    story.until_quiet(within_ms=2_000)
    assert len(evictions(story)) == 1


def test_a_cool_down_protects_nobody_without_the_policy() -> None:
    story = cluster(1)
    running(story, "low", 1, started_ms=10_000, cooldown_ms=20_000)
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert len(evictions(story)) == 1


def _budget(allowed: int, value: str = "guarded") -> Budget:
    selector = Selector(requirements=(Requirement(key="app", operator="In", values=(value,)),))
    return Budget(
        uid="pdb",
        namespace="team",
        name="pdb",
        resource_version=1,
        selector=selector,
        disruptions_allowed=allowed,
    )


def _labelled() -> dict[str, Any]:
    return {"labels": msgspec.msgpack.encode((("app", "guarded"),))}


def test_pods_that_a_budget_protects_are_the_last_to_go() -> None:
    story = cluster(2)
    running(story, "guarded", 1, **_labelled())
    running(story, "free", 1, priority=5)
    put_budget(story, _budget(0))
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"free": 1}


def test_a_budget_lets_go_no_more_than_it_allows() -> None:
    story = cluster(4)
    running(story, "guarded", 3, minimum=0, **_labelled())
    running(story, "free", 1, minimum=0, priority=5)
    put_budget(story, _budget(1))
    submit(story, "high", 2, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"guarded": 1, "free": 1}


def test_with_the_policy_pdb_no_budget_is_violated_even_when_nothing_else_helps() -> None:
    for conf, expected in ((WHOLE_GANGS, 1), (WHOLE_GANGS + "  - name: pdb\n", 0)):
        story = cluster(1, conf)
        running(story, "guarded", 1, **_labelled())
        put_budget(story, _budget(0))
        submit(story, "high", 1, priority=10)
        story.until_quiet()
        assert len(evictions(story)) == expected


def test_a_gang_preempts_for_its_minimum_and_its_other_members_preempt_nobody() -> None:
    """A job with a minimum of 6 of 12 evicted a whole job, with its last pod, for its extras."""
    story = cluster(12)
    running(story, "low", 12, minimum=1)
    submit(story, "high", 12, minimum=6, priority=10)
    for _ in range(3):
        story.until_quiet()
        accept(story)
        leave(story)
        story.carry_out(phase="Running")
    assert gangs_of(story) == {"low": 6}
    assert story.bound("high") == 6
    assert story.bound("low") == 6


def test_a_pod_that_is_a_gang_of_its_own_is_no_victim_of_extras() -> None:
    story = cluster(3)
    running(story, "one", 1, minimum=1)
    running(story, "two", 1, minimum=1)
    running(story, "high", 1, minimum=1, priority=10)
    story.put(*make_pods("high", 3, WHOLE_NODE, priority=10)[1:])
    story.until_quiet()
    assert evictions(story) == []


def test_what_a_started_gang_lacks_of_its_minimum_is_no_extra() -> None:
    story = cluster(4)
    pods = running(
        story, "high", 2, priority=10, group={"settings": (("tutti.dev/hold-seconds", "0"),)}
    )
    story.remove(pods[0])
    story.until_quiet()
    running(story, "low", 3, minimum=1)
    story.put(*make_pods("high", 2, WHOLE_NODE, role="again", priority=10))
    story.until_quiet()
    assert gangs_of(story) == {"low": 1}
    (eviction,) = evictions(story)
    assert len(eviction.bindings) == 1


def test_a_queue_that_is_full_makes_room_within_itself() -> None:
    story = cluster(4)
    full = amounts(cpu=8000)
    story.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=full))
    running(story, "low", 2, minimum=0, group={"queue": "q"})
    submit(story, "high", 1, priority=10, group={"queue": "q"})
    story.until_quiet()
    assert gangs_of(story) == {"low": 1}


def test_another_queue_is_left_alone_by_preempt() -> None:
    story = cluster(1)
    story.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1))
    running(story, "low", 1)
    submit(story, "high", 1, priority=10, group={"queue": "q"})
    story.until_quiet()
    assert evictions(story) == []


def test_several_shapes_are_made_room_for_together() -> None:
    story = cluster(3)
    running(story, "low", 12, minimum=0, shape=QUARTER)
    story.put(
        make_group("mixed", 3),
        *make_pods("mixed", 1, WHOLE_NODE, role="ps", priority=10),
        *make_pods("mixed", 2, make_shape({"cpu": 2000}), role="worker", priority=10),
    )
    story.until_quiet()
    (eviction,) = evictions(story)
    assert len(eviction.victims) == 8
    assert len(eviction.bindings) == 3


@pytest.mark.parametrize("conf", [configured(), WHOLE_GANGS])
def test_a_gang_whose_group_is_being_made_again_goes_whole_or_not_at_all(conf: str) -> None:
    """Found by the simulation (seed 42): without its group nobody knew how many it needs."""
    story = cluster(4, conf)
    running(story, "low", 4)
    story.remove(make_group("low", 4))
    submit(story, "high", 1, priority=10)
    story.until_quiet()
    if conf == WHOLE_GANGS:
        assert gangs_of(story) == {"low": 4}
    else:
        assert evictions(story) == []


def test_evictions_are_told_in_the_order_in_which_they_count_on_each_other() -> None:
    """Found by the simulation (seed 87): the second was stored before the first."""
    story = cluster(6)
    running(story, "low", 4)
    running(story, "other", 2, priority=5)
    submit(story, "first", 1, priority=11, group={"uid": "zz"})
    submit(story, "second", 4, priority=10, group={"uid": "aa"})
    story.until_quiet()
    told = [(one.gang, len(one.victims)) for one in evictions(story)]
    assert told == [("team/first", 4), ("team/second", 2)]


def test_what_is_left_of_a_gang_goes_only_when_those_before_are_leaving() -> None:
    """Found by the simulation (seed 381): had the first eviction been refused, a single pod of its
    gang would have been left.
    """
    story = cluster(4)
    running(story, "low", 4, minimum=3)
    submit(story, "first", 1, priority=11)
    story.until_quiet()
    submit(story, "second", 2, priority=10)
    story.until_quiet()
    assert gangs_of(story) == {"low": 1}
    accept(story)
    leave(story)
    story.until_quiet()
    assert [len(one.victims) for one in evictions(story)] == [1, 3]


def put_budget(story: Story, budget: Budget) -> None:
    story._apply(BudgetChanges(epoch=story.epoch, at_ms=story.now_ms, changed=(budget,)))


def test_a_role_keeps_its_minimum_while_the_eviction_of_another_member_is_in_flight() -> None:
    story = cluster(4, configured())
    story.put(make_group("low", 1, min_task_member=(("worker", 1),)))
    story.put(
        *make_pods("low", 2, WHOLE_NODE, role="ps", preemptable="false"),
        *make_pods("low", 2, WHOLE_NODE, role="worker"),
    )
    story.until_quiet()
    story.carry_out(phase="Running")
    story.until_quiet()
    submit(story, "first", 1, priority=10)
    story.until_quiet()
    (eviction,) = evictions(story)
    assert [victim.name.split("-")[1] for victim in eviction.victims] == ["worker"]
    submit(story, "second", 1, priority=9)
    story.until_quiet()
    assert len(evictions(story)) == 1
