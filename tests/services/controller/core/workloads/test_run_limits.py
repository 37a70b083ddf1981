"""Groups that the controllers make have the run limits of the objects above their pods."""

from typing import Any

import msgspec
import pytest

from services.controller.core import owner_groups
from services.controller.core.jobs.manifests import change_of, group_for
from services.controller.core.workloads import (
    apart_from_run_limit,
    limit_patch,
    pod_group_for,
    upkeep,
)
from shared.contracts.annotations import OWNER_RUN_LIMIT, RUN_LIMIT
from shared.dialects.owned_gangs import Owned
from shared.dialects.owner_kinds import limiting_kind, owner_kind
from shared.dialects.run_limits import KUEUE, SLURM
from shared.dialects.workload_sizes import Workload
from shared.kinds.job import Job
from shared.kinds.podgroup import PodGroup
from shared.kube.objects import Pod

Object = dict[str, Any]
POD: Object = {"containers": [{"name": "c"}]}


def a_pod() -> Pod:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    metadata = {"name": "p", "namespace": "team", "ownerReferences": [owner]}
    return msgspec.convert({"metadata": metadata, "spec": POD}, Pod)


def limits_of(group: Object | PodGroup) -> Object:
    """The annotations that state limits."""
    built: Object = msgspec.to_builtins(group)
    notes: Object = built["metadata"]["annotations"]
    return {key: notes[key] for key in (RUN_LIMIT, OWNER_RUN_LIMIT) if key in notes}


def a_job(deadline: int = 0, notes: Object | None = None, labels: Object | None = None) -> Workload:
    metadata = {"name": "j", "uid": "j", "annotations": notes or {}, "labels": labels or {}}
    spec = {"activeDeadlineSeconds": deadline, "template": {"spec": POD}}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Workload)


@pytest.mark.parametrize(
    ("job", "limits"),
    [
        (a_job(60), {OWNER_RUN_LIMIT: "60"}),
        (a_job(60, {RUN_LIMIT: "90m"}), {RUN_LIMIT: "90m", OWNER_RUN_LIMIT: "60"}),
        (a_job(600, {SLURM: "5"}, {KUEUE: "30"}), {OWNER_RUN_LIMIT: "30"}),
        (a_job(0, {RUN_LIMIT: "90m"}), {RUN_LIMIT: "90m"}),
        (a_job(0, {RUN_LIMIT: "soon"}), {}),
        (a_job(-1), {}),
    ],
    ids=str,
)
def test_the_group_of_a_job_has_its_limits_and_follows_them(job: Workload, limits: Object) -> None:
    made = pod_group_for(a_pod(), job, "podgroup-j")
    assert limits_of(made) == limits
    stored = msgspec.convert(made, PodGroup)
    assert upkeep(stored, "Job", job) is None
    patch = upkeep(stored, "Job", a_job())
    removed = patch["metadata"]["annotations"] if isinstance(patch, dict) else {}
    assert {key for key in limits if removed[key] is None} == set(limits)


def an_owner(api_version: str, kind: str, spec: Object, **notes: str) -> Owned:
    known = owner_kind(api_version, kind)
    assert known is not None
    raw = {"metadata": {"name": "train", "uid": "u", "annotations": notes}, "spec": spec}
    return Owned(known, msgspec.convert(raw, known.decoded))


