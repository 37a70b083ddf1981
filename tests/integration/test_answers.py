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


@pytest.mark.parametrize("replaced", [False, True], ids=["patched pods", "replaced pods"])
async def test_a_group_made_for_pods_has_the_minimum_that_they_declare_by_now(
    stage: Stage, *, replaced: bool
) -> None:
    """Their owner is of a kind that Tutti does not know, so only the pods show the minimum."""
    await stage.nodes(1)
    owner = await stage.api.create(stage.path("configmaps"), {"metadata": {"name": "operator"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}

    def workers(prefix: str, minimum: str) -> list[Object]:
        return [
            pod_manifest(
                f"{prefix}-{number}",
                requests={"cpu": "1"},
                scheduler_name="tutti",
                annotations={annotations.GROUP_MIN_MEMBER: minimum},
                owner=reference,
            )
            for number in range(8)
        ]

    await stage.bare_pods(*workers("old", "8"))
    await stage.why("pod/old-0", "4 of 8")
    assert not await stage.placed()
    if replaced:
        await stage.bare_pods(*workers("new", "4"))
        await stage.delete_pods([f"old-{number}" for number in range(8)])
    else:
        for pod in await stage.pods():
            await stage.api.patch(stage.path(name=pod["metadata"]["name"]), LOWER)
    await half_is_placed(stage)


async def test_a_deleted_gang_leaves_no_gang_behind(stage: Stage) -> None:
    """Its pods are deleted after its group."""
    await stage.nodes(1)
    await stage.gang("train", 2)
    await stage.bound("train", 2)
    await stage.delete(stage.group_path("train"))
    await stage.delete_pods(["train-0", "train-1"])
    trace = ("trace", f"{stage.namespace}/train", f"--data-dir={stage.suite.data_dir}")

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
