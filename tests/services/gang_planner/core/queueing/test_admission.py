"""Quotas gate admission, missing room only orders it."""

from collections.abc import Iterator

import msgspec
import pytest
from typing_extensions import override

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.framework.admission import AdmissionView, Vote, Voter, count_votes
from services.gang_planner.core.framework.arguments import ConfigurationError
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import DEFAULT, QueueEntry
from shared.contracts.cluster import ResourceQuotaChanges
from shared.model.objects import PodGroup, PriorityClass, Queue
from shared.model.reference_objects import ResourceQuota
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

CPU = make_shape({"cpu": 1000})
PREEMPTION = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: overcommit}, {name: proportion}]
"""


def a_group(name: str, cpu: int, **fields: object) -> PodGroup:
    """A Volcano group of members of one CPU whose pods do not exist yet."""
    defaults: dict[str, object] = {
        "dialect": "volcano",
        "waits_for_inqueue": True,
        "min_resources": amounts(cpu=cpu * 1000),
    }
    return make_group(name, cpu, **{**defaults, **fields})


def a_queue(name: str, **fields: object) -> Queue:
    return msgspec.structs.replace(
        Queue(uid=f"q-{name}", dialect="volcano", name=name, resource_version=1), **fields
    )


def inside(scene: Scene, *names: str) -> list[bool]:
    return [scene.verdict(name).phase != "Pending" for name in names]


def test_votes_of_a_tier_are_combined_as_volcano_documents() -> None:
    state = State()
    gang = Gang(("name", "a", "b"), "a", "b", QueueEntry(DEFAULT, state.resources))
    view = AdmissionView(state, [], 0, 4)

    def says(vote: Vote) -> Voter:
        def voter(gang: Gang, view: AdmissionView) -> Vote:
            del gang, view
            return vote

        return voter

    votes = {"p": Vote.PERMIT, "a": Vote.ABSTAIN, "r": Vote.REJECT}

    def admitted(*tiers: str) -> bool:
        return count_votes([[says(votes[one]) for one in tier] for tier in tiers], gang, view)

    assert admitted()
    assert admitted("a", "a")
    assert admitted("p", "r"), "a permission of the first tier hides the second"
    assert not admitted("pr")
    assert not admitted("a", "r")
    assert admitted("aap", "r")


def test_a_few_groups_of_each_queue_are_let_in_without_room_and_an_autoscaler_brings_nodes(
    golden: Golden,
) -> None:
    """volcano#3910: groups that stay Pending have no pods, so no autoscaler adds nodes for them."""
    scene = Scene([])
    names = [f"g{index}" for index in range(6)]
    for index, name in enumerate(names):
        scene.put(a_group(name, 4, created_ms=index))
    scene.settle()
    assert inside(scene, *names) == [True] * 4 + [False] * 2
    why = scene.verdict("g5").why
    assert why is not None
    assert why.reason == "NotAdmitted"
    golden(why.sentence)
    # Operators make the pods of those that are inside; all of them are Unschedulable.
    for name in names[:4]:
        scene.put(*make_pods(name, 4, CPU, scheduler_name="volcano"))
    assert not scene.settle()
    for name in names[:4]:
        assert len(scene.verdict(name).waiting) == 4
    # The autoscaler brings a node for each gang that it sees, and so all come in.
    served = 0
    for round_ in range(6):
        scene.put(make_node(f"n{round_}", {"cpu": 4000, "memory": 1 << 34, "pods": 110}))
        for decision in scene.settle():
            served += 1
            scene.run(decision)
        scene.settle()
        for name in names:
            if scene.verdict(name).phase == "Inqueue" and not scene.pods_of(name):
                scene.put(*make_pods(name, 4, CPU, scheduler_name="volcano"))
    assert served == 6


def test_how_many_are_let_in_without_room_is_said_by_the_action_and_by_the_queue() -> None:
    conf = PREEMPTION + "configurations: [{name: enqueue, arguments: {enqueueWithoutRoom: 1}}]\n"
    scene = Scene([], conf=conf)
    settings = (("tutti.dev/enqueue-without-room", "2"),)
    scene.put(a_queue("own", settings=settings), a_queue("other"))
    for index in range(3):
        scene.put(a_group(f"a{index}", 1, queue="own", created_ms=index))
        scene.put(a_group(f"b{index}", 1, queue="other", created_ms=index))
    scene.settle()
    assert inside(scene, "a0", "a1", "a2") == [True, True, False]
    assert inside(scene, "b0", "b1", "b2") == [True, False, False]


