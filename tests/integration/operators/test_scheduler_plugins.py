"""The scheduler plugins' controller on a real cluster: it and Tutti write one status."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from typing_extensions import override

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.scheduler_plugins import running_scheduler_plugins
from tests.integration.operators.examples import NAME, example_of
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.operators.manifests import suspended
from tests.integration.operators.scenarios import EARLIER, MEMBERS, Scenarios
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(300)]

COSCHEDULING: Final = "scheduling.x-k8s.io/v1alpha1"
JOBS: Final = ManagedKind(
    word="job", plural="jobs", version="batch/v1", name_label="batch.kubernetes.io/job-name"
)
#: For how long the requests are counted.
MINUTE_S: Final = 60.0
SETTLED_S: Final = 10.0
#: The controller sends at most five requests per second.
STATUS_S: Final = 20.0


class GroupedJobs(ManagedSets):
    """Batch Jobs, each with a PodGroup that its user made."""

    @override
    async def delete(self, name: str, propagation: str = "Background") -> None:
        await super().delete(name, propagation)
        await self.stage.delete(self.stage.group_path(name, COSCHEDULING))

    async def wait_status(self, name: str, **expected: object) -> None:
        """Wait until the status of a group has these fields; None: it has no such field."""

        async def is_written() -> bool:
            group = await self.stage.seen_group(name, COSCHEDULING)
            status = group.get("status", {})
            found = {field: status.get(field) for field in expected}
            assert found == expected, status
            return True

        await eventually(is_written, timeout_s=STATUS_S, because=f"the status of {name}")


@pytest.fixture(scope="module", autouse=True)
def kinds(scheduler_plugins_operator: BuiltOperator, control_plane: ControlPlane) -> None:
    """The kind is served before Tutti starts: the watcher looks for absent kinds twice a minute."""
    control_plane.install_crds(scheduler_plugins_operator.crds)


@pytest.fixture
async def jobs(
    scheduler_plugins_operator: BuiltOperator,
    control_plane: ControlPlane,
    stage: Stage,
    tmp_path: Path,
) -> AsyncIterator[GroupedJobs]:
    """Batch Jobs, and the controller at work on their groups."""
    found = GroupedJobs(stage, JOBS)
    log = tmp_path / "operator.log"
    controller = running_scheduler_plugins(scheduler_plugins_operator, control_plane, log)
    async with found.operated(controller):
        yield found
        await stage.api.delete(stage.group_path("", COSCHEDULING))


@pytest.fixture
def scenarios(jobs: GroupedJobs) -> Scenarios:
    return Scenarios(
        jobs, example_of("scheduler-plugins"), collections=[("podgroups", COSCHEDULING)]
    )


async def test_of_two_groups_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    jobs: GroupedJobs, scenarios: Scenarios
) -> None:
    await scenarios.one_runs_and_one_waits()
    await jobs.wait_status(EARLIER, phase="Running", running=MEMBERS)
    await jobs.wait_status(NAME, phase="Scheduling", running=None)
    await scenarios.the_other_runs_then(jobs.delete)


async def test_a_worker_that_dies_gets_its_place_back_although_another_group_waits(
    jobs: GroupedJobs, scenarios: Scenarios
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.a_dead_worker_is_replaced_in_its_place(recreated=1)


async def test_a_suspended_job_makes_way_and_waits_whole_when_it_is_resumed(
    scenarios: Scenarios,
) -> None:
    """Its group is the user's own, and stays."""

    await scenarios.one_runs_and_one_waits()
    await scenarios.one_is_suspended_and_resumed(suspended)


async def test_neither_writes_a_status_again_that_the_other_one_wrote(
    jobs: GroupedJobs, scenarios: Scenarios
) -> None:
    """In a minute without any other event, no client patches a group."""
    await scenarios.one_runs_and_one_waits()
    await jobs.wait_status(EARLIER, phase="Running", running=MEMBERS)
    await jobs.wait_status(NAME, phase="Scheduling", running=None)
    # Conditions of waiting pods and groups are debounced: the last writes follow in a moment.
    await asyncio.sleep(SETTLED_S)
    before = await _patches(jobs.stage)
    await asyncio.sleep(MINUTE_S)
    assert await _patches(jobs.stage) == before


async def test_a_group_is_finished_when_its_pods_succeed_and_failed_when_one_fails(
    jobs: GroupedJobs, scenarios: Scenarios
) -> None:
    await scenarios.one_runs_and_one_waits()
    for uid in await jobs.places(EARLIER):
        jobs.stage.kubelet.finish(uid)
    # Not the counters: the controller leaves a finished group alone, and its own last write may
    # have come after Tutti's, with older counts.
    await jobs.wait_status(EARLIER, phase="Finished")
    await jobs.wait_running(NAME, MEMBERS)
    await jobs.patch(NAME, {"spec": {"backoffLimit": 0}})
    await jobs.fail_one(NAME)
    await jobs.wait_status(NAME, phase="Failed")


async def _patches(stage: Stage) -> float:
    """How many patches of PodGroups the API server has answered, whether they changed any."""
    lines = (await stage.api.text("/metrics")).splitlines()
    return sum(
        float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith("apiserver_request_total{")
        and 'resource="podgroups"' in line
        and 'verb="PATCH"' in line
    )
