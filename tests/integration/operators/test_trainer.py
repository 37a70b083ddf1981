"""Kubeflow's Trainer v2 on a real cluster: its groups are coscheduling's, its pods a JobSet's."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.managers import JOBSET, running_manager
from tests.controlplane.operators.trainer import running_trainer
from tests.documents.links import ROOT
from tests.integration.operators.examples import NAME, example_of, whole_gang
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.operators.manifests import suspended
from tests.integration.operators.scenarios import EARLIER, MEMBERS, Scenarios
from tests.integration.stage import Stage

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

COSCHEDULING: Final = "scheduling.x-k8s.io/v1alpha1"
COLLECTIONS: Final = (("podgroups", COSCHEDULING), ("jobsets", "jobset.x-k8s.io/v1alpha2"))
KIND: Final = ManagedKind(
    word="trainjob",
    plural="trainjobs",
    version="trainer.kubeflow.org/v1alpha1",
    name_label="jobset.sigs.k8s.io/jobset-name",
)


@pytest.fixture(scope="module", autouse=True)
def kinds(
    trainer_operator: BuiltOperator, jobset_operator: BuiltOperator, control_plane: ControlPlane
) -> None:
    """The kinds are served before Tutti starts: the watcher looks for absent kinds twice a minute.

    The Trainer refuses to start without JobSet's, and makes no group without coscheduling's.
    """
    for crds in (ROOT / "tests" / "dialects" / "crds", jobset_operator.crds, trainer_operator.crds):
        control_plane.install_crds(crds)


@pytest.fixture
async def sets(
    trainer_operator: BuiltOperator,
    jobset_operator: BuiltOperator,
    control_plane: ControlPlane,
    stage: Stage,
    tmp_path: Path,
) -> AsyncIterator[ManagedSets]:
    """TrainJobs, and both operators at work."""
    found = ManagedSets(stage, KIND)
    folder = tmp_path / "jobset"
    folder.mkdir()
    jobset = running_manager(JOBSET, jobset_operator, control_plane, stage.api, folder)
    log = tmp_path / "operator.log"
    trainer = running_trainer(trainer_operator, control_plane, stage.api, log)
    async with found.operated(jobset, trainer):
        yield found
        # The operator removes their finalizer once their TrainJobs are gone.
        await stage.api.delete(stage.path("trainingruntimes", version=KIND.version))


@pytest.fixture
def scenarios(sets: ManagedSets) -> Scenarios:
    return Scenarios(sets, example_of("trainer"), collections=COLLECTIONS)


async def test_of_two_trainjobs_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    group = await scenarios.stage.seen_group(EARLIER, COSCHEDULING)
    assert group["spec"]["minMember"] == MEMBERS
    await scenarios.the_other_runs_then(scenarios.sets.delete)


async def test_a_trainjob_is_one_gang_by_its_annotation_without_a_policy_of_its_runtime(
    sets: ManagedSets,
) -> None:
    """The annotation is on the TrainJob, above the JobSet, its batch Jobs and the pods."""
    objects = example_of("trainer").objects(NAME)
    runtime = next(one for one in objects if one["kind"] == "TrainingRuntime")
    del runtime["spec"]["podGroupPolicy"]
    train_job = next(one for one in objects if one["kind"] == "TrainJob")
    example = whole_gang(KIND.word, runtime, train_job)
    scenarios = Scenarios(sets, example, collections=COLLECTIONS)
    await scenarios.each_is_one_gang()


async def test_a_trainjobs_worker_that_dies_gets_its_place_back_although_another_job_waits(
    scenarios: Scenarios,
) -> None:
    """The batch Job of its JobSet creates the pod again."""
    await scenarios.one_runs_and_one_waits()
    await scenarios.a_dead_worker_is_replaced_in_its_place(recreated=1)


async def test_a_suspended_trainjob_makes_way_and_waits_whole_when_it_is_resumed(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.one_is_suspended_and_resumed(suspended)
