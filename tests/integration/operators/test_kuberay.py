"""KubeRay on a real cluster: head and workers start together, and the autoscaler's are elastic."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import GPU
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.kuberay import running_kuberay
from tests.integration.operators.examples import NAME, example_of, whole_gang
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.operators.manifests import ray_cluster, suspended
from tests.integration.operators.scenarios import EARLIER, MEMBERS, Scenarios
from tests.integration.stage import Stage

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

KIND: Final = ManagedKind(
    word="raycluster",
    plural="rayclusters",
    version="ray.io/v1",
    name_label="ray.io/cluster",
)


@pytest.fixture(scope="module", autouse=True)
def kinds(kuberay_operator: BuiltOperator, control_plane: ControlPlane) -> None:
    """The garbage collector looks for new kinds twice a minute: they are served early."""
    control_plane.install_crds(kuberay_operator.crds)


@pytest.fixture
async def sets(
    kuberay_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> AsyncIterator[ManagedSets]:
    """RayClusters, and their operator at work."""
    found = ManagedSets(stage, KIND)
    operator = running_kuberay(kuberay_operator, control_plane, tmp_path / "operator.log")
    async with found.operated(operator):
        yield found


@pytest.fixture
def scenarios(sets: ManagedSets) -> Scenarios:
    return Scenarios(sets, example_of("kuberay"))


async def test_of_two_rayclusters_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.the_other_runs_then(scenarios.sets.delete)


async def test_a_rayclusters_worker_that_dies_gets_its_place_back_although_another_waits(
    scenarios: Scenarios,
) -> None:
    """The operator deletes a worker that failed, and creates another of another name."""
    await scenarios.one_runs_and_one_waits()
    await scenarios.a_dead_worker_is_replaced_in_its_place(
        lambda: _fail_a_worker(scenarios.sets), recreated=1
    )


async def _fail_a_worker(sets: ManagedSets) -> str:
    """Let a worker of `earlier` fail; returns its UID."""
    uid = min(
        str(pod["metadata"]["uid"])
        for pod in await sets.pods(EARLIER)
        if pod["metadata"]["labels"]["ray.io/node-type"] == "worker"
    )
    sets.stage.kubelet.finish(uid, exit_code=1)
    return uid


async def test_a_suspended_raycluster_makes_way_and_waits_whole_when_it_is_resumed(
    scenarios: Scenarios,
) -> None:
    await scenarios.one_runs_and_one_waits()
    await scenarios.one_is_suspended_and_resumed(suspended)


async def test_a_raycluster_is_one_gang_by_its_annotation_without_support_of_the_operator(
    kuberay_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> None:
    sets = ManagedSets(stage, KIND)
    manifest = ray_cluster(NAME, workers=MEMBERS - 1, scheduler_name="tutti")
    scenarios = Scenarios(sets, whole_gang(KIND.word, manifest))
    log = tmp_path / "operator.log"
    operator = running_kuberay(kuberay_operator, control_plane, log, flags=())
    async with sets.operated(operator):
        await scenarios.each_is_one_gang(lambda: _fail_a_worker(sets))


async def test_an_autoscaled_raycluster_starts_with_its_minimum_grows_and_shrinks(
    stage: Stage, sets: ManagedSets
) -> None:
    """At first two of the four GPUs are free; Ray's autoscaler is played by the test."""
    await stage.nodes(4, extended={GPU: 1})
    await sets.create(ray_cluster("other", workers=1))
    await sets.wait_bound("other", 2)
    elastic = ray_cluster("elastic", workers=1, workers_max=3)
    await sets.create(elastic)
    await sets.wait_bound("elastic", 2)
    await sets.patch("elastic", _wanted(elastic, 3))
    await sets.wait_pods("elastic", 4)
    group = await stage.seen_group("ray-elastic-pg")
    assert group["spec"]["minMember"] == 2
    await sets.delete("other")
    await sets.wait_bound("elastic", 4)
    workers = [
        pod["metadata"]["name"]
        for pod in await sets.pods("elastic")
        if pod["metadata"]["labels"]["ray.io/node-type"] == "worker"
    ]
    await sets.patch("elastic", _wanted(elastic, 1, *workers[:2]))
    await sets.wait_bound("elastic", 2)
    await sets.create(ray_cluster("next", workers=1))
    await sets.wait_bound("next", 2)


def _wanted(cluster: Object, workers: int, *deleted: str) -> Object:
    """The merge patch with which Ray's autoscaler sets the number of workers.

    Args:
        cluster: The RayCluster, with one group of workers.
        workers: The new number.
        deleted: The workers' pods that the autoscaler chose for deletion.
    """
    (group,) = cluster["spec"]["workerGroupSpecs"]
    strategy = {"workersToDelete": list(deleted)}
    return {
        "spec": {"workerGroupSpecs": [group | {"replicas": workers, "scaleStrategy": strategy}]}
    }
