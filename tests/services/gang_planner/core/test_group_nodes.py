"""Groups that may use only nodes with, or without, a label: KAI's node pools."""

import msgspec
import pytest

from shared.model.objects import Node, PodGroup, Requirement
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import (
    WHOLE_GANGS,
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

CPU = make_shape({"cpu": 1000})
POOL = "kai.scheduler/node-pool"
IN_A = (Requirement(key=POOL, operator="In", values=("a",)),)
IN_NONE = (Requirement(key=POOL, operator="DoesNotExist"),)


def node(name: str, pool: str = "", cpus: int = 4) -> Node:
    labels = ((POOL, pool),) if pool else ()
    amounts = {"cpu": 1000 * cpus, "memory": 8 << 30, "pods": 110}
    return make_node(name, amounts, labels=labels)


def group(name: str, size: int, nodes: tuple[Requirement, ...]) -> PodGroup:
    return make_group(name, size, nodes=nodes)


def places(scene: Scene) -> dict[str, str]:
    """Pod -> node of all that are bound now."""
    return {
        binding.name: binding.node for decision in scene.settle() for binding in decision.bindings
    }


@pytest.mark.parametrize(
    ("nodes", "used"), [(IN_A, {"in-a"}), (IN_NONE, {"plain"}), ((*IN_A, *IN_NONE), set())]
)
def test_a_group_uses_only_nodes_that_satisfy_its_requirements(
    nodes: tuple[Requirement, ...], used: set[str]
) -> None:
    scene = Scene([node("in-a", "a"), node("in-b", "b"), node("plain")])
    scene.put(group("job", 3, nodes), *make_pods("job", 4, CPU))
    assert set(places(scene).values()) == used


def test_gangs_that_are_placed_in_one_pass_stay_on_their_nodes() -> None:
    scene = Scene([node("in-a", "a"), node("plain", cpus=40)])
    for index in range(5):
        scene.put(group(f"job-{index}", 1, IN_A), *make_pods(f"job-{index}", 1, CPU))
    found = places(scene)
    assert set(found.values()) == {"in-a"}
    assert len(found) == 4


def test_a_waiting_gang_names_the_label_and_starts_when_a_node_gets_it() -> None:
    scene = Scene([node("in-a", "a", cpus=1), node("plain")])
    scene.put(group("job", 2, IN_A), *make_pods("job", 2, CPU))
    assert places(scene) == {}
    scene.step(after_ms=3_000)
    why = scene.verdict("job").why
    assert why is not None
    assert why.sentence.startswith(
        f"a group that requires the label {POOL}=a may use 1 of 2 nodes; "
    )
    scene.put(msgspec.structs.replace(node("plain", "a"), resource_version=2))
    assert len(places(scene)) == 2


def test_pods_are_evicted_only_where_the_group_may_be() -> None:
    """The gang on the node of the pool costs more: it is of a higher priority than the other."""
    scene = LoggedScene([node("in-a", "a"), node("plain")], conf=WHOLE_GANGS)
    running(scene, "middle", 1, priority=5, group={"nodes": IN_A})
    running(scene, "low", 1, group={"nodes": IN_NONE})
    submit(scene, "high", 1, priority=9, group={"nodes": IN_A})
    scene.until_quiet()
    (found,) = evictions(scene)
    assert names(found.victims) == ["middle-worker-0"]
