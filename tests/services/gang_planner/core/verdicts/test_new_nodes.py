"""Which waiting members are marked for autoscalers: those for which new nodes would help."""

from typing import Any

import pytest

from shared.contracts.pending_reasons import PendingReason
from shared.contracts.pod_reasons import UNSCHEDULABLE, NewNodes, pod_reason
from shared.contracts.verdicts import Verdict
from shared.model.objects import NetworkTopology, Queue, Taint
from shared.model.terms import Requirement, SelectorTerm
from tests.services.gang_planner.core.claims import (
    HOST,
    bound_to,
    make_claim,
    make_class,
    make_device_claim,
    make_device_class,
    make_volume,
    on_host,
)
from tests.services.gang_planner.core.losing import queue_up, running
from tests.services.gang_planner.core.preemption.crowd import (
    cluster,
    evictions,
    refuse,
    submit,
)
from tests.services.gang_planner.core.preemption.crowd import running as run_gang
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.topology import racks

CORES = make_shape({"cpu": 4_000})
HUGE = make_shape({"cpu": 64_000})
ONE_ZONE = NetworkTopology(mode="hard", label_key="zone")


def waiting(scene: Scene, name: str) -> Verdict:
    scene.settle()
    verdict = scene.verdicts[f"group-{name}"]
    assert verdict.why is not None
    assert not verdict.waiting or verdict.unschedulable <= len(verdict.waiting)
    return verdict


def outlook(scene: Scene, name: str = "job") -> tuple[str, int]:
    """The reason of the members that are not Unschedulable, and how many are Unschedulable."""
    verdict = waiting(scene, name)
    assert verdict.why is not None
    return verdict.why.pod_reason or verdict.why.reason, verdict.unschedulable


def in_zones(*zones: str) -> Scene:
    labels = [(("zone", zone),) for zone in zones]
    return Scene(make_node(f"n-{i}", labels=one) for i, one in enumerate(labels))


def test_every_reason_but_missing_capacity_has_a_word_on_which_no_autoscaler_acts() -> None:
    acted_on = {
        reason
        for reason in PendingReason
        for each in NewNodes
        if pod_reason(reason, each) == UNSCHEDULABLE
    }
    assert acted_on == {PendingReason.NOT_ENOUGH_RESOURCES, PendingReason.REPAIR_ROOM}


def test_all_waiting_members_are_unschedulable_if_more_nodes_would_hold_them() -> None:
    scene = Scene([make_node("n-0"), make_node("n-1")])
    scene.put(make_group("job", 3), *make_pods("job", 4, CORES))
    assert outlook(scene) == ("NotEnoughResources", 4)


def test_a_gang_that_waits_for_quota_or_members_is_not_unschedulable() -> None:
    scene = Scene([make_node("n-0")])
    queue = Queue(uid="q", dialect="volcano", name="q", resource_version=1)
    closed = Queue(uid="c", dialect="volcano", name="c", resource_version=1, state="Closed")
    scene.put(Queue(**{**_fields(queue), "capability": amounts(cpu=1_000)}), closed)
    scene.put(make_group("job", 1, queue="q"), *make_pods("job", 1, CORES))
    scene.put(make_group("shut", 1, queue="c"), *make_pods("shut", 1, CORES))
    scene.put(make_group("few", 2), *make_pods("few", 1, CORES))
    assert outlook(scene) == ("NotEnoughQuota", 0)
    assert outlook(scene, "shut") == ("QueueNotOpen", 0)
    assert outlook(scene, "few") == ("NotEnoughPods", 0)


def _fields(queue: Queue) -> dict[str, Any]:
    return {name: getattr(queue, name) for name in queue.__struct_fields__}


