"""Nodes that autoscalers add and remove, and nodes that are not ready: no gang starts on them, and
members on a node that is being removed or not ready get room elsewhere before they are evicted.
"""

import pytest

from shared.model.objects import Requirement, SelectorTerm, Taint, Toleration
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.losing import (
    WORKER,
    bound_of,
    closed,
    opened,
    place_of,
    queue_up,
    running,
    successor,
)
from tests.services.gang_planner.core.preemption.crowd import evictions
from tests.services.gang_planner.core.preemption.test_tracking import asked
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

LEAVES = Taint(key="ToBeDeletedByClusterAutoscaler", value="1764208800", effect="NoSchedule")
TOLERATES_ALL = make_shape({GPU: 1}, tolerations=(Toleration(operator="Exists"),))
KEYS = (
    "node.cloudprovider.kubernetes.io/uninitialized",
    "karpenter.sh/unregistered",
    "ignore-taint.cluster-autoscaler.kubernetes.io/gpu-driver",
    "startup-taint.cluster-autoscaler.kubernetes.io/gpu-driver",
    "status-taint.cluster-autoscaler.kubernetes.io/maintenance",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
)


def leave(scene: Scene, name: str, *taints: Taint) -> None:
    """An autoscaler sets these taints on a node; none: it removes them."""
    version = scene.cluster_seq + 10
    scene.put(make_node(name, taints=taints, resource_version=version))


def evict(scene: Scene, uid: str) -> None:
    scene.change(uid, deleting=True, disrupted=True)
    scene.settle()
    scene.remove(scene.pods[uid])


@pytest.mark.parametrize("key", KEYS)
def test_no_gang_starts_on_a_node_that_is_being_added_or_removed(key: str) -> None:
    """Not even one that tolerates every taint, as jobs on GPUs often do."""
    taint = Taint(key=key, effect="NoSchedule")
    scene = Scene([make_node("node-0", taints=(taint,))])
    scene.put(make_group("job", 1), *make_pods("job", 1, TOLERATES_ALL))
    assert scene.settle() == []
    why = scene.verdicts["group-job"].why
    assert why is not None
    assert "1 node(s) were being added or removed" in why.sentence
    leave(scene, "node-0")
    assert bound_of(scene.settle()) == {"job-worker-0": "node-0"}


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(
            make_shape({GPU: 1}, tolerations=(Toleration(key=KEYS[0], operator="Exists"),)),
            id="it tolerates the taint by name",
        ),
        pytest.param(
            make_shape(
                {GPU: 1},
                tolerations=(Toleration(operator="Exists"),),
                node_affinity=(
                    SelectorTerm(
                        fields=(
                            Requirement(key="metadata.name", operator="In", values=("node-0",)),
                        )
                    ),
                ),
            ),
            id="it names its node, as pods of a DaemonSet do",
        ),
    ],
)
def test_pods_that_belong_on_such_a_node_are_placed(shape: bytes) -> None:
    scene = Scene([make_node("node-0", taints=(Taint(key=KEYS[0], effect="NoSchedule"),))])
    scene.put(make_group("job", 1), *make_pods("job", 1, shape))
    assert len(scene.settle()) == 1


def test_a_hold_for_a_node_that_is_removed_lasts_from_the_end_of_its_pod() -> None:
    scene = running(nodes=4)
    leave(scene, place_of(scene, "job-worker-1"), LEAVES)
    scene.settle()
    scene.now_ms += 50_000
    evict(scene, "job-worker-1")
    scene.settle()
    (hold,) = scene.holds()
    assert hold.until_ms == scene.now_ms + 60_000


def test_a_victim_of_a_preemption_gets_no_hold_for_its_node() -> None:
    scene = asked()
    victim, *_ = evictions(scene)[0].victims
    node = scene.pods[victim.uid].node
    scene.put(make_node(node, ready=False, resource_version=9))
    scene.until_quiet()
    assert victim.uid not in {hold.uid for hold in scene.holds()}


def test_room_is_reserved_before_the_eviction_and_the_successor_takes_it() -> None:
    scene = running(nodes=4)
    leaving = place_of(scene, "job-worker-1")
    free = next(f"node-{i}" for i in range(4) if not _pods_on(scene, f"node-{i}"))
    leave(scene, leaving, LEAVES)
    scene.settle()
    (hold,) = scene.holds()
    assert (hold.reason, hold.node) == ("NodeLeaving", free)
    (note,) = opened(scene)
    assert (note.reason, note.node, note.lost_on) == ("NodeLeaving", free, leaving)
    queue_up(scene)
    conditions = {one.type: one for one in scene.verdicts["group-job"].conditions}
    assert (conditions["RoomHeld"].status, conditions["RoomHeld"].reason) == (
        "True",
        "NodesLeaving",
    )
    assert f"is on {leaving}, which is being removed" in conditions["RoomHeld"].message

    evict(scene, "job-worker-1")
    assert scene.settle() == [], "a waiting gang does not get the reserved room"
    (hold,) = scene.holds()
    assert (hold.reason, hold.until_ms) == ("PodEvicted", scene.now_ms + 60_000)
    scene.put(successor(1))
    decisions = scene.settle()
    assert bound_of(decisions) == {"job-worker-1-again": free}
    assert closed(scene) == ["Filled"]


