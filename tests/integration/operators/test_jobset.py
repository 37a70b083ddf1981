"""JobSet on a real cluster: it recreates its Jobs when one fails, and they get their place back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.managers import JOBSET, running_manager
from tests.integration.operators.manifests import GPU, job_set
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

VERSION = "jobset.x-k8s.io/v1alpha2"


@pytest.fixture
async def operator(
    jobset_operator: BuiltOperator,
    control_plane: ControlPlane,
    api: RawClient,
    stage: Stage,
    tmp_path: Path,
) -> AsyncIterator[None]:
    """The operator at work; its sets are gone before it is."""
    async with running_manager(JOBSET, jobset_operator, control_plane, api, tmp_path):
        yield
        await api.delete(stage.path("jobsets", version=VERSION))
        await eventually(lambda: _gone(stage), timeout_s=60, because="all pods are gone")


async def test_a_jobset_whose_pod_fails_is_recreated_in_its_place_although_another_waits(
    stage: Stage, operator: None
) -> None:
    await stage.nodes(4, extended={GPU: 1})
    path = stage.path("jobsets", version=VERSION)
    await stage.api.create(path, job_set("first", 4))
    await stage.bound("first", 4, timeout_s=60)
    await eventually(lambda: _run(stage, "first", 4), timeout_s=30, because="its pods run")
    await stage.api.create(path, job_set("second", 4))
    await eventually(lambda: _exist(stage, "second", 4), timeout_s=30, because="second exists")
    before = {pod["metadata"]["uid"] for pod in await stage.pods("first")}
    stage.kubelet.finish(min(before), exit_code=1)

    async def recreated() -> bool:
        pods = await stage.pods("first")
        fresh = [pod for pod in pods if pod["metadata"]["uid"] not in before]
        assert not await stage.placed("second"), "the waiting set took the place"
        return len(fresh) == 4 and all(pod["spec"].get("nodeName") for pod in fresh)

    await eventually(recreated, timeout_s=60, because="the recreated Jobs' pods are bound")
    assert not await stage.placed("second")


async def test_of_two_jobsets_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    stage: Stage, operator: None
) -> None:
    await stage.nodes(4, extended={GPU: 1})
    path = stage.path("jobsets", version=VERSION)
    await stage.api.create(path, job_set("first", 4))
    await stage.bound("first", 4, timeout_s=60)
    await stage.api.create(path, job_set("second", 4))
    await eventually(lambda: _exist(stage, "second", 4), timeout_s=30, because="second exists")
    await stage.stays_unbound("second")
    await stage.api.delete(f"{path}/first", {"propagationPolicy": "Background"})
    await stage.bound("second", 4, timeout_s=30)


async def _exist(stage: Stage, gang: str, count: int) -> bool:
    return len(await stage.pods(gang)) == count


async def _run(stage: Stage, gang: str, count: int) -> bool:
    running = [pod for pod in await stage.pods(gang) if pod["status"].get("phase") == "Running"]
    return len(running) == count


async def _gone(stage: Stage) -> bool:
    return not await stage.pods()
