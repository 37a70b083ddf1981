"""The gang of an operator's object: how many pods of each role, as the operator creates them."""

import re
from typing import Any

import msgspec
import pytest

from shared.dialects.owned_gangs import (
    Owned,
    default_counts,
    gang_owner,
    group_name,
    group_sizes,
    is_wanted,
)
from shared.dialects.owner_kinds import owner_kind
from shared.kube.objects import ObjectMeta

Object = dict[str, Any]
ALL = {"tutti.dev/gang": "all"}


def pod(gpus: int = 1, **spec: Any) -> Object:
    """A template of pods."""
    resources = {"limits": {"nvidia.com/gpu": gpus}, "requests": {"nvidia.com/gpu": gpus}}
    return {"spec": {"containers": [{"name": "main", "resources": resources}], **spec}}


def owned(api_version: str, kind: str, body: Object, **metadata: Any) -> Owned:
    """The object, as the walk finds it."""
    found = owner_kind(api_version, kind)
    assert found is not None
    meta = {"name": "train", "namespace": "team", "uid": "uid-train", **metadata}
    return Owned(found, msgspec.convert({**body, "metadata": meta}, found.decoded))


def job_set(*jobs: Object, status: list[Object] | None = None, **spec: Any) -> Owned:
    body = {
        "spec": {"replicatedJobs": list(jobs), **spec},
        "status": {"replicatedJobsStatus": status or []},
    }
    return owned("jobset.x-k8s.io/v1alpha2", "JobSet", body)


def replicated(name: str, parallelism: int, *, replicas: int = 1, **fields: Any) -> Object:
    inner = {"parallelism": parallelism, "completions": parallelism, "template": pod()}
    return {"name": name, "replicas": replicas, "template": {"spec": inner}, **fields}


def counts(name: str, **fields: int) -> Object:
    return {"name": name, "ready": 0, "succeeded": 0, "failed": 0, **fields}


def after(name: str, status: str) -> Object:
    return {"dependsOn": [{"name": name, "status": status}]}


def sizes(found: Owned) -> tuple[int, dict[str, int], str]:
    """Minimum, minima of the roles, and GPUs in minResources."""
    given = group_sizes(found)
    return (
        given.get("minMember", 0),
        given.get("minTaskMember", {}),
        given.get("minResources", {}).get("nvidia.com/gpu", "0"),
    )


def test_all_replicated_jobs_of_a_jobset_are_one_gang() -> None:
    found = job_set(replicated("driver", 1), replicated("workers", 3, replicas=2))
    assert sizes(found) == (7, {"driver": 1, "workers": 6}, "7")
    assert group_name(found, ObjectMeta()) == "podgroup-uid-train"


def test_a_jobset_with_one_replicated_job_has_no_minima_of_roles() -> None:
    assert sizes(job_set(replicated("workers", 4))) == (4, {}, "4")


def test_a_job_runs_no_more_pods_at_once_than_it_has_completions() -> None:
    job = replicated("workers", 4)
    job["template"]["spec"]["completions"] = 3
    assert sizes(job_set(job))[0] == 3


WAITING = (replicated("data", 1), replicated("train", 3, **after("data", "Ready")))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param([], (1, {"data": 1, "train": 0}, "4"), id="nothing runs yet"),
        pytest.param([counts("data")], (1, {"data": 1, "train": 0}, "4"), id="it starts"),
        pytest.param([counts("data", ready=1)], (4, {"data": 1, "train": 3}, "4"), id="ready"),
        pytest.param([counts("data", failed=1)], (4, {"data": 1, "train": 3}, "4"), id="failed"),
        pytest.param([counts("data", succeeded=1)], (3, {"data": 0, "train": 3}, "3"), id="ended"),
    ],
)
def test_a_job_that_waits_until_another_is_ready_counts_from_then_on_and_its_room_before(
    status: list[Object], expected: tuple[int, dict[str, int], str]
) -> None:
    assert sizes(job_set(*WAITING, status=status)) == expected


def test_a_job_that_waits_for_the_end_of_another_needs_no_room_beside_it() -> None:
    jobs = (
        replicated("data", 2),
        replicated("train", 3, **after("data", "Complete")),
        replicated("eval", 1, **after("train", "Ready")),
    )
    assert sizes(job_set(*jobs)) == (2, {"data": 2, "train": 0, "eval": 0}, "2")
    running = [counts("data", ready=1), counts("train"), counts("eval")]
    assert sizes(job_set(*jobs, status=running))[2] == "2"
    ended = [counts("data", succeeded=1), counts("train"), counts("eval")]
    minima = {"data": 0, "train": 3, "eval": 0}
    assert sizes(job_set(*jobs, status=ended)) == (3, minima, "4")


def test_the_startup_order_is_a_chain_of_jobs_that_wait_until_the_one_before_is_ready() -> None:
    jobs = (replicated("a", 1), replicated("b", 2))
    order: Any = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    assert sizes(job_set(*jobs, **order)) == (1, {"a": 1, "b": 0}, "3")
    assert sizes(job_set(*jobs, status=[counts("a", ready=1)], **order))[0] == 3
    assert sizes(job_set(*jobs, startupPolicy={"startupPolicyOrder": "AnyOrder"}))[0] == 3


