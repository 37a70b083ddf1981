"""The Job controller is killed before or after each of its writes; the next one finishes the work.

A job of two roles runs, one of its pods fails, its policy restarts it, it runs again and completes.
Whatever write the controller dies at, the end is the same: restarted exactly once, all pods of the
newest version, nothing left that belongs to the old one.
"""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from services.controller.job_controller import JobReconciler
from services.controller.reconciling.controller import Controller, Runtime
from services.controller.reconciling.writes import Writes
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import Conflict, NotFound
from shared.kube.resources import CONFIGMAPS, JOBS_VOLCANO, PODGROUPS_VOLCANO, PODS
from tests.services.controller.playing import Alone, Object, read
from tests.support.waiting import eventually
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.manifests.crds import manifests

NS = "default"
#: So many writes the whole life takes, about: later deaths never come.
WRITES = 36


class _Dying(Writes):
    """Writes of a controller that hangs for ever at its n-th one."""

    def __init__(self, client: KubeClient, at: int, *, after: bool) -> None:
        super().__init__(client, per_s=10_000)
        self.dead = asyncio.Event()
        self._left = at
        self._after = after

    async def _once(self, write: Any) -> Any:
        self._left -= 1
        if self._left > 0:
            return await write
        if self._left == 0 and self._after:
            await write
        else:
            write.close()
        self.dead.set()
        return await asyncio.Event().wait()

    @override
    async def create(self, *given: Any, **named: Any) -> Any:
        return await self._once(super().create(*given, **named))

    @override
    async def replace_status(self, *given: Any, **named: Any) -> Any:
        return await self._once(super().replace_status(*given, **named))

    @override
    async def patch(self, *given: Any, **named: Any) -> Any:
        return await self._once(super().patch(*given, **named))

    @override
    async def delete(self, *given: Any, **named: Any) -> Any:
        return await self._once(super().delete(*given, **named))


class _Life:
    """The world around the controller: it admits groups and runs pods."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.failed = False

    async def items(self, path: str) -> list[Object]:
        found: list[Object] = json.loads((await self.client.request("GET", path)).body)["items"]
        return found

    async def job(self) -> Object:
        found = await read(self.client, JOBS_VOLCANO, "a", NS)
        assert found is not None
        return found

    async def go_on(self) -> bool:
        """All but the controller do what is to be done; returns whether the job is completed."""
        for group in await self.items(PODGROUPS_VOLCANO.path(NS)):
            if not group.get("status", {}).get("phase"):
                await self._patch(PODGROUPS_VOLCANO, group, {"status": {"phase": "Inqueue"}}, "")
        job = await self.job()
        status = job.get("status", {})
        pods = await self.items(PODS.path(NS))
        for pod in pods:
            phase = pod.get("status", {}).get("phase")
            if phase == "Pending":
                await self._patch(PODS, pod, {"status": {"phase": "Running"}}, "status")
        if status.get("state", {}).get("phase") == "Running" and status.get("running") == 3:
            if not self.failed:
                self.failed = True
                one = next(pod for pod in pods if pod["metadata"]["name"] == "a-x-0")
                await self._patch(PODS, one, {"status": {"phase": "Failed"}}, "status")
            elif status.get("retryCount"):
                for pod in pods:
                    await self._patch(PODS, pod, {"status": {"phase": "Succeeded"}}, "status")
        return bool(status.get("state", {}).get("phase") == "Completed")

    async def _patch(self, resource: Any, thing: Object, patch: Object, part: str) -> None:
        with contextlib.suppress(NotFound, Conflict):
            await self.client.patch(
                resource, thing["metadata"]["name"], patch, namespace=NS, subresource=part
            )


async def _live(life: _Life, at: int, *, after: bool, until: Any) -> bool:
    """One controller's life: whether it died at its write before `until` was true."""
    runtime = Runtime(life.client, writes_per_s=10_000)
    runtime.writes = dying = _Dying(life.client, at, after=after)
    controller = Controller(JobReconciler(runtime, ("volcano",)), Alone())
    tasks = [
        asyncio.create_task(runtime.run(), name="runtime"),
        asyncio.create_task(controller.run(), name="controller"),
    ]
    try:

        async def over() -> bool:
            return (await life.go_on() and await until()) or dying.dead.is_set()

        await eventually(over, timeout_s=20.0)
        return dying.dead.is_set()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "at",
    [
        pytest.param(at, marks=[] if at % 9 == 1 else [pytest.mark.certify])
        for at in range(1, WRITES)
    ],
)
async def test_whatever_write_a_controller_dies_at_the_job_is_restarted_once_and_completes(
    tmp_path: Path, at: int, *, after: bool
) -> None:
    crds = tuple(manifests())
    async with EmbeddedCluster(Settings(nodes=0, crds=crds, pod_stop_s=0)) as cluster:
        credentials = await load(str(cluster.kubeconfig(tmp_path / "kubeconfig")))
        async with KubeClient(credentials) as client:
            await _play(_Life(client), at, after=after)


async def _play(life: _Life, at: int, *, after: bool) -> None:
    container = {"name": "main", "image": "i"}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    manifest = {
        "apiVersion": JOBS_VOLCANO.api_version,
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {
            "plugins": {"svc": [], "env": []},
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "tasks": [
                {"name": "x", "replicas": 2, "template": {"spec": spec}},
                {"name": "y", "replicas": 1, "template": {"spec": spec}},
            ],
        },
    }
    await life.client.create(JOBS_VOLCANO, manifest, namespace=NS)

    async def cleaned() -> bool:
        made = (await life.job())["status"].get("controlledResources")
        return not made and not await life.items(PODGROUPS_VOLCANO.path(NS))

    if await _live(life, at, after=after, until=cleaned):
        assert not await _live(life, 1_000, after=False, until=cleaned)
    status = (await life.job())["status"]
    assert status["retryCount"] == 1
    assert status["succeeded"] == 3
    assert [one["status"] for one in status["conditions"]] == [
        "Restarting",
        "Pending",
        "Running",
        "Completed",
    ]
    versions = {
        pod["metadata"]["annotations"]["volcano.sh/job-version"]
        for pod in await life.items(PODS.path(NS))
    }
    assert versions == {"1"}
    assert await read(life.client, CONFIGMAPS, "a-svc", NS) is None
