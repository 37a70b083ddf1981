"""Collects reports of running services, files of their data folder, and logs of their pods."""

import asyncio
import platform
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.questions import ask_all
from shared.contracts.codec import decode_status
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.subjects import ASK_STATUS, CLUSTER, DECISIONS, OUTCOMES, VERDICTS
from shared.kube.client import KubeClient
from shared.kube.decoding import Undecodable
from shared.kube.errors import KubeError
from shared.kube.objects import Pod
from shared.kube.resources import PODS
from shared.runtime.redaction import without_secrets
from tutti.bundle.archive import Archive
from tutti.timeline.log_reader import read_verdicts

_STREAMS: Final = (CLUSTER, DECISIONS, OUTCOMES, VERDICTS)
_ANSWERS_S: Final = 1.0
_SCRAPE_S: Final = 3.0
#: Size of the part of each log that is collected: its end.
LOG_BYTES: Final = 1 << 20
#: Label of the chart's pods, and the part of each pod's log that is collected.
_SELECTOR: Final = "app.kubernetes.io/name=tutti"
_LINES: Final = 5_000
_PATIENCE_S: Final = 10.0
_RECORDINGS: Final = "*.tutti-recording"


class _Stream(msgspec.Struct, frozen=True, kw_only=True):
    stream: str
    generation: str
    messages: int
    first_seq: int
    last_seq: int


async def services(archive: Archive, bus: Bus) -> list[ServiceStatus]:
    """Add the instances that answer, with figures and settings; return them. Raises BusError."""
    request = StatusRequest(settings=True)
    found = await ask_all(bus, ASK_STATUS, request, decode_status, wait_s=_ANSWERS_S)
    found.sort(key=lambda one: one.instance)
    if not found:
        archive.miss("services", "no service answers on ask.status")
    bare = [msgspec.structs.replace(one, figures={}, settings={}) for one in found]
    archive.add_json("services.json", "services that answer, and why they are not ready", bare)
    settings = {one.instance: one.settings for one in found}
    archive.add_json("settings.json", "settings of each process, secrets removed", settings)
    figures = {one.instance: one.figures for one in found}
    archive.add_json("figures.json", "counters and gauges of each process", figures)
    return found


def versions(archive: Archive, bus: Bus, found: list[ServiceStatus], own: str) -> None:
    found_versions = {
        "tutti": own,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "nats-server": ".".join(map(str, bus.server_version)),
        **{one.instance: one.version for one in found},
    }
    archive.add_json("versions.json", "of this program, NATS and each service", found_versions)


async def streams(archive: Archive, bus: Bus) -> None:
    """Add the state of the streams, and the latest verdict of each gang."""
    states: list[_Stream] = []
    for name in _STREAMS:
        try:
            info = await bus.stream_info(name)
        except BusError as error:
            archive.miss(f"stream {name}", str(error))
            continue
        states.append(msgspec.convert(info, _Stream, from_attributes=True))
    archive.add_json("streams.json", "the streams in NATS", states)
    try:
        verdicts = await read_verdicts(bus)
    except BusError as error:
        archive.miss("verdicts", str(error))
        return
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in verdicts)
    archive.add("verdicts.jsonl", "the latest verdict of each gang, one per line", lines)


async def metrics(archive: Archive, found: list[ServiceStatus]) -> None:
    """Add /metrics of each process on this machine, with histograms."""
    timeout = aiohttp.ClientTimeout(total=_SCRAPE_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for one in found:
            url = f"http://127.0.0.1:{one.http_port}/metrics"
            try:
                async with session.get(url) as answer:
                    answer.raise_for_status()
                    text = await answer.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                archive.miss(f"metrics of {one.instance}", f"{url}: {type(error).__name__} {error}")
                continue
            archive.add(f"metrics/{one.instance}.txt", "in Prometheus' text format", text)


def logs(archive: Archive, data_dir: Path) -> None:
    """Add the ends of the logs of `tutti up`. Blocks. Raises OSError."""
    paths = sorted((data_dir / "logs").glob("*.log"))
    if not paths:
        archive.miss("logs", f"no logs in {data_dir / 'logs'}")
    for path in paths:
        end = readable(_end(path, LOG_BYTES))
        archive.add(f"logs/{path.name}", "the end of a process's log", end)


def recordings(archive: Archive, folder: Path, bytes_max: int) -> None:
    """Add the newest segments of each planner's recording, up to a total size, but at least the
    newest one. Blocks. Raises OSError.
    """
    found = sorted(folder.rglob(_RECORDINGS), key=lambda path: path.name, reverse=True)
    found = [path for path in found if path.stat().st_size]
    if not found:
        archive.miss("recording", f"no segments in {folder}")
    left = bytes_max
    for number, path in enumerate(found):
        size = path.stat().st_size
        if number and size > left:
            archive.miss(
                f"recording {path.name}", f"newer segments use the limit of {bytes_max} bytes"
            )
            continue
        left -= size
        name = path.relative_to(folder).as_posix()
        archive.add(f"recordings/{name}", "for `tutti replay`", path.read_bytes())


def readable(log: bytes) -> bytes:
    """A log without text that looks like a secret: services hide secrets, other programs may not.

    Each line is checked by itself, since no secret spans lines.
    """
    lines = log.decode(errors="replace").splitlines(keepends=True)
    return "".join(map(without_secrets, lines)).encode()


def _end(path: Path, most: int) -> bytes:
    """The last bytes of a file, from the beginning of a line."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= most:
            return file.read()
        file.seek(size - most)
        return file.read().partition(b"\n")[2]


async def cluster_version(archive: Archive, client: KubeClient) -> None:
    try:
        reply = await client.request("GET", "/version", timeout_s=_PATIENCE_S)
    except KubeError as error:
        archive.miss("version of the API server", str(error))
        return
    archive.add("kubernetes-version.json", "of the API server", reply.body)


async def pod_logs(archive: Archive, client: KubeClient, namespace: str) -> None:
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
            await _pod_log(archive, client, namespace, pod.metadata.name, container.name)


async def _pod_log(
    archive: Archive, client: KubeClient, namespace: str, pod: str, container: str
) -> None:
    for previous in (False, True):
        params = {"container": container, "tailLines": str(_LINES), "limitBytes": str(LOG_BYTES)}
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
