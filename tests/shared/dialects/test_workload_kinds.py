"""Which workload stays when pods are made again, and when it makes none."""

from typing import Any

import pytest

from shared.dialects.discovery import readers
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.kube.resources import JOB_SETS, JOBS_BATCH, JOBS_VOLCANO, LEADER_WORKER_SETS, Resource
from shared.model.reference_objects import Workload
from tests.shared.dialects.reading import CONTEXT, decoded, metadata

OWNER = {"apiVersion": "v1", "kind": "TrainJob", "name": "up", "uid": "uid-up", "controller": True}


def read(resource: Resource, body: dict[str, Any], **meta: Any) -> Workload | None:
    """An object as the planner knows it; None: it makes no pods."""
    (kind,) = (one for one in readers()[resource] if one.neutral == "workload")
    found = decoded(kind.decoded, {"metadata": metadata(**meta), **body})
    read = kind.neutral_object(found, CONTEXT)
    assert read is None or isinstance(read, Workload)
    return read


@pytest.mark.parametrize("resource", [JOBS_BATCH, JOBS_VOLCANO, JOB_SETS, LEADER_WORKER_SETS])
def test_a_workload_is_known_by_what_its_pods_say_of_it(resource: Resource) -> None:
    found = read(resource, {"spec": {}, "status": {}}, ownerReferences=[OWNER])
    assert found == Workload(
        uid="uid-one",
        namespace=metadata()["namespace"],
        name=f"{resource.title}/one",
        resource_version=7,
        title="trainjob/up",
        owner_uid="uid-up",
        parts=1 if resource is LEADER_WORKER_SETS else None,
    )


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        pytest.param(JOBS_BATCH, {"spec": {"suspend": True}}, id="a suspended Job"),
        pytest.param(JOBS_BATCH, {"spec": {"parallelism": 0}}, id="a Job scaled to nothing"),
        *(
            pytest.param(
                resource,
                {"status": {"conditions": [{"type": ended, "status": "True"}]}},
                id=f"{resource.title} {ended}",
            )
            for resource, ended in (
                (JOBS_BATCH, "Complete"),
                (JOBS_BATCH, "Failed"),
                (JOBS_BATCH, "FailureTarget"),
                (JOB_SETS, "Completed"),
                (JOB_SETS, "Failed"),
                (JOB_SETS, "Suspended"),
            )
        ),
        pytest.param(JOB_SETS, {"spec": {"suspend": True}}, id="a suspended JobSet"),
        *(
            pytest.param(JOBS_VOLCANO, {"status": {"state": {"phase": phase}}}, id=f"{phase} Job")
            for phase in ("Aborting", "Aborted", "Completing", "Completed", "Terminating", "Failed")
        ),
    ],
)
def test_what_ended_or_is_stopped_makes_no_pods(resource: Resource, body: dict[str, Any]) -> None:
    assert read(resource, {"spec": {}, "status": {}}) is not None
    assert read(resource, {"spec": {}, "status": {}, **body}) is None


@pytest.mark.parametrize("resource", [JOBS_BATCH, JOBS_VOLCANO, JOB_SETS, LEADER_WORKER_SETS])
def test_what_is_being_deleted_makes_no_pods(resource: Resource) -> None:
    assert read(resource, {}, deletionTimestamp="2026-01-01T00:00:00Z") is None


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Restarting"])
def test_a_volcano_job_that_restarts_makes_its_pods_again(phase: str) -> None:
    assert read(JOBS_VOLCANO, {"status": {"state": {"phase": phase}}}) is not None


def test_a_condition_that_does_not_hold_ends_nothing() -> None:
    conditions = [{"type": "Failed", "status": "False"}]
    assert read(JOB_SETS, {"status": {"conditions": conditions}}) is not None


def test_the_parts_of_a_leader_worker_set_are_its_replicas() -> None:
    found = read(LEADER_WORKER_SETS, {"spec": {"replicas": 3}})
    assert found is not None
    assert found.parts == 3


def test_labels_name_the_object_that_stays_and_the_part() -> None:
    of_set = {
        "jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/job-index": "2",
    }
    assert pod_vocabulary().workload(of_set) == ("jobsets.jobset.x-k8s.io/train", "workers-2")
    of_group = {
        "leaderworkerset.sigs.k8s.io/name": "serve",
        "leaderworkerset.sigs.k8s.io/group-index": "1",
    }
    assert pod_vocabulary().workload(of_group) == (
        "leaderworkersets.leaderworkerset.x-k8s.io/serve",
        "1",
    )
    assert pod_vocabulary().workload({"app": "web"}) == ("", "")
