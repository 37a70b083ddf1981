"""What real operators do when a worker fails: the whole gang is deleted and made again, and a gang
that waits for its place continues waiting; deleted without being recreated, it leaves the place at
once.

The kinds of the operators are served with whatever fields they have, their controllers' work is
done by hand; Jobs, and the deletion of what an owner leaves, are Kubernetes' own.
"""

import json
from collections.abc import Iterator

import pytest

from shared.contracts import annotations
from shared.kube.resources import JOB_SETS, LEADER_WORKER_SETS, Resource
from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.integration.stage import Stage
from tests.integration.suite import RunningSuite, running_suite
from tests.support.open_crd import open_crd
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

WORKERS = 4
BACKGROUND = {"propagationPolicy": "Background"}
FOREGROUND = {"propagationPolicy": "Foreground"}


@pytest.fixture(scope="module")
def suite(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningSuite]:
    """`tutti up` on a cluster that serves the kinds of JobSet and LeaderWorkerSet."""
    crds = tmp_path_factory.mktemp("crds")
    for resource in (JOB_SETS, LEADER_WORKER_SETS):
        (crds / f"{resource.plural}.json").write_text(json.dumps(open_crd(resource, status=True)))
    control_plane.install_crds(crds)
    folder = tmp_path_factory.mktemp("suite")
    with running_suite(control_plane.admin_kubeconfig, folder, "--no-webhook") as running:
        yield running


def owned_by(owner: Object) -> list[Object]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


async def make(stage: Stage, resource: Resource, name: str, spec: Object) -> Object:
    manifest = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    return await stage.api.create(resource.path(stage.namespace), manifest)


async def child_job(stage: Stage, job_set: Object) -> None:
    """The Job that JobSet's controller makes, in every life under the same name."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": job_set["metadata"]["name"],
        "jobset.sigs.k8s.io/replicatedjob-name": "w",
        "jobset.sigs.k8s.io/job-index": "0",
    }
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "4"}}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train-w-0",
            "labels": labels,
            "annotations": {annotations.GANG: "all"},
            "ownerReferences": owned_by(job_set),
        },
        "spec": {
            "parallelism": WORKERS,
            "completions": WORKERS,
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "schedulerName": "tutti",
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container],
                },
            },
        },
    }
    await stage.api.create(stage.path("jobs", version="batch/v1"), job)


async def on_nodes(stage: Stage, count: int) -> set[str]:
    """UIDs of the pods of the Job that run, as soon as there are so many."""

    async def all_run() -> set[str]:
        found = {
            pod["metadata"]["uid"]
            for pod in await stage.pods()
            if "job-name" in pod["metadata"].get("labels", {})
            and pod["spec"].get("nodeName")
            and not pod["metadata"].get("deletionTimestamp")
        }
        assert len(found) == count
        return found

    return await eventually(all_run, because="the Job's pods are on nodes")


async def test_a_job_that_job_set_makes_again_gets_its_place(stage: Stage) -> None:
    await stage.nodes(WORKERS)
    job_set = await make(stage, JOB_SETS, "train", {"failurePolicy": {"maxRestarts": 3}})
    await child_job(stage, job_set)
    first = await on_nodes(stage, WORKERS)
    await stage.gang("rival", WORKERS, requests={"cpu": "4"})
    await stage.waits("rival", "NotEnoughResources")
    # A worker fails: JobSet deletes the Job, waits until it is gone, and makes it again.
    await stage.api.delete(stage.path("jobs", "train-w-0", "batch/v1"), FOREGROUND)

    async def job_gone() -> bool:
        return not (await stage.api.get(stage.path("jobs", version="batch/v1")))["items"]

    await eventually(job_gone, because="the Job and its pods are gone")
    # The moment in which the place was lost: nothing of the gang exists.
    await stage.stays_unbound("rival")
    await child_job(stage, job_set)
    assert not first & await on_nodes(stage, WORKERS)
    await stage.stays_unbound("rival")
    # The user deletes the JobSet: no controller recreates the pods.
    await stage.api.delete(JOB_SETS.path(stage.namespace, "train"), BACKGROUND)
    # Kubernetes looks for new kinds whose objects own others every half minute.
    await eventually(job_gone, timeout_s=60, because="the Job goes with its JobSet")
    await stage.bound("rival", WORKERS)


async def test_a_group_that_leader_worker_set_makes_again_gets_its_place(stage: Stage) -> None:
    await stage.nodes(WORKERS)
    await make(stage, LEADER_WORKER_SETS, "serve", {"replicas": 1})
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "serve",
        "leaderworkerset.sigs.k8s.io/group-index": "0",
    }

    async def group(name: str) -> None:
        await stage.group(name, WORKERS)
        await stage.members(name, WORKERS, requests={"cpu": "4"}, labels=labels)

    await group("serve-0-first")
    await stage.bound("serve-0-first", WORKERS)
    await stage.gang("rival", WORKERS, requests={"cpu": "4"})
    await stage.waits("rival", "NotEnoughResources")
    # The same name after a failure, another one after an update of the template.
    for name in ("serve-0-first", "serve-0-next"):
        await stage.api.delete(stage.group_path("serve-0-first"))
        await stage.delete_pods([f"serve-0-first-{index}" for index in range(WORKERS)])
        await stage.stays_unbound("rival")
        await group(name)
        await stage.bound(name, WORKERS)
        await stage.stays_unbound("rival")
    # Scaled to nothing, the set lives and makes no such group.
    await stage.api.patch(
        LEADER_WORKER_SETS.path(stage.namespace, "serve"), {"spec": {"replicas": 0}}
    )
    await stage.api.delete(stage.group_path("serve-0-next"))
    await stage.delete_pods([f"serve-0-next-{index}" for index in range(WORKERS)])
    await stage.bound("rival", WORKERS)
