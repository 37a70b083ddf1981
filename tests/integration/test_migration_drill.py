"""The drill of a migration on a real API server: another scheduler, then Tutti, then the other
again, with gangs that run, that wait, and that are bound in part.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import NodeShape, create_nodes
from tests.integration.other_scheduler import OtherScheduler
from tests.support.waiting import eventually
from tests.tutti.up.running import suite, tutti

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

SEEN_S = 30.0
#: Of one node: two running, three of half, two waiting, one of later, and five for half of stuck.
CPU_MILLI = 13_000
PHASES = {"runs": "Running", "half": "Running", "waits": "Running", "stuck": "Pending"}


@pytest.fixture
async def other(
    api: RawClient, namespace: str, empty_cluster: None
) -> AsyncIterator[OtherScheduler]:
    await create_nodes(api, 1, NodeShape(cpu_milli=CPU_MILLI))
    found = OtherScheduler(api, namespace)
    await found.serves()
    yield found
    await found.leaves_nothing()


async def runs(other: OtherScheduler, **expected: int) -> None:
    async def seen() -> bool:
        found = await other.running()
        assert {job: found.get(job, 0) for job in expected} == expected
        return True

    await eventually(seen, timeout_s=SEEN_S, because=f"{expected} run")


async def wait_reported(other: OtherScheduler) -> None:
    """Wait until Tutti's controllers have published the Jobs' states."""

    async def seen() -> bool:
        return await other.phases() == PHASES

    await eventually(seen, timeout_s=SEEN_S, because=f"phases are {PHASES}")


async def is_released(api: RawClient, other: OtherScheduler, job: str) -> None:
    """The running pods of a gang that cannot be whole are released once a user allows it."""
    notes = {"tutti.dev/degraded-grace-seconds": "1"}
    await api.patch(await other.group_of(job), {"metadata": {"annotations": notes}})
    pods = {f"{job}-worker-0", f"{job}-worker-1"}

    async def none_runs_and_all_are_there() -> bool:
        running, there = await other.running(), await other.uids()
        return not running.get(job) and pods <= there.keys()

    await eventually(none_runs_and_all_are_there, timeout_s=SEEN_S, because=f"{job} is released")


async def test_a_cluster_goes_to_tutti_and_back_and_nothing_that_runs_notices(
    api: RawClient,
    other: OtherScheduler,
    kubelet: FakeKubelet,
    control_plane: ControlPlane,
    tmp_path: Path,
) -> None:
    await other.submits("runs", 2)
    await other.binds("runs", 0, 1)
    await other.submits("half", 3)
    await other.binds("half", 0)
    await other.submits("stuck", 2, cpu="5")
    await other.binds("stuck", 0)
    await other.submits("waits", 2)
    await runs(other, runs=2, half=1, stuck=1, waits=0)
    await other.reads_and_writes_back()
    before = await other.uids()

    flag = f"--kubeconfig={control_plane.admin_kubeconfig}"
    status, text, errors = await tutti("migrate", "check", flag)
    assert status == 0, errors
    assert text.count("bound in part") == 2, text

    async with suite(control_plane.admin_kubeconfig, tmp_path, "--no-webhook") as running:
        await running.wait_ready()
        await runs(other, runs=2, half=3, stuck=1, waits=2)
        await wait_reported(other)
        assert await other.uids() == before, "nothing was made again, and nothing beside it"
        await is_released(api, other, "stuck")
        assert await running.stop() == 0
    after = await other.uids()
    assert {name for name in before if after[name] != before[name]} == {"stuck-worker-0"}

    assert await other.reads_and_writes_back() == PHASES
    await other.submits("later", 1)
    await other.binds("later", 0)
    await runs(other, runs=2, half=3, stuck=0, waits=2, later=1)
    assert (await other.uids()).items() >= after.items()
    assert await other.restarts() == 0
