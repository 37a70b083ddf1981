"""Room kept for a member that a starting gang has lost, until its repair ends."""

from shared.contracts.decisions import NoteClosed, NoteOpened
from tests.services.gang_planner.core.losing import bound_of, closed, queue_up, successor
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

WORKER = make_shape({GPU: 1})


def starting(*, nodes: int = 3) -> Scene:
    """`job` needs three workers; two are bound, the third is in flight."""
    scene = Scene(make_node(f"node-{i}") for i in range(nodes))
    scene.put(make_group("job", 3), *make_pods("job", 3, WORKER))
    (decision,) = scene.settle()
    scene.bind(decision, only=2)
    scene.settle()
    return scene


def bound_uid(scene: Scene) -> str:
    return next(uid for uid, pod in scene.pods.items() if pod.node)


def test_the_place_of_a_bound_member_is_kept_for_the_pod_that_is_made_again() -> None:
    scene = starting()
    queue_up(scene)
    uid = bound_uid(scene)
    place = scene.pods[uid].node
    scene.remove(scene.pods[uid])
    assert scene.settle() == []
    (hold,) = scene.holds()
    assert (hold.reason, hold.node) == ("Repair", place)
    repair = next(one for _, one in scene.records if getattr(one, "kind", "") == "repair")
    assert isinstance(repair, NoteOpened)
    assert hold.until_ms == repair.until_ms

    scene.put(successor(int(uid[-1])))
    decisions = scene.settle()
    assert bound_of(decisions) == {f"{uid}-again": place}
    assert decisions[0].fills == (uid,)
    assert closed(scene) == ["Filled"]
    assert scene.holds() == []


def test_the_room_goes_when_the_repair_is_over() -> None:
    scene = starting()
    queue_up(scene)
    uid = bound_uid(scene)
    scene.remove(scene.pods[uid])
    scene.settle()
    for pod in scene.pods_of("job"):
        scene.remove(pod)
    assert len(scene.settle()) == 1
    assert scene.holds() == []
    ended = [one for _, one in scene.records if isinstance(one, NoteClosed)]
    assert {one.kind for one in ended} == {"repair", "hold"}


def test_nothing_is_kept_for_a_pod_that_no_controller_makes_again() -> None:
    scene = Scene(make_node(f"node-{i}") for i in range(3))
    scene.put(make_group("job", 3), *make_pods("job", 3, WORKER, owner=None))
    (decision,) = scene.settle()
    scene.bind(decision, only=2)
    scene.settle()
    scene.remove(scene.pods[bound_uid(scene)])
    scene.settle()
    assert scene.holds() == []


def test_a_gang_of_higher_priority_does_not_take_room_that_a_repair_keeps() -> None:
    scene = starting()
    scene.remove(scene.pods[bound_uid(scene)])
    scene.settle()
    scene.put(make_group("urgent", 1), *make_pods("urgent", 1, WORKER, priority=100))
    assert scene.settle() == []
    assert len(scene.holds()) == 1


def test_a_member_that_its_kubelet_refused_is_kept_room_on_another_node() -> None:
    scene = starting(nodes=4)
    uid = bound_uid(scene)
    place = scene.pods[uid].node
    scene.change(uid, phase="Failed", reason="OutOfcpu")
    scene.settle()
    (hold,) = scene.holds()
    assert hold.node not in {"", place}
