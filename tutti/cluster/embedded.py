"""The embedded cluster, started and stopped as a whole."""

import asyncio
import socket
from functools import cache
from pathlib import Path
from typing import Self

import msgspec
import yaml
from aiohttp import web

from shared.yaml_documents import read_documents
from tutti.cluster.aggregation import Aggregator
from tutti.cluster.api import Api
from tutti.cluster.garbage import Collector
from tutti.cluster.kubelet import Kubelets
from tutti.cluster.objects import Obj, clone
from tutti.cluster.resources import CONFIG_MAPS, CRDS, NAMESPACES, PRIORITY_CLASSES, Key, Registry
from tutti.cluster.server import Server
from tutti.cluster.store import HISTORY_MAX, Store

HOST = "127.0.0.1"
NAMESPACES_AT_START = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_SHUTDOWN_S = 2.0
_CRD_KIND = "CustomResourceDefinition"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    port: int = 0  # 0: any free port, as for bind(2)
    nodes: int = 4  # simulated nodes, each as in seeds/000: 4 CPU, 16 GiB, one GPU
    node_labels: dict[str, str] = {}
    #: CRDs that are served from the start: files, folders, or objects.
    crds: tuple[Path | Obj, ...] = ()
    history_max: int = HISTORY_MAX
    pod_start_s: float = 0.05
    pod_stop_s: float = 0.05


class EmbeddedCluster:
    """An asynchronous context manager; inside it the cluster serves.

    A failed start leaves nothing running. The exit stops everything, and raises errors that ended
    a part of the cluster.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = given = settings or Settings()
        self.store = Store(given.history_max)
        self.api = Api(self.store, Registry())
        collector = Collector(self.api)
        self.kubelets = Kubelets(self.api, start_s=given.pod_start_s, stop_s=given.pod_stop_s)
        self.add_node = self.kubelets.add_node
        self._aggregator = Aggregator(self.api)
        self._runs = {
            "garbage": collector.run,
            "kubelets": self.kubelets.run,
            "aggregation": self._aggregator.run,
        }
        self._server = self.make_server(self._aggregator)
        self._runner = web.AppRunner(
            self._server.app(),
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=_SHUTDOWN_S,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self.url = ""

    def make_server(self, aggregator: Aggregator) -> Server:
        """The server, which tests replace by one that injects faults."""
        return Server(self.api, aggregator)

    async def __aenter__(self) -> Self:
        try:
            await self._create_initial_objects()
            listener = socket.create_server((HOST, self.settings.port), backlog=1024)
            await self._runner.setup()
            await web.SockSite(self._runner, listener).start()
        except BaseException:
            await self._runner.cleanup()
            raise
        self.url = f"http://{HOST}:{listener.getsockname()[1]}"
        for name, run in self._runs.items():
            self._tasks.append(asyncio.create_task(run(), name=f"embedded-{name}"))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._server.drop_watches()
        await self._aggregator.close()
        await self._runner.cleanup()
        await self.api.admission.close()
        broken = [outcome for outcome in ended if isinstance(outcome, Exception)]
        if broken:
            raise ExceptionGroup("parts of the embedded cluster broke", broken)

    async def _create_initial_objects(self) -> None:
        """Create the objects of every cluster, the CRDs of the settings, and the nodes."""
        for name in NAMESPACES_AT_START:
            await self._create(NAMESPACES, {"metadata": {"name": name}})
        await self._create(CONFIG_MAPS, self._aggregator.trusted)
        for name, value in _SYSTEM_PRIORITIES.items():
            await self._create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        for given in self.settings.crds:
            for definition in _definitions(given) if isinstance(given, Path) else (given,):
                await self._create(CRDS, clone(definition))
        for index in range(self.settings.nodes):
            labels = self.settings.node_labels
            await self.add_node(
                f"node-{index + 1}", resources={"nvidia.com/gpu": "1"}, labels=labels
            )
        self.store.expire_all()  # no client can resume from before the start

    async def _create(self, key: Key, obj: Obj) -> None:
        namespace = obj["metadata"].get("namespace", "")
        await self.api.create(self.api.call(key[1], namespace, group=key[0]), obj)

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig for this cluster; return its path."""
        name = "tutti-embedded"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        path.write_text(yaml.safe_dump(config))
        return path


@cache
def _definitions(path: Path) -> tuple[Obj, ...]:
    """The CRDs in a file or a folder, read once for all clusters of a process."""
    definitions: list[Obj] = []
    for file in sorted(path.rglob("*.yaml")) if path.is_dir() else [path]:
        definitions += [
            each
            for each in read_documents(file.read_text())
            if each and each.get("kind") == _CRD_KIND
        ]
    return tuple(definitions)