def _pods_on(scene: Scene, node: str) -> list[str]:
    return [uid for uid, pod in scene.pods.items() if pod.node == node]


def fail(scene: Scene, name: str, *, ready: bool = False) -> None:
    """A node becomes not ready, or ready again."""
    version = scene.cluster_seq + 10
    scene.put(make_node(name, ready=ready, resource_version=version))


def test_a_node_that_is_not_ready_announces_a_loss_until_it_is_ready_again(golden: Golden) -> None:
    """Kubernetes evicts its pods after five minutes."""
    scene = running(nodes=4)
    failing = place_of(scene, "job-worker-1")
    fail(scene, failing)
    scene.settle()
    (hold,) = scene.holds()
    assert hold.reason == "NodeLeaving"
    assert hold.node not in {"", failing}
    golden(hold.message)
    queue_up(scene)
    for _ in range(3):
        scene.step(after_ms=60_000)
        assert scene.holds() == [hold]
    fail(scene, failing, ready=True)
    assert len(scene.settle()) == 1, "a waiting gang gets the room"
    assert closed(scene) == ["Returned"]
    # The next time it is evicted.
    fail(scene, failing)
    scene.settle()
    evict(scene, "job-worker-1")
    scene.settle()
    assert [one.reason for one in scene.holds()] == ["PodEvicted"]


def test_a_pod_that_tolerates_every_taint_stays_on_a_node_that_is_not_ready() -> None:
    scene = Scene([make_node("node-0"), make_node("node-1")])
    scene.put(make_group("job", 1), *make_pods("job", 1, TOLERATES_ALL))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    fail(scene, place_of(scene, "job-worker-0"))
    scene.settle()
    assert scene.holds() == []


def test_nothing_is_announced_while_most_nodes_are_not_ready() -> None:
    """Kubernetes evicts nothing then, and every member of every gang would get a hold."""
    scene = running(nodes=4)
    for index in range(4):
        fail(scene, f"node-{index}")
    scene.settle()
    assert scene.holds() == []


def test_without_room_the_successor_is_first_in_line() -> None:
    scene = running()
    leave(scene, place_of(scene, "job-worker-1"), LEAVES)
    queue_up(scene)
    (hold,) = scene.holds()
    assert hold.reservation is None
    scene.put(make_node("node-9"))
    assert scene.settle() == [], "it is reserved"
    assert scene.holds()[0].node == "node-9"


def test_the_hold_lasts_as_long_as_the_node_is_leaving_and_ends_if_the_node_stays() -> None:
    scene = running(nodes=4)
    leaving = place_of(scene, "job-worker-1")
    leave(scene, leaving, LEAVES)
    queue_up(scene)
    for _ in range(3):
        scene.step(after_ms=60_000)
    (hold,) = scene.holds()
    assert hold.until_ms > scene.now_ms
    leave(scene, leaving)
    assert len(scene.settle()) == 1, "a waiting gang gets the room"
    assert closed(scene) == ["Returned"]
    # A later loss is a loss like others.
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    assert [one.reason for one in opened(scene)][-1] == "PodFailed"


def test_members_that_wait_do_not_take_the_room_of_a_member_that_is_still_there() -> None:
    scene = running(2, nodes=3)
    leave(scene, place_of(scene, "job-worker-1"), LEAVES)
    scene.settle()
    scene.put(*make_pods("job", 3, WORKER)[2:])
    assert scene.settle() == []
    (hold,) = scene.holds()
    assert hold.reservation is not None


def test_a_member_that_a_user_deletes_meanwhile_is_not_awaited_by_a_gang_that_has_enough() -> None:
    scene = running(3, nodes=4, minimum=1)
    leave(scene, place_of(scene, "job-worker-1"), LEAVES)
    scene.settle()
    scene.change("job-worker-1", deleting=True)
    scene.settle()
    assert closed(scene) == ["ScaledDown"]


@pytest.mark.parametrize(
    "taint",
    [
        pytest.param(
            Taint(key="DeletionCandidateOfClusterAutoscaler", effect="PreferNoSchedule"),
            id="only a candidate",
        ),
        pytest.param(Taint(key="example.com/other", effect="NoSchedule"), id="another taint"),
    ],
)
def test_other_taints_announce_no_loss(taint: Taint) -> None:
    scene = running(nodes=4)
    leave(scene, place_of(scene, "job-worker-1"), taint)
    scene.settle()
    assert scene.holds() == []


def test_a_planner_that_takes_over_keeps_the_room() -> None:
    scene = LoggedScene([make_node(f"node-{i}") for i in range(3)])
    scene.put(make_group("job", 2), *make_pods("job", 2, WORKER))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    leaving = place_of(scene, "job-worker-1")
    scene.put(make_node(leaving, taints=(LEAVES,), resource_version=2))
    scene.until_quiet()
    (before,) = scene.holds()
    scene.remove(scene.pods["job-worker-1"])
    scene.restart()
    scene.until_quiet()
    (after,) = scene.holds()
    assert (after.uid, after.node, after.reason) == (before.uid, before.node, "PodEvicted")
