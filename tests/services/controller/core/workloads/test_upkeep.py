"""PodGroups of workloads follow them, and go with them."""

from typing import Any

import msgspec
import pytest

from services.controller.core.statuses.annotation import annotation_of
from services.controller.core.workloads import owner_of, upkeep
from shared.contracts import annotations
from shared.contracts.verdicts import GangPhase
from shared.dialects.workload_sizes import Workload, WorkloadStatus
from shared.kinds.podgroup import PodGroup
from shared.kube.objects import Condition
from tests.services.controller.core.samples import make_verdict

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "rs",
    "uid": "u",
    "controller": True,
}
MARK = {"metadata": {"annotations": {annotations.WORKLOAD_ENDED: "true"}}}
CPU: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}


def amounts(pods: int, cpu: int = 1) -> dict[str, str]:
    """The `minResources` of so many pods."""
    return {
        "count/pods": str(pods),
        "cpu": str(cpu * pods),
        "pods": str(pods),
        "requests.cpu": str(cpu * pods),
    }


def a_group(
    notes: dict[str, str] | None = None, owner: dict[str, Any] | None = None, **spec: Any
) -> PodGroup:
    spec = {"minMember": 1, "minResources": amounts(spec.get("minMember", 1)), **spec}
    metadata = {
        "name": "podgroup-u",
        "annotations": notes or {},
        "ownerReferences": [owner or OWNER],
    }
    return msgspec.convert({"metadata": metadata, "spec": spec}, PodGroup)


def a_workload(
    replicas: int = 2,
    alive: int = 2,
    notes: dict[str, str] | None = None,
    template: dict[str, Any] | None = None,
    **of_pods: Any,
) -> Workload:
    """`of_pods`: metadata of its template."""
    made = {"metadata": of_pods, "spec": {**CPU, **(template or {})}}
    raw = {
        "metadata": {"uid": "u", "annotations": notes or {}},
        "spec": {"replicas": replicas, "template": made},
        "status": {"replicas": alive},
    }
    return msgspec.convert(raw, Workload)


def test_a_group_as_its_workload_wants_it_is_left_alone() -> None:
    group = a_group({"volcano.sh/note": "n", "tutti.dev/verdict": "v"})
    workload = a_workload(notes={"volcano.sh/note": "n", "other": "o"})
    assert upkeep(group, "ReplicaSet", workload) is None


def test_annotations_are_passed_on_changed_and_taken_away() -> None:
    group = a_group(
        {
            "volcano.sh/old": "x",
            "volcano.sh/changed": "1",
            "volcano.sh/preemptable": "true",
            "volcano.sh/job-allocated-hypernode": "s1",
        }
    )
    workload = a_workload(notes={"volcano.sh/changed": "2", "volcano.sh/new": "y"})
    assert upkeep(group, "ReplicaSet", workload) == {
        "metadata": {
            "annotations": {
                "volcano.sh/changed": "2",
                "volcano.sh/new": "y",
                "volcano.sh/old": None,
            }
        }
    }


def test_a_new_gang_size_takes_its_resources_along() -> None:
    workload = a_workload(3, notes={"scheduling.volcano.sh/group-min-member": "3"})
    assert upkeep(a_group(minMember=2), "ReplicaSet", workload) == {
        "spec": {"minMember": 3, "minResources": amounts(3)}
    }


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
def test_all_that_was_derived_from_a_template_is_derived_again(kind: str) -> None:
    group = a_group(
        {"volcano.sh/preemptable": "true", "tutti.dev/inherited": "volcano.sh/preemptable"},
        priorityClassName="low",
        minResources={**amounts(1, 10), "requests.nvidia.com/gpu": "1"},
        networkTopology={"mode": "soft", "highestTierAllowed": 2},
    )
    workload = a_workload(
        template={"priorityClassName": "high"},
        annotations={
            "volcano.sh/cooldown-time": "5s",
            "volcano.sh/network-topology-mode": "hard",
            "tutti.dev/hold-seconds": "5",
        },
        labels={"volcano.sh/preemptable": "false"},
    )
    origins = "tutti.dev/hold-seconds,volcano.sh/cooldown-time,volcano.sh/network-topology-mode"
    assert upkeep(group, kind, workload) == {
        "metadata": {
            "annotations": {
                "volcano.sh/preemptable": None,
                "volcano.sh/cooldown-time": "5s",
                "tutti.dev/hold-seconds": "5",
                "tutti.dev/inherited": origins,
            },
            "labels": {"volcano.sh/preemptable": "false"},
        },
        "spec": {
            "priorityClassName": "high",
            "minResources": {
                "cpu": "1",
                "requests.cpu": "1",
                "requests.nvidia.com/gpu": None,
            },
            "networkTopology": {"mode": "hard", "highestTierAllowed": None},
        },
    }


def test_a_topology_that_the_template_no_longer_has_goes_and_that_of_a_user_stays() -> None:
    topology = {"mode": "hard"}
    mine = {"tutti.dev/inherited": "volcano.sh/network-topology-mode"}
    assert upkeep(a_group(networkTopology=topology), "StatefulSet", a_workload()) is None
    assert upkeep(a_group(mine, networkTopology=topology), "StatefulSet", a_workload()) == {
        "metadata": {"annotations": {"tutti.dev/inherited": None}},
        "spec": {"networkTopology": None},
    }


