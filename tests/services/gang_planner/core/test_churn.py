"""Names that users choose come and go, and leave nothing in the planner, or a bounded rest.

The shapes of pods, their terms and the names of resources are not among them: these stay.
"""

import random
from typing import Any, Final

import msgspec
import pytest

from services.gang_planner.core.constraints.inter_pod import rules
from services.gang_planner.core.state import node_labels
from services.gang_planner.core.state.columns import SHARED_FROM_ROWS
from services.gang_planner.core.state.inter_pod import counts, label_index
from shared.model.objects import Pod, PodGroup, PriorityClass, Queue
from shared.model.reference_objects import Namespace
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector, SpreadConstraint
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.reachable import sizes

CPU: Final = make_shape({"cpu": 100})


def selecting(key: str, value: str) -> Selector:
    return Selector(requirements=(Requirement(key=key, operator="In", values=(value,)),))


def come_and_go(scene: Scene, number: int) -> None:
    """A tenant of one name in everything but its pods' shapes, once waiting and once running."""
    name = f"x{number}"
    here: dict[str, Any] = {"namespace": f"ns-{name}"}
    objects: list[Any] = [
        Queue(uid=f"queue-{name}", dialect="volcano", name=name, resource_version=1),
        Namespace(
            uid=f"uid-{name}", name=f"ns-{name}", resource_version=1, labels=((f"l-{name}", "v"),)
        ),
        PriorityClass(uid=f"class-{name}", name=name, resource_version=1, value=number),
        make_group(f"waits-{name}", 2, queue=name, uid=f"a-{name}", priority_class=name, **here),
        make_group(f"lost-{name}", 1, queue=f"no-{name}", uid=f"b-{name}", **here),
        *make_pods(f"waits-{name}", 1, CPU, role=f"role-{name}", **here),
        *make_pods(f"lost-{name}", 1, CPU, role=f"role-{name}", **here),
        *make_pods(f"runs-{name}", 1, CPU, node="n0", phase="Running", **here),
    ]
    scene.put(*objects)
    scene.settle()
    scene.remove(*reversed(objects))
    # Verdicts of gangs that are gone, and numbers of waiting gangs, are paced.
    scene.step(after_ms=10_000)
    scene.settle()


#: Bounded logs, in their own way.
LOGS: Final = ("._slots", "._log")


@pytest.mark.parametrize("hierarchical", [False, True])
def test_names_that_came_and_went_leave_no_entry_in_any_table(*, hierarchical: bool) -> None:
    tree = "tiers: [{plugins: [{name: gang}, {name: capacity, enableHierarchy: true}]}]"
    actions = 'actions: "enqueue, allocate, preempt, reclaim"\n'
    scene = Scene([make_node("n0"), make_node("n1")], conf=actions + tree if hierarchical else "")
    scene.put(make_group("stays", 1))
    for number in range(10):
        come_and_go(scene, number)
    before = sizes(scene.planner)
    for number in range(10, 110):
        come_and_go(scene, number)
    after = sizes(scene.planner)
    grown = {
        path: (before[path], after[path])
        for path in after
        if after[path] > before[path] + 5 and not path.endswith(LOGS)
    }
    assert not grown


@pytest.mark.parametrize("end", ["", "Failed"])
def test_roles_that_came_and_went_leave_no_entry_in_a_gang_that_stays(end: str) -> None:
    scene = Scene([make_node(f"n{at}") for at in range(3)])
    scene.put(make_group("stays", 1), *make_pods("stays", 1, CPU, role="first"))

    def come_and_go(number: int) -> None:
        for decision in scene.settle():
            scene.run(decision)
        (pod,) = make_pods("stays", 1, CPU, role=f"role-{number}")
        scene.put(pod)
        for decision in scene.settle():
            scene.run(decision)
        if end:
            scene.change(pod.uid, phase=end)
            scene.step(after_ms=100)
        scene.remove(scene.pods[pod.uid])
        scene.step(after_ms=700_000)

    for number in range(10):
        come_and_go(number)
    before = sizes(scene.planner)
    for number in range(10, 60):
        come_and_go(number)
    after = sizes(scene.planner)
    grown = {
        path: (before[path], after[path])
        for path in after
        if after[path] > before[path] + 5 and not path.endswith(LOGS)
    }
    assert not grown


