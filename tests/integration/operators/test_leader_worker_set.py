"""LeaderWorkerSet on a real cluster: the whole group's resources, and its place after a restart."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import GPU
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.managers import LEADER_WORKER_SET, running_manager
from tests.integration.operators.examples import example_of
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.operators.manifests import leader_worker_set
from tests.integration.operators.scenarios import EARLIER, MEMBERS, Scenarios
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

KIND: Final = ManagedKind(
    word="leaderworkerset",
    plural="leaderworkersets",
    version="leaderworkerset.x-k8s.io/v1",
    name_label="leaderworkerset.sigs.k8s.io/name",
)


@pytest.fixture(scope="module", autouse=True)
def kinds(lws_operator: BuiltOperator, control_plane: ControlPlane) -> None:
    """The kind is served before Tutti starts: the watcher looks for absent kinds twice a minute."""
    control_plane.install_crds(lws_operator.crds)


@pytest.fixture
async def sets(
    lws_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> AsyncIterator[ManagedSets]:
    """LeaderWorkerSets, and their operator at work."""
    found = ManagedSets(stage, KIND)
    operator = running_manager(LEADER_WORKER_SET, lws_operator, control_plane, stage.api, tmp_path)
    async with found.operated(operator):
        yield found


@pytest.fixture
def scenarios(sets: ManagedSets) -> Scenarios:
    return Scenarios(sets, example_of("leader-worker-set"))


async def test_of_two_sets_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    scenarios: Scenarios,
) -> None:
    async def delete(name: str) -> None:
        await scenarios.sets.delete(name, "Foreground")

    await scenarios.one_runs_and_one_waits()
    await scenarios.the_other_runs_then(delete)


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
    scenarios: Scenarios,
) -> None:
    async def restart() -> str:
        return await _restart_container(scenarios.stage, f"{EARLIER}-0-1")

    await scenarios.one_runs_and_one_waits()
    await scenarios.a_dead_worker_is_replaced_in_its_place(restart, recreated=MEMBERS)


async def test_a_set_is_scaled_by_whole_groups(stage: Stage, sets: ManagedSets) -> None:
    """Three groups of two pods on four GPUs: two run whole, and the third waits whole."""

    def scaled(replicas: int) -> Object:
        return {"spec": {"replicas": replicas}}

    await stage.nodes(4, extended={GPU: 1})
    await sets.create(leader_worker_set("serve", 2))
    await sets.wait_bound("serve", 2)
    await sets.patch("serve", scaled(2))
    await sets.wait_bound("serve", 4)
    await sets.patch("serve", scaled(3))
    await sets.wait_pods("serve", 6)
    await stage.why(
        "leaderworkerset/serve", "1 waiting, 2 running", "leaderworkerset/serve waits: "
    )
    assert await sets.placed("serve") == 4
    await sets.patch("serve", scaled(1))
    await sets.wait_bound("serve", 2)


async def _restart_container(stage: Stage, name: str) -> str:
    """As a kubelet does when it ended; returns the pod's UID.

    A pod that is deleted at once is gone before a busy operator has read it: then the StatefulSet
    replaces that one, and the operator recreates nothing.
    """
    pod = await stage.api.get(stage.path(name=name))
    restarted = [one | {"restartCount": 1} for one in pod["status"]["containerStatuses"]]
    await stage.api.patch(
        stage.path(name=name) + "/status", {"status": {"containerStatuses": restarted}}
    )
    return str(pod["metadata"]["uid"])


async def _whole(sets: ManagedSets) -> str:
    counts = {name: await sets.placed(name) for name in ("first", "second")}
    assert sorted(counts.values()) in ([0, 0], [0, 1], [0, 2], [0, 3], [0, 4]), counts
    return next((name for name, count in counts.items() if count == 4), "")
