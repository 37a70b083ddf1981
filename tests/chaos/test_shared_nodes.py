"""The judge of two schedulers finds what must not be, and a report of it is broken."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.chaos.audit import PARTIAL_ALLOWED_S
from tests.chaos.forms import GANG, KUBE_SCHEDULER, TUTTI, manifest_of, member_of
from tests.chaos.shared_nodes import CONFLICT_ALLOWED_S, SharedNodesJudge
from tests.chaos.two_schedulers import OfScheduler, SharedReport
from tests.controlplane.client import Object, RawClient
from tests.controlplane.nodes import NodeShape, node_manifest
from tests.support.manual_clock import ManualClock
from tests.support.watched_objects import NAMESPACE, watched_group, watched_pod

REFUSED: Final = {"phase": "Failed", "reason": "OutOfcpu"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def judge(clock: ManualClock) -> SharedNodesJudge:
    """A judge that does not watch: the test hands it each event. Two nodes of two CPUs."""
    seeing = SharedNodesJudge(RawClient.__new__(RawClient), clock)
    for name in ("n0", "n1"):
        seeing.see_node("ADDED", node_manifest(name, NodeShape(cpu_milli=2000)))
    return seeing


def tuttis(name: str, node: str = "n0", version: int = 1, **status: Any) -> Object:
    """A pod of Tutti's gang `train`, of one CPU."""
    return labelled(watched_pod(name, node, version=version, **status), "train")


def kubes(name: str, node: str = "n0", version: int = 1, **status: Any) -> Object:
    """A pod of kube-scheduler's gang `native`, of one CPU."""
    made = member_of("native", name, 0, owned=True, form="kubernetes", scheduler=KUBE_SCHEDULER)
    seen = watched_pod(name, node, version=version, **status)
    made["metadata"] |= {
        key: seen["metadata"][key] for key in ("uid", "namespace", "resourceVersion")
    }
    made["spec"]["nodeName"] = node
    return {**made, "status": seen["status"]}


def labelled(pod: Object, gang: str) -> Object:
    pod["metadata"]["labels"] = {GANG: gang}
    return pod


def native_group(minimum: int) -> Object:
    made = manifest_of("kubernetes", "native", size=minimum, minimum=minimum)
    made["metadata"] |= {"uid": "uid-native", "namespace": NAMESPACE}
    return made


def test_a_conflict_of_both_is_of_neither_alone_and_lasts_until_a_kubelet_refuses(
    judge: SharedNodesJudge, clock: ManualClock
) -> None:
    judge.see_pod("ADDED", tuttis("a"))
    judge.see_pod("ADDED", kubes("x"))
    assert judge.conflict_count() == 0
    judge.see_pod("ADDED", kubes("y"))
    clock.now_s += 3
    assert (judge.conflict_count(), judge.longest_conflict_s()) == (1, 3)
    judge.see_pod("MODIFIED", kubes("y", version=2, **REFUSED))
    clock.now_s += 100
    assert (judge.conflict_count(), judge.longest_conflict_s()) == (1, 3)
    assert judge.refused_gangs == {TUTTI: [], KUBE_SCHEDULER: ["native"]}
    assert judge.overcommitted_alone == {TUTTI: [], KUBE_SCHEDULER: []}
    assert not judge.overcommitted_running


def test_each_conflict_counts_again_even_on_the_same_node(judge: SharedNodesJudge) -> None:
    judge.see_pod("ADDED", kubes("x"))
    judge.see_pod("ADDED", kubes("y"))
    for name in ("a", "b"):
        judge.see_pod("ADDED", tuttis(name))
        judge.see_pod("MODIFIED", tuttis(name, version=2, **REFUSED))
        judge.see_pod("DELETED", tuttis(name, version=3, **REFUSED))
    assert judge.conflict_count() == 2
    assert judge.refused_gangs[TUTTI] == ["train", "train"]


@pytest.mark.parametrize(
    ("pod", "scheduler"), [(tuttis, TUTTI), (kubes, KUBE_SCHEDULER)], ids=[TUTTI, KUBE_SCHEDULER]
)
def test_what_one_scheduler_over_fills_alone_is_its_own(
    judge: SharedNodesJudge, pod: Any, scheduler: str
) -> None:
    for name in ("a", "b"):
        judge.see_pod("ADDED", pod(name))
    assert not judge.overcommitted_alone[scheduler]
    judge.see_pod("ADDED", pod("c"))
    (other,) = {TUTTI, KUBE_SCHEDULER} - {scheduler}
    assert judge.overcommitted_alone[scheduler] == ["n0: 3000 cpu of 2000"]
    assert not judge.overcommitted_alone[other]


def test_more_running_pods_than_a_node_offers_are_found(judge: SharedNodesJudge) -> None:
    for name in ("x", "y"):
        judge.see_pod("ADDED", kubes(name, phase="Running"))
    judge.see_pod("ADDED", tuttis("a"))
    assert not judge.overcommitted_running, "it does not run"
    judge.see_pod("MODIFIED", tuttis("a", version=2, phase="Running"))
    assert judge.overcommitted_running == ["n0: 3000 cpu of 2000"]


def test_a_node_that_shrinks_below_its_pods_is_a_conflict(judge: SharedNodesJudge) -> None:
    judge.see_pod("ADDED", tuttis("a"))
    judge.see_pod("ADDED", kubes("x"))
    judge.see_node("MODIFIED", node_manifest("n0", NodeShape(cpu_milli=1000)))
    assert judge.conflict_count() == 1


