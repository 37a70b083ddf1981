"""Kubeflow's MPI operator on a real cluster: launcher and workers start together, or none does."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import GPU
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.mpi import running_mpi_operator
from tests.integration.operators.examples import NAME, example_of, whole_gang
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.operators.manifests import kubeflow_suspended, mpi_job
from tests.integration.operators.scenarios import EARLIER, MEMBERS, Scenarios
from tests.integration.stage import Stage

pytestmark = [pytest.mark.certify, pytest.mark.timeout(180)]

KIND: Final = ManagedKind(
    word="mpijob",
    plural="mpijobs",
    version="kubeflow.org/v2beta1",
    name_label="training.kubeflow.org/job-name",
)
#: The issue saw three of four pods bound after this time.
UNBOUND_S = 10.0


@pytest.fixture(scope="module", autouse=True)
def kinds(mpi_operator: BuiltOperator, control_plane: ControlPlane) -> None:
    """The garbage collector looks for new kinds twice a minute: they are served early."""
    control_plane.install_crds(mpi_operator.crds)


@pytest.fixture
async def sets(
    mpi_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> AsyncIterator[ManagedSets]:
    """MPIJobs, and their operator at work."""
    found = ManagedSets(stage, KIND)
    operator = running_mpi_operator(mpi_operator, control_plane, tmp_path / "operator.log")
    async with found.operated(operator):
        yield found


@pytest.fixture
def scenarios(sets: ManagedSets) -> Scenarios:
    return Scenarios(sets, example_of("mpi-operator"))


async def test_an_mpijob_of_four_pods_on_three_gpus_binds_none_and_on_four_binds_all(
    stage: Stage, sets: ManagedSets
) -> None:
    await stage.nodes(3, extended={GPU: 1})
    await sets.create(mpi_job("train", workers=3))
    await sets.wait_pods("train", 4)
    group = await stage.seen_group("train")
    assert group["spec"]["minMember"] == 4
    await stage.stays_unbound("train", for_s=UNBOUND_S)
    await stage.nodes(1, prefix="late-", extended={GPU: 1})
    await stage.bound("train", 4)


async def test_of_two_mpijobs_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.the_other_runs_then(scenarios.sets.delete)


async def test_an_mpijobs_worker_that_is_lost_gets_its_place_back_although_another_job_waits(
    scenarios: Scenarios,
) -> None:
    """The operator creates a worker again that is deleted, not one that fails."""
    await scenarios.one_runs_and_one_waits()
    await scenarios.a_dead_worker_is_replaced_in_its_place(
        lambda: _lose_a_worker(scenarios.stage), recreated=1
    )


async def _lose_a_worker(stage: Stage) -> str:
    """Delete a worker of `earlier`; returns its UID."""
    path = stage.path(name=f"{EARLIER}-worker-1")
    pod = await stage.api.get(path)
    await stage.delete(path)
    return str(pod["metadata"]["uid"])


async def test_a_suspended_mpijob_makes_way_and_waits_whole_when_it_is_resumed(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.one_is_suspended_and_resumed(kubeflow_suspended)


async def test_an_mpijob_is_one_gang_by_its_annotation_without_support_of_the_operator(
    mpi_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> None:
    """The launcher is the pod of a batch Job, and the workers are the MPIJob's own."""
    sets = ManagedSets(stage, KIND)
    manifest = mpi_job(NAME, workers=MEMBERS - 1, scheduler_name="tutti")
    scenarios = Scenarios(sets, whole_gang(KIND.word, manifest))
    log = tmp_path / "operator.log"
    operator = running_mpi_operator(mpi_operator, control_plane, log, flags=())
    async with sets.operated(operator):
        await scenarios.each_is_one_gang(lambda: _lose_a_worker(stage))


async def test_an_mpijob_shrinks_and_grows_although_another_job_waits(scenarios: Scenarios) -> None:
    def scaled(pods: int) -> Object:
        return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": pods - 1}}}}

    await scenarios.one_runs_and_one_waits()
    await scenarios.one_shrinks_and_grows(scaled, small=2)