def test_on_a_full_cluster_a_preemptor_is_not_refused_at_enqueue() -> None:
    """Recorded of Volcano: overcommit and proportion refuse it, so preemption never starts."""
    scene = Scene([make_node("n0", {"cpu": 4000, "memory": 1 << 34, "pods": 110})], conf=PREEMPTION)
    scene.put(a_group("running", 4))
    scene.put(*make_pods("running", 4, CPU, scheduler_name="volcano"))
    (decision,) = scene.settle()
    scene.run(decision)
    for index in range(6):
        scene.put(a_group(f"low{index}", 4, created_ms=index))
    scene.settle()
    assert inside(scene, "low3", "low4") == [True, False]
    group = a_group("high", 4, created_ms=99, priority_class="high")
    scene.put(PriorityClass(uid="pc", name="high", resource_version=1, value=100), group)
    scene.settle()
    assert inside(scene, "high") == [True]


def test_gangs_without_room_keep_no_gang_out_that_has_room() -> None:
    """volcano#3670: groups admitted for nodes that do not exist block all other gangs."""
    scene = Scene([make_node("n0", {"cpu": 16_000, "memory": 1 << 34, "pods": 110})])
    nowhere = make_shape({"cpu": 1000}, node_selector=(("pool", "none"),))
    for index in range(4):
        scene.put(a_group(f"stuck{index}", 4, created_ms=index))
        scene.put(*make_pods(f"stuck{index}", 4, nowhere, scheduler_name="volcano"))
    scene.settle()
    scene.put(a_group("small", 8, created_ms=9))
    scene.settle()
    assert inside(scene, "small") == [True]


def test_what_gangs_hold_beyond_their_minima_does_not_fill_a_queue() -> None:
    scene = Scene([make_node("n0", {"cpu": 8000, "memory": 1 << 34, "pods": 110})])
    scene.put(a_queue("q", capability=amounts(cpu=4000)))
    scene.put(a_group("elastic", 1, queue="q"))
    scene.put(*make_pods("elastic", 4, CPU, scheduler_name="volcano"))
    for decision in scene.settle():
        scene.run(decision)
    for decision in scene.settle():
        scene.run(decision)
    scene.put(a_group("next", 3, queue="q"), a_group("more", 4, queue="q", created_ms=9))
    scene.settle()
    assert inside(scene, "next", "more") == [True, False]


def test_a_group_waits_while_the_quotas_of_its_namespace_are_short(golden: Golden) -> None:
    conf = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: resourcequota}]}]'
    scene = Scene([make_node("n0")], conf=conf)

    def quota(used: int, version: int) -> None:
        one = ResourceQuota(
            uid="rq",
            namespace="team",
            name="compute",
            resource_version=version,
            hard=(("count/pods", 10), ("requests.cpu", 8000)),
            used=(("count/pods", 0), ("requests.cpu", used)),
        )
        scene.apply(ResourceQuotaChanges(epoch=1, at_ms=scene.now_ms, changed=(one,)))

    quota(4000, 1)
    scene.put(a_group("a", 3, created_ms=1), a_group("b", 3, created_ms=2))
    scene.put(a_group("elsewhere", 3, namespace="other"))
    scene.settle()
    assert inside(scene, "a", "b", "elsewhere") == [True, False, True]
    why = scene.verdict("b").why
    assert why is not None
    assert why.reason == "NotEnoughQuota"
    golden(why.sentence)
    quota(0, 2)
    scene.settle()
    assert inside(scene, "b") == [True]


def test_a_group_that_waited_too_long_is_admitted_whatever_lower_tiers_say() -> None:
    conf = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: sla, arguments: {sla-waiting-time: 1h}}]
