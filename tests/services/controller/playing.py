"""Runs one reconciling controller on a cluster, and looks at what it makes of objects."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

from services.controller.reconciling.controller import Controller, Reconciler, Runtime
from services.controller.reconciling.work_queue import WorkQueue
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, NotFound
from shared.kube.resources import CORE_EVENTS, JOBS_VOLCANO, Resource
from tests.support.waiting import eventually

Object = dict[str, Any]


class Alone:
    """The share of the only replica: all keys."""

    def owns(self, _key: str) -> bool:
        return True

    def join(self, queue: WorkQueue, keys: Callable[[], Iterable[str]]) -> None:
        """The share never changes."""


@contextlib.asynccontextmanager
async def running(
    client: KubeClient, make: Callable[[Runtime], Reconciler]
) -> AsyncIterator[Runtime]:
    """The controller, synced, until the end of the block."""
    runtime = Runtime(client, writes_per_s=1_000)
    controller = Controller(make(runtime), Alone())
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(runtime.run(), name="runtime"),
            group.create_task(controller.run(), name="controller"),
        ]
        await controller.synced()
        try:
            yield runtime
        finally:
            for task in tasks:
                task.cancel()


async def read(
    client: KubeClient, resource: Resource, name: str, namespace: str = ""
) -> Object | None:
    """The object as it is stored, if it is there."""
    try:
        reply = await client.request("GET", resource.path(namespace, name))
    except NotFound:
        return None
    found: Object = json.loads(reply.body)
    return found


async def make(
    client: KubeClient, resource: Resource, manifest: Object, namespace: str = ""
) -> Object:
    """Create an object, and its status if it has one; return it as stored."""
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}
    with contextlib.suppress(Conflict):
        await client.create(resource, whole, namespace=namespace)
    name = manifest["metadata"]["name"]
    if "status" in manifest and resource.kind != "PodGroup":
        await client.patch(
            resource,
            name,
            {"status": manifest["status"]},
            namespace=namespace,
            subresource="status",
        )
    found = await read(client, resource, name, namespace)
    assert found is not None
    return found


async def names_of(client: KubeClient, resource: Resource, namespace: str) -> list[str]:
    """Names of all objects of a kind, sorted."""
    reply = await client.request("GET", resource.path(namespace))
    return sorted(each["metadata"]["name"] for each in json.loads(reply.body)["items"])


async def enter(client: KubeClient, namespace: str, job: str, *phases: str) -> None:
    """Have a Job pass through these phases, one a second, as its controller would say it."""
    conditions = [
        {"status": phase, "lastTransitionTime": f"2026-01-01T00:00:0{second}Z"}
        for second, phase in enumerate(phases)
    ]
    state = {"phase": phases[-1], "lastTransitionTime": conditions[-1]["lastTransitionTime"]}
    await client.patch(
        JOBS_VOLCANO,
        job,
        {"status": {"state": state, "conditions": conditions}},
        namespace=namespace,
        subresource="status",
    )


async def events(client: KubeClient, namespace: str, name: str) -> list[tuple[str, str, str]]:
    """Type, reason and message of every Event about an object of this name, sorted."""
    reply = await client.request("GET", CORE_EVENTS.path(namespace))
    return sorted(
        (event["type"], event["reason"], event["message"])
        for event in json.loads(reply.body)["items"]
        if event["involvedObject"]["name"] == name
    )


async def becomes(look: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Wait until what is looked at is what is wanted; fails with what it was at last."""

    async def right() -> bool:
        seen = await look()
        assert seen == wanted, seen
        return True

    await eventually(right, timeout_s=20.0)
