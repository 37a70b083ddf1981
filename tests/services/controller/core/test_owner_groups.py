"""Groups of operators' objects: whose they are, what they get from the object, and how they follow
it.
"""

from typing import Any

import msgspec
import pytest

from services.controller.core.owner_groups import owner_group_for, owner_of, upkeep
from services.controller.core.statuses.annotation import annotation_of
from shared.contracts import annotations
from shared.dialects.owned_gangs import Owned, queue_for
from shared.dialects.owner_kinds import owner_kind
from shared.dialects.workload_sizes import Workload, WorkloadSpec, WorkloadStatus
from shared.kinds.podgroup import PodGroup
from shared.kube.objects import Condition, ObjectMeta, Pod
from tests.services.controller.core.samples import make_verdict

Object = dict[str, Any]
CONTAINERS = [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]
QUEUE = "scheduling.volcano.sh/queue-name"


def a_job_set(
    parallelism: int = 2, notes: dict[str, str] | None = None, *, ready: int = 0, **spec: Any
) -> Owned:
    """A driver, and workers that are created when it is ready."""
    kind = owner_kind("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert kind is not None
    jobs: list[Object] = [
        {"name": name, "template": {"spec": {"parallelism": count, "template": {"spec": POD}}}}
        for name, count in (("driver", 1), ("workers", parallelism))
    ]
    jobs[1]["dependsOn"] = [{"name": "driver", "status": "Ready"}]
    raw = {
        "metadata": {"name": "train", "uid": "u", "annotations": notes or {}},
        "spec": {"replicatedJobs": jobs, **spec},
        "status": {"replicatedJobsStatus": [{"name": "driver", "ready": ready}]},
    }
    return Owned(kind, msgspec.convert(raw, kind.decoded))


POD: Object = {"containers": CONTAINERS, "priorityClassName": "high"}


def a_pod(**notes: str) -> Pod:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    metadata = {"name": "p", "namespace": "team", "ownerReferences": [owner], "annotations": notes}
    return msgspec.convert({"metadata": metadata, "spec": POD}, Pod)


def stored(owned: Owned, **changed: Any) -> PodGroup:
    """Its group, as it was created."""
    manifest = owner_group_for(a_pod(), owned, "podgroup-u", queue="q")
    manifest["spec"] |= changed
    return msgspec.convert(manifest, PodGroup)


def test_the_group_belongs_to_the_object_at_the_top() -> None:
    group = owner_group_for(
        a_pod(**{"volcano.sh/preemptable": "false"}), a_job_set(), "podgroup-u", queue="q"
    )
    assert group["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "name": "train",
            "uid": "u",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert group["metadata"]["annotations"] == {
        "volcano.sh/preemptable": "false",
        "tutti.dev/inherited": "volcano.sh/preemptable",
        "tutti.dev/gang": "all",
    }
    spec = group["spec"]
    assert (spec["queue"], spec["priorityClassName"], spec["minMember"]) == ("q", "high", 1)
    assert spec["minTaskMember"] == {"driver": 1, "workers": 0}
    assert spec["minResources"]["nvidia.com/gpu"] == "3"


def test_a_pods_queue_has_precedence_over_its_owners() -> None:
    above = (a_job_set(notes={QUEUE: "theirs"}),)
    assert queue_for(a_pod(**{QUEUE: "own"}).metadata, above) == "own"
    assert queue_for(a_pod().metadata, above) == "theirs"
    assert queue_for(a_pod().metadata, ()) == "default"
    job = owner_kind("batch/v1", "Job")
    assert job is not None
    plain = Owned(job, Workload(metadata=ObjectMeta(annotations={QUEUE: "jobs"})))
    assert queue_for(a_pod().metadata, (plain, *above)) == "jobs"


def test_only_groups_that_were_made_for_an_owner_follow_one() -> None:
    group = stored(a_job_set())
    owner = owner_of(group)
    assert owner is not None
    assert owner.kind == "JobSet"
    metadata = group.metadata
    users = msgspec.structs.replace(metadata, name="train")
    assert owner_of(msgspec.structs.replace(group, metadata=users)) is None
    plain = msgspec.structs.replace(metadata, annotations={})
    assert owner_of(msgspec.structs.replace(group, metadata=plain)) is None


def test_a_group_as_its_owner_wants_it_is_left_alone() -> None:
    assert upkeep(stored(a_job_set()), a_job_set()) is None


def test_minima_rise_when_the_operator_creates_further_pods() -> None:
    write = upkeep(stored(a_job_set()), a_job_set(ready=1))
    assert write == {"spec": {"minMember": 3, "minTaskMember": {"driver": 1, "workers": 2}}}


def test_a_changed_template_changes_the_resources_and_drops_those_that_are_gone() -> None:
    group = stored(a_job_set(), minResources={"nvidia.com/gpu": "3", "example.com/old": "1"})
    write = upkeep(group, a_job_set(parallelism=4))
    assert isinstance(write, dict)
    assert write["spec"]["minResources"]["nvidia.com/gpu"] == "5"
    assert write["spec"]["minResources"]["example.com/old"] is None


def test_a_group_inherits_settings_of_all_objects_above_its_pods() -> None:
    disturb, hold, preflight = (
        f"tutti.dev/{name}" for name in ("do-not-disrupt", "hold-seconds", "preflight")
    )
    owned = a_job_set(notes={disturb: "true"})
    jobs = msgspec.to_builtins(owned.owner)["spec"]["replicatedJobs"]
    jobs[0]["template"]["metadata"] = {"annotations": {hold: "7", disturb: "false"}}
    changed = a_job_set(notes={disturb: "true"}, replicatedJobs=jobs)
    write = upkeep(stored(a_job_set()), changed, [{preflight: "always"}])
    notes = {
        disturb: "true",
        hold: "7",
        preflight: "always",
        "tutti.dev/inherited": f"{disturb},{hold},{preflight}",
    }
    assert write == {"metadata": {"annotations": notes}}
    above = [{preflight: "always"}, {hold: "7"}]
    made = owner_group_for(a_pod(), owned, "podgroup-u", queue="q", above=above)
    assert made["metadata"]["annotations"] == {**notes, "tutti.dev/gang": "all"}
    group = msgspec.convert(made, PodGroup)
    assert upkeep(group, changed, [{preflight: "always"}]) is None
    gone = upkeep(group, a_job_set())
    assert gone == {"metadata": {"annotations": dict.fromkeys(notes)}}


@pytest.mark.parametrize("suspend", [True, False])
def test_the_group_of_a_suspended_object_goes(suspend: bool) -> None:
    write = upkeep(stored(a_job_set()), a_job_set(suspend=suspend))
    assert write == ("remove" if suspend else None)


SUSPENDED: Object = {"runPolicy": {"suspend": True}, "suspend": True}


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("JobSet", "jobset.x-k8s.io/v1alpha2"),
        ("MPIJob", "kubeflow.org/v2beta1"),
        ("RayCluster", "ray.io/v1"),
        ("SparkApplication", "sparkoperator.k8s.io/v1beta2"),
    ],
)
def test_a_suspended_object_keeps_its_group_only_if_pods_of_its_jobs_have_succeeded(
    kind: str, api_version: str
) -> None:
    """Resumed, these Jobs make no pods in their place, and a new group would wait for these for
    ever. All pods that another controller makes are made again.
    """
    found = owner_kind(api_version, kind)
    assert found is not None
    raw = {"metadata": {"name": "train", "uid": "u"}, "spec": SUSPENDED}
    owned = Owned(found, msgspec.convert(raw, found.decoded))
    none = Workload(spec=WorkloadSpec(suspend=True))
    some = msgspec.structs.replace(none, status=WorkloadStatus(succeeded=1))
    assert upkeep(stored(a_job_set()), owned, jobs=[none]) == "remove"
    assert upkeep(stored(a_job_set()), owned, jobs=[none, some]) is None


