"""Losses are judged when their record is read: one that gets no hold awaits none, whether or not
the planner leads. A hold that is opened is kept only where the gang may use the room.
"""

from collections.abc import Callable
from typing import Any

import pytest

from shared.model.objects import HostPort, Pod, Queue
from tests.services.gang_planner.core.lifecycle import gang_lives as lives
from tests.services.gang_planner.core.lifecycle import test_deadlines as deadlines
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.losing import in_full_queue, place_of, running
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

LOST = "job-worker-1"


def awaiting(scene: Scene) -> list[str]:
    """Lost pods that get their holds in the next cycle."""
    return list(scene.state.holds.pending)


def above_its_minimum() -> Scene:
    return running(minimum=2)


def being_deleted() -> Scene:
    scene = running()
    scene.put(make_group("job", 3, resource_version=2, deleting=True))
    return scene


def all_leaving() -> Scene:
    scene = running()
    for pod in scene.pods_of("job"):
        scene.change(pod.uid, deleting=True)
    return scene


@pytest.mark.parametrize("begin", [above_its_minimum, being_deleted, all_leaving])
def test_no_hold_is_awaited_for_a_member_that_its_gang_does_not_get_again(
    begin: Callable[[], Scene],
) -> None:
    scene = begin()
    scene.remove(scene.pods[LOST])
    assert awaiting(scene) == []


def test_no_hold_is_awaited_for_a_victim_of_a_release() -> None:
    scene, _ = deadlines.placed(settings=deadlines.start_by(20))
    scene.until_quiet(within_ms=20_000)
    (release,) = scene.releases
    scene.remove(scene.pods[release.victims[0].uid])
    assert awaiting(scene) == []


def test_a_loss_awaits_a_hold_only_while_it_would_get_one() -> None:
    scene = running()
    scene.remove(scene.pods[LOST])
    assert awaiting(scene) == [LOST]
    scene.put(make_group("job", 3, resource_version=2, deleting=True))
    assert awaiting(scene) == []


def test_no_room_is_held_beyond_what_the_queue_may_use() -> None:
    scene = in_full_queue()
    less = amounts(gpu=2)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=2, capability=less))
    scene.change(LOST, phase="Failed")
    scene.step()
    (hold,) = scene.holds()
    assert hold.node == ""


def test_no_room_is_held_on_a_node_that_the_gang_avoids() -> None:
    scene = Scene([make_node("n0")])
    half = make_shape({"cpu": 2000})
    scene.put(make_group("job", 1), *make_pods("job", 2, half)[:1])
    (first,) = scene.settle()
    scene.run(first)
    scene.put(make_pods("job", 2, half)[1])
    (extra,) = scene.settle()
    scene.outcome(extra, {LOST: "unprepared"})
    scene.change("job-worker-0", phase="Failed")
    scene.step()
    (hold,) = scene.holds()
    assert (hold.lost_on, hold.node) == ("n0", "")


def test_no_room_is_held_where_another_pod_has_the_port_of_the_lost_one() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    shape = make_shape({GPU: 1}, host_ports=(HostPort(port=80),))
    scene.put(make_group("job", 2), *make_pods("job", 2, shape))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    place = place_of(scene, LOST)
    scene.change(LOST, phase="Failed")
    scene.put(_foreign(place, make_shape({}, host_ports=(HostPort(port=80),))))
    scene.step()
    (hold,) = scene.holds()
    assert (hold.lost_on, hold.node) == (place, "")


def test_a_hold_ends_when_its_gang_is_released() -> None:
    scene, _ = deadlines.placed(settings=deadlines.start_by(20))
    scene.until_quiet(within_ms=15_000)
    scene.change("a-worker-1", phase="Failed")
    scene.until_quiet(within_ms=5_000)
    assert len(scene.releases) == 1
    assert scene.notes("hold") == [("opened", "PodFailed"), ("closed", "Released")]


def with_a_hold() -> LoggedScene:
    """A gang of three has lost a member."""
    scene, _ = deadlines.placed()
    scene.change("a-worker-1", phase="Failed")
    scene.until_quiet()
    assert len(scene.holds()) == 1
    return scene


def test_a_hold_ends_when_its_gang_is_gone_unseen() -> None:
    scene = with_a_hold()
    scene.pods.clear()
    del scene.objects["group-a"]
    scene.restart()
    scene.until_quiet()
    assert scene.notes("hold")[-1] == ("closed", "GroupGone")


def test_a_hold_waits_for_a_cluster_state_that_has_its_gang() -> None:
    scene = with_a_hold()
    newest, pods = scene.cluster_seq, list(scene.pods.values())
    group = scene.objects.pop("group-a")
    scene.pods.clear()
    scene.cluster_seq = 0
    scene.restart()
    scene.until_quiet()
    scene.cluster_seq = newest
    scene.put(group, *pods)
    scene.until_quiet()
    assert len(scene.holds()) == 1
    assert scene.notes("hold") == [("opened", "PodFailed")]


def test_the_hold_of_a_repair_ends_when_nothing_of_the_gang_is_bound() -> None:
    scene = lives.cluster()
    worker, *_ = lives.submit(scene, 2, minimum=3)
    (ps,) = make_pods("a", 1, lives.FULL, role="ps")
    scene.put(ps)
    scene.step()
    _, decision = scene.decisions[-1]
    nodes = {one.uid: one.node for one in decision.bindings}
    for uid in ("a-worker-0", "a-worker-1"):
        scene.change(uid, node=nodes[uid])
    last = [one.uid for one in decision.bindings].index(ps.uid)
    lives.fail(scene, lives.failed(decision, last))
    for name in scene.objects:
        if name.startswith("uid-"):
            scene.put(make_node(name[4:], unschedulable=True, resource_version=2))
    scene.until_quiet()
    scene.remove(worker)
    scene.until_quiet()
    assert scene.notes("hold") == [("opened", "Repair")]
    scene.remove(scene.pods["a-worker-1"])
    scene.until_quiet()
    assert scene.notes("hold") == [("opened", "Repair"), ("closed", "RepairEnded")]


def _foreign(node: str, shape: bytes) -> Pod:
    """A pod of another scheduler on a node."""
    fields: dict[str, Any] = {"group_name": "", "owner": None, "ours": False}
    (pod,) = make_pods("foreign", 1, shape, node=node, phase="Running", **fields)
    return pod
