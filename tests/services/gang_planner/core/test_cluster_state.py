"""Records, epochs and snapshots: the state is the cluster's, whatever order things arrive in."""

import msgspec
import pytest

from services.gang_planner.core.state.columns import AMOUNT_MAX
from shared.contracts.cluster import NodeChanges, PodChanges, StreamOpened, Synced
from shared.model.invariants import InvariantViolation
from shared.model.reference_objects import Budget
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

FULL = make_shape({"cpu": 4000})


def free_cpu(scene: Scene, node: str) -> int:
    state = scene.state
    slot = state.nodes.find(node)
    assert slot is not None
    return int(state.node_capacity.free.cells[state.resources.row("cpu"), slot])


def test_an_older_version_within_an_epoch_is_ignored() -> None:
    scene = Scene([make_node("n0")])
    scene.put(*make_pods("a", 1, FULL, node="n0", resource_version=5))
    scene.change("a-worker-0", node="", resource_version=4)
    scene.put(make_node("n0", {"cpu": 1}, resource_version=0))
    assert free_cpu(scene, "n0") == 0
    assert scene.state.members["a-worker-0"].pod.node == "n0"


def test_a_record_older_than_the_cluster_state_is_ignored() -> None:
    scene = Scene([make_node("n0")])
    scene.planner.apply_cluster(
        scene.cluster_seq, NodeChanges(epoch=1, at_ms=1, changed=(make_node("late"),))
    )
    assert scene.state.nodes.find("late") is None


def test_a_new_epoch_replaces_the_cluster_state_and_overrides_versions() -> None:
    scene = Scene([make_node("n0"), make_node("gone", resource_version=50)])
    scene.put(*make_pods("a", 2, FULL, resource_version=50))
    scene.settle()
    scene.pods.pop("a-worker-1")
    scene.pods["a-worker-0"] = msgspec.structs.replace(
        scene.pods["a-worker-0"], resource_version=7, priority=3
    )
    scene.load_snapshot([make_node("n0", {"cpu": 9000}, resource_version=0)], epoch=9)
    scene.step()
    state = scene.state
    assert sorted(state.members) == ["a-worker-0"]
    assert state.members["a-worker-0"].pod.priority == 3
    assert [one.name for one in state.nodes.objects if one is not None] == ["n0"]
    assert free_cpu(scene, "n0") == 9000
    assert scene.planner.view.epoch == 9


def test_a_budget_that_has_stopped_to_be_a_group_is_a_budget_still() -> None:
    scene = Scene([make_node("n0")])
    budget = Budget(uid="b", namespace="team", name="b", resource_version=3)
    group = make_group("b", 2)
    scene.put(msgspec.structs.replace(group, uid="b"))
    scene.load_snapshot([make_node("n0")], epoch=9, objects=[budget])
    assert "b" not in scene.state.gangs.groups
    assert list(scene.state.reference_objects.budgets) == ["b"]


def test_decisions_in_flight_survive_a_snapshot_that_still_shows_their_pods_unbound() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    (decision,) = scene.settle()
    scene.load_snapshot([make_node("n0")], epoch=9, objects=[make_group("a", 1)])
    scene.step()
    assert free_cpu(scene, "n0") == 0
    scene.bind(decision)
    scene.step()
    assert scene.verdict("a").phase == "Running"


def test_a_record_of_an_unknown_epoch_makes_the_state_stale_until_its_snapshot() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    scene.cluster_seq += 1
    scene.planner.apply_cluster(
        scene.cluster_seq, Synced(epoch=9, at_ms=scene.now_ms, watcher="other")
    )
    assert scene.settle() == []
    scene.load_snapshot([make_node("n0")], epoch=9, objects=[make_group("a", 1)])
    assert len(scene.settle()) == 1


def test_records_of_a_past_epoch_are_ignored() -> None:
    scene = Scene([make_node("n0")])
    scene.load_snapshot([make_node("n0")], epoch=9)
    scene.cluster_seq += 1
    scene.planner.apply_cluster(
        scene.cluster_seq, PodChanges(epoch=1, at_ms=1, changed=tuple(make_pods("a", 1, FULL)))
    )
    assert scene.state.members == {}


