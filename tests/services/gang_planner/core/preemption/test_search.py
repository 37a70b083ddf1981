"""Which pods are evicted: the fewest that let the gang in, and none without need."""

from typing import Any

import msgspec
import pytest

from shared.contracts.cluster import BudgetChanges
from shared.model.objects import PriorityClass, Queue, Taint, Toleration
from shared.model.reference_objects import Budget
from shared.model.terms import Requirement, Selector
from tests.services.gang_planner.core.logged_scene import LoggedScene
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


def gangs_of(scene: LoggedScene) -> dict[str, int]:
    """Victims of the only eviction, by gang."""
    (eviction,) = evictions(scene)
    found: dict[str, int] = {}
    for victim in eviction.victims:
        name = victim.name.rpartition("-worker-")[0]
        found[name] = found.get(name, 0) + 1
    return found


def test_one_pod_of_ten_goes_for_a_gang_of_one_volcano_5984() -> None:
    scene = cluster(10)
    running(scene, "low", 10, minimum=0)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"low": 1}


def test_members_above_the_quorum_go_before_whole_gangs() -> None:
    scene = cluster(4)
    running(scene, "elastic", 3, minimum=1)
    running(scene, "single", 1)
    submit(scene, "high", 2, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"elastic": 2}


def test_a_gang_that_loses_its_quorum_goes_whole_and_no_other_with_it() -> None:
    scene = cluster(6)
    running(scene, "one", 3)
    running(scene, "two", 3)
    submit(scene, "high", 2, priority=10)
    scene.until_quiet()
    assert sorted(gangs_of(scene).values()) == [3]


def test_where_the_policy_gang_protects_quorums_only_members_above_them_go() -> None:
    scene = cluster(4, configured())
    running(scene, "whole", 4)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert evictions(scene) == []
    assert scene.verdict("high").why is not None


def test_gangpreempt_takes_whole_gangs_whatever_the_policy_gang_says() -> None:
    scene = cluster(4, configured("enqueue, allocate, gangpreempt, backfill"))
    running(scene, "whole", 4)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"whole": 4}


def test_gangpreempt_is_asked_after_preempt_has_asked_in_vain() -> None:
    scene = cluster(4, configured("enqueue, allocate, preempt, gangpreempt, backfill"))
    running(scene, "whole", 4)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"whole": 4}


def test_a_gang_behind_another_in_a_strict_queue_evicts_no_pod() -> None:
    scene = cluster(2)
    strict = Queue(
        uid="q", dialect="volcano", name="q", resource_version=1, dequeue_strategy="fifo"
    )
    scene.put(strict)
    running(scene, "low", 2, minimum=0, group={"queue": "q"})
    submit(scene, "large", 3, priority=10, group={"queue": "q"})
    submit(scene, "behind", 1, priority=9, group={"queue": "q"})
    scene.until_quiet()
    assert evictions(scene) == []


def test_without_the_action_no_pod_is_evicted() -> None:
    scene = cluster(1, configured("enqueue, allocate, backfill"))
    running(scene, "low", 1)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert evictions(scene) == []


@pytest.mark.parametrize("priority", [5, 6])
def test_only_strictly_lower_priorities_are_evicted(priority: int) -> None:
    scene = cluster(1)
    running(scene, "there", 1, priority=6)
    submit(scene, "asks", 1, priority=priority)
    scene.until_quiet()
    assert evictions(scene) == []


def test_the_lowest_priority_that_suffices_goes() -> None:
    scene = cluster(3)
    running(scene, "middle", 1, priority=5)
    running(scene, "lowest", 1, priority=1)
    running(scene, "upper", 1, priority=7)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"lowest": 1}


def test_of_equals_the_one_that_has_run_the_shortest_goes() -> None:
    scene = cluster(2)
    running(scene, "older", 1, started_ms=1_000)
    running(scene, "newer", 1, started_ms=9_000)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"newer": 1}


