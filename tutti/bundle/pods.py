"""Collects logs of Tutti's pods from the API server."""

import asyncio
from typing import Final

from shared.kube.client import KubeClient
from shared.kube.decoding import Undecodable
from shared.kube.errors import KubeError
from shared.kube.objects import Pod
from shared.kube.resources import PODS
from tutti.bundle.archive import Archive
from tutti.bundle.collection import readable

#: Label of the chart's pods.
_SELECTOR: Final = "app.kubernetes.io/name=tutti"
_LINES: Final = 5_000
_BYTES_MAX: Final = 1 << 20
_PATIENCE_S: Final = 10.0


async def cluster(archive: Archive, client: KubeClient) -> None:
    """Add the version of the API server."""
    try:
        reply = await client.request("GET", "/version", timeout_s=_PATIENCE_S)
    except KubeError as error:
        archive.miss("version of the API server", str(error))
        return
    archive.add("kubernetes-version.json", "of the API server", reply.body)


async def logs(archive: Archive, client: KubeClient, namespace: str) -> None:
    """Add the ends of the logs of Tutti's pods, also those before a restart."""
    try:
        page = await client.list(PODS, Pod, namespace=namespace, label_selector=_SELECTOR)
    except KubeError as error:
        archive.miss(f"logs of pods in {namespace}", str(error))
        return
    pods = [one for one in page.items if not isinstance(one, Undecodable)]
    if not pods:
        archive.miss(f"logs of pods in {namespace}", f"no pods with {_SELECTOR}")
    for pod in pods:
        for container in pod.spec.containers:
            await _log(archive, client, namespace, pod.metadata.name, container.name)


async def _log(
    archive: Archive, client: KubeClient, namespace: str, pod: str, container: str
) -> None:
    for previous in (False, True):
        params = {"container": container, "tailLines": str(_LINES), "limitBytes": str(_BYTES_MAX)}
        if previous:
            params["previous"] = "true"
        suffix = ".previous" if previous else ""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                path = PODS.path(namespace, pod, "log")
                parts = [part async for part in client.chunks(path, params)]
        except (KubeError, TimeoutError) as error:
            if not previous:
                archive.miss(f"log of {pod}/{container}", str(error) or "no answer")
            continue
        archive.add(
            f"logs/{pod}-{container}{suffix}.log", "the end of a log", readable(b"".join(parts))
        )
