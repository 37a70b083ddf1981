"""What kube-proxy and the cluster's DNS do, on one machine: Services' addresses lead to ready pods.

The API server must give Services addresses in 127.96.0.0/16 (``APISERVER_ARGS``): loopback on
Linux, so the API server itself finds a webhook behind its Service as in a cluster.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Final

from tests.controlplane.client import Object, RawClient

APISERVER_ARGS: Final = ("--service-cluster-ip-range=127.96.0.0/16",)
_LOOK_S: Final = 0.25
_BYTES: Final = 65_536
_PODS_A_NET: Final = 250


class ServiceProxy:
    """``run`` it in a task; addresses of pods come from it, too."""

    def __init__(self, api: RawClient) -> None:
        self._api = api
        self._addresses: dict[tuple[str, str], str] = {}
        self._servers: dict[tuple[str, int], asyncio.Server] = {}
        self._turns = itertools.count()
        self._ready_pods: Callable[[], list[Object]] = list

    def address_of(self, namespace: str, pod: str) -> str:
        """The address of the pod of that name, for ever the same."""
        known = self._addresses
        number = len(known)
        fresh = f"127.1.{number // _PODS_A_NET}.{number % _PODS_A_NET + 1}"
        return known.setdefault((namespace, pod), fresh)

    async def run(self, ready_pods: Callable[[], list[Object]]) -> None:
        """Serve all Services until cancelled."""
        self._ready_pods = ready_pods
        try:
            while True:
                for service in (await self._api.get("/api/v1/services"))["items"]:
                    await self._serve(service)
                await asyncio.sleep(_LOOK_S)
        finally:
            for server in self._servers.values():
                server.close()

    async def _serve(self, service: Object) -> None:
        address = service["spec"].get("clusterIP", "None")
        if address == "None" or not service["spec"].get("selector"):
            return
        for port in service["spec"]["ports"]:
            key = (address, port["port"])
            if key in self._servers:
                continue

            async def carry(
                reader: asyncio.StreamReader,
                writer: asyncio.StreamWriter,
                service: Object = service,
                port: Object = port,
            ) -> None:
                await self._carry(service, port, reader, writer)

            self._servers[key] = await asyncio.start_server(carry, *key)

    async def _carry(
        self,
        service: Object,
        port: Object,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """One connection, to a ready pod behind the Service; closed where there is none."""
        with contextlib.suppress(OSError):
            behind = [pod for pod in self._ready_pods() if _selected(service, pod)]
            if behind:
                pod = behind[next(self._turns) % len(behind)]
                number = _target(pod, port)
                there = await asyncio.open_connection(pod["status"]["podIP"], number)
                try:
                    await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))
                finally:
                    there[1].close()
        writer.close()


async def names_of(api: RawClient, proxy: ServiceProxy) -> dict[str, str]:
    """Every name that the cluster's DNS would know now, and its address.

    Pods of a StatefulSet behind a Service without an address are named before they exist.
    """
    found: dict[str, str] = {}
    services = (await api.get("/api/v1/services"))["items"]
    sets = (await api.get("/apis/apps/v1/statefulsets"))["items"]
    for service in services:
        metadata, address = service["metadata"], service["spec"].get("clusterIP", "None")
        name = f"{metadata['name']}.{metadata['namespace']}.svc"
        if address != "None":
            found |= _spelled(name, address)
        for one in sets:
            same = one["metadata"]["namespace"] == metadata["namespace"]
            if same and one["spec"]["serviceName"] == metadata["name"]:
                for ordinal in range(one["spec"]["replicas"]):
                    pod = f"{one['metadata']['name']}-{ordinal}"
                    ip = proxy.address_of(metadata["namespace"], pod)
                    found |= _spelled(f"{pod}.{name}", ip)
    return found


def _spelled(name: str, address: str) -> dict[str, str]:
    return {name: address, f"{name}.cluster.local": address}


def _selected(service: Object, pod: Object) -> bool:
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    wanted: dict[str, str] = service["spec"]["selector"]
    return metadata["namespace"] == service["metadata"]["namespace"] and all(
        labels.get(key) == value for key, value in wanted.items()
    )


def _target(pod: Object, port: Object) -> int:
    """The container's port that the Service's port means."""
    wanted = port.get("targetPort") or port["port"]
    for container in pod["spec"]["containers"]:
        for one in container.get("ports", ()):
            if one.get("name") == wanted:
                return int(one["containerPort"])
    return int(wanted)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        with contextlib.suppress(OSError):
            writer.close()
