"""`tutti bundle`: the files of a bug report in one archive, without secrets: reports of running
services, files of their data folder, and logs of their pods, in a .tar.gz with a manifest that has
every file with its size and digest, and every missing one with the reason.
"""

import asyncio
import contextlib
import hashlib
import io
import platform
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiohttp
import click
import msgspec

from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.questions import ask_all
from shared.contracts.codec import decode_status, decode_verdict
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.subjects import ASK_STATUS, STREAMS, VERDICTS
from shared.contracts.verdicts import Verdict
from shared.kube.client import KubeClient
from shared.kube.decoding import Undecodable
from shared.kube.errors import CredentialsError, KubeError
from shared.kube.objects import Pod
from shared.kube.resources import PODS
from shared.model.invariants import InvariantViolation
from shared.runtime.logs import without_secrets
from shared.runtime.program_version import program_version
from tutti.api.access import open_client
from tutti.api.failures import Refusal, run
from tutti.api.flags import namespace_flag
from tutti.service_access import ServiceBus, service_options

MANIFEST: Final = "manifest.json"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a bundle."""

    path: str
    what: str
    size_bytes: int
    sha256: str


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """Data that could not be collected."""

    what: str
    why: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a bundle; its first file."""

    version: str
    created_at: str
    files: tuple[Entry, ...]
    missing: tuple[Missing, ...] = ()


class Archive:
    """Collects files in memory, and writes them once."""

    def __init__(self) -> None:
        self._files: list[tuple[Entry, bytes]] = []
        self._missing: list[Missing] = []

    def add(self, path: str, what: str, content: bytes) -> None:
        """Add a file; no two have the same path."""
        if any(entry.path == path for entry, _ in self._files):
            raise InvariantViolation(path, "must be added once")
        digest = hashlib.sha256(content).hexdigest()
        entry = Entry(path=path, what=what, size_bytes=len(content), sha256=digest)
        self._files.append((entry, content))

    def add_json(self, path: str, what: str, content: object) -> None:
        self.add(path, what, msgspec.json.format(msgspec.json.encode(content)) + b"\n")

    def miss(self, what: str, why: str) -> None:
        """Record that data is missing, and why."""
        self._missing.append(Missing(what=what, why=why))

    def write(self, path: Path, *, version: str, created_at: str, created_s: int) -> Manifest:
        """Write all files, below a folder with the archive's name. Raises OSError."""
        manifest = Manifest(
            version=version,
            created_at=created_at,
            files=tuple(entry for entry, _ in self._files),
            missing=tuple(self._missing),
        )
        folder = path.name.removesuffix(".tar.gz")
        first = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
        contents = [(MANIFEST, first), *((entry.path, content) for entry, content in self._files)]
        with tarfile.open(path, "x:gz") as tar:
            for name, content in contents:
                header = tarfile.TarInfo(f"{folder}/{name}")
                header.size = len(content)
                header.mtime = created_s
                header.mode = 0o600
                tar.addfile(header, io.BytesIO(content))
        path.chmod(0o600)
        return manifest


#: Verdicts that are read, and how many at once.
_VERDICTS_MAX: Final = 20_000
_AT_ONCE: Final = 128
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


async def collect_services(archive: Archive, bus: Bus) -> list[ServiceStatus]:
    """Add the instances that answer, with figures and settings; return them. Raises BusError."""
    request = StatusRequest(settings=True)
    statuses = await ask_all(bus, ASK_STATUS, request, decode_status, wait_s=_ANSWERS_S)
    statuses.sort(key=lambda status: status.instance)
    if not statuses:
        archive.miss("services", "no service answers on ask.status")
    bare = [msgspec.structs.replace(status, figures={}, settings={}) for status in statuses]
    archive.add_json("services.json", "services that answer, and why they are not ready", bare)
    settings = {status.instance: status.settings for status in statuses}
    archive.add_json("settings.json", "settings of each process, secrets removed", settings)
    figures = {status.instance: status.figures for status in statuses}
    archive.add_json("figures.json", "counters and gauges of each process", figures)
    return statuses


def collect_versions(archive: Archive, bus: Bus, statuses: list[ServiceStatus], own: str) -> None:
    found_versions = {
        "tutti": own,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "nats-server": ".".join(map(str, bus.server_version)),
        **{status.instance: status.version for status in statuses},
    }
    archive.add_json("versions.json", "of this program, NATS and each service", found_versions)


async def collect_streams(archive: Archive, bus: Bus) -> None:
    """Add the state of the streams, and the latest verdict of each gang."""
    states: list[_Stream] = []
    for name in STREAMS:
        try:
            info = await bus.stream_info(name)
        except BusError as error:
            archive.miss(f"stream {name}", str(error))
            continue
        states.append(msgspec.convert(info, _Stream, from_attributes=True))
    archive.add_json("streams.json", "the streams in NATS", states)
    try:
        verdicts = await _read_verdicts(bus)
    except BusError as error:
        archive.miss("verdicts", str(error))
        return
    lines = b"".join(msgspec.json.encode(verdict) + b"\n" for verdict in verdicts)
    archive.add("verdicts.jsonl", "the latest verdict of each gang, one per line", lines)


async def _read_verdicts(bus: Bus) -> list[Verdict]:
    """The newest verdicts, one of each gang, without foreign messages. Raises BusError."""
    info = await bus.stream_info(VERDICTS)
    verdicts: dict[str, Verdict] = {}
    start = max(info.first_seq, 1, info.last_seq - _VERDICTS_MAX + 1)
    for first in range(start, info.last_seq + 1, _AT_ONCE):
        seqs = range(first, min(first + _AT_ONCE, info.last_seq + 1))
        for message in await asyncio.gather(*(bus.get_message(VERDICTS, seq) for seq in seqs)):
            if message is not None:
                with contextlib.suppress(msgspec.MsgspecError):
                    # A second subject has those that request a new PodGroup.
                    verdict = decode_verdict(message.payload)
                    verdicts[verdict.gang_id] = verdict
    return list(verdicts.values())