def test_of_a_gang_with_members_that_no_node_would_hold_only_these_are_unschedulable() -> None:
    """An autoscaler has a kind of node for them, or adds no node for this gang."""
    scene = Scene([make_node("n-0")])
    scene.put(make_group("job", 3))
    scene.put(*make_pods("job", 2, CORES), *make_pods("job", 1, HUGE, role="master"))
    assert outlook(scene) == ("NodesTooSmall", 1)
    verdict = waiting(scene, "job")
    assert [pod.name for pod in verdict.waiting] == [
        "job-master-0",
        "job-worker-0",
        "job-worker-1",
    ]
    assert verdict.why is not None
    assert verdict.why.sentence.endswith(
        "no node that its pods of role master may use would hold one of them, even when empty"
    )


def test_a_node_that_becomes_usable_at_once_changes_the_outlook_although_nothing_follows() -> None:
    """An autoscaler's node loses its startup taint within the seconds in which numbers are paced,
    and then the cluster is quiet.
    """
    scene = Scene([make_node("n-0")])
    scene.put(make_group("job", 7))
    scene.put(*make_pods("job", 6, CORES), *make_pods("job", 1, HUGE, role="master"))
    assert outlook(scene) == ("NodesTooSmall", 1)
    offered = {"cpu": 64_000, "memory": 256 << 30, "pods": 110}
    taint = Taint(key="karpenter.sh/unregistered", effect="NoExecute")
    scene.put(make_node("large", offered, taints=(taint,)))
    scene.step(after_ms=60_000)
    scene.put(make_node("large", offered, resource_version=2))
    scene.step(after_ms=1_000)
    for _ in range(10):
        if scene.wakeup_ms is None:
            break
        scene.step(after_ms=scene.wakeup_ms - scene.now_ms)
    assert scene.verdict("job").unschedulable == 7
    assert scene.wakeup_ms is None, "it is not examined again and again"


def test_without_any_node_all_members_are_unschedulable() -> None:
    scene = Scene()
    scene.put(make_group("job", 2), *make_pods("job", 2, CORES))
    assert outlook(scene) == ("NodesTooSmall", 2)


def test_of_members_that_no_node_would_hold_the_smaller_wait_for_nodes_for_the_larger() -> None:
    """If no kind of node holds the master, no node is added for the workers, to be removed when it
    has been empty for a while, and added again.
    """
    scene = Scene()
    scene.put(make_group("job", 3))
    scene.put(*make_pods("job", 2, CORES), *make_pods("job", 1, HUGE, role="master"))
    assert outlook(scene) == ("NodesTooSmall", 1)
    assert waiting(scene, "job").waiting[0].name == "job-master-0"
    scene.put(make_node("large", {"cpu": 64_000, "memory": 256 << 30, "pods": 110}))
    scene.step(after_ms=6_000)
    assert outlook(scene) == ("NotEnoughResources", 3)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(make_shape({"cpu": 1_000, "nvidia.com/gpu": 1}), id="another resource"),
        pytest.param(make_shape({"cpu": 64_000}, node_selector=(("a", "b"),)), id="as large"),
        pytest.param(make_shape({"cpu": 1_000}, device_claims=("gpu",)), id="a device"),
    ],
)
def test_members_that_need_different_kinds_of_nodes_are_all_unschedulable(other: bytes) -> None:
    scene = Scene()
    scene.put(make_device_class(), make_device_claim("gpu", namespace=""))
    scene.put(make_group("job", 3))
    scene.put(*make_pods("job", 2, other), *make_pods("job", 1, HUGE, role="master"))
    assert outlook(scene) == ("NodesTooSmall", 3)


def test_extra_members_that_no_node_would_hold_do_not_keep_the_quorum_from_new_nodes() -> None:
    scene = Scene([make_node("n-0")])
    scene.put(make_group("job", 2))
    scene.put(*make_pods("job", 2, CORES), *make_pods("job", 1, HUGE, role="extra"))
    assert outlook(scene) == ("NotEnoughResources", 3)


def test_a_pod_that_only_tainted_nodes_would_hold_needs_other_nodes() -> None:
    taint = Taint(key="team", value="other", effect="NoSchedule")
    scene = Scene([make_node("n-0", taints=(taint,))])
    scene.put(make_group("job", 1), *make_pods("job", 1, CORES))
    assert outlook(scene) == ("NodesTooSmall", 1)