def test_the_time_below_the_minimum_is_counted_by_scheduler(
    judge: SharedNodesJudge, clock: ManualClock
) -> None:
    judge.see_group("ADDED", native_group(2))
    judge.see_group("ADDED", watched_group(2))
    judge.see_pod("ADDED", kubes("x"))
    clock.now_s += PARTIAL_ALLOWED_S + 5
    judge.see_pod("ADDED", tuttis("a", "n1"))
    clock.now_s += 2
    assert judge.below_minimum_s(KUBE_SCHEDULER) == (PARTIAL_ALLOWED_S + 7, 7)
    assert judge.below_minimum_s(TUTTI) == (2, 0)
    judge.see_pod("ADDED", tuttis("b", "n1"))
    judge.see_pod("ADDED", kubes("y"))
    clock.now_s += 100
    assert judge.below_minimum_s(KUBE_SCHEDULER) == (PARTIAL_ALLOWED_S + 7, 7)
    assert judge.below_minimum_s(TUTTI) == (2, 0)


def test_a_gang_that_a_kubelet_refuses_a_member_is_below_its_minimum_until_it_is_whole(
    judge: SharedNodesJudge, clock: ManualClock
) -> None:
    judge.see_group("ADDED", watched_group(2))
    for name in ("a", "b"):
        judge.see_pod("ADDED", tuttis(name))
    judge.see_pod("MODIFIED", tuttis("b", version=2, **REFUSED))
    clock.now_s += PARTIAL_ALLOWED_S + 1
    assert judge.below_minimum_s(TUTTI) == (PARTIAL_ALLOWED_S + 1, 1)


def test_writers_of_a_status_and_the_first_success_are_kept(judge: SharedNodesJudge) -> None:
    group = native_group(2)
    judge.see_group("ADDED", group)
    assert judge.status_writers == {"native": set()}
    group["metadata"]["managedFields"] = [
        {"manager": "user", "operation": "Update"},
        {"manager": "kube-scheduler", "operation": "Update", "subresource": "status"},
    ]
    group["status"] = {"conditions": [{"type": "PodGroupScheduled", "status": "False"}]}
    judge.see_group("MODIFIED", group)
    assert not judge.reported_scheduled
    group["status"]["conditions"][0]["status"] = "True"
    judge.see_group("MODIFIED", group)
    judge.see_group("DELETED", group)
    assert judge.status_writers == {"native": {"kube-scheduler"}}
    assert judge.reported_scheduled == {"native"}
    assert not judge.success_lost


def test_a_first_success_that_does_not_stay_is_found(judge: SharedNodesJudge) -> None:
    group = native_group(2)
    for status in ("True", "False", "True", "False"):
        group["status"] = {"conditions": [{"type": "PodGroupScheduled", "status": status}]}
        judge.see_group("MODIFIED", group)
    assert judge.success_lost == ["native"]


def of_scheduler(**found: Any) -> OfScheduler:
    nothing: dict[str, Any] = {
        "gangs": 2,
        "finished": 2,
        "refused": 1,
        "refused_gangs": 1,
        "below_longest_s": 9.0,
        "below_beyond_s": 0.0,
        "overcommitted_alone": (),
        "reported_scheduled": 1,
        "status_writers": (),
    }
    return OfScheduler(**{**nothing, **found})


def report(tuttis: Mapping[str, Any], kubes: Mapping[str, Any], **found: Any) -> SharedReport:
    nothing: dict[str, Any] = {
        "seed": 1,
        "minutes": 1.0,
        "nodes": 1,
        "faults": {"binder killed": 1},
        "conflicts": 3,
        "conflict_longest_s": 0.5,
        "overcommitted_running": (),
        "double_bindings": (),
        "success_lost": (),
        "unfinished": (),
        "drained_s": 1.0,
    }
    schedulers = {TUTTI: of_scheduler(**tuttis), KUBE_SCHEDULER: of_scheduler(**kubes)}
    return SharedReport(schedulers=schedulers, **{**nothing, **found})


@pytest.mark.parametrize(
    ("tuttis", "kubes", "found"),
    [
        ({"below_beyond_s": 0.5}, {}, {}),
        ({"status_writers": ("tutti-controller", "kube-scheduler")}, {}, {}),
        ({}, {"status_writers": ("kube-scheduler", "tutti-controller")}, {}),
        ({"overcommitted_alone": ("n0",)}, {}, {}),
        ({}, {"overcommitted_alone": ("n0",)}, {}),
        ({}, {}, {"success_lost": ("native",)}),
        ({}, {}, {"conflict_longest_s": CONFLICT_ALLOWED_S + 1}),
        ({}, {}, {"overcommitted_running": ("n0",)}),
        ({}, {}, {"double_bindings": ("uid",)}),
        ({}, {}, {"unfinished": ("gang-1",)}),
    ],
    ids=[
        "Tutti's gangs below their minimum",
        "kube-scheduler wrote to Tutti's group",
        "Tutti wrote to kube-scheduler's group",
        "over-committed by Tutti",
        "over-committed by kube-scheduler",
        "a first success that does not stay",
        "a conflict that lasts",
        "over-committed by running pods",
        "bound twice",
        "a deadlock",
    ],
)
def test_a_report_is_broken_by_each_of_these_alone(
    tuttis: dict[str, Any], kubes: dict[str, Any], found: dict[str, Any]
) -> None:
    assert not list(report({}, {"below_beyond_s": 99.0}).broken())
    assert len(list(report(tuttis, kubes, **found).broken())) == 1
