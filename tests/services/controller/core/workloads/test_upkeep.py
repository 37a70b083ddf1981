"""PodGroups of workloads follow them, and go with them."""

from typing import Any

import msgspec
import pytest

from services.controller.core.workloads import owner_of, upkeep
from shared.dialects.workload_sizes import Workload
from shared.kinds.podgroup import PodGroup

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "rs",
    "uid": "u",
    "controller": True,
}


def a_group(
    notes: dict[str, str] | None = None, owner: dict[str, Any] | None = None, **spec: Any
) -> PodGroup:
    metadata = {
        "name": "podgroup-u",
        "annotations": notes or {},
        "ownerReferences": [owner or OWNER],
    }
    return msgspec.convert({"metadata": metadata, "spec": {"minMember": 1, **spec}}, PodGroup)


def a_workload(replicas: int = 2, alive: int = 2, notes: dict[str, str] | None = None) -> Workload:
    raw = {
        "metadata": {"uid": "u", "annotations": notes or {}},
        "spec": {"replicas": replicas},
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
    group = a_group(
        minMember=2, minResources={"cpu": "500m", "pods": "2", "requests.memory": "2Gi"}
    )
    workload = a_workload(3, notes={"scheduling.volcano.sh/group-min-member": "3"})
    assert upkeep(group, "ReplicaSet", workload) == {
        "spec": {
            "minMember": 3,
            "minResources": {"cpu": "750m", "pods": "3", "requests.memory": "3Gi"},
        }
    }


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
    group = a_group(of_group, minMember=2, minResources={"pods": "2"})
    write = upkeep(group, "Job", a_job(of_job, parallelism=parallelism, completions=9))
    if size is None:
        assert write is None
    else:
        wanted = {"minMember": size, "minResources": {"pods": str(size)}}
        assert write == {"spec": wanted}


def test_a_suspended_job_gives_its_group_up_once_no_pod_is_left() -> None:
    assert upkeep(a_group(minMember=2), "Job", a_job(ALL, parallelism=2, suspend=True)) == "remove"
