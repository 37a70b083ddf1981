"""Gangs of one namespace that never fit cost work whenever capacity is freed, and gangs of other
namespaces are decided nevertheless.
"""

import pytest

from shared.contracts.decisions import EvictionDecision
from shared.model.objects import Queue
from tests.services.gang_planner.core.claims import make_claim, make_class
from tests.services.gang_planner.core.preemption.crowd import WHOLE_GANGS
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

pytestmark = pytest.mark.slow

#: Attempts for so many pods with claims cost more than twice the work of a cycle.
GANGS = 400
CYCLES = 3
SMALL = make_shape({"cpu": 1})


class Shared(Scene):
    """Two nodes, two queues, and pods of the namespace `team` that end one by one."""

    def __init__(self, conf: str = "") -> None:
        room = {"cpu": 4_000, "memory": 16 << 30, "pods": 2 * GANGS}
        super().__init__([make_node("n0", room), make_node("n1", room)], conf=conf)
        for name in ("theirs", "ours"):
            self.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1))
        self.put(make_class())
        for number in range(CYCLES):
            self.run_pod(f"ends-{number}", cpu=10)

    def run_pod(self, name: str, *, cpu: int, node: str = "n0") -> None:
        """A gang of one pod runs in the queue `ours`."""
        pods = make_pods(name, 1, make_shape({"cpu": cpu}), node=node, phase="Running")
        self.put(make_group(name, 1, dialect="volcano", queue="ours"), *pods)

    def put_tenants_gangs(self, *more: str) -> None:
        """Gangs of the namespace `tenant` with a pod each that fits nowhere, and with small pods of
        these roles.
        """
        for number in range(GANGS):
            name = f"t-{number}"
            group = make_group(
                name, len(more) or 1, dialect="volcano", queue="theirs", namespace="tenant"
            )
            small = [
                pod
                for role in more
                for pod in make_pods(name, 1, SMALL, role=role, namespace="tenant")
            ]
            self.put(group, *small)
            if not small:
                self.put_large_pod(name)

    def put_large_pod(self, gang: str) -> None:
        """A pod with a claim that is larger than any node."""
        shape = make_shape({"cpu": 5_000}, claims=(gang,), namespace="tenant")
        self.put(make_claim(gang, namespace="tenant"))
        self.put(*make_pods(gang, 1, shape, namespace="tenant"))

    def submit(self, name: str, *, cpu: int, queue: str = "ours", priority: int = 0) -> None:
        """A gang of one pod of the namespace `team`, the newest of all."""
        created_ms = self.now_ms
        pods = make_pods(
            name, 1, make_shape({"cpu": cpu}), priority=priority, created_ms=created_ms
        )
        group = make_group(name, 1, dialect="volcano", queue=queue, created_ms=created_ms)
        self.put(group, *pods)

    def cycles_until_decided(self, name: str) -> int | None:
        """In each cycle capacity has been freed, so everything that waits is tried again."""
        for number in range(CYCLES):
            self.remove(self.pods[f"ends-{number}-worker-0"])
            decisions = self.step(after_ms=100).decisions
            if any(one.gang_id == f"group-{name}" for one in decisions):
                return number
        return None


def test_a_gang_of_another_queue_is_placed_before_all_that_never_fit_are_tried() -> None:
    # The tenant's queue holds nothing, so it has the first turn in every cycle.
    scene = Shared()
    scene.put_tenants_gangs()
    scene.submit("good", cpu=500)
    assert scene.cycles_until_decided("good") == 0


def test_a_gang_behind_them_in_their_own_queue_is_placed_as_well() -> None:
    scene = Shared()
    scene.put_tenants_gangs()
    scene.submit("good", cpu=500, queue="theirs")
    assert scene.cycles_until_decided("good") == 0


def test_a_gang_that_is_like_one_of_theirs_does_not_come_after_them() -> None:
    scene = Shared()
    scene.put_tenants_gangs()
    like = make_shape({"cpu": 500})
    twin = make_group("twin", 1, dialect="volcano", queue="theirs", namespace="tenant")
    scene.put(twin, *make_pods("twin", 1, like, namespace="tenant"))
    scene.submit("good", cpu=500, queue="theirs")
    assert scene.cycles_until_decided("good") == 0


def test_pods_are_evicted_for_another_gang_though_placing_has_used_up_its_work() -> None:
    scene = Shared(WHOLE_GANGS)
    scene.put_tenants_gangs()
    scene.run_pod("low-0", cpu=3_900)
    scene.run_pod("low-1", cpu=3_900, node="n1")
    scene.submit("good", cpu=3_800, priority=5)
    assert scene.cycles_until_decided("good") == 0
    assert any(isinstance(one, EvictionDecision) for _, one in scene.records)


def test_a_gang_is_placed_beside_repairs_of_another_namespace_that_never_end() -> None:
    scene = Shared()
    scene.put_tenants_gangs("bound", "lost")
    decisions = scene.settle()
    assert len(decisions) == GANGS
    for decision in decisions:
        scene.bind(decision, only=1)
        unbound = scene.pods[decision.bindings[1].uid]
        scene.remove(unbound)
        scene.put_large_pod(unbound.group_name)
    scene.step()
    scene.step(after_ms=5_000)
    assert len(scene.state.repairs) == GANGS
    scene.submit("good", cpu=500)
    assert scene.cycles_until_decided("good") == 0
