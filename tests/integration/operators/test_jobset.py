"""JobSet on a real cluster: it recreates its Jobs when one fails, and they get their place back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.managers import JOBSET
from tests.integration.operators.managed_sets import ManagedSets
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
async def sets(
    jobset_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> AsyncIterator[ManagedSets]:
    """JobSets, and their operator at work."""
    found = ManagedSets(stage, "jobsets", VERSION, NAME)
    async with found.operated(JOBSET, jobset_operator, control_plane, tmp_path):
        yield found


async def test_a_jobset_whose_pod_fails_is_recreated_in_its_place_although_another_waits(
    stage: Stage, sets: ManagedSets
) -> None:
    await stage.nodes(4, extended={GPU: 1})
    await sets.create(job_set("first", 4))
    await sets.wait_bound("first", 4)
    await sets.wait_running("first", 4)
    await sets.create(job_set("second", 4))
    await sets.wait_pods("second", 4)
    before = {pod["metadata"]["uid"] for pod in await sets.pods("first")}
    stage.kubelet.finish(min(before), exit_code=1)

    async def recreated() -> bool:
        pods = await sets.pods("first")
        fresh = [pod for pod in pods if pod["metadata"]["uid"] not in before]
        assert not await sets.placed("second"), "the waiting set took the place"
        return len(fresh) == 4 and all(pod["spec"].get("nodeName") for pod in fresh)

    await eventually(recreated, timeout_s=60, because="the recreated Jobs' pods are bound")
    assert not await sets.placed("second")


async def test_of_two_jobsets_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    stage: Stage, sets: ManagedSets
) -> None:
    await stage.nodes(4, extended={GPU: 1})
    await sets.create(job_set("first", 4))
    await sets.wait_bound("first", 4)
    await sets.create(job_set("second", 4))
    await sets.wait_pods("second", 4)
    await sets.delete("first", "Background")

    async def second_starts() -> bool:
        placed = await sets.placed("second")
        assert placed == 0 or not await sets.placed("first"), "they share the GPUs"
        return placed == 4

    await eventually(second_starts, timeout_s=30, because="second is bound whole")