def test_one_large_pod_goes_rather_than_four_small_ones() -> None:
    scene = cluster(2)
    running(scene, "large", 1, minimum=0)
    running(scene, "small", 4, minimum=0, shape=QUARTER)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"large": 1}


def test_no_pod_is_evicted_when_it_would_not_be_enough() -> None:
    scene = cluster(3)
    running(scene, "low", 2, minimum=0)
    running(scene, "peer", 1, priority=10)
    submit(scene, "high", 3, priority=10)
    scene.until_quiet()
    assert evictions(scene) == []


def test_no_pod_is_evicted_from_nodes_that_the_gang_cannot_use() -> None:
    taint = Taint(key="reserved", value="", effect="NoSchedule")
    tolerant = make_shape(
        {"cpu": 4000}, tolerations=(Toleration(key="reserved", operator="Exists"),)
    )
    scene = LoggedScene(
        [make_node("tainted", taints=(taint,)), make_node("open")], conf=WHOLE_GANGS
    )
    running(scene, "elsewhere", 2, minimum=0, shape=tolerant)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert {scene.pods[one.uid].node for one in eviction.victims} == {"open"}
    assert {one.node for one in eviction.bindings} == {"open"}


def test_a_gang_that_only_has_to_wait_for_terminating_pods_evicts_no_pod() -> None:
    scene = cluster(2)
    running(scene, "low", 2, minimum=0)
    scene.change("low-worker-0", deleting=True)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert evictions(scene) == []
    leave(scene)
    scene.until_quiet()
    assert len(decided(scene, "high")) == 1


def test_two_gangs_do_not_count_on_the_same_victims() -> None:
    scene = cluster(4)
    running(scene, "low", 4, minimum=0)
    submit(scene, "first", 2, priority=10)
    submit(scene, "second", 2, priority=9)
    scene.until_quiet()
    one, two = evictions(scene)
    assert not {v.uid for v in one.victims} & {v.uid for v in two.victims}
    assert len(one.victims) == len(two.victims) == 2
    accept(scene)
    leave(scene)
    scene.until_quiet()
    assert len(decided(scene, "first")) == len(decided(scene, "second")) == 1


def test_a_gang_whose_priority_class_never_preempts_waits() -> None:
    scene = cluster(1)
    running(scene, "low", 1)
    scene.put(PriorityClass(uid="pc", name="calm", resource_version=1, value=10, preempts=False))
    submit(scene, "high", 1, priority=10, group={"priority_class": "calm"})
    scene.until_quiet()
    assert evictions(scene) == []


def test_a_pod_that_never_preempts_waits() -> None:
    scene = cluster(1)
    running(scene, "low", 1)
    submit(scene, "high", 1, priority=10, preempts=False)
    scene.until_quiet()
    assert evictions(scene) == []


@pytest.mark.parametrize(
    ("pods", "group"),
    [
        ({"preemptable": "false"}, {}),
        ({}, {"preemptable": "false"}),
        ({"priority": 5}, {"protected_from": 5}),
        ({"priority_class": "system-node-critical"}, {}),
        ({"ours": False}, {}),
    ],
    ids=["a pod says so", "its group says so", "its priority", "critical", "another scheduler's"],
)
def test_protected_pods_are_never_evicted(pods: dict[str, Any], group: dict[str, Any]) -> None:
    scene = cluster(1)
    submit(scene, "low", 1, group=group, node="n00", phase="Running", **pods)
    scene.until_quiet()
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert evictions(scene) == []
    assert decided(scene, "high") == []


@pytest.mark.parametrize(
    "group",
    [
        {},
        {"protected_from": 6},
        {"protected_from": 5, "preemptable": "true"},
    ],
)
def test_an_unprotected_one_in_their_place_is(group: dict[str, Any]) -> None:
    scene = cluster(1)
    submit(
        scene, "low", 1, group=group, node="n00", phase="Running", preemptable="true", priority=5
    )
    scene.until_quiet()
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert len(evictions(scene)) == 1


