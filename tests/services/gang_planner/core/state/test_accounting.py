"""Whose load is on a node: pods that are there, and those that another scheduler has put there
already.
"""

from typing import Any

from shared.model.objects import Pod
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

WHOLE = make_shape({"cpu": 4000})


def nominated(node: str, **fields: Any) -> Pod:
    """A pod of another scheduler that waits for its victims to leave."""
    (pod,) = make_pods(
        "x", 1, WHOLE, ours=False, group_name="", owner=None, nominated_node=node, **fields
    )
    return pod


def gang(scene: Scene) -> dict[str, str]:
    """Where a gang of one goes."""
    scene.put(make_group("g", 1), *make_pods("g", 1, WHOLE))
    return {name: node for one in scene.settle() for name, node in scene.where(one).items()}


def test_the_node_that_another_scheduler_nominates_is_left_to_it() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(nominated("n0"))
    assert gang(scene) == {"g-worker-0": "n1"}


def test_a_nomination_that_is_taken_back_frees_the_room() -> None:
    scene = Scene([make_node("n0")])
    pod = nominated("n0")
    scene.put(pod)
    assert gang(scene) == {}
    scene.change(pod.uid, nominated_node="")
    assert len(scene.settle()) == 1


def test_a_nominated_pod_that_is_bound_elsewhere_takes_room_there_alone() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    pod = nominated("n0")
    scene.put(pod)
    scene.change(pod.uid, node="n1", phase="Running")
    assert gang(scene) == {"g-worker-0": "n0"}


def test_a_node_that_appears_after_it_was_nominated_is_taken() -> None:
    scene = Scene()
    scene.put(nominated("n0"))
    scene.put(make_node("n0"))
    assert gang(scene) == {}


def test_a_nomination_of_our_own_pod_by_others_means_nothing() -> None:
    """kube-scheduler may have nominated it before it got our scheduler's name."""
    scene = Scene([make_node("n0")])
    scene.put(make_group("h", 1), *make_pods("h", 1, WHOLE, gates=("wait",), nominated_node="n0"))
    assert gang(scene) == {"g-worker-0": "n0"}