def test_the_group_of_a_replica_that_was_scaled_away_goes() -> None:
    """A StatefulSet makes pods in place of those that have succeeded."""
    kind = owner_kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
    assert kind is not None
    raw = {"metadata": {"name": "serve", "uid": "u"}, "spec": {"replicas": 1}}
    owned = Owned(kind, msgspec.convert(raw, kind.decoded))
    metadata = msgspec.structs.replace(stored(a_job_set()).metadata, name="podgroup-u-1")
    group = msgspec.structs.replace(stored(a_job_set()), metadata=metadata)
    assert upkeep(group, owned) == "remove"


@pytest.mark.parametrize("suspend", [True, False])
def test_the_group_of_an_object_that_has_ended_says_so_if_its_pods_do_not(*, suspend: bool) -> None:
    """Its success policy was met, and JobSet has deleted the pods of its other Jobs."""
    owned = a_job_set(suspend=suspend)
    condition = Condition(type="Completed", status="True")
    status = msgspec.structs.replace(owned.owner.status, conditions=(condition,))  # type: ignore[attr-defined]
    ended = Owned(owned.kind, msgspec.structs.replace(owned.owner, status=status))
    group = stored(owned)
    verdict = annotation_of(make_verdict(phase="Unknown", uid=""))
    notes = {**group.metadata.annotations, annotations.VERDICT: verdict}
    group = msgspec.structs.replace(
        group, metadata=msgspec.structs.replace(group.metadata, annotations=notes)
    )
    mark = {annotations.WORKLOAD_ENDED: "true"}
    assert upkeep(group, ended) == {"metadata": {"annotations": mark}}