async def collect_metrics(archive: Archive, statuses: list[ServiceStatus]) -> None:
    """Add /metrics of each process on this machine, with histograms."""
    timeout = aiohttp.ClientTimeout(total=_SCRAPE_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for status in statuses:
            url = f"http://127.0.0.1:{status.http_port}/metrics"
            try:
                async with session.get(url) as answer:
                    answer.raise_for_status()
                    text = await answer.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                archive.miss(
                    f"metrics of {status.instance}", f"{url}: {type(error).__name__} {error}"
                )
                continue
            archive.add(f"metrics/{status.instance}.txt", "in Prometheus' text format", text)


def collect_logs(archive: Archive, data_dir: Path) -> None:
    """Add the ends of the logs of `tutti up`. Blocks. Raises OSError."""
    paths = sorted((data_dir / "logs").glob("*.log"))
    if not paths:
        archive.miss("logs", f"no logs in {data_dir / 'logs'}")
    for path in paths:
        end = readable(_end(path, LOG_BYTES))
        archive.add(f"logs/{path.name}", "the end of a process's log", end)


def collect_recordings(archive: Archive, folder: Path, bytes_max: int) -> None:
    """Add the newest segments of each planner's recording, up to a total size, but at least the
    newest one. Blocks. Raises OSError.
    """
    segments = sorted(folder.rglob(_RECORDINGS), key=lambda path: path.name, reverse=True)
    segments = [path for path in segments if path.stat().st_size]
    if not segments:
        archive.miss("recording", f"no segments in {folder}")
    left = bytes_max
    for number, path in enumerate(segments):
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


async def collect_cluster_version(archive: Archive, client: KubeClient) -> None:
    try:
        reply = await client.request("GET", "/version", timeout_s=_PATIENCE_S)
    except KubeError as error:
        archive.miss("version of the API server", str(error))
        return
    archive.add("kubernetes-version.json", "of the API server", reply.body)


async def collect_pod_logs(archive: Archive, client: KubeClient, namespace: str) -> None:
    """Add the ends of the logs of Tutti's pods, also those before a restart."""
    try:
        page = await client.list(PODS, Pod, namespace=namespace, label_selector=_SELECTOR)
    except KubeError as error:
        archive.miss(f"logs of pods in {namespace}", str(error))
        return
    pods = [pod for pod in page.items if not isinstance(pod, Undecodable)]
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


_MIB: Final = 1 << 20


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@service_options
@namespace_flag("Namespace of Tutti in the cluster: also collect the logs of its pods.")
@click.option(
    "--recordings",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder of planner recordings; default: those of the data folder.",
)
@click.option(
    "--recording-mib",
    default=64,
    show_default=True,
    type=click.IntRange(1, 4096),
    help="Size limit for recordings; the newest are taken first.",
)
def bundle(
    *,
    file: Path | None,
    services: ServiceBus,
    namespace: str,
    recordings: Path | None,
    recording_mib: int,
) -> None:
    """Collect diagnostics for a bug report in FILE, a .tar.gz.

    It holds versions, settings without secrets, the readiness of each service, the streams, the
    latest verdict of each gang, metrics, logs, and the standby planner's recording for
    `tutti replay`. It contains names of pods, groups, queues and nodes. Files that cannot be
    collected are left out, and the manifest gives the reason.
    """
    now = datetime.now(UTC)
    path = file or Path(f"tutti-bundle-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    _report(path, run(_write(path, now, services, namespace, recordings, recording_mib * _MIB)))


async def _write(
    path: Path,
    now: datetime,
    services: ServiceBus,
    namespace: str,
    recordings: Path | None,
    bytes_max: int,
) -> Manifest:
    archive = Archive()
    data_dir = await services.folder()
    async with services.connected("tutti-bundle") as bus:
        statuses = await collect_services(archive, bus)
        collect_versions(archive, bus, statuses, program_version())
        await collect_streams(archive, bus)
    if data_dir is not None:
        # Only services on this machine: elsewhere these ports belong to other processes.
        await collect_metrics(archive, statuses)
        await asyncio.to_thread(collect_logs, archive, data_dir)
    folder = recordings or (data_dir / "recordings" if data_dir is not None else None)
    if folder is None:
        archive.miss("recording", "give --recordings, with a copy of the standby's folder")
    else:
        await asyncio.to_thread(collect_recordings, archive, folder, bytes_max)
    await _collect_from_cluster(archive, services, namespace)
    try:
        return archive.write(
            path,
            version=program_version(),
            created_at=now.isoformat(timespec="seconds"),
            created_s=int(now.timestamp()),
        )
    except FileExistsError:
        raise Refusal(f"{path} exists") from None


async def _collect_from_cluster(archive: Archive, services: ServiceBus, namespace: str) -> None:
    try:
        async with open_client(services.access) as client:
            await collect_cluster_version(archive, client)
            if namespace:
                await collect_pod_logs(archive, client, namespace)
    except CredentialsError as error:
        archive.miss("version of the API server", str(error))


def _report(path: Path, manifest: Manifest) -> None:
    size = sum(entry.size_bytes for entry in manifest.files)
    click.echo(f"{path}: {len(manifest.files)} files, {size / _MIB:.1f} MiB before compression")
    for missing in manifest.missing:
        click.echo(f"  without {missing.what}: {missing.why}")