def test_kube_system_is_left_alone() -> None:
    scene = cluster(1)
    submit(
        scene,
        "low",
        1,
        group={"namespace": "kube-system"},
        namespace="kube-system",
        node="n00",
        phase="Running",
    )
    scene.until_quiet()
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert evictions(scene) == []


def test_a_gang_runs_for_its_minimum_before_it_is_evicted() -> None:
    scene = cluster(1)
    running(
        scene,
        "low",
        1,
        started_ms=10_000,
        group={"settings": (("tutti.dev/minimum-run-seconds", "30"),)},
    )
    submit(scene, "high", 1, priority=10)
    scene.until_quiet(within_ms=29_000)
    assert evictions(scene) == []
    scene.until_quiet(within_ms=2_000)
    assert len(evictions(scene)) == 1
    assert evictions(scene)[0].cycle.now_ms == 40_000


def test_a_pod_cools_down_where_the_policy_cdp_is_named() -> None:
    scene = cluster(1, WHOLE_GANGS + "  - name: cdp\n")
    running(scene, "low", 1, started_ms=10_000, cooldown_ms=20_000)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet(within_ms=19_000)
    assert evictions(scene) == []
    scene.until_quiet(within_ms=2_000)
    assert len(evictions(scene)) == 1


def test_a_cool_down_protects_no_pod_without_the_policy() -> None:
    scene = cluster(1)
    running(scene, "low", 1, started_ms=10_000, cooldown_ms=20_000)
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert len(evictions(scene)) == 1


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
    scene = cluster(2)
    running(scene, "guarded", 1, **_labelled())
    running(scene, "free", 1, priority=5)
    put_budget(scene, _budget(0))
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"free": 1}


def test_a_budget_lets_go_no_more_than_it_allows() -> None:
    scene = cluster(4)
    running(scene, "guarded", 3, minimum=0, **_labelled())
    running(scene, "free", 1, minimum=0, priority=5)
    put_budget(scene, _budget(1))
    submit(scene, "high", 2, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"guarded": 1, "free": 1}


def test_with_the_policy_pdb_no_budget_is_violated_even_when_nothing_else_helps() -> None:
    for conf, expected in ((WHOLE_GANGS, 1), (WHOLE_GANGS + "  - name: pdb\n", 0)):
        scene = cluster(1, conf)
        running(scene, "guarded", 1, **_labelled())
        put_budget(scene, _budget(0))
        submit(scene, "high", 1, priority=10)
        scene.until_quiet()
        assert len(evictions(scene)) == expected


def test_a_gang_preempts_for_its_minimum_and_not_for_its_other_members() -> None:
    """A job with a minimum of 6 of 12 evicted a whole job, with its last pod, for its extras."""
    scene = cluster(12)
    running(scene, "low", 12, minimum=1)
    submit(scene, "high", 12, minimum=6, priority=10)
    for _ in range(3):
        scene.until_quiet()
        accept(scene)
        leave(scene)
        scene.carry_out(phase="Running")
    assert gangs_of(scene) == {"low": 6}
    assert scene.bound("high") == 6
    assert scene.bound("low") == 6


def test_a_pod_that_is_a_gang_of_its_own_is_no_victim_of_extras() -> None:
    scene = cluster(3)
    running(scene, "one", 1, minimum=1)
    running(scene, "two", 1, minimum=1)
    running(scene, "high", 1, minimum=1, priority=10)
    scene.put(*make_pods("high", 3, WHOLE_NODE, priority=10)[1:])
    scene.until_quiet()
    assert evictions(scene) == []


def test_what_a_started_gang_lacks_of_its_minimum_is_no_extra() -> None:
    scene = cluster(4)
    pods = running(
        scene, "high", 2, priority=10, group={"settings": (("tutti.dev/hold-seconds", "0"),)}
    )
    scene.remove(pods[0])
    scene.until_quiet()
    running(scene, "low", 3, minimum=1)
    scene.put(*make_pods("high", 2, WHOLE_NODE, role="again", priority=10))
    scene.until_quiet()
    assert gangs_of(scene) == {"low": 1}
    (eviction,) = evictions(scene)
    assert len(eviction.bindings) == 1


