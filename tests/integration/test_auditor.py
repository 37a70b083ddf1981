"""The auditor finds what it is there to find: without this, its silence would mean nothing."""

from typing import Any

import pytest

from tests.controlplane.client import Object, RawClient
from tests.controlplane.nodes import NodeShape, node_manifest, pod_manifest
from tests.integration.auditor import GROUP_NAME, Auditor


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def auditor(clock: Clock, tmp_path: Any) -> Auditor:
    """An auditor that does not watch: the test hands it each event."""
    client = RawClient.__new__(RawClient)
    seeing = Auditor(client, clock)
    for name in ("n0", "n1"):
        seeing.see_node("ADDED", node_manifest(name, NodeShape(cpu_milli=2000)))
    return seeing


def pod(
    name: str, *, node: str = "", gang: str = "train", version: int = 1, **status: Any
) -> Object:
    made = pod_manifest(name, requests={"cpu": "1"}, annotations={GROUP_NAME: gang} if gang else {})
    made["metadata"] |= {"uid": f"uid-{name}", "namespace": "ns", "resourceVersion": str(version)}
    made["status"] = {"phase": "Pending", **status}
    if node:
        made["spec"]["nodeName"] = node
    return made


def group(min_member: int) -> Object:
    metadata = {"uid": "uid-group", "namespace": "ns", "name": "train"}
    return {"metadata": metadata, "spec": {"minMember": min_member}}


def test_an_attempt_that_was_taken_back_is_kept_with_its_length_and_its_pods(
    auditor: Auditor, clock: Clock
) -> None:
    auditor.see_group("ADDED", group(2))
    auditor.see_pod("ADDED", pod("a", node="n0"))
    clock.now_s += 2
    auditor.see_pod("DELETED", pod("a", node="n0"))
    record = auditor.gangs["ns", "train"]
    assert (record.taken_back_s, record.ever_bound) == ([2.0], {"uid-a"})
    auditor.see_pod("ADDED", pod("b", node="n0"))
    assert record.taken_back_s == [2.0]
    assert record.ever_bound == {"uid-a", "uid-b"}


def test_a_gang_bound_in_part_is_reported_until_its_quorum_is_there(
    auditor: Auditor, clock: Clock
) -> None:
    auditor.see_group("ADDED", group(2))
    auditor.see_pod("ADDED", pod("a", node="n0"))
    assert auditor.partial() == ["ns/train: 1 of 2"]
    clock.now_s += 3
    auditor.see_pod("ADDED", pod("b", node="n1"))
    assert auditor.partial() == []
    assert auditor.longest_partial_s() == 3
    assert auditor.gangs["ns", "train"].last_bound_s == clock.now_s


def test_a_gang_whose_group_is_seen_late_is_judged_all_the_same(auditor: Auditor) -> None:
    auditor.see_pod("ADDED", pod("a", node="n0"))
    assert auditor.partial() == []
    auditor.see_group("ADDED", group(2))
    assert auditor.partial() == ["ns/train: 1 of 2"]
    auditor.see_pod("DELETED", pod("a", node="n0", version=2))
    assert auditor.partial() == []


def test_a_gang_that_had_its_quorum_once_may_lose_members(auditor: Auditor) -> None:
    auditor.see_group("ADDED", group(1))
    auditor.see_pod("ADDED", pod("a", node="n0"))
    auditor.see_pod("MODIFIED", pod("a", node="n0", version=2, phase="Failed"))
    assert auditor.partial() == []


def test_a_pod_on_two_nodes_is_a_double_binding(auditor: Auditor) -> None:
    auditor.see_pod("ADDED", pod("a", node="n0"))
    assert auditor.double_bindings() == []
    auditor.see_pod("MODIFIED", pod("a", node="n1", version=2))
    assert auditor.double_bindings() == ["uid-a: ['n0', 'n1']"]


def test_a_node_with_more_on_it_than_it_offers_is_reported_and_ended_pods_make_room(
    auditor: Auditor,
) -> None:
    auditor.see_pod("ADDED", pod("a", node="n0"))
    auditor.see_pod("ADDED", pod("b", node="n0"))
    auditor.see_pod("MODIFIED", pod("b", node="n0", version=2, phase="Succeeded"))
    auditor.see_pod("ADDED", pod("c", node="n0"))
    assert auditor.overcommitted == []
    auditor.see_pod("ADDED", pod("d", node="n0", gang=""))
    assert auditor.overcommitted == ["n0: 3000 cpu of 2000"]


def test_a_kubelets_refusal_and_a_waiting_condition_are_noted_once(auditor: Auditor) -> None:
    waits = {"type": "PodScheduled", "status": "False"}
    auditor.see_pod("ADDED", pod("a", conditions=[waits]))
    assert auditor.told_unscheduled == {"uid-a"}
    for version in (2, 3):
        refused = pod("a", node="n0", version=version, phase="Failed", reason="OutOfcpu")
        auditor.see_pod("MODIFIED", refused)
    assert auditor.refused == ["ns/a: OutOfcpu"]