CLAIMING = make_shape({"cpu": 1_000}, claims=("disk",), namespace="team")
LOST = make_claim("disk", volume_name="gone", phase="Lost")


@pytest.mark.parametrize(
    ("shape", "known"),
    [
        pytest.param(CLAIMING, (), id="no claim"),
        pytest.param(CLAIMING, (make_claim("disk", namespace="other"),), id="of another namespace"),
        pytest.param(CLAIMING, (make_claim("disk"),), id="no class"),
        pytest.param(CLAIMING, (LOST,), id="lost"),
        pytest.param(CLAIMING, (bound_to("disk", "gone"),), id="of a volume that is gone"),
        pytest.param(
            make_shape({"cpu": 1_000}, device_claims=("gpu",), namespace="team"), (), id="no device"
        ),
    ],
)
@pytest.mark.parametrize("nodes", [0, 1])
def test_a_claim_that_no_node_can_serve_buys_no_nodes(
    shape: bytes, known: tuple[Any, ...], nodes: int
) -> None:
    scene = Scene([make_node(f"n-{number}") for number in range(nodes)])
    scene.put(*known)
    scene.put(make_group("job", 2), *make_pods("job", 2, shape))
    assert outlook(scene) == ("ClaimsUnusable", 0)
    why = scene.verdict("job").why
    assert why is not None
    assert "new nodes would not help: claims of its pods cannot be used" in why.sentence
    assert "even when empty" not in why.sentence


@pytest.mark.parametrize(
    ("zones", "members", "expected"),
    [
        pytest.param("a", 2, ("NotEnoughResources", 2), id="one zone, which new nodes join"),
        pytest.param("ab", 2, ("TopologyDomainFull", 0), id="it fits, in two zones"),
        pytest.param("aab", 4, ("TopologyDomainFull", 0), id="part of what fits is elsewhere"),
    ],
)
def test_free_capacity_outside_a_domain_does_not_make_an_autoscaler_add_nodes(
    zones: str, members: int, expected: tuple[str, int]
) -> None:
    scene = in_zones(*zones)
    scene.put(make_group("job", members, topology=ONE_ZONE))
    scene.put(*make_pods("job", members, CORES))
    assert outlook(scene) == expected


BY_NAME = SelectorTerm(fields=(Requirement(key="metadata.name", operator="In", values=("n-0",)),))


@pytest.mark.parametrize(
    "selection",
    [
        pytest.param({"node_selector": ((HOST, "n-0"),)}, id="by a label"),
        pytest.param({"node_affinity": on_host("n-0")}, id="by an affinity"),
        pytest.param({"node_affinity": (BY_NAME,)}, id="by the name itself"),
        pytest.param({"claims": ("disk",), "namespace": "team"}, id="by a volume of the node"),
    ],
)
def test_a_member_that_only_a_named_node_may_hold_buys_no_nodes_for_its_gang(
    selection: dict[str, Any],
) -> None:
    """Nodes for its other members would wait for the named one."""
    scene = Scene([make_node("n-0", labels=((HOST, "n-0"),)), make_node("n-1")])
    scene.put(make_class(), make_volume("local", "n-0"), bound_to("disk", "local"))
    at_home = make_shape({"cpu": 4_000}, node_selector=((HOST, "n-0"),))
    scene.put(make_group("other", 1), *make_pods("other", 1, at_home))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.put(make_group("job", 3))
    master = make_shape({"cpu": 4_000}, **selection)
    scene.put(*make_pods("job", 2, CORES), *make_pods("job", 1, master, role="master"))
    assert outlook(scene) == ("NodesNamed", 0)
    why = scene.verdict("job").why
    assert why is not None
    assert "members or their volumes name their nodes" in why.sentence


def test_a_member_that_a_named_node_holds_does_not_keep_its_gang_from_new_nodes() -> None:
    scene = Scene([make_node("n-0", labels=((HOST, "n-0"),))])
    scene.put(make_group("job", 3))
    master = make_shape({"cpu": 4_000}, node_selector=((HOST, "n-0"),))
    scene.put(*make_pods("job", 2, CORES), *make_pods("job", 1, master, role="master"))
    assert outlook(scene) == ("NotEnoughResources", 3)


