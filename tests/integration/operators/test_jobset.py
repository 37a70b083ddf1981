"""JobSet on a real cluster: it recreates its Jobs when one fails, and they get their place back."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from shared.contracts.annotations import GROUP_NAME
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.managers import JOBSET, running_manager
from tests.integration.operators.examples import NAME, Example, example_of
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.operators.manifests import suspended
from tests.integration.operators.scenarios import MEMBERS, Scenarios
from tests.integration.stage import VOLCANO, Stage

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

KIND: Final = ManagedKind(
    word="jobset",
    plural="jobsets",
    version="jobset.x-k8s.io/v1alpha2",
    name_label="jobset.sigs.k8s.io/jobset-name",
)


@pytest.fixture(scope="module", autouse=True)
def kinds(jobset_operator: BuiltOperator, control_plane: ControlPlane) -> None:
    """The kind is served before Tutti starts: the watcher looks for absent kinds twice a minute."""
    control_plane.install_crds(jobset_operator.crds)


@pytest.fixture
async def sets(
    jobset_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> AsyncIterator[ManagedSets]:
    """JobSets, and their operator at work."""
    found = ManagedSets(stage, KIND)
    operator = running_manager(JOBSET, jobset_operator, control_plane, stage.api, tmp_path)
    async with found.operated(operator):
        yield found


@pytest.fixture
def scenarios(sets: ManagedSets) -> Scenarios:
    """Of JobSets with two replicated Jobs, which are one gang."""
    return Scenarios(sets, example_of("jobset"))


async def test_of_two_jobsets_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.the_other_runs_then(scenarios.sets.delete)


async def test_a_jobset_whose_pod_fails_is_recreated_in_its_place_although_another_waits(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.a_dead_worker_is_replaced_in_its_place(recreated=MEMBERS)


async def test_a_suspended_jobset_makes_way_and_waits_whole_when_it_is_resumed(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.one_is_suspended_and_resumed(suspended)


async def test_a_suspended_jobset_with_a_group_of_its_users_own_waits_whole_when_it_is_resumed(
    sets: ManagedSets,
) -> None:
    """The group stays while the JobSet is suspended, although its gang had started."""
    scenarios = Scenarios(sets, with_own_group(example_of("jobset")))
    await scenarios.one_runs_and_one_waits()
    await scenarios.one_is_suspended_and_resumed(suspended)


async def test_without_the_annotation_a_child_job_is_the_gang(sets: ManagedSets) -> None:
    scenarios = Scenarios(sets, example_of("jobset", "each.yaml"))
    await scenarios.one_runs_and_one_waits()
    await scenarios.the_other_runs_then(sets.delete)


def with_own_group(example: Example) -> Example:
    """The page's JobSet, but its pods name a PodGroup that its user made."""
    (job_set,) = example.objects(NAME)
    del job_set["metadata"]["annotations"]
    for each in job_set["spec"]["replicatedJobs"]:
        pods = each["template"]["spec"]["template"]
        pods["metadata"] = {"annotations": {GROUP_NAME: NAME}}
    group = {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": NAME},
        "spec": {"minMember": MEMBERS},
    }
    answers = {
        command: re.sub(r"podgroup-[-0-9a-f]+", NAME, output)
        for command, output in example.answers.items()
    }
    return Example(yaml.safe_dump_all([group, job_set]), answers)
