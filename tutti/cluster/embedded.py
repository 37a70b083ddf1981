"""The whole embedded cluster: started, used and stopped as one thing."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import yaml
from aiohttp import web

from tutti.cluster.api import Api
from tutti.cluster.garbage import Collector
from tutti.cluster.kubelet import Kubelets
from tutti.cluster.misbehave import Misbehaviour
from tutti.cluster.objects import Obj
from tutti.cluster.resources import Registry
from tutti.cluster.server import Server
from tutti.cluster.store import HISTORY_MAX, Store
from tutti.cluster.tf_operator import CRD, Gang, TfOperator

HOST = "127.0.0.1"
NAMESPACES_AT_START = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_SHUTDOWN_S = 2.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What an embedded cluster is made with."""

    port: int = 0  # 0: any free one
    nodes: int = 4  # simulated ones, each as in seeds/000: 4 CPU, 16 GiB, one GPU
    node_labels: dict[str, str] = {}
    crds: tuple[Path, ...] = ()  # manifests, or folders of them, that are applied at the start
    gang: Gang = "podgroup"  # how the tf-operator stand-in asks for gangs
    history_max: int = HISTORY_MAX
    pod_start_s: float = 0.05
    pod_stop_s: float = 0.05


class EmbeddedCluster:
    """An asynchronous context manager; inside it the cluster serves."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = Store(self.settings.history_max)
        self.api = Api(self.store, Registry())
        self._server = Server(self.api)
        self._collector = Collector(self.api)
        self.kubelets = Kubelets(
            self.api, start_s=self.settings.pod_start_s, stop_s=self.settings.pod_stop_s
        )
        self.tf_operator = TfOperator(self.api, self.settings.gang)
        self.finish, self.add_node = self.kubelets.finish, self.kubelets.add_node
        self._runner: web.AppRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.url = ""

    @property
    def misbehave(self) -> Misbehaviour:
        """Faults on demand."""
        return self._server.misbehave

    async def __aenter__(self) -> Self:
        await self._furnish()
        runs = {
            "garbage": self._collector.run,
            "kubelets": self.kubelets.run,
            "tf-operator": self.tf_operator.run,
        }
        self._tasks = [
            asyncio.create_task(run(), name=f"embedded-{name}") for name, run in runs.items()
        ]
        for index in range(self.settings.nodes):
            labels = self.settings.node_labels
            await self.kubelets.add_node(
                f"node-{index + 1}", resources={"nvidia.com/gpu": "1"}, labels=labels
            )
        self.store.expire_all()  # nobody can resume from before the start
        self._runner = web.AppRunner(
            self._server.app(),
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=_SHUTDOWN_S,
        )
        await self._runner.setup()
        listener = socket.create_server((HOST, self.settings.port), backlog=1024)
        await web.SockSite(self._runner, listener).start()
        self.url = f"http://{HOST}:{listener.getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._runner is not None:
            self.misbehave.drop_watches()
            await self._runner.cleanup()
        await self.api.admission.close()
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome

    async def _furnish(self) -> None:
        """What every cluster has, and the definitions that were asked for."""
        for name in NAMESPACES_AT_START:
            await self.api.create(self.api.call("namespaces"), _object("v1", "Namespace", name))
        for name, value in _SYSTEM_PRIORITIES.items():
            call = self.api.call("priorityclasses", group="scheduling.k8s.io")
            await self.api.create(
                call, _object("scheduling.k8s.io/v1", "PriorityClass", name) | {"value": value}
            )
        await self.apply_crd(CRD)
        for path in self.settings.crds:
            for file in sorted(path.glob("*.yaml")) if path.is_dir() else [path]:
                for document in yaml.safe_load_all(file.read_text()):
                    if document and document.get("kind") == "CustomResourceDefinition":
                        await self.apply_crd(document)

    async def apply_crd(self, manifest: Obj) -> None:
        """Serves a custom resource from now on.

        Raises:
            ApiError: As for a POST of the definition.
        """
        await self.api.create(
            self.api.call("customresourcedefinitions", group="apiextensions.k8s.io"), manifest
        )

    def kubeconfig(self, path: Path) -> Path:
        """Writes a kubeconfig for this cluster and returns its path."""
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


def _object(api_version: str, kind: str, name: str) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


async def serve(
    settings: Settings,
    kubeconfig: Path,
    stop: asyncio.Event,
    ready: Callable[[EmbeddedCluster], None],
) -> None:
    """Serves until `stop` is set; writes the kubeconfig first, then calls `ready`."""
    async with EmbeddedCluster(settings) as cluster:
        cluster.kubeconfig(kubeconfig)
        ready(cluster)
        await stop.wait()
