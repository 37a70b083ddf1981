"""Services whose machines' clocks differ by up to a minute, on a real API server: gangs are bound
as ever, and the planner that takes over continues where the other one was.

libfaketime gives one process another wall clock and leaves its monotonic clock alone. Processes of
`tutti up` are forked and would share one: here every service has a process of its own.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from shared.bus.connection import Bus
from shared.bus.questions import ask_all
from shared.bus.setup import ensure_streams
from shared.contracts import annotations, codec, subjects
from shared.contracts.questions import ServiceStatus, StatusRequest
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import (
    create_namespace,
    create_nodes,
    create_pods,
    delete_nodes,
    delete_pods,
    pod_manifest,
)
from tests.support.debian import lacking
from tests.support.waiting import eventually
from tutti.lifeline import dying_with_parent
from tutti.nats_server import NatsServer

#: Loaded by the loader: the program `faketime` would be the parent of the service, and be killed.
_FAKETIME: Final = "/usr/lib/*/faketime/libfaketime.so.1"
pytestmark = [pytest.mark.certify, pytest.mark.timeout(600)]

_SERVICES: Final = ("watcher-0", "gang-planner-0", "gang-planner-1", "binder-0")
_GROUPS: Final = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
_START_S: Final = 90.0


class Machines:
    """Services, each with a clock of its own."""

    def __init__(self, bus: Bus, url: str, kubeconfig: Path, folder: Path, faketime: Path) -> None:
        self._bus = bus
        self._faketime = faketime
        self._url = url
        self._kubeconfig = kubeconfig
        self._folder = folder
        self.processes: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, instance: str, ahead_s: int = 0) -> None:
        """Start one whose wall clock is ahead by so much."""
        service, _, ordinal = instance.rpartition("-")
        flags = [f"--nats-url={self._url}", f"--instance={instance}", f"--ordinal={ordinal}"]
        if service != "gang-planner":
            flags.append(f"--kubeconfig={self._kubeconfig}")
        clock = {
            "LD_PRELOAD": str(self._faketime),
            "FAKETIME": f"{ahead_s:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        module = f"services.{service.replace('-', '_')}"
        with (self._folder / f"{instance}.log").open("ab") as log:
            self.processes[instance] = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                *flags,
                stdout=log,
                stderr=log,
                env={**os.environ, **(clock if ahead_s else {})},
                preexec_fn=dying_with_parent(),
            )

    async def wait_ready(self, instances: Sequence[str] = _SERVICES) -> None:
        """Wait until these answer that they are ready."""

        async def ready() -> bool:
            found = {one.instance for one in await self.statuses() if one.ready}
            return found >= set(instances)

        await eventually(ready, timeout_s=_START_S, because=f"{instances} are ready")

    async def statuses(self) -> list[ServiceStatus]:
        """What all services answer."""
        return await ask_all(
            self._bus, subjects.ASK_STATUS, StatusRequest(), codec.decode_status, wait_s=0.3
        )

    async def kill(self, instance: str) -> None:
        """End one as a crash would."""
        process = self.processes.pop(instance)
        if process.returncode is None:
            process.kill()
        await process.wait()


class Cluster:
    """Gangs in one namespace."""

    def __init__(self, api: RawClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    async def submit(self, name: str, count: int, cpu: str = "1", priority: str = "") -> None:
        """A group and its pods."""
        group = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {
                "minMember": count,
                **({"priorityClassName": priority} if priority else {}),
            },
        }
        await self.api.create(_GROUPS.format(self.namespace), group)
        spec = {"priorityClassName": priority} if priority else {}
        manifests = [
            pod_manifest(
                f"{name}-{index}",
                requests={"cpu": cpu},
                annotations={annotations.GROUP_NAME: name},
                spec=spec,
            )
            for index in range(count)
        ]
        await create_pods(self.api, self.namespace, manifests)

    async def wait_bound(self, name: str, count: int, within_s: float) -> float:
        """Wait until so many pods of a gang are bound; returns how long that took."""
        began_s = time.monotonic()

        async def bound() -> bool:
            pods = await self.api.get(f"/api/v1/namespaces/{self.namespace}/pods")
            placed: list[str] = [
                one["metadata"]["name"] for one in pods["items"] if "nodeName" in one["spec"]
            ]
            return sum(one.startswith(f"{name}-") for one in placed) == count

        await eventually(bound, timeout_s=within_s, because=f"{name} is bound")
        return time.monotonic() - began_s


@asynccontextmanager
async def a_namespace(api: RawClient, name: str) -> AsyncIterator[Cluster]:
    """Four nodes of four CPUs, and a namespace that is emptied afterwards."""
    await create_namespace(api, name)
    await create_nodes(api, 4)
    try:
        yield Cluster(api, name)
    finally:
        await delete_pods(api, name)
        await delete_nodes(api)


@pytest.fixture(scope="session")
def faketime() -> Path:
    """The library, installed if need be."""
    if why := lacking({_FAKETIME: "faketime"}):
        pytest.skip(why)
    return next(Path("/").glob(_FAKETIME.lstrip("/")))


@pytest.mark.parametrize("ahead_s", [-60, -6, 6, 60])
@pytest.mark.parametrize("skewed", ["watcher-0", "gang-planner-0", "gang-planner-1", "binder-0"])
async def test_a_service_with_another_clock_changes_nothing(
    skewed: str,
    ahead_s: int,
    nats_server: NatsServer,
    control_plane: ControlPlane,
    api: RawClient,
    tmp_path: Path,
    faketime: Path,
) -> None:
    async with AsyncExitStack() as stack:
        bus = await Bus.connect(nats_server.url, name="test")
        stack.push_async_callback(bus.close)
        await ensure_streams(bus)
        machines = Machines(
            bus, nats_server.url, control_plane.admin_kubeconfig, tmp_path, faketime
        )
        name = f"skew-{skewed}-{'b' if ahead_s < 0 else 'a'}{abs(ahead_s)}"
        cluster = await stack.enter_async_context(a_namespace(api, name))
        try:
            for instance in _SERVICES:
                await machines.start(instance, ahead_s if instance == skewed else 0)
                await machines.wait_ready([instance])
            await cluster.submit("first", 8)
            await cluster.wait_bound("first", 8, 30.0)
            # The other planner has another clock; what it reads was written by the first one's.
            await machines.kill("gang-planner-0")
            await cluster.submit("second", 4)
            await cluster.wait_bound("second", 4, 30.0)
            # And back, so that a planner takes over from one with the skewed clock, too.
            await machines.start("gang-planner-0", ahead_s if skewed == "gang-planner-0" else 0)
            await machines.wait_ready(["gang-planner-0"])
            await machines.kill("gang-planner-1")
            await cluster.submit("third", 4)
            await cluster.wait_bound("third", 4, 30.0)
            # A dead watcher's last report does not stay fresh, and readiness says so.
            await machines.kill("watcher-0")

            async def stale() -> bool:
                planners = [one for one in await machines.statuses() if "planner" in one.service]
                return bool(planners) and all(
                    any("cluster.synced" in why for why in one.not_ready) for one in planners
                )

            began_s = time.monotonic()
            await eventually(stale, timeout_s=30.0, because="the cluster state is stale")
            assert time.monotonic() - began_s < 15.0
        finally:
            for instance in list(machines.processes):
                await machines.kill(instance)
