"""The seeds' experiment with a real operator: Kubeflow's training-operator v1 on a real cluster.

It writes PodGroups, waits until they are Inqueue, and only then makes pods. One part of `make
certify`: it is built from its Go module first.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.training import running_operator
from tests.integration.stage import VOLCANO, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(180)]

KUBEFLOW = "kubeflow.org/v1"
GPU = "nvidia.com/gpu"


@pytest.fixture
async def operator(
    training_operator: BuiltOperator,
    control_plane: ControlPlane,
    api: RawClient,
    stage: Stage,
    tmp_path: Path,
) -> AsyncIterator[None]:
    """The operator at work; its jobs are gone before it is."""
    async with running_operator(training_operator, control_plane, api, tmp_path / "operator.log"):
        yield
        for kind in ("tfjobs", "pytorchjobs"):
            await api.delete(stage.path(kind, version=KUBEFLOW))
        await nothing_left(stage)


def job(kind: str, name: str, container: str, **replicas: int) -> Object:
    """A job of Kubeflow's whose replicas each want a GPU."""
    template = {
        "spec": {
            "containers": [
                {
                    "name": container,
                    "image": "example/train",
                    "resources": {"limits": {GPU: "1"}, "requests": {"cpu": "1", GPU: "1"}},
                }
            ]
        }
    }
    field = "tfReplicaSpecs" if kind == "TFJob" else "pytorchReplicaSpecs"
    return {
        "apiVersion": KUBEFLOW,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "All"},
            field: {
                role: {"replicas": count, "restartPolicy": "ExitCode", "template": template}
                for role, count in replicas.items()
            },
        },
    }


async def create(stage: Stage, plural: str, manifest: Object) -> None:
    await stage.api.create(stage.path(plural, version=KUBEFLOW), manifest)


async def remove(stage: Stage, plural: str, name: str) -> None:
    await stage.api.delete(stage.path(plural, name, KUBEFLOW), {"propagationPolicy": "Background"})


async def condition(stage: Stage, plural: str, name: str) -> str:
    """The type of the job's last true condition."""
    found = await stage.api.get(stage.path(plural, name, KUBEFLOW))
    true = [
        each["type"]
        for each in found.get("status", {}).get("conditions", ())
        if each["status"] == "True"
    ]
    return true[-1] if true else ""


async def nothing_left(stage: Stage) -> None:
    async def gone() -> bool:
        groups = await stage.api.get(stage.group_path("").rstrip("/"))
        services = await stage.api.get(stage.path("services"))
        return not (await stage.pods() or groups["items"] or services["items"])

    await eventually(gone, timeout_s=30, because="pods, groups and services are gone")


async def gpu_nodes(stage: Stage) -> None:
    await stage.nodes(4, extended={GPU: 1})


async def test_of_two_tfjobs_on_four_gpus_the_second_waits_whole_until_the_first_is_gone(
    stage: Stage, operator: None
) -> None:
    await gpu_nodes(stage)
    await create(stage, "tfjobs", job("TFJob", "first", "tensorflow", PS=1, Worker=3))
    placed = await stage.bound("first", 4)
    assert len(set(placed.values())) == 4
    group = await stage.seen_group("first")
    assert group["spec"]["minMember"] == 4
    assert group["spec"]["minResources"][GPU] == "4"
    await create(stage, "tfjobs", job("TFJob", "second", "tensorflow", PS=1, Worker=3))
    await stage.waits("second", "NotEnoughResources", GPU)
    # Inqueue, so its pods exist and an autoscaler could see them; none of them is bound.
    await eventually(lambda: _count(stage, "second", 4), because="the second job's pods exist")
    await stage.stays_unbound("second")
    assert await condition(stage, "tfjobs", "first") == "Running"
    await remove(stage, "tfjobs", "first")
    # The garbage collector looks for new kinds, such as the TFJob, once in 30 s.
    await stage.bound("second", 4, timeout_s=60)
    await remove(stage, "tfjobs", "second")
    await nothing_left(stage)


async def test_the_operator_makes_pods_only_when_the_groups_queue_admits_it(
    stage: Stage, operator: None
) -> None:
    await gpu_nodes(stage)
    queue = stage.namespace
    manifest = job("PyTorchJob", "train", "pytorch", Master=1, Worker=1)
    manifest["spec"]["runPolicy"]["schedulingPolicy"] = {"queue": queue, "minAvailable": 2}
    await create(stage, "pytorchjobs", manifest)
    await eventually(lambda: stage.seen_group("train"), because="the operator wrote a group")
    await stage.stays_unbound("train")
    assert not await stage.pods()
    path = f"/apis/{VOLCANO}/queues"
    identity = {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": queue}}
    await stage.api.create(path, {**identity, "spec": {"weight": 1}})
    await stage.bound("train", 2, timeout_s=30)
    await remove(stage, "pytorchjobs", "train")
    await nothing_left(stage)
    await stage.api.delete(f"{path}/{queue}")


async def test_a_pytorchjobs_worker_that_dies_gets_its_place_back_although_others_wait_for_it(
    stage: Stage, operator: None
) -> None:
    await gpu_nodes(stage)
    await create(stage, "pytorchjobs", job("PyTorchJob", "train", "pytorch", Master=1, Worker=3))
    placed = await stage.bound("train", 4)
    await create(stage, "pytorchjobs", job("PyTorchJob", "greedy", "pytorch", Master=1))
    await stage.waits("greedy", "NotEnoughResources", GPU)
    (victim,) = [pod for pod in await stage.pods() if name_of(pod) == "train-worker-1"]
    await eventually(lambda: _runs(stage, "train-worker-1"), because="the worker runs")
    # An exit code above 128 is one that the operator retries: it deletes the pod and makes another.
    stage.kubelet.finish(victim["metadata"]["uid"], exit_code=137)

    async def back() -> bool:
        found = [pod for pod in await stage.pods() if name_of(pod) == "train-worker-1"]
        assert found, "the worker is not made again yet"
        assert found[0]["metadata"]["uid"] != victim["metadata"]["uid"]
        return bool(found[0]["spec"].get("nodeName") == placed["train-worker-1"])

    await eventually(back, timeout_s=30, because="the new worker is where the old one was")
    assert not await stage.placed("greedy")
    await remove(stage, "pytorchjobs", "train")
    await stage.bound("greedy", 1, timeout_s=30)
    await remove(stage, "pytorchjobs", "greedy")
    await nothing_left(stage)


def name_of(pod: Object) -> str:
    return str(pod["metadata"]["name"])


async def _count(stage: Stage, gang: str, count: int) -> bool:
    return len(await stage.pods(gang)) == count


async def _runs(stage: Stage, name: str) -> bool:
    pod: dict[str, Any] = await stage.api.get(stage.path(name=name))
    return bool(pod["status"].get("phase") == "Running")
