"""JobSet on a real cluster: it recreates its Jobs when one fails, and they get their place back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.managers import JOBSET, running_manager
from tests.integration.operators.manifests import GPU, job_set
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

VERSION = "jobset.x-k8s.io/v1alpha2"
NAME = "jobset.sigs.k8s.io/jobset-name"


@pytest.fixture(scope="module", autouse=True)
def kinds(jobset_operator: BuiltOperator, control_plane: ControlPlane) -> None:
    """The kind is served before Tutti starts: the watcher looks for absent kinds twice a minute."""
    control_plane.install_crds(jobset_operator.crds)


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
    await _create(stage, "first")
    await eventually(lambda: _bound(stage, "first", 4), timeout_s=60, because="first is bound")
    await eventually(lambda: _run(stage, "first", 4), timeout_s=30, because="its pods run")
    await _create(stage, "second")
    await eventually(lambda: _exist(stage, "second", 4), timeout_s=30, because="second exists")
    before = {pod["metadata"]["uid"] for pod in await _pods(stage, "first")}
    stage.kubelet.finish(min(before), exit_code=1)

    async def recreated() -> bool:
        pods = await _pods(stage, "first")
        fresh = [pod for pod in pods if pod["metadata"]["uid"] not in before]
        assert not await _placed(stage, "second"), "the waiting set took the place"
        return len(fresh) == 4 and all(pod["spec"].get("nodeName") for pod in fresh)

    await eventually(recreated, timeout_s=60, because="the recreated Jobs' pods are bound")
    assert not await _placed(stage, "second")


async def test_of_two_jobsets_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    stage: Stage, operator: None
) -> None:
    await stage.nodes(4, extended={GPU: 1})
    await _create(stage, "first")
    await eventually(lambda: _bound(stage, "first", 4), timeout_s=60, because="first is bound")
    await _create(stage, "second")
    await eventually(lambda: _exist(stage, "second", 4), timeout_s=30, because="second exists")
    path = stage.path("jobsets", "first", VERSION)
    await stage.api.delete(path, {"propagationPolicy": "Background"})

    async def second_starts() -> bool:
        placed = await _placed(stage, "second")
        assert placed == 0 or not await _placed(stage, "first"), "they share the GPUs"
        return placed == 4

    await eventually(second_starts, timeout_s=30, because="second is bound whole")


async def _create(stage: Stage, name: str) -> None:
    await stage.api.create(stage.path("jobsets", version=VERSION), job_set(name, 4))


async def _pods(stage: Stage, name: str) -> list[Object]:
    return [
        pod for pod in await stage.pods() if pod["metadata"].get("labels", {}).get(NAME) == name
    ]


async def _placed(stage: Stage, name: str) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in await _pods(stage, name))


async def _bound(stage: Stage, name: str, count: int) -> bool:
    return await _placed(stage, name) == count


async def _exist(stage: Stage, name: str, count: int) -> bool:
    return len(await _pods(stage, name)) == count


async def _run(stage: Stage, name: str, count: int) -> bool:
    phases = [pod["status"].get("phase") for pod in await _pods(stage, name)]
    return phases.count("Running") == count


async def _gone(stage: Stage) -> bool:
    return not await stage.pods()