def test_a_jobset_that_has_ended_or_is_empty_leaves_its_group_as_it_is() -> None:
    assert group_sizes(job_set(replicated("w", 2), status=[counts("w", succeeded=1)])) == {}
    assert group_sizes(job_set()) == {}


def test_a_suspended_jobset_wants_no_group() -> None:
    assert is_wanted(job_set(replicated("w", 2)), "podgroup-uid-train")
    assert not is_wanted(job_set(replicated("w", 2), suspend=True), "podgroup-uid-train")


def test_a_template_whose_amounts_cannot_be_read_leaves_min_resources_out() -> None:
    job = replicated("w", 2)
    job["template"]["spec"]["template"] = pod(gpus=-1)
    assert group_sizes(job_set(job)) == {"minMember": 2}


def leader_worker_set(**spec: Any) -> Owned:
    template = {"size": 4, "workerTemplate": pod(), **spec.pop("template", {})}
    body = {"spec": {"replicas": 2, "leaderWorkerTemplate": template, **spec}}
    return owned("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", body)


def test_each_group_of_a_leader_worker_set_is_a_gang() -> None:
    found = leader_worker_set()
    assert sizes(found) == (4, {"leader": 1, "worker": 3}, "4")
    labels = {"leaderworkerset.sigs.k8s.io/group-index": "1"}
    assert group_name(found, ObjectMeta(labels=labels)) == "podgroup-uid-train-1"
    assert group_name(found, ObjectMeta()) == ""
    forged = {"leaderworkerset.sigs.k8s.io/group-index": "A_b."}
    name = group_name(found, ObjectMeta(labels=forged))
    assert re.fullmatch(r"podgroup-uid-train-[0-9a-f]{32}", name)
    assert is_wanted(found, "podgroup-uid-train-1")
    assert not is_wanted(found, "podgroup-uid-train-2"), "it was scaled down"


def test_workers_that_are_created_after_their_leader_runs_need_room_from_the_start() -> None:
    found = leader_worker_set(startupPolicy="LeaderReady", template={"leaderTemplate": pod(gpus=2)})
    assert sizes(found) == (1, {"leader": 1, "worker": 0}, "5")


def ray_cluster(*groups: Object, **spec: Any) -> Owned:
    body = {"spec": {"headGroupSpec": {"template": pod(0)}, "workerGroupSpecs": groups, **spec}}
    return owned("ray.io/v1", "RayCluster", body)


def workers(replicas: int | None, least: int = 0, **fields: Any) -> Object:
    group = {"groupName": "g", "minReplicas": least, "maxReplicas": 9, "template": pod(), **fields}
    return group if replicas is None else {**group, "replicas": replicas}


@pytest.mark.parametrize(
    ("groups", "scales", "expected"),
    [
        pytest.param([workers(3)], False, 3, id="a fixed size"),
        pytest.param([workers(3), workers(2)], False, 5, id="two groups"),
        pytest.param([workers(3, numOfHosts=4)], False, 12, id="replicas of several hosts"),
        pytest.param([workers(3, 1)], True, 1, id="autoscaling needs the fewest"),
        pytest.param([workers(3, 1, suspend=True)], True, 0, id="a suspended group"),
        pytest.param([workers(20)], False, 9, id="no more than the most"),
        pytest.param([workers(1, 2)], False, 2, id="no less than the fewest"),
        pytest.param([workers(None, 2)], False, 2, id="replicas are left to the autoscaler"),
        pytest.param([], False, 0, id="a head alone"),
    ],
)
def test_head_and_workers_of_a_ray_cluster_are_one_gang(
    groups: list[Object], scales: bool, expected: int
) -> None:
    found = ray_cluster(*groups, enableInTreeAutoscaling=scales)
    minima = {"head": 1, "worker": expected} if groups else {}
    assert sizes(found) == (1 + expected, minima, str(expected))


def test_a_suspended_ray_cluster_wants_no_group() -> None:
    assert not is_wanted(ray_cluster(suspend=True), "podgroup-uid-train")


def test_the_clean_up_job_of_a_ray_cluster_is_no_member_of_its_gang() -> None:
    """It runs when head and workers are gone, and would wait for them."""
    cluster = owned("ray.io/v1", "RayCluster", {}, annotations=ALL)
    assert gang_owner((cluster,), asked_by_default=False) is cluster
    assert gang_owner((asking("Job", None), cluster), asked_by_default=False) is None
    above = owned("ray.io/v1", "RayJob", {}, annotations=ALL)
    plain = ray_cluster()
    assert gang_owner((plain, above), asked_by_default=False) is plain, (
        "a RayJob asks for its cluster's pods"
    )


def mpi_job(count: int, policy: Object | None = None, **spec: Any) -> Owned:
    replicas = {"Launcher": {"template": pod(0)}, "Worker": {"replicas": count, "template": pod()}}
    body = {"spec": {"mpiReplicaSpecs": replicas, "runPolicy": policy or {}, **spec}}
    return owned("kubeflow.org/v2beta1", "MPIJob", body)