def test_record_one_of_the_stream_changes_nothing() -> None:
    scene = Scene([make_node("n0")])
    scene.cluster_seq += 1
    scene.planner.apply_cluster(
        scene.cluster_seq, StreamOpened(stream="CLUSTER", generation="i", at_ms=1)
    )
    validate(scene.planner)


def test_pods_may_come_before_their_node_and_stay_after_it() -> None:
    scene = Scene()
    (pod,) = make_pods("a", 1, FULL, node="n0", phase="Running")
    scene.put(pod)
    validate(scene.planner)
    scene.put(make_node("n0"))
    assert free_cpu(scene, "n0") == 0
    scene.remove(make_node("n0"))
    validate(scene.planner)
    assert free_cpu(scene, "n0") == -4000
    scene.remove(pod)
    assert scene.state.nodes.find("n0") is None, "nothing is left to remember it for"


def test_a_node_that_comes_back_with_another_uid_is_one_node() -> None:
    scene = Scene([make_node("n0")])
    again = msgspec.structs.replace(make_node("n0", {"cpu": 9000}), uid="other")
    scene.put(again)
    scene.remove(make_node("n0"))
    assert free_cpu(scene, "n0") == 9000
    validate(scene.planner)


def test_finished_pods_and_their_ports_give_their_room_back() -> None:
    scene = Scene([make_node("n0")])
    (pod,) = make_pods("a", 1, FULL, node="n0", phase="Running")
    scene.put(pod)
    scene.change(pod.uid, phase="Succeeded")
    assert free_cpu(scene, "n0") == 4000


def test_a_pod_that_is_resized_in_place_is_accounted_again() -> None:
    scene = Scene([make_node("n0")])
    scene.put(*make_pods("a", 1, FULL, node="n0", phase="Running"))
    scene.change("a-worker-0", shape=make_shape({"cpu": 500}))
    validate(scene.planner)
    assert free_cpu(scene, "n0") == 3500


def test_a_late_record_does_not_bring_back_a_pod_in_flight_with_another_shape_unnoticed() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    (decision,) = scene.settle()
    scene.change("a-worker-0", shape=make_shape({"cpu": 500}))
    validate(scene.planner)
    scene.bind(decision)
    scene.step()
    assert free_cpu(scene, "n0") == 3500


@pytest.mark.parametrize("amount", [2**62, 2**63 - 1])
def test_absurd_amounts_are_clamped_and_never_overflow(amount: int) -> None:
    scene = Scene([make_node("n0", {"cpu": 2**63 - 1, "memory": 1 << 30, "pods": 110})])
    for index in range(50):
        scene.put(
            *make_pods(
                f"g{index}", 1, make_shape({"cpu": amount}), group_name="", owner=None, node="n0"
            )
        )
    scene.put(*make_pods("a", 1, make_shape({"cpu": amount}), group_name="", owner=None))
    assert scene.settle() == []
    assert free_cpu(scene, "n0") == AMOUNT_MAX - 50 * (AMOUNT_MAX + 1)


def test_bytes_that_are_no_shape_make_a_pod_that_is_never_bound() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 1), *make_pods("a", 1, b"\xff\x00nonsense"))
    assert scene.settle() == []
    why = scene.verdict("a").why
    assert why is not None
    assert why.reason == "Unsupported"


def test_a_corrupted_state_is_found_and_reported_with_its_event_history() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 1, min_resources=amounts(cpu=1)), *make_pods("a", 1, FULL))
    scene.settle()
    state = scene.state
    state.node_capacity.free.cells[state.resources.row("cpu"), 0] += 1
    with pytest.raises(
        InvariantViolation, match="node n0: 1 cpu free, 0 by its pods and reservations"
    ):
        validate(scene.planner)
    state.node_capacity.free.cells[state.resources.row("cpu"), 0] -= 1
    gang = state.gangs.by_id["group-a"]
    gang.counts[0] += 1
    with pytest.raises(InvariantViolation, match="team/a: counts"):
        validate(scene.planner)
    gang.counts[0] -= 1
    state.queues.entry("default").used[0] = 77
    with pytest.raises(InvariantViolation, match="queue default"):
        validate(scene.planner)
