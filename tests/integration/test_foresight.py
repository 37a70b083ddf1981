"""Run limits and reservations on a real API server: a gang that needs the whole cluster gets an
instant, gangs behind it start only if they leave it, and a gang is evicted at its limit.
"""

from typing import Any

import pytest

from shared.contracts import annotations
from shared.kube.resources import QUEUES_VOLCANO
from tests.controlplane.client import Object
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

WHOLE = {"cpu": "4"}
VOLCANO = "scheduling.volcano.sh/v1beta1"


async def submit(stage: Stage, name: str, size: int, limit: str, **group: Any) -> None:
    notes = {annotations.RUN_LIMIT: limit} if limit else {}
    await stage.group(name, size, notes=notes, **group)
    await stage.members(name, size, requests=WHOLE)


async def condition(stage: Stage, gang: str, type_: str) -> Object:
    """Wait until the condition of a group is True."""

    async def reported() -> Object:
        found = (await stage.seen_group(gang)).get("status", {}).get("conditions", ())
        ones = [one for one in found if (one["type"], one["status"]) == (type_, "True")]
        assert ones, found
        return dict(ones[0])

    return await eventually(reported, timeout_s=SEEN_S, because=f"{gang} is {type_}")


async def event(stage: Stage, gang: str, reason: str) -> str:
    """Wait for an Event of a group; returns its message."""

    async def reported() -> str:
        found = await stage.api.get(f"/api/v1/namespaces/{stage.namespace}/events")
        messages = [
            one["message"]
            for one in found["items"]
            if (one["involvedObject"]["name"], one["reason"]) == (gang, reason)
        ]
        assert messages, [(one["involvedObject"]["name"], one["reason"]) for one in found["items"]]
        return str(messages[-1])

    return await eventually(reported, timeout_s=SEEN_S, because=f"{gang} has an Event {reason}")


async def test_small_gangs_leave_the_instant_of_a_large_one(stage: Stage) -> None:
    await stage.nodes(4)
    await submit(stage, "running", 2, "30m")
    await stage.bound("running", 2)
    await submit(stage, "big", 4, "1h")
    reserved = await condition(stage, "big", "Reserved")
    assert "on 4 nodes, when" in reserved["message"]
    assert "running" in reserved["message"]
    assert await event(stage, "big", "Reserved") == reserved["message"]
    await submit(stage, "long", 1, "2h")
    await stage.waits("long", "WouldDelayReservation", "big, reserved for ")
    await submit(stage, "endless", 1, "")
    await stage.waits("endless", "WouldDelayReservation")
    await submit(stage, "short", 1, "10m")
    await stage.bound("short", 1)
    assert await stage.placed("long") == {}
    await stage.api.delete(stage.group_path("running"), {})
    for pod in await stage.pods("running"):
        await stage.delete(stage.path(name=pod["metadata"]["name"]))
    for pod in await stage.pods("short"):
        await stage.delete(stage.path(name=pod["metadata"]["name"]))
    await stage.bound("big", 4)


async def brief_queue(stage: Stage, name: str) -> None:
    """A queue whose gangs get a notice of three seconds."""
    queue: Object = {
        "apiVersion": VOLCANO,
        "kind": "Queue",
        "metadata": {"name": name, "annotations": {annotations.RUN_LIMIT_NOTICE: "3s"}},
        "spec": {},
    }
    await stage.api.create(QUEUES_VOLCANO.path(), queue)


async def test_the_policy_of_a_volcano_job_sees_its_run_limit_as_an_eviction(stage: Stage) -> None:
    await stage.nodes(2)
    await brief_queue(stage, "brief-jobs")
    container = {"name": "main", "image": "none", "resources": {"requests": WHOLE}}
    job: Object = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "brief-job", "annotations": {annotations.RUN_LIMIT: "6s"}},
        "spec": {
            "schedulerName": "tutti",
            "minAvailable": 2,
            "queue": "brief-jobs",
            "policies": [{"event": "PodEvicted", "action": "AbortJob"}],
            "tasks": [
                {
                    "name": "worker",
                    "replicas": 2,
                    "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
                }
            ],
        },
    }
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{stage.namespace}/jobs"
    await stage.api.create(path, job)

    async def aborted() -> bool:
        found = await stage.api.get(f"{path}/brief-job")
        assert found.get("status", {}).get("state", {}).get("phase") == "Aborted", found["status"]
        return True

    await eventually(aborted, timeout_s=60.0, because="its policy aborts it")
    await stage.api.delete(f"{path}/brief-job", {})


async def test_a_gang_is_evicted_whole_at_its_limit_after_a_notice(stage: Stage) -> None:
    await stage.nodes(2)
    await brief_queue(stage, "brief")
    await submit(stage, "brief", 2, "6s", spec={"queue": "brief"})
    await stage.bound("brief", 2)
    notice = await condition(stage, "brief", "RunLimit")
    assert notice["reason"] == "EvictionNotice"
    assert "Tutti evicts all its pods at" in notice["message"]
    assert await event(stage, "brief", "RunLimitEnds") == notice["message"]

    async def evicted() -> bool:
        assert await stage.placed("brief") == {}
        return True

    await eventually(evicted, timeout_s=SEEN_S, because="its pods are deleted")
    assert "run limit of 6s has passed" in await event(stage, "brief", "RunLimitExceeded")
