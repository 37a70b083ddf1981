"""Kubeflow's Trainer v2 on a real cluster: its groups are coscheduling's, its pods a JobSet's."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.integration.operators.examples import NAME, example_of, whole_gang
from tests.integration.operators.managed_sets import ManagedSets
from tests.integration.operators.manifests import suspended
from tests.integration.operators.scenarios import EARLIER, MEMBERS, Scenarios
from tests.integration.operators.train_jobs import KIND, serve_kinds, train_jobs
from tests.integration.stage import Stage

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

COSCHEDULING: Final = "scheduling.x-k8s.io/v1alpha1"
COLLECTIONS: Final = (("podgroups", COSCHEDULING), ("jobsets", "jobset.x-k8s.io/v1alpha2"))


@pytest.fixture(scope="module", autouse=True)
def kinds(
    trainer_operator: BuiltOperator, jobset_operator: BuiltOperator, control_plane: ControlPlane
) -> None:
    serve_kinds(control_plane, trainer_operator, jobset_operator)


@pytest.fixture
async def sets(
    trainer_operator: BuiltOperator, jobset_operator: BuiltOperator, stage: Stage, tmp_path: Path
) -> AsyncIterator[ManagedSets]:
    async with train_jobs(stage, trainer_operator, jobset_operator, tmp_path) as found:
        yield found


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