def test_new_nodes_join_no_hypernode_that_lists_its_nodes() -> None:
    scene = Scene([make_node("n-0"), make_node("n-1")])
    scene.put(racks.hypernode("rack", 1, racks.exactly("n-0"), racks.exactly("n-1")))
    scene.put(make_group("job", 3, topology=racks.ONE_RACK), *make_pods("job", 3, CORES))
    assert outlook(scene) == ("OutsideTopology", 0)
    scene.put(racks.hypernode("rack", 1, racks.nodes_like("^n-")), make_node("n-2", {"pods": 1}))
    scene.step(after_ms=6_000)
    assert outlook(scene) == ("NotEnoughResources", 3)


def test_a_gang_that_reservations_of_another_gang_keep_out_buys_no_nodes() -> None:
    scene = running()
    queue_up(scene)
    assert outlook(scene, "rival") == ("NotEnoughResources", 1)
    scene.remove(scene.pods["job-worker-1"])
    assert outlook(scene, "rival") == ("NotEnoughResources", 1), "its numbers are paced"
    scene.step(after_ms=6_000)
    assert outlook(scene, "rival") == ("CapacityReserved", 0)
    scene.step(after_ms=60_000)
    (decision,) = [one for _, one in scene.decisions if one.gang == "team/rival"]
    scene.run(decision)
    scene.settle()
    assert scene.verdicts["group-rival"].why is None, "the hold is over"


def test_a_gang_for_which_pods_are_evicted_buys_no_nodes_and_one_that_may_evict_none_does() -> None:
    scene = cluster(4)
    run_gang(scene, "low", 4, minimum=1)
    submit(scene, "high", 2, priority=10)
    submit(scene, "same", 2)
    scene.until_quiet()
    assert len(evictions(scene)) == 1
    assert outlook(scene, "high") == ("Preempting", 0)
    assert outlook(scene, "same") == ("NotEnoughResources", 2)
    (eviction,) = evictions(scene)
    nominated = {one.uid: one.node for one in scene.verdict("high").waiting}
    assert nominated == {one.uid: one.node for one in eviction.bindings}
    refuse(scene, {eviction.victims[0].uid})
    scene.until_quiet(within_ms=1_000)
    assert {one.node for one in scene.verdict("high").waiting} == {""}
    assert outlook(scene, "high") == ("NotEnoughResources", 2)


def test_a_gang_behind_the_limit_of_open_preemptions_buys_no_nodes_yet() -> None:
    scene = cluster(20)
    run_gang(scene, "low", 20, minimum=1)
    for index in range(17):
        submit(scene, f"high-{index:02}", 1, priority=10)
    scene.until_quiet()
    assert len(evictions(scene)) == 16
    words = [outlook(scene, f"high-{index:02}")[0] for index in range(17)]
    assert sorted(words) == ["Preempting"] * 16 + ["PreemptionUndecided"]


def test_min_resources_without_pods_are_not_bought() -> None:
    scene = Scene([make_node("n-0")])
    scene.put(make_group("job", 1, min_resources=amounts(cpu=8_000)))
    scene.put(*make_pods("job", 1, CORES))
    assert outlook(scene) == ("MinResources", 0)


OUT_OF_REACH = ("MinResourcesOutOfReach", 0)
FULL = {"cpu": 4_000, "memory": 16 << 30, "pods": 110}


def leader(scene: Scene, cpu: int, **group: Any) -> None:
    """A gang of one pod of 4 CPUs whose group declares `cpu` for all its pods."""
    scene.put(make_group("job", 1, min_resources=amounts(cpu=cpu), **group))
    scene.put(*make_pods("job", 1, CORES))


def filled(cpu: int) -> Scene:
    """A node with this amount of CPU, all in use."""
    scene = Scene([make_node("n-0", {**FULL, "cpu": cpu})])
    scene.put(*make_pods("", 1, make_shape({"cpu": cpu}), role="foreign", node="n-0", ours=False))
    return scene


