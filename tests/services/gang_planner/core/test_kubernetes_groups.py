"""What Kubernetes' own PodGroup requires of the planner: uniform members, its priority, disruption
of the whole group, and a first success that is never forgotten.
"""

from typing import Any

import msgspec
import pytest

from shared.model.objects import PodGroup, Queue
from shared.model.reference_objects import Namespace
from tests.services.gang_planner.core.preemption.crowd import (
    cluster,
    configured,
    evictions,
    names,
    running,
    submit,
)
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

CPU = make_shape({"cpu": 1000})
SCOPE = "podgroups.scheduling.k8s.io"


def a_group(name: str, size: int, **fields: Any) -> PodGroup:
    """A PodGroup of Kubernetes."""
    return make_group(name, size, dialect="kubernetes", scope=SCOPE, uniform=True, **fields)


def a_scene(group: PodGroup, *pods: dict[str, Any]) -> Scene:
    """One node, and a group with a pod of each of these fields."""
    scene = Scene([make_node("n0")])
    scene.put(group)
    for index, fields in enumerate(pods):
        (pod,) = make_pods(group.name, 1, CPU, role=f"r{index}", group_scope=SCOPE, **fields)
        scene.put(pod)
    return scene


@pytest.mark.parametrize(
    ("priority", "pods", "words"),
    [
        (
            None,
            ({"scheduler_name": "tutti"}, {"scheduler_name": "volcano"}),
            "its pods name different schedulers: tutti, volcano",
        ),
        (
            None,
            ({}, {"scheduler_name": "default-scheduler", "ours": False}),
            "its pods name different schedulers: default-scheduler, kube-batch",
        ),
        (5, ({"priority": 5}, {"priority": 7}), "its priority is 5, and that of pods is 7"),
        (
            5,
            ({"priority": 5}, {"priority": 5, "preempts": False}),
            "its pods have different preemption policies",
        ),
    ],
)
def test_members_that_differ_are_not_placed_until_they_agree(
    priority: int | None, pods: tuple[dict[str, Any], ...], words: str
) -> None:
    scene = a_scene(a_group("a", 1, priority=priority), *pods)
    assert not scene.settle()
    why = scene.verdicts["group-a"].why
    assert why is not None
    assert (why.reason, why.sentence) == ("MembersDiffer", words)
    (other,) = (one for one in scene.pods.values() if one.name == "a-r1-0")
    scene.remove(other)
    (decision,) = scene.settle()
    assert len(decision.bindings) == 1


def test_pods_of_different_priorities_are_one_gang_where_the_group_has_none() -> None:
    scene = a_scene(a_group("a", 2), {"priority": 5}, {"priority": 7})
    (decision,) = scene.settle()
    assert len(decision.bindings) == 2


def test_a_pod_that_joins_a_running_group_later_does_not_stop_it() -> None:
    scene = a_scene(a_group("a", 1, priority=5), {"priority": 5})
    (decision,) = scene.settle()
    scene.run(decision)
    scene.put(*make_pods("a", 1, CPU, role="late", group_scope=SCOPE, priority=9))
    scene.settle()
    assert scene.verdicts["group-a"].phase == "Running"


def test_the_groups_priority_counts_before_that_of_its_pods() -> None:
    scene = Scene([make_node("n0", {"cpu": 1000, "memory": 8 << 30, "pods": 10})])
    scene.put(make_group("low", 1), *make_pods("low", 1, CPU, priority=3))
    scene.put(make_group("high", 1, priority=9), *make_pods("high", 1, CPU, priority=0))
    (decision,) = scene.settle()
    assert decision.gang_id == "group-high"


def test_a_group_that_is_scheduled_says_so_for_ever_even_if_no_verdict_is_left() -> None:
    scene = a_scene(a_group("a", 2, scheduled_once=True), {})
    scene.settle()
    verdict = scene.verdicts["group-a"]
    scheduled = {one.type: one.status for one in verdict.conditions}["Scheduled"]
    assert (verdict.phase, scheduled) == ("Inqueue", "False")


def test_a_minimum_that_is_lowered_lets_the_gang_start() -> None:
    group = a_group("a", 3)
    scene = a_scene(group, {}, {})
    assert not scene.settle()
    scene.put(msgspec.structs.replace(group, min_member=2, resource_version=2))
    (decision,) = scene.settle()
    assert (len(decision.bindings), decision.quorum) == (2, 2)


@pytest.mark.parametrize(("whole", "victims"), [(False, 1), (True, 2)])
def test_a_group_that_is_disrupted_as_a_whole_loses_no_single_member(
    whole: bool, victims: int
) -> None:
    scene = cluster(2)
    running(scene, "low", 2, minimum=1, group={"disrupted_whole": whole})
    submit(scene, "high", 1, priority=10)
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert len(names(eviction.victims)) == victims


def test_a_group_that_is_never_pending_waits_for_its_minimum_of_resources_too() -> None:
    """As coscheduling's groups: their pods exist before they are admitted."""
    scene = Scene([make_node("n0", {"cpu": 4000, "memory": 8 << 30, "pods": 10})])
    wanted = (("cpu", 6000),)
    scene.put(make_group("a", 1, dialect="coscheduling", min_resources=wanted))
    scene.put(*make_pods("a", 1, CPU))
    assert not scene.settle()
    why = scene.verdicts["group-a"].why
    assert why is not None
    assert why.reason == "NotEnoughResources"
    scene.put(make_node("n1", {"cpu": 4000, "memory": 8 << 30, "pods": 10}))
    (decision,) = scene.settle()
    assert len(decision.bindings) == 1


def test_a_group_that_must_not_preempt_waits() -> None:
    scene = cluster(1, configured(gang="name: gang"))
    running(scene, "low", 1, minimum=0)
    submit(scene, "high", 1, priority=10, group={"preempts": False})
    scene.until_quiet()
    assert not evictions(scene)


def test_a_group_that_names_no_queue_is_in_that_of_its_namespace(golden: Golden) -> None:
    scene = Scene([make_node("n0")])
    scene.put(a_group("a", 1, queue_of_namespace=True), a_group("b", 1, queue="named"))
    scene.put(make_group("volcano", 1))
    scene.settle()
    tables = scene.state.gangs
    assert {name: tables.by_id[f"group-{name}"].queue.name for name in ("a", "b", "volcano")} == {
        "a": "default",
        "b": "named",
        "volcano": "default",
    }
    team = Namespace(uid="ns", name="team", resource_version=1, queue="research")
    scene.put(team)
    assert tables.by_id["group-a"].queue.name == "research"
    assert tables.by_id["group-volcano"].queue.name == "default"
    scene.put(*make_pods("a", 1, CPU, group_scope=SCOPE))
    assert not scene.settle()
    why = scene.verdicts["group-a"].why
    assert why is not None
    assert why.reason == "QueueMissing"
    golden(why.sentence)
    scene.put(Queue(uid="q", dialect="volcano", name="research", resource_version=1))
    (decision,) = scene.settle()
    scene.run(decision)
    # A running gang is charged to the queue that its namespace names now.
    scene.put(msgspec.structs.replace(team, resource_version=2, queue=""))
    scene.settle()
    assert tables.by_id["group-a"].queue.name == "default"
    assert not scene.state.queues.entries["research"].holders
    scene.put(msgspec.structs.replace(team, resource_version=3, queue="research"))
    scene.remove(scene.state.gangs.groups["group-a"])
    scene.settle()
    (gang,) = (one for one in tables.gangs.values() if one.name == "a")
    assert (gang.group, gang.queue.name) == (None, "research")
