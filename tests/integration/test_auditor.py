"""The auditor finds what it is there to find: without this, its silence would mean nothing."""

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.nodes import NodeShape, node_manifest
from tests.integration.auditor import Auditor
from tests.support.manual_clock import ManualClock
from tests.support.watched_objects import watched_group, watched_pod


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def auditor(clock: ManualClock) -> Auditor:
    """An auditor that does not watch: the test hands it each event."""
    seeing = Auditor(RawClient.__new__(RawClient), clock)
    for name in ("n0", "n1"):
        seeing.see_node("ADDED", node_manifest(name, NodeShape(cpu_milli=2000)))
    return seeing


def test_an_attempt_that_was_taken_back_is_kept_with_its_length_and_its_pods(
    auditor: Auditor, clock: ManualClock
) -> None:
    auditor.see_group("ADDED", watched_group(2))
    auditor.see_pod("ADDED", watched_pod("a", node="n0"))
    clock.now_s += 2
    auditor.see_pod("DELETED", watched_pod("a", node="n0"))
    record = auditor.gangs["ns", "train"]
    assert (record.taken_back_s, record.ever_bound) == ([2.0], {"uid-a"})
    auditor.see_pod("ADDED", watched_pod("b", node="n0"))
    assert record.taken_back_s == [2.0]
    assert record.ever_bound == {"uid-a", "uid-b"}


def test_a_gang_bound_in_part_is_reported_until_its_quorum_is_there(
    auditor: Auditor, clock: ManualClock
) -> None:
    auditor.see_group("ADDED", watched_group(2))
    auditor.see_pod("ADDED", watched_pod("a", node="n0"))
    assert auditor.partial() == ["ns/train: 1 of 2"]
    clock.now_s += 3
    auditor.see_pod("ADDED", watched_pod("b", node="n1"))
    assert auditor.partial() == []
    assert auditor.longest_partial_s() == 3
    assert auditor.gangs["ns", "train"].last_bound_s == clock.now_s


def test_a_gang_whose_group_is_seen_late_is_judged_too(auditor: Auditor) -> None:
    auditor.see_pod("ADDED", watched_pod("a", node="n0"))
    assert auditor.partial() == []
    auditor.see_group("ADDED", watched_group(2))
    assert auditor.partial() == ["ns/train: 1 of 2"]
    auditor.see_pod("DELETED", watched_pod("a", node="n0", version=2))
    assert auditor.partial() == []


def test_a_gang_that_had_its_quorum_once_may_lose_members(auditor: Auditor) -> None:
    auditor.see_group("ADDED", watched_group(1))
    auditor.see_pod("ADDED", watched_pod("a", node="n0"))
    auditor.see_pod("MODIFIED", watched_pod("a", node="n0", version=2, phase="Failed"))
    assert auditor.partial() == []


def test_a_pod_on_two_nodes_is_a_double_binding(auditor: Auditor) -> None:
    auditor.see_pod("ADDED", watched_pod("a", node="n0"))
    assert auditor.double_bindings() == []
    auditor.see_pod("MODIFIED", watched_pod("a", node="n1", version=2))
    assert auditor.double_bindings() == ["uid-a: ['n0', 'n1']"]


def test_a_node_with_more_on_it_than_it_offers_is_reported_and_ended_pods_make_room(
    auditor: Auditor,
) -> None:
    auditor.see_pod("ADDED", watched_pod("a", node="n0"))
    auditor.see_pod("ADDED", watched_pod("b", node="n0"))
    auditor.see_pod("MODIFIED", watched_pod("b", node="n0", version=2, phase="Succeeded"))
    auditor.see_pod("ADDED", watched_pod("c", node="n0"))
    assert auditor.overcommitted == []
    auditor.see_pod("ADDED", watched_pod("d", node="n0", gang=""))
    assert auditor.overcommitted == ["n0: 3000 cpu of 2000"]


def test_a_kubelets_refusal_and_a_waiting_condition_are_noted_once(auditor: Auditor) -> None:
    waits = {"type": "PodScheduled", "status": "False"}
    auditor.see_pod("ADDED", watched_pod("a", conditions=[waits]))
    assert auditor.marked_unscheduled == {"uid-a"}
    for version in (2, 3):
        refused = watched_pod("a", node="n0", version=version, phase="Failed", reason="OutOfcpu")
        auditor.see_pod("MODIFIED", refused)
    assert auditor.refused == ["ns/a: OutOfcpu"]