def test_a_queue_that_is_full_makes_room_within_itself() -> None:
    scene = cluster(4)
    full = amounts(cpu=8000)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=full))
    running(scene, "low", 2, minimum=0, group={"queue": "q"})
    submit(scene, "high", 1, priority=10, group={"queue": "q"})
    scene.until_quiet()
    assert gangs_of(scene) == {"low": 1}


def test_another_queue_is_left_alone_by_preempt() -> None:
    scene = cluster(1)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1))
    running(scene, "low", 1)
    submit(scene, "high", 1, priority=10, group={"queue": "q"})
    scene.until_quiet()
    assert evictions(scene) == []


def test_several_shapes_are_made_room_for_together() -> None:
    scene = cluster(3)
    running(scene, "low", 12, minimum=0, shape=QUARTER)
    scene.put(
        make_group("mixed", 3),
        *make_pods("mixed", 1, WHOLE_NODE, role="ps", priority=10),
        *make_pods("mixed", 2, make_shape({"cpu": 2000}), role="worker", priority=10),
    )
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert len(eviction.victims) == 8
    assert len(eviction.bindings) == 3


@pytest.mark.parametrize("conf", [configured(), WHOLE_GANGS])
def test_a_gang_whose_group_is_being_made_again_goes_whole_or_not_at_all(conf: str) -> None:
    """Found by the simulation (seed 42): without its group no code knew how many it needs."""
    scene = cluster(4, conf)
    running(scene, "low", 4)
    scene.remove(make_group("low", 4))
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    if conf == WHOLE_GANGS:
        assert gangs_of(scene) == {"low": 4}
    else:
        assert evictions(scene) == []


def test_evictions_are_issued_in_the_order_in_which_they_depend_on_each_other() -> None:
    """Found by the simulation (seed 87): the second was stored before the first."""
    scene = cluster(6)
    running(scene, "low", 4)
    running(scene, "other", 2, priority=5)
    submit(scene, "first", 1, priority=11, group={"uid": "zz"})
    submit(scene, "second", 4, priority=10, group={"uid": "aa"})
    scene.until_quiet()
    published = [(one.gang, len(one.victims)) for one in evictions(scene)]
    assert published == [("team/first", 4), ("team/second", 2)]


def test_what_is_left_of_a_gang_goes_only_when_those_before_are_leaving() -> None:
    """Found by the simulation (seed 381): had the first eviction been refused, a single pod of its
    gang would have been left.
    """
    scene = cluster(4)
    running(scene, "low", 4, minimum=3)
    submit(scene, "first", 1, priority=11)
    scene.until_quiet()
    submit(scene, "second", 2, priority=10)
    scene.until_quiet()
    assert gangs_of(scene) == {"low": 1}
    accept(scene)
    leave(scene)
    scene.until_quiet()
    assert [len(one.victims) for one in evictions(scene)] == [1, 3]


def put_budget(scene: LoggedScene, budget: Budget) -> None:
    scene.apply(BudgetChanges(epoch=scene.epoch, at_ms=scene.now_ms, changed=(budget,)))


def test_a_role_keeps_its_minimum_while_the_eviction_of_another_member_is_in_flight() -> None:
    scene = cluster(4, configured())
    scene.put(make_group("low", 1, min_task_member=(("worker", 1),)))
    scene.put(
        *make_pods("low", 2, WHOLE_NODE, role="ps", preemptable="false"),
        *make_pods("low", 2, WHOLE_NODE, role="worker"),
    )
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    submit(scene, "first", 1, priority=10)
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert [victim.name.split("-")[1] for victim in eviction.victims] == ["worker"]
    submit(scene, "second", 1, priority=9)
    scene.until_quiet()
    assert len(evictions(scene)) == 1
