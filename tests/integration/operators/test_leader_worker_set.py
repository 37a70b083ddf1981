"""LeaderWorkerSet on a real cluster: the whole group's resources, and its place after a restart."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.managers import LEADER_WORKER_SET
from tests.integration.operators.managed_sets import ManagedSets
from tests.integration.operators.manifests import GPU, leader_worker_set
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

VERSION = "leaderworkerset.x-k8s.io/v1"
NAME = "leaderworkerset.sigs.k8s.io/name"


@pytest.fixture(scope="module", autouse=True)
def kinds(lws_operator: BuiltOperator, control_plane: ControlPlane) -> None:
    """The kind is served before Tutti starts: the watcher looks for absent kinds twice a minute."""
    control_plane.install_crds(lws_operator.crds)


@pytest.fixture
async def sets(
    lws_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> AsyncIterator[ManagedSets]:
    """LeaderWorkerSets, and their operator at work."""
    found = ManagedSets(stage, "leaderworkersets", VERSION, NAME)
    async with found.operated(LEADER_WORKER_SET, lws_operator, control_plane, tmp_path):
        yield found


async def test_of_two_leader_ready_sets_on_four_gpus_one_runs_whole_and_the_other_waits_whole(
    stage: Stage, sets: ManagedSets
) -> None:
    """Both groups state minMember 1 and the resources of four pods."""
    await stage.nodes(4, extended={GPU: 1})
    for name in ("first", "second"):
        await sets.create(leader_worker_set(name, 4, startup_policy="LeaderReady"))
    whole = await eventually(lambda: _whole(sets), timeout_s=60, because="one set runs whole")
    (other,) = {"first", "second"} - {whole}
    assert not await sets.placed(other)
    await sets.delete(whole, "Foreground")
    await sets.wait_bound(other, 4)


async def test_a_set_whose_worker_dies_is_recreated_in_its_place_although_another_waits(
    stage: Stage, sets: ManagedSets
) -> None:
    await stage.nodes(4, extended={GPU: 1})
    await sets.create(leader_worker_set("first", 4))
    await sets.wait_bound("first", 4)
    await eventually(lambda: _runs(stage, "first-0-1"), timeout_s=30, because="its worker runs")
    await sets.create(leader_worker_set("second", 4))
    await sets.wait_pods("second", 1)
    before = {pod["metadata"]["uid"] for pod in await sets.pods("first")}
    await _restart_container(stage, "first-0-1")
    took_the_place = 0

    async def recreated() -> bool:
        nonlocal took_the_place
        took_the_place = max(took_the_place, await sets.placed("second"))
        fresh = {
            pod["metadata"]["name"]: pod["spec"].get("nodeName")
            for pod in await sets.pods("first")
            if pod["metadata"]["uid"] not in before
        }
        assert len(fresh) == 4, fresh
        assert all(fresh.values()), fresh
        return True

    await eventually(recreated, timeout_s=60, because="the recreated group is bound whole")
    assert not took_the_place, "pods of the waiting set took the place"
    assert not await sets.placed("second")


async def _restart_container(stage: Stage, name: str) -> None:
    """As a kubelet does when it ended. A pod that is deleted at once is gone before a busy operator
    has read it: then the StatefulSet replaces that one, and the operator recreates nothing.
    """
    statuses = (await stage.api.get(stage.path(name=name)))["status"]["containerStatuses"]
    restarted = [status | {"restartCount": 1} for status in statuses]
    await stage.api.patch(
        stage.path(name=name) + "/status", {"status": {"containerStatuses": restarted}}
    )


async def _whole(sets: ManagedSets) -> str:
    counts = {name: await sets.placed(name) for name in ("first", "second")}
    assert sorted(counts.values()) in ([0, 0], [0, 1], [0, 2], [0, 3], [0, 4]), counts
    return next((name for name, count in counts.items() if count == 4), "")


async def _runs(stage: Stage, name: str) -> bool:
    pod = await stage.api.get(stage.path(name=name))
    return bool(pod["status"].get("phase") == "Running")