- plugins: [{name: proportion}]
"""
    scene = Scene([], conf=conf)
    scene.put(a_queue("q", capability=amounts(cpu=1000)))
    scene.put(a_group("late", 4, queue="q", sla_waiting_ms=60_000, created_ms=scene.now_ms))
    scene.put(a_group("patient", 4, queue="q", created_ms=scene.now_ms))
    scene.settle()
    assert inside(scene, "late", "patient") == [False, False]
    assert scene.wakeup_ms == scene.now_ms + 60_000
    scene.step(after_ms=60_000)
    assert inside(scene, "late", "patient") == [True, False]


def test_a_strict_queue_lets_no_group_pass_its_first(golden: Golden) -> None:
    scene = Scene([make_node("n0")])
    scene.put(a_queue("q", capability=amounts(cpu=4000), dequeue_strategy="fifo"))
    scene.put(
        a_group("large", 8, queue="q", created_ms=1), a_group("small", 1, queue="q", created_ms=2)
    )
    scene.settle()
    assert inside(scene, "large", "small") == [False, False]
    why = scene.verdict("small").why
    assert why is not None
    assert why.reason == "BehindInQueue"
    golden(why.sentence)
    scene.remove(a_group("large", 8, queue="q"))
    scene.settle()
    assert inside(scene, "small") == [True]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("tiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: x}}]}]", "factor"),
        ("tiers: [{plugins: [{name: sla, arguments: {sla-waiting-time: 1 day}}]}]", "waiting-time"),
        ("configurations: [{name: nothing}]", "configurations"),
        ("tiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]}]", "exclude"),
    ],
    ids=["factor", "duration", "action", "both hierarchies"],
)
def test_wrong_arguments_are_refused_where_they_stand(text: str, where: str) -> None:
    with pytest.raises(ConfigurationError, match=where):
        parse_configuration(text)


def test_gangs_of_another_namespace_that_are_ahead_are_not_named() -> None:
    scene = Scene([make_node("n0")])
    scene.put(a_queue("q", capability=amounts(cpu=4000), dequeue_strategy="fifo"))
    scene.put(
        a_group("secret", 8, queue="q", created_ms=1, namespace="theirs"),
        a_group("small", 1, queue="q", created_ms=2),
    )
    scene.settle()
    why = scene.verdict("small").why
    assert why is not None
    assert why.sentence.startswith("a gang of another namespace is ahead in queue q")


@pytest.mark.parametrize("node", ["n1", "made-up"])
def test_a_pod_that_asks_for_more_than_a_node_has_uses_no_more_than_the_node(node: str) -> None:
    """A user may name any node, also one that does not exist, and ask for any amount there."""
    scene = Scene([make_node("n1"), make_node("n2"), make_node("n3")])
    greedy = make_shape({"cpu": 2**53})
    scene.put(*make_pods("greedy", 1, greedy, namespace="evil", group_name="", node=node))
    names = [f"g{number}" for number in range(8)]
    scene.put(*(a_group(name, 1) for name in names))
    scene.settle()
    assert inside(scene, *names) == [True] * len(names)


class _Walked(dict[str, dict[int, int]]):
    """Promises of a queue, and how many of them were looked at one by one."""

    looked_at = 0

    @override
    def __iter__(self) -> Iterator[str]:
        for one in super().__iter__():
            self.looked_at += 1
            yield one


@pytest.mark.parametrize("policy", ["overcommit", "resourcequota"])
def test_admitted_groups_are_not_counted_again_for_each_group_that_is_voted_on(policy: str) -> None:
    """3,000 admitted groups of a tenant and as many that have no room made cycles of two seconds
    whenever anything changed.
    """
    conf = f'actions: "enqueue, allocate"\ntiers: [{{plugins: [{{name: {policy}}}]}}]'
    scene = Scene([make_node("n1")], conf=conf)
    quota = (("cpu", 100_000), ("pods", 10_000))
    scene.put(ResourceQuota(uid="q", namespace="team", name="q", resource_version=1, hard=quota))
    scene.put(a_queue("default"))
    promises = scene.state.queues.entry(DEFAULT).promises = _Walked()
    admitted = [a_group(f"in-{at:03}", 1, min_resources=(("memory", 1 + at),)) for at in range(50)]
    scene.put(*admitted)
    scene.step()
    assert all(inside(scene, *(one.name for one in admitted)))
    before = promises.looked_at
    assert before <= 4 * 50
    refused = [
        a_group(f"out-{at:03}", 1, min_resources=amounts(cpu=200_000 + at)) for at in range(50)
    ]
    scene.put(*refused)
    scene.step()
    assert not any(inside(scene, *(one.name for one in refused)))
    assert promises.looked_at - before <= 8 * 50


@pytest.mark.parametrize("policy", ["overcommit", "resourcequota"])
def test_groups_admitted_in_the_same_cycle_count_for_those_after_them(policy: str) -> None:
    conf = f'actions: "enqueue, allocate"\ntiers: [{{plugins: [{{name: {policy}}}]}}]'
    scene = Scene([make_node("n1")], conf=conf)
    quota = (("pods", 5),)
    scene.put(ResourceQuota(uid="q", namespace="team", name="q", resource_version=1, hard=quota))
    # With room for none: four of a queue are admitted without.
    cpu = 1 if policy == "resourcequota" else 100
    names = [f"g{at}" for at in range(8)]
    for at, name in enumerate(names):
        scene.put(
            make_group(
                name,
                1,
                dialect="volcano",
                waits_for_inqueue=True,
                min_resources=amounts(cpu=cpu * 1000 + at),
            )
        )
    scene.step()
    assert inside(scene, *names).count(True) == (5 if policy == "resourcequota" else 4)
