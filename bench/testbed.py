"""The place where all is measured: a real kube-apiserver and etcd, nodes, and our eyes on the pods.

One testbed serves a whole session, so that every figure has its yardstick from the same server in
the same minutes. Between runs it is emptied; the nodes stay.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from bench import api_metrics, load, meters
from bench.burst import BurstClient, OnAnswer
from bench.gang_apis import FORMS
from bench.load import Load
from bench.pod_watch import PodWatch, idle_watches, watch_pods
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import APISERVER, ETCD, ControlPlaneOptions
from tests.controlplane.nodes import NodeShape, create_namespace, create_nodes

CRDS_DIR = Path(__file__).parents[1] / "deploy" / "crds"
NODE_SHAPE = NodeShape(cpu_milli=16_000, memory_bytes=64 * 2**30, pods=110)
#: Of the loads' pods, as many as a node has room for.
PODS_PER_NODE_MAX = min(
    NODE_SHAPE.cpu_milli // (1000 * load.CPU_PER_POD),
    NODE_SHAPE.memory_bytes // (load.MEMORY_GIB_PER_POD * 2**30),
    NODE_SHAPE.pods,
)
CREATE_CONNECTIONS = 32
#: The API server digests a burst of creations for a while (garbage, compaction, watch caches).
SETTLE_S = 8.0
_EMPTY_TIMEOUT_S = 120.0
_POLL_S = 0.1
#: After the last binding, for what the API server still does on its account.
TRAILING_S = 2.0
#: Where the API server keeps what the benchmarks make.
_KEYS = (
    f"/registry/pods/{load.NAMESPACE}/",
    *(f"{form.key}{load.NAMESPACE}/" for form in FORMS.values()),
    f"/registry/resourceclaims/{load.NAMESPACE}/",
    f"/registry/events/{load.NAMESPACE}/",
)


class ServerCpu(msgspec.Struct, frozen=True, kw_only=True):
    """CPU seconds of the control plane's processes so far, or in a span."""

    apiserver_s: float
    etcd_s: float

    def since(self, before: "ServerCpu") -> "ServerCpu":
        """The span between two readings."""
        return ServerCpu(
            apiserver_s=self.apiserver_s - before.apiserver_s, etcd_s=self.etcd_s - before.etcd_s
        )


class Bed:
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
        """Create all groups and claims, then all pods, wait until they are seen and digested.

        Returns:
            The pods' names.
        """
        prefix = self.fresh_prefix()
        post = self.burst.post
        if groups:
            await self.create(
                post(what.groups_path, load.pod_group(what, prefix, gang))
                for gang in range(what.gangs)
            )
        if what.claims:
            await self.create(
                post(load.CLAIMS_PATH, load.claim(prefix, gang, member))
                for gang in range(what.gangs)
                for member in range(what.size)
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
        on_answer: OnAnswer | None = None,
        connections: int = CREATE_CONNECTIONS,
    ) -> None:
        """Send creations at full speed."""
        await self.burst.send(requests, connections=connections, on_answer=on_answer)

    async def empty(self) -> None:
        """Delete all pods, groups, claims and Events of the benchmarks."""
        await _empty(self.control_plane, self.client)
        self.watch.forget()

    def server_cpu(self) -> ServerCpu:
        """CPU of API server and etcd so far."""
        return ServerCpu(
            apiserver_s=meters.cpu_s(self.control_plane.pid(APISERVER)),
            etcd_s=meters.cpu_s(self.control_plane.pid(ETCD)),
        )

    async def writes(self) -> dict[str, int]:
        """Writes that the API server has counted so far."""
        return api_metrics.writes(await self.client.text("/metrics"))

    async def broken_watches(self) -> int:
        """Watches that the API server has ended so far because their readers fell behind."""
        return api_metrics.broken_watches(await self.client.text("/metrics"))

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
    nodes: int, *, warm_up_pods: int = 0, options: ControlPlaneOptions | None = None
) -> AsyncIterator[Bed]:
    """Start a control plane with the CRDs, so many nodes and nothing else; stop it at the end.

    Args:
        nodes: how many.
        warm_up_pods: created and deleted before anything is measured. The API server's cache of
            events starts with room for 100 and grows with use, and a watch gets a hundredth of it
            as its buffer: on a server that has just started, any burst gets every watch closed
            "for unresponsiveness" once a second.
        options: of the control plane.
    """
    control_plane = ControlPlane(options)
    await asyncio.to_thread(control_plane.start)
    try:
        await asyncio.to_thread(control_plane.install_crds, CRDS_DIR)
        async with RawClient(control_plane.admin_kubeconfig) as client:
            await create_namespace(client, load.NAMESPACE)
            names = await create_nodes(client, nodes, NODE_SHAPE)
            await _warm_up(control_plane, client, warm_up_pods)
            async with watch_pods(client.server, client.tls) as watch:
                yield Bed(control_plane, client, watch, names)
    finally:
        await asyncio.to_thread(control_plane.stop)


async def _warm_up(control_plane: ControlPlane, client: RawClient, pods: int) -> None:
    burst = BurstClient(client.server, client.tls)
    what = Load(gangs=1, size=pods)
    await burst.send(
        (
            burst.post(load.PODS_PATH, load.pod(what, "warm", 0, member, "nobody"))
            for member in range(pods)
        ),
        connections=CREATE_CONNECTIONS,
    )
    await _empty(control_plane, client)


async def _empty(control_plane: ControlPlane, client: RawClient) -> None:
    """Delete what the benchmarks made, in etcd itself.

    The API server takes a minute to delete 10,000 pods. No other client watches then; watchers
    would see all deletions at one version.
    """
    async with aiohttp.ClientSession(control_plane.etcd_server) as session:
        for prefix in _KEYS:
            key = prefix.encode()
            # The end of a prefix's range is the prefix with its last byte counted up.
            end = key[:-1] + bytes([key[-1] + 1])
            body = {"key": _base64(key), "range_end": _base64(end)}
            async with session.post("/v3/kv/deleterange", json=body) as response:
                response.raise_for_status()
    # The API server's cache takes in the deletions one by one, a second or two for 10,000.
    async with asyncio.timeout(_EMPTY_TIMEOUT_S):
        while (await client.get(load.PODS_PATH, limit="1"))["items"]:  # noqa: ASYNC110 - no event reports it
            await asyncio.sleep(_POLL_S)


def _base64(key: bytes) -> str:
    return base64.b64encode(key).decode()
