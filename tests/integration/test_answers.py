"""Declarations that change, and answers to users, on a real API server: a lowered minimum is in
effect, a deleted gang leaves none behind, `tutti why` names a job as its user does.
"""

from typing import Final

import pytest

from shared.contracts import annotations
from shared.kube.resources import JOBS_VOLCANO
from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually
from tests.tutti.up.running import tutti

SUITE_FLAGS: Final = ("--no-webhook", "--api")

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]


def replica_set(scheduler: str) -> Object:
    """Eight pods of a CPU each, of which all eight are needed."""
    template = {
        "metadata": {
            "labels": {"app": "workers"},
            "annotations": {annotations.GROUP_MIN_MEMBER: "8"},
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    selector = {"matchLabels": {"app": "workers"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "workers"},
        "spec": {"replicas": 8, "selector": selector, "template": template},
    }


LOWER: Final = {"metadata": {"annotations": {annotations.GROUP_MIN_MEMBER: "4"}}}


async def half_is_placed(stage: Stage) -> None:
    async def seen() -> bool:
        assert len(await stage.placed()) == 4
        return True

    await eventually(seen, timeout_s=SEEN_S, because="four of eight pods fit")


@pytest.mark.parametrize(
    "scheduler", ["kube-batch", "tutti"], ids=["of pods without a group", "of a template"]
)
async def test_a_lowered_minimum_is_in_effect(stage: Stage, scheduler: str) -> None:
    """Pods of kube-batch have the minimum themselves; for all others a group is made that follows
    the template.
    """
    await stage.nodes(1)
    path = stage.path("replicasets", version="apps/v1")
    await stage.api.create(path, replica_set(scheduler))
    await stage.why("replicaset/workers", "4 of 8")
    assert not await stage.placed()
    if scheduler == "tutti":
        await stage.api.patch(f"{path}/workers", {"spec": {"template": LOWER}})
    else:
        for pod in await stage.pods():
            await stage.api.patch(stage.path(name=pod["metadata"]["name"]), LOWER)
    await half_is_placed(stage)
    await stage.delete(f"{path}/workers")


OTHER_OWNER: Final[Object] = {
    "apiVersion": "example.com/v1",
    "kind": "Workers",
    "name": "workers",
    "uid": "0b5c1d5e-8c3a-4d0e-9a55-0d6f3e2f8a11",
    "controller": True,
}


async def minimum_is(stage: Stage, owner: str, minimum: int) -> None:
    """Wait until the group made for the pods of this owner has this minimum."""

    async def seen() -> bool:
        group = await stage.seen_group(f"podgroup-{owner}")
        assert group["spec"]["minMember"] == minimum
        return True

    await eventually(seen, timeout_s=SEEN_S, because=f"the pods declare {minimum}")


def declaring(minimum: int) -> Object:
    return {"metadata": {"annotations": {annotations.GROUP_MIN_MEMBER: str(minimum)}}}


@pytest.mark.parametrize("way", ["patch", "replacement"])
async def test_a_group_made_for_pods_of_any_owner_follows_what_they_declare(
    stage: Stage, way: str
) -> None:
    """Down and up, by patches of all pods, or by new pods in the place of all."""
    await stage.nodes(1)

    async def create(minimum: int) -> list[str]:
        names = [f"of-{minimum}-{index}" for index in range(6)]
        requests = {"cpu": "500m"}
        notes = declaring(minimum)["metadata"]["annotations"]
        await stage.bare_pods(
            *(
                pod_manifest(name, requests=requests, annotations=notes, owner=OTHER_OWNER)
                for name in names
            )
        )
        return names

    async def change(names: list[str], minimum: int) -> list[str]:
        if way == "replacement":
            created = await create(minimum)
            await stage.delete_pods(names)
            return created
        for name in names:
            await stage.api.patch(stage.path(name=name), declaring(minimum))
        return names

    names = await create(8)
    await minimum_is(stage, OTHER_OWNER["uid"], 8)
    assert not await stage.placed()
    names = await change(names, 4)
    await minimum_is(stage, OTHER_OWNER["uid"], 4)

    async def placed() -> bool:
        assert len(await stage.placed()) == 6
        return True

    await eventually(placed, timeout_s=SEEN_S, because="six pods are enough for four")
    await change(names, 6)
    await minimum_is(stage, OTHER_OWNER["uid"], 6)


async def test_a_group_made_for_a_replica_set_follows_its_pods_and_then_its_template(
    stage: Stage,
) -> None:
    await stage.nodes(1)
    path = stage.path("replicasets", version="apps/v1")
    made = await stage.api.create(path, replica_set("tutti"))
    owner = made["metadata"]["uid"]
    await stage.why("replicaset/workers", "4 of 8")
    first, *others = [pod["metadata"]["name"] for pod in await stage.pods()]
    for name in others:
        await stage.api.patch(stage.path(name=name), declaring(4))
    await minimum_is(stage, owner, 8)
    assert not await stage.placed()
    await stage.api.patch(stage.path(name=first), declaring(4))
    await half_is_placed(stage)
    await minimum_is(stage, owner, 4)
    await stage.api.patch(f"{path}/workers", {"spec": {"template": declaring(6)}})
    await minimum_is(stage, owner, 6)
    await stage.delete(f"{path}/workers")


async def test_a_deleted_gang_leaves_no_gang_behind(stage: Stage) -> None:
    """Its pods are deleted after its group."""
    await stage.nodes(1)
    await stage.gang("train", 2)
    await stage.bound("train", 2)
    await stage.delete(stage.group_path("train"))
    await stage.delete_pods(["train-0", "train-1"])
    trace = ("trace", f"{stage.namespace}/train", f"--kubeconfig={stage.suite.kubeconfig}")

    async def only_the_ended_one() -> bool:
        status, text, errors = await tutti(*trace)
        assert status == 0, errors
        assert ": Gone" in text.splitlines()[0], text
        return True

    await eventually(only_the_ended_one, timeout_s=SEEN_S, because="the gang is gone")


async def test_a_job_is_named_as_its_user_knows_it(stage: Stage) -> None:
    await stage.nodes(1)
    template = {
        "spec": {
            "schedulerName": "tutti",
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        }
    }
    await stage.api.create(
        stage.path("jobs", version=JOBS_VOLCANO.api_version),
        {
            "apiVersion": JOBS_VOLCANO.api_version,
            "kind": "Job",
            "metadata": {"name": "second"},
            "spec": {
                "schedulerName": "tutti",
                "minAvailable": 5,
                "tasks": [{"name": "worker", "replicas": 5, "template": template}],
            },
        },
    )
    text = await stage.why("job/second", "4 of 5")
    assert text.startswith("job/second waits"), text
    await stage.delete(stage.path("jobs", "second", JOBS_VOLCANO.api_version))