def moved_about(scene: Scene, randomly: random.Random, name: str) -> None:
    """Objects of a tenant that come, change their queue, parent, class or node, and go, in any
    order; in the end all are gone.
    """
    here: dict[str, Any] = {"namespace": f"ns-{name}"}
    queues = [f"q{one}-{name}" for one in range(4)]
    there: dict[str, Any] = {}

    def queue() -> Queue:
        own = randomly.choice(queues)
        parent = randomly.choice(["", "root", *queues])
        return Queue(
            uid=f"queue-{own}", dialect="volcano", name=own, parent=parent, resource_version=1
        )

    def namespace() -> Namespace:
        return Namespace(
            uid=f"uid-{name}",
            name=f"ns-{name}",
            resource_version=1,
            queue=randomly.choice(["", *queues]),
        )

    def priority() -> PriorityClass:
        value = randomly.randrange(9)
        return PriorityClass(uid=f"class-{name}", name=name, resource_version=1, value=value)

    def group() -> PodGroup:
        at = randomly.randrange(3)
        return make_group(
            f"g{at}-{name}",
            randomly.choice([1, 2]),
            uid=f"g{at}-{name}-{randomly.randrange(2)}",
            queue=randomly.choice(["", *queues]),
            queue_of_namespace=randomly.random() < 0.5,
            priority_class=randomly.choice(["", name]),
            **here,
        )

    def pod() -> Pod:
        gang = f"g{randomly.randrange(3)}-{name}"
        place = {"node": "n0", "phase": "Running"} if randomly.random() < 0.3 else {}
        count = randomly.choice([1, 2])
        return make_pods(gang, count, CPU, role=f"r-{name}", **here, **place)[-1]

    for _ in range(30):
        if there and randomly.random() < 0.3:
            scene.remove(there.pop(randomly.choice(sorted(there))))
        else:
            one = randomly.choice((queue, namespace, priority, group, pod))()
            there[one.uid] = one
            scene.put(one)
        if randomly.random() < 0.5:
            scene.step(after_ms=randomly.randrange(2_000))
    for uid in randomly.sample(sorted(there), len(there)):
        scene.remove(there[uid])
    scene.step(after_ms=700_000)
    scene.settle()
    scene.step(after_ms=10_000)


@pytest.mark.parametrize("hierarchical", [False, True])
def test_objects_that_came_moved_and_went_in_any_order_leave_no_entry(
    *, hierarchical: bool
) -> None:
    tree = "tiers: [{plugins: [{name: gang}, {name: capacity, enableHierarchy: true}]}]"
    actions = 'actions: "enqueue, allocate, preempt, reclaim"\n'
    scene = Scene([make_node("n0"), make_node("n1")], conf=actions + tree if hierarchical else "")
    scene.put(make_group("stays", 1))
    for number in range(15):
        moved_about(scene, random.Random(number), f"x{number}")
    before = sizes(scene.planner)
    for number in range(15, 90):
        moved_about(scene, random.Random(number), f"x{number}")
    after = sizes(scene.planner)
    grown = {
        path: (before[path], after[path])
        for path in after
        if after[path] > before[path] + 5 and not path.endswith(LOGS)
    }
    assert not grown


def test_keys_that_pods_select_nodes_pods_and_domains_by_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name in (
        (node_labels, "KEYS_MAX"),
        (counts, "KEYS_MAX"),
        (label_index, "KEYS_MAX"),
        (rules, "SCOPES_MAX"),
    ):
        monkeypatch.setattr(module, name, 8)
    nodes = [
        make_node(f"n{at}", labels=(("zone", f"z{at % 2}"), ("host", str(at)))) for at in range(4)
    ]
    scene = Scene(nodes)
    spread = make_shape(
        {"cpu": 500},
        namespace="team",
        spread=(
            SpreadConstraint(
                topology_key="zone",
                max_skew=1,
                when_unsatisfiable="DoNotSchedule",
                selector=selecting("app", "even"),
            ),
        ),
    )
    for number in range(40):
        odd = make_shape(
            {"cpu": 10},
            namespace="team",
            node_selector=((f"select-{number}", "v"),),
            pod_affinity=PodAffinity(
                affinity=(
                    PodTerm(
                        topology_key=f"topology-{number}",
                        selector=selecting(f"label-{number}", "v"),
                        namespaces=("team",),
                    ),
                )
            ),
        )
        scene.put(make_group(f"odd-{number}", 1), *make_pods(f"odd-{number}", 1, odd))
        if number % 5 == 0:
            labels = msgspec.msgpack.encode((("app", "even"),))
            scene.put(make_group(f"even-{number}", 2))
            scene.put(*make_pods(f"even-{number}", 2, spread, labels=labels))
            (decision,) = scene.settle()
            zones = {int(name[1:]) % 2 for name in scene.where(decision).values()}
            assert zones == {0, 1}
            scene.run(decision)
        scene.step(after_ms=1000)
    found = sizes(scene.planner)
    most = {
        path: count
        for path, count in found.items()
        if path.endswith(("labels._columns", "domains._domains", "_known", "labels._by_key"))
    }
    assert most
    assert max(most.values()) <= 9


def test_names_of_resources_in_groups_minima_share_a_row_when_there_are_too_many() -> None:
    """500 groups with 250 names each took half a gigabyte with 1,000 nodes, and cycles of 14 s."""
    scene = Scene([make_node("n1")])
    for number in range(2 * SHARED_FROM_ROWS // 100):
        minimum = tuple(sorted((f"evil.example/{number}-{at}", 1) for at in range(100)))
        scene.put(
            make_group(
                f"evil-{number}",
                1,
                namespace="evil",
                dialect="volcano",
                waits_for_inqueue=True,
                min_resources=minimum,
            )
        )
    scene.settle()
    state = scene.state
    assert SHARED_FROM_ROWS <= len(state.resources.names) <= SHARED_FROM_ROWS + 1
    late = make_group("late", 1, min_resources=(("late.example/gpu", 1),), waits_for_inqueue=True)
    scene.put(late, *make_pods("late", 1, make_shape({"late.example/gpu": 1})))
    assert not scene.settle()
    scene.put(make_node("n2", {"late.example/gpu": 1, "cpu": 4000, "pods": 9}))
    assert [one.node for one in scene.settle()[0].bindings] == ["n2"]