def test_launcher_and_workers_of_an_mpi_job_are_one_gang() -> None:
    assert sizes(mpi_job(3)) == (4, {"launcher": 1, "worker": 3}, "3")
    least = {"schedulingPolicy": {"minAvailable": 3}}
    assert sizes(mpi_job(3, least)) == (3, {"launcher": 1, "worker": 2}, "2")
    waits = mpi_job(3, launcherCreationPolicy="WaitForWorkersReady")
    assert sizes(waits) == (3, {"launcher": 0, "worker": 3}, "3")
    assert not is_wanted(mpi_job(3, {"suspend": True}), "podgroup-uid-train")


def spark(**spec: Any) -> Owned:
    body = {
        "spec": {
            "type": "Scala",
            "mode": "cluster",
            "driver": {"cores": 1, "memory": "512m"},
            "executor": {"instances": 2, "cores": 2, "memory": "8g", "coreRequest": "1500m"},
            **spec,
        }
    }
    return owned("sparkoperator.k8s.io/v1beta2", "SparkApplication", body)


def memory_of(found: Owned, part: int = 0) -> object:
    """The memory that one pod requests, in bytes."""
    assert found.kind.parts is not None
    spec = found.kind.parts(found.owner)[part].template.spec
    return spec.containers[0].resources.requests.get("memory")


def test_a_spark_driver_starts_when_there_is_room_for_its_executors() -> None:
    given = group_sizes(spark())
    assert (given["minMember"], given["minTaskMember"]) == (1, {"driver": 1, "executor": 0})
    assert given["minResources"]["cpu"] == "4"
    assert memory_of(spark()) == str((512 + 384) << 20)
    assert memory_of(spark(), 1) == str((8 << 30) + (8 << 30) // 10)


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"executor": {"instances": 3}}, "4"),
        ({"dynamicAllocation": {"enabled": True, "initialExecutors": 4}}, "7"),
        ({"dynamicAllocation": {"enabled": True, "minExecutors": 1}}, "2500m"),
        ({"dynamicAllocation": {"enabled": False, "minExecutors": 9}}, "4"),
        ({"mode": "client"}, "3"),
    ],
)
def test_the_executors_that_a_spark_application_starts_with_are_expected(
    spec: Object, cpu: str
) -> None:
    given = group_sizes(spark(**spec))
    assert given["minMember"] == 1
    assert given["minResources"]["cpu"] == cpu


@pytest.mark.parametrize(
    ("driver", "mib"),
    [
        pytest.param({"memory": "1g", "memoryOverhead": "1g"}, 2048, id="its own overhead"),
        pytest.param({"memory": "10g"}, 14336, id="Python uses more beside the heap"),
        pytest.param({"memory": "1000"}, 1400, id="no unit is MiB"),
        pytest.param({"memory": "512M"}, 896, id="a little heap"),
        pytest.param({"memory": "much"}, None, id="it cannot be read"),
    ],
)
def test_memory_is_in_sparks_notation(driver: Object, mib: int | None) -> None:
    expected = None if mib is None else str(mib << 20)
    assert memory_of(spark(type="Python", driver=driver)) == expected


def test_a_factor_of_the_application_has_precedence_over_that_of_its_type() -> None:
    driver = {"memory": "10g"}
    assert memory_of(spark(memoryOverheadFactor="0.5", driver=driver)) == str(15 << 30)
    assert memory_of(spark(memoryOverheadFactor="no", driver=driver)) == str(11 << 30)


def asking(kind: str, mode: str | None) -> Owned:
    versions = {"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}
    notes = {} if mode is None else {"tutti.dev/gang": mode}
    return owned(versions[kind], kind, {}, annotations=notes)


@pytest.mark.parametrize(
    ("job", "above", "default", "expected"),
    [
        pytest.param(None, "all", False, "JobSet", id="the JobSet asks"),
        pytest.param("none", "all", False, "JobSet", id="what is above counts"),
        pytest.param("all", None, False, None, id="the child Job asks for itself"),
        pytest.param(None, None, False, None, id="nothing asks"),
        pytest.param(None, None, True, "JobSet", id="the queue or the namespace asks"),
        pytest.param(None, "none", True, None, id="the JobSet declines"),
        pytest.param("all", "none", True, None, id="the JobSet declines, its Jobs ask"),
        pytest.param("none", None, True, None, id="its Jobs decline"),
    ],
)
def test_the_topmost_owner_that_asks_has_the_gang(
    job: str | None, above: str | None, default: bool, expected: str | None
) -> None:
    """A batch Job's own gang is `gang_size`'s business."""
    owners = (asking("Job", job), asking("JobSet", above))
    found = gang_owner(owners, asked_by_default=default and default_counts(owners))
    assert (None if found is None else found.kind.resource.kind) == expected


def test_a_kind_is_known_in_each_version_and_others_are_not() -> None:
    known = owner_kind("jobset.x-k8s.io/v1", "JobSet")
    assert known is not None
    assert known.resource.kind == "JobSet"
    assert owner_kind("example.com/v1", "JobSet") is None
    assert owner_kind("v1", "Node") is None