def test_settings_come_from_the_nearest_object_and_go_with_it() -> None:
    key, other = "tutti.dev/do-not-disrupt", "tutti.dev/hold-seconds"
    workload = a_workload(notes={key: "true"}, annotations={key: "false", other: "7"})
    patch = upkeep(a_group(), "Job", workload, [{key: "false", "tutti.dev/preflight": "always"}])
    assert isinstance(patch, dict)
    notes = patch["metadata"]["annotations"]
    assert notes == {
        key: "true",
        other: "7",
        "tutti.dev/preflight": "always",
        "tutti.dev/inherited": f"{key},{other},tutti.dev/preflight",
    }
    assert upkeep(a_group(notes), "Job", workload, [{"tutti.dev/preflight": "always"}]) is None
    assert upkeep(a_group(notes), "Job", a_workload()) == {
        "metadata": {"annotations": dict.fromkeys(notes)}
    }


def test_a_user_cannot_have_other_annotations_removed_by_naming_them() -> None:
    notes = {"tutti.dev/inherited": "tutti.dev/verdict,tutti.dev/gang", "tutti.dev/verdict": "v"}
    assert upkeep(a_group(notes), "Job", a_workload()) == {
        "metadata": {"annotations": {"tutti.dev/inherited": None}}
    }


def test_a_setting_that_a_user_wrote_on_the_group_stays() -> None:
    assert upkeep(a_group({"tutti.dev/hold-seconds": "5"}), "Job", a_workload()) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tutti.dev/hold-seconds", "soon"),
        ("tutti.dev/do-not-disrupt", "yes"),
        ("tutti.dev/provisioning-class", "of-a-queue"),
        ("tutti.dev/gang", "all"),
        ("tutti.dev/verdict", "{}"),
    ],
)
def test_what_cannot_be_a_setting_of_a_gang_is_not_inherited(key: str, value: str) -> None:
    assert upkeep(a_group(), "DaemonSet", a_workload(notes={key: value})) is None


def test_a_workload_scaled_to_nothing_gives_its_group_up_once_no_pod_is_left() -> None:
    assert upkeep(a_group(), "ReplicaSet", a_workload(0, 1)) is None
    assert upkeep(a_group(), "ReplicaSet", a_workload(0, 0)) == "remove"


@pytest.mark.parametrize(
    "owner",
    [
        {**OWNER, "controller": False},
        {**OWNER, "uid": "another"},
        {**OWNER, "apiVersion": "v1", "kind": "Pod"},
        {**OWNER, "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"},
    ],
    ids=["no controller", "another name", "a pod", "a Volcano Job"],
)
def test_groups_that_are_not_ours_to_keep_up(owner: dict[str, Any]) -> None:
    assert owner_of(a_group()) is not None
    assert owner_of(a_group(owner=owner)) is None


def a_job(notes: dict[str, str] | None = None, **spec: Any) -> Workload:
    spec = {"template": {"spec": CPU}, **spec}
    raw = {"metadata": {"uid": "u", "annotations": notes or {}}, "spec": spec}
    return msgspec.convert(raw, Workload)


ALL = {"tutti.dev/gang": "all"}


@pytest.mark.parametrize(
    ("of_group", "of_job", "parallelism", "size"),
    [
        pytest.param({}, ALL, 3, 3, id="the Job asks for a gang, and grows"),
        pytest.param({}, ALL, 1, 1, id="it shrinks to one pod"),
        pytest.param(ALL, {}, 3, 3, id="its queue asked when the group was created"),
        pytest.param(ALL, {"tutti.dev/gang": "none"}, 3, 1, id="the Job declines by now"),
        pytest.param({}, {}, 3, None, id="it is not known what asked for the gang"),
    ],
)
def test_the_group_of_a_job_follows_its_parallelism(
    of_group: dict[str, str], of_job: dict[str, str], parallelism: int, size: int | None
) -> None:
    group = a_group(of_group, minMember=2)
    write = upkeep(group, "Job", a_job(of_job, parallelism=parallelism, completions=9))
    if size is None:
        assert write is None
    else:
        assert write == {"spec": {"minMember": size, "minResources": amounts(size)}}


def test_a_suspended_job_gives_its_group_up_once_no_pod_is_left() -> None:
    assert upkeep(a_group(minMember=2), "Job", a_job(ALL, parallelism=2, suspend=True)) == "remove"


def test_a_suspended_job_keeps_its_group_if_pods_have_succeeded() -> None:
    """Resumed, it makes no pods in their place, and a new group would wait for these for ever."""
    job = a_job(ALL, parallelism=2, suspend=True)
    some = msgspec.structs.replace(job, status=WorkloadStatus(succeeded=1))
    assert upkeep(a_group(minMember=2), "Job", some) is None


@pytest.mark.parametrize(
    ("condition", "phase", "write"),
    [
        ("Failed", "Inqueue", MARK),
        ("Complete", "Unknown", MARK),
        ("Complete", "Completed", None),
        ("Failed", "Running", None),
        ("FailureTarget", "Inqueue", None),
    ],
)
def test_the_group_of_a_job_that_has_ended_says_so_if_its_pods_do_not(
    condition: str, phase: GangPhase, write: Any
) -> None:
    conditions = (Condition(type=condition, status="True"),)
    job = msgspec.structs.replace(
        a_job(ALL, parallelism=2), status=WorkloadStatus(conditions=conditions)
    )
    verdict = annotation_of(make_verdict(phase=phase, uid=""))
    group = a_group({annotations.VERDICT: verdict}, minMember=2)
    assert upkeep(group, "Job", job) == write
    group = a_group({annotations.VERDICT: verdict, annotations.WORKLOAD_ENDED: "true"}, minMember=2)
    assert upkeep(group, "Job", job) is None
