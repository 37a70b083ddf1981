"""The seeds' experiment with a real operator: Kubeflow's training-operator v1 on a real cluster.

It writes PodGroups, waits until they are Inqueue, and only then makes pods. One part of `make
certify`: it is built from its Go module first.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import GPU
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.training import running_operator
from tests.integration.operators.examples import example_of
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.operators.manifests import kubeflow_job, kubeflow_suspended
from tests.integration.operators.remains import nothing_remains
from tests.integration.operators.scenarios import EARLIER, Scenarios
from tests.integration.stage import VOLCANO, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(180)]

KUBEFLOW: Final = "kubeflow.org/v1"
NAME_LABEL: Final = "training.kubeflow.org/job-name"
PYTORCH_JOBS: Final = ManagedKind("pytorchjob", "pytorchjobs", KUBEFLOW, NAME_LABEL)
TF_JOBS: Final = ManagedKind("tfjob", "tfjobs", KUBEFLOW, NAME_LABEL)


@pytest.fixture(scope="module", autouse=True)
def kinds(training_operator: BuiltOperator, control_plane: ControlPlane) -> None:
    """The garbage collector looks for new kinds twice a minute: they are served early."""
    control_plane.install_crds(training_operator.crds)


@pytest.fixture
async def jobs(
    training_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> AsyncIterator[ManagedSets]:
    """PyTorchJobs, and the operator at work."""
    log = tmp_path / "operator.log"
    found = ManagedSets(stage, PYTORCH_JOBS)
    operator = running_operator(training_operator, control_plane, stage.api, log)
    async with found.operated(operator):
        yield found


@pytest.fixture
def scenarios(jobs: ManagedSets) -> Scenarios:
    return Scenarios(jobs, example_of("training-operator"))


async def test_of_two_pytorchjobs_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.the_other_runs_then(scenarios.sets.delete)


async def test_a_pytorchjobs_worker_that_dies_gets_its_place_back_although_another_job_waits(
    scenarios: Scenarios,
) -> None:
    """An exit code above 128 is one that the operator retries: it replaces the pod."""

    async def fail() -> str:
        pod = await scenarios.stage.api.get(scenarios.stage.path(name=f"{EARLIER}-worker-1"))
        uid = str(pod["metadata"]["uid"])
        scenarios.stage.kubelet.finish(uid, exit_code=137)
        return uid

    await scenarios.one_runs_and_one_waits()
    await scenarios.a_dead_worker_is_replaced_in_its_place(fail, recreated=1)


async def test_a_suspended_pytorchjob_makes_way_and_waits_whole_when_it_is_resumed(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.one_is_suspended_and_resumed(kubeflow_suspended)


async def test_an_elastic_pytorchjob_starts_with_its_minimum_grows_and_shrinks(
    stage: Stage, jobs: ManagedSets
) -> None:
    """At first two of the four GPUs are free, and it needs two to four."""

    def scaled(workers: int) -> Object:
        return {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": workers}}}}

    await stage.nodes(4, extended={GPU: 1})
    await jobs.create(kubeflow_job("PyTorchJob", "other", "pytorch", Master=1, Worker=1))
    await jobs.wait_bound("other", 2)
    elastic = kubeflow_job("PyTorchJob", "elastic", "pytorch", Worker=4)
    elastic["spec"]["elasticPolicy"] = {"rdzvBackend": "c10d", "minReplicas": 2, "maxReplicas": 4}
    elastic["spec"]["runPolicy"]["schedulingPolicy"] = {"minAvailable": 2}
    await jobs.create(elastic)
    await jobs.wait_bound("elastic", 2)
    await jobs.wait_pods("elastic", 4)
    await jobs.delete("other")
    await jobs.wait_bound("elastic", 4)
    await jobs.patch("elastic", scaled(2))
    await jobs.wait_bound("elastic", 2)
    await jobs.create(kubeflow_job("PyTorchJob", "next", "pytorch", Master=1, Worker=1))
    await jobs.wait_bound("next", 2)


async def test_a_tfjobs_group_is_admitted_and_its_pods_exist_while_it_waits(
    stage: Stage, jobs: ManagedSets
) -> None:
    tf_jobs = ManagedSets(stage, TF_JOBS)
    await stage.nodes(4, extended={GPU: 1})
    await tf_jobs.create(kubeflow_job("TFJob", "first", "tensorflow", PS=1, Worker=3))
    placed = await stage.bound("first", 4)
    assert len(set(placed.values())) == 4
    group = await stage.seen_group("first")
    assert group["spec"]["minMember"] == 4
    assert group["spec"]["minResources"][GPU] == "4"
    await tf_jobs.create(kubeflow_job("TFJob", "second", "tensorflow", PS=1, Worker=3))
    await stage.waits("second", "NotEnoughResources", GPU)
    # Inqueue, so its pods exist and an autoscaler could see them; none of them is bound.
    await tf_jobs.wait_pods("second", 4)
    await stage.stays_unbound("second")
    first = await tf_jobs.read("first")
    assert first is not None
    true = [one["type"] for one in first["status"]["conditions"] if one["status"] == "True"]
    assert true[-1] == "Running"
    await tf_jobs.delete("first")
    await stage.bound("second", 4, timeout_s=60)
    await tf_jobs.delete("second")
    await nothing_remains(stage)


async def test_the_operator_makes_pods_only_when_the_groups_queue_admits_it(
    stage: Stage, jobs: ManagedSets
) -> None:
    await stage.nodes(4, extended={GPU: 1})
    queue = stage.namespace
    manifest = kubeflow_job("PyTorchJob", "train", "pytorch", Master=1, Worker=1)
    manifest["spec"]["runPolicy"]["schedulingPolicy"] = {"queue": queue, "minAvailable": 2}
    manifest["spec"]["runPolicy"]["activeDeadlineSeconds"] = 3600
    await jobs.create(manifest)
    await eventually(lambda: stage.seen_group("train"), because="the operator wrote a group")
    await stage.stays_unbound("train")
    assert not await stage.pods()
    path = f"/apis/{VOLCANO}/queues"
    identity = {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": queue}}
    await stage.api.create(path, {**identity, "spec": {"weight": 1}})
    await stage.bound("train", 2, timeout_s=30)
    # The operator has written the group several times since the controller did.
    group = await stage.api.get(stage.group_path("train", VOLCANO))
    assert group["metadata"]["annotations"]["tutti.dev/owner-run-limit"] == "3600"
    await jobs.delete("train")
    await nothing_remains(stage)
    await stage.api.delete(f"{path}/{queue}")