@pytest.mark.parametrize(
    ("node", "whole", "expected"),
    [
        pytest.param(4_000, 8_000, OUT_OF_REACH, id="a node like this one holds the pod alone"),
        pytest.param(16_000, 8_000, ("NotEnoughResources", 1), id="it holds the whole"),
        pytest.param(16_000, 32_000, OUT_OF_REACH, id="it holds a part"),
        pytest.param(4_000, 4_000, ("NotEnoughResources", 1), id="the pod is the whole"),
    ],
)
def test_a_node_is_bought_for_a_pod_only_if_it_brings_the_rest_of_min_resources(
    node: int, whole: int, expected: tuple[str, int]
) -> None:
    scene = filled(node)
    leader(scene, whole)
    assert outlook(scene) == expected


def test_the_rest_of_min_resources_may_be_free_elsewhere() -> None:
    scene = filled(4_000)
    scene.put(make_node("small-0", {**FULL, "cpu": 3_000}), make_node("small-1", FULL))
    scene.put(
        *make_pods("", 1, make_shape({"cpu": 2_000}), node="small-1", role="other", ours=False)
    )
    leader(scene, 8_000)
    assert outlook(scene) == ("NotEnoughResources", 1)
    leader(scene, 12_000, resource_version=2)
    scene.step(after_ms=6_000)
    assert outlook(scene) == OUT_OF_REACH
    why = waiting(scene, "job").why
    assert why is not None
    assert "would not hold the rest of its minResources" in why.sentence


def bought_once() -> Scene:
    """A gang for which a node was added that held its pod, but not the rest; it is removed."""
    scene = Scene([])
    leader(scene, 8_000)
    assert outlook(scene) == ("NodesTooSmall", 1), "no kind of node is known yet"
    scene.put(make_node("n-0"))
    scene.step(after_ms=6_000)
    assert outlook(scene) == ("MinResources", 0)
    scene.remove(make_node("n-0"))
    scene.step(after_ms=6_000)
    return scene


def test_a_node_that_did_not_hold_min_resources_is_not_bought_again() -> None:
    scene = bought_once()
    assert outlook(scene) == OUT_OF_REACH
    for _ in range(3):
        scene.step(after_ms=3_600_000)
        assert outlook(scene) == OUT_OF_REACH


def test_a_planner_that_takes_over_buys_it_no_second_time() -> None:
    before = bought_once()
    other = Scene([], leading=False)
    leader(other, 8_000)
    other.planner.apply_verdict(before.verdicts["group-job"])
    other.planner.lead(1)
    other.settle()
    other.step(after_ms=6_000)
    found = other.verdicts.get("group-job", before.verdicts["group-job"])
    assert found.out_of_reach
    assert found.unschedulable == 0


def test_other_min_resources_are_tried_again() -> None:
    scene = bought_once()
    leader(scene, 6_000, resource_version=2)
    scene.step(after_ms=6_000)
    assert outlook(scene) == ("NodesTooSmall", 1)
    assert not scene.verdicts["group-job"].out_of_reach


def test_capacity_that_was_freed_for_its_pods_alone_is_no_purchase() -> None:
    """The gang was marked; an ended pod makes room for its pod, and another pod takes it."""
    scene = filled(16_000)
    leader(scene, 12_000)
    assert outlook(scene) == ("NotEnoughResources", 1)
    (full,) = make_pods("", 1, make_shape({"cpu": 16_000}), role="foreign", node="n-0", ours=False)
    (half,) = make_pods("", 1, make_shape({"cpu": 8_000}), role="half", node="n-0", ours=False)
    scene.remove(full)
    scene.put(half)
    scene.step(after_ms=6_000)
    assert outlook(scene) == ("MinResources", 0)
    (rest,) = make_pods("", 1, make_shape({"cpu": 8_000}), role="rest", node="n-0", ours=False)
    # It is tried again when a node joins.
    scene.put(rest, make_node("small", {**FULL, "cpu": 1_000}))
    scene.step(after_ms=6_000)
    assert outlook(scene) == ("NotEnoughResources", 1)
