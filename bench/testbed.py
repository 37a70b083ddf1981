"""The place where all is measured: a real kube-apiserver and etcd, nodes, and our eyes on the pods.

One testbed serves a whole session, so that every figure has its yardstick from the same server in
the same minutes. Between runs it is emptied; the nodes stay.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import msgspec

from bench import api_metrics, load, meters
from bench.burst import BurstClient
from bench.load import Load
from bench.pod_watch import PodWatch, idle_watches, watch_pods
from tests.controlplane.client import ApiError, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import APISERVER, ETCD, ControlPlaneOptions
from tests.controlplane.nodes import NodeShape, create_namespace, create_nodes

CRDS_DIR = Path(__file__).parents[1] / "deploy" / "crds"
NODE_SHAPE = NodeShape(cpu_milli=16_000, memory_bytes=64 * 2**30, pods=110)
CREATE_CONNECTIONS = 32
#: The API server digests a burst of creations for a while (garbage, compaction, watch caches).
SETTLE_S = 8.0
#: After the last binding, for what the API server still does on its account.
TRAILING_S = 2.0
_EVENTS_PATH = f"/api/v1/namespaces/{load.NAMESPACE}/events"


class ServerCpu(msgspec.Struct, frozen=True, kw_only=True):
    """CPU seconds of the control plane's processes so far, or in a span."""

    apiserver_s: float
    etcd_s: float

    def since(self, before: "ServerCpu") -> "ServerCpu":
        """The span between two readings."""
        return ServerCpu(
            apiserver_s=self.apiserver_s - before.apiserver_s, etcd_s=self.etcd_s - before.etcd_s
        )


class Testbed:
    """``open_testbed`` makes one."""

    def __init__(
        self, control_plane: ControlPlane, client: RawClient, watch: PodWatch, nodes: list[str]
    ) -> None:
        self.control_plane = control_plane
        self.client = client
        self.watch = watch
        self.nodes = nodes
        self.burst = BurstClient(client.server, client.tls)
        self._fills = 0

    @property
    def kubeconfig(self) -> Path:
        """Of an administrator."""
        return self.control_plane.admin_kubeconfig

    @property
    def tls(self) -> ssl.SSLContext:
        """For connections to the API server as administrator."""
        return self.client.tls

    def fresh_prefix(self) -> str:
        """A prefix for names that no run before has used."""
        self._fills += 1
        return f"run{self._fills}"

    async def fill(self, what: Load, scheduler_name: str, *, groups: bool = True) -> list[str]:
        """Create all groups, then all pods, wait until they are seen and digested.

        Returns:
            The pods' names.
        """
        prefix = self.fresh_prefix()
        post = self.burst.post
        if groups:
            await self.create(
                post(load.PODGROUPS_PATH, load.pod_group(what, prefix, gang))
                for gang in range(what.gangs)
            )
        await self.create(
            post(load.PODS_PATH, load.pod(what, prefix, gang, member, scheduler_name))
            for gang in range(what.gangs)
            for member in range(what.size)
        )
        await self.watch.wait_seen(what.pods)
        await asyncio.sleep(SETTLE_S)
        return load.pod_names(what, prefix)

    async def create(
        self,
        requests: Iterable[bytes],
        on_answer: Callable[[int, float], None] | None = None,
        connections: int = CREATE_CONNECTIONS,
    ) -> None:
        """Send creations at full speed."""
        await self.burst.send(requests, connections=connections, on_answer=on_answer)

    async def empty(self) -> None:
        """Delete all pods, groups and Events of the benchmarks."""
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        for path in (load.PODS_PATH, load.PODGROUPS_PATH, _EVENTS_PATH):
            # The API server ends a request after a minute; what is left then is asked for again.
            with suppress(ApiError, aiohttp.ServerDisconnectedError):
                await self.client.delete(path, dict(options))
            while (await self.client.get(path, limit="1"))["items"]:
                await self.client.delete(path, dict(options))
        await self.watch.wait_gone()

    def server_cpu(self) -> ServerCpu:
        """CPU of API server and etcd so far."""
        return ServerCpu(
            apiserver_s=meters.cpu_s(self.control_plane.pid(APISERVER)),
            etcd_s=meters.cpu_s(self.control_plane.pid(ETCD)),
        )

    async def writes(self) -> dict[str, int]:
        """Writes that the API server has counted so far."""
        return api_metrics.writes(await self.client.text("/metrics"))

    async def pod_watches(self) -> int:
        """Watches on pods that are open now, ours included."""
        return api_metrics.pod_watches(await self.client.text("/metrics"))

    @asynccontextmanager
    async def as_many_watches(self, wanted: int) -> AsyncIterator[None]:
        """Hold further watches on pods open until there are as many as wanted.

        Counted as the API server counts: ours and its own included.
        """
        missing = max(0, wanted - await self.pod_watches())
        async with idle_watches(self.client.server, self.tls, missing):
            yield


@asynccontextmanager
async def open_testbed(
    nodes: int, options: ControlPlaneOptions | None = None
) -> AsyncIterator[Testbed]:
    """Start a control plane with the CRDs, so many nodes and nothing else; stop it at the end."""
    control_plane = ControlPlane(options)
    await asyncio.to_thread(control_plane.start)
    try:
        await asyncio.to_thread(control_plane.install_crds, CRDS_DIR)
        async with RawClient(control_plane.admin_kubeconfig) as client:
            await create_namespace(client, load.NAMESPACE)
            names = await create_nodes(client, nodes, NODE_SHAPE)
            async with watch_pods(client.server, client.tls) as watch:
                yield Testbed(control_plane, client, watch, names)
    finally:
        await asyncio.to_thread(control_plane.stop)