def a_job_set(*deadlines: int, **notes: str) -> Owned:
    jobs = [
        {
            "name": f"role-{index}",
            "template": {"spec": {"activeDeadlineSeconds": deadline, "template": {"spec": POD}}},
        }
        for index, deadline in enumerate(deadlines)
    ]
    return an_owner("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs}, **notes)


def test_the_group_of_a_jobset_has_the_smallest_limit_of_its_jobs() -> None:
    owned = a_job_set(7_200, 3_600, **{RUN_LIMIT: "4h"})
    job = Owned(owned.kind, a_job(7_200))
    made = owner_groups.owner_group_for(
        a_pod(), owned, "podgroup-u", queue="q", above=[job.annotations]
    )
    stored = msgspec.convert(made, PodGroup)
    assert limits_of(made) == {RUN_LIMIT: "4h", OWNER_RUN_LIMIT: "7200"}
    patch = owner_groups.upkeep(stored, owned)
    assert patch == {"metadata": {"annotations": {OWNER_RUN_LIMIT: "3600"}}}


def test_the_group_of_an_mpi_job_has_the_deadline_of_its_run_policy() -> None:
    worker = {"Worker": {"replicas": 2, "template": {"spec": POD}}}
    spec = {"runPolicy": {"activeDeadlineSeconds": 2**40}, "mpiReplicaSpecs": worker}
    owned = an_owner("kubeflow.org/v2beta1", "MPIJob", spec)
    made = owner_groups.owner_group_for(a_pod(), owned, "podgroup-u", queue="q")
    assert limits_of(made) == {OWNER_RUN_LIMIT: str(2**31 - 1)}
    assert owner_groups.upkeep(msgspec.convert(made, PodGroup), owned) is None


def volcano_job(**notes: str) -> Job:
    task = {"name": "work", "replicas": 1, "minAvailable": 1, "template": {"spec": POD}}
    raw = {
        "metadata": {"name": "t", "uid": "u", "annotations": notes, "labels": {KUEUE: "9"}},
        "spec": {"minAvailable": 1, "queue": "q", "tasks": [task]},
    }
    return msgspec.convert(raw, Job)


def test_the_group_of_a_volcano_job_follows_its_limit() -> None:
    made = group_for(volcano_job(**{RUN_LIMIT: "1h", SLURM: "5"}), frozenset(), {})
    assert made["metadata"]["annotations"][SLURM] == "5"
    assert made["metadata"]["labels"] == {KUEUE: "9"}
    stored = msgspec.convert(made, PodGroup)
    longer = group_for(volcano_job(**{RUN_LIMIT: "2h"}), frozenset(), {})
    assert change_of(stored, made) is None
    assert change_of(stored, longer) == {"metadata": {"annotations": {RUN_LIMIT: "2h"}}}
    # One that was written on the group itself stays.
    assert change_of(stored, group_for(volcano_job(), frozenset(), {})) is None


def test_a_change_of_the_limit_which_a_webhook_may_refuse_is_a_write_of_its_own() -> None:
    limit: Object = {"metadata": {"annotations": {RUN_LIMIT: "2h"}}}
    of_owner: Object = {"metadata": {"annotations": {OWNER_RUN_LIMIT: None}}}
    assert apart_from_run_limit(of_owner) == (None, of_owner)
    both: Object = {
        "spec": {"minMember": 2},
        "metadata": {"annotations": {RUN_LIMIT: "2h", "a": None}},
    }
    rest: Object = {"spec": {"minMember": 2}, "metadata": {"annotations": {"a": None}}}
    assert apart_from_run_limit(None) == (None, None)
    assert apart_from_run_limit(rest) == (rest, None)
    assert apart_from_run_limit(limit) == (None, limit)
    assert apart_from_run_limit(both) == (rest, limit)
    labelled: Object = {"metadata": {"labels": {"a": "b"}, **limit["metadata"]}}
    rest = {"metadata": {"labels": {"a": "b"}, "annotations": {}}}
    assert apart_from_run_limit(labelled) == (rest, limit)


def by_operator(api_version: str, kind: str, spec: Object, **metadata: Any) -> Owned:
    """An operator's object, as the controllers read it above the group that the operator makes."""
    known = limiting_kind(api_version, kind)
    assert known is not None
    assert known.resource.api_version == api_version
    raw = {"metadata": {"name": "train", "uid": "u", **metadata}, "spec": spec}
    return Owned(known, msgspec.convert(raw, known.decoded))


TEN_MINUTES: Object = {"runPolicy": {"cleanPodPolicy": "None", "activeDeadlineSeconds": 600}}
WORKERS: Object = {"Worker": {"replicas": 2, "restartPolicy": "OnFailure"}}
SPARK = "sparkoperator.k8s.io/v1beta2"
TRAINING = ["JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"]


@pytest.mark.parametrize(
    ("owned", "limit"),
    [
        *(
            (
                by_operator("kubeflow.org/v1", kind, {**TEN_MINUTES, "replicaSpecs": WORKERS}),
                "600",
            )
            for kind in TRAINING
        ),
        (by_operator("kubeflow.org/v2beta1", "MPIJob", TEN_MINUTES), "600"),
        # The MPI operator does not copy annotations, and no operator copies labels.
        (by_operator("kubeflow.org/v2beta1", "MPIJob", {}, annotations={RUN_LIMIT: "5m"}), "300"),
        (by_operator("kubeflow.org/v1", "TFJob", TEN_MINUTES, labels={KUEUE: "120"}), "120"),
        (by_operator("ray.io/v1", "RayJob", {"activeDeadlineSeconds": 900}), "900"),
        (
            by_operator(
                "trainer.kubeflow.org/v1alpha1", "TrainJob", {"activeDeadlineSeconds": 900}
            ),
            "900",
        ),
        (
            by_operator(
                "sparkoperator.k8s.io/v1beta2", "SparkApplication", {}, labels={KUEUE: "9"}
            ),
            "9",
        ),
        (by_operator("kubeflow.org/v1", "PyTorchJob", {"runPolicy": {}}), None),
    ],
)
def test_the_group_that_an_operator_makes_gets_the_limit_of_its_job(
    owned: Owned, limit: str | None
) -> None:
    group = msgspec.convert({"metadata": {"name": "train"}, "spec": {}}, PodGroup)
    patch = limit_patch(group, [owned])
    limited = None if limit is None else {"metadata": {"annotations": {OWNER_RUN_LIMIT: limit}}}
    assert patch == limited
    has_it = {"metadata": {"name": "train", "annotations": {OWNER_RUN_LIMIT: limit or "7"}}}
    again = limit_patch(msgspec.convert(has_it, PodGroup), [owned])
    assert again == (None if limit else {"metadata": {"annotations": {OWNER_RUN_LIMIT: None}}})


def test_of_the_objects_above_an_operators_group_the_smallest_limit_counts() -> None:
    cluster = by_operator("ray.io/v1", "RayCluster", {}, labels={KUEUE: "900"})
    job = by_operator("ray.io/v1", "RayJob", {"activeDeadlineSeconds": 600})
    group = msgspec.convert({"metadata": {"name": "ray"}, "spec": {}}, PodGroup)
    assert limit_patch(group, [cluster, job]) == {
        "metadata": {"annotations": {OWNER_RUN_LIMIT: "600"}}
    }
