"""`tutti bundle` as it is typed."""

import asyncio
import importlib.metadata
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from shared.bus.errors import BusError
from shared.kube.errors import CredentialsError, KubeError
from tutti.api.access import Access, opened
from tutti.api.failures import explained
from tutti.bundle import collection, pods
from tutti.bundle.archive import Archive, Manifest
from tutti.service_bus import NotReachable, ServiceBus, service_options

_MIB: Final = 1 << 20


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@service_options
@click.option(
    "--namespace",
    "-n",
    default="",
    metavar="NAME",
    help="Namespace of Tutti in the cluster: collect the logs of its pods.",
)
@click.option(
    "--recordings",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Recordings of planners; else those of the data folder.",
)
@click.option(
    "--recording-mib",
    default=64,
    show_default=True,
    type=click.IntRange(1, 4096),
    help="How much of them is taken, the newest first.",
)
def bundle(
    *,
    file: Path | None,
    suite: ServiceBus,
    namespace: str,
    recordings: Path | None,
    recording_mib: int,
) -> None:
    """Collect what a bug report needs in FILE, a .tar.gz.

    Versions, settings without secrets, which services are ready and why not, streams, the last word
    on each gang, metrics, logs, and the standby's recording, with which `tutti replay` decides
    everything again. Names of pods, groups, queues and nodes are in it. What cannot be had is left
    out, and the manifest says why.
    """
    now = datetime.now(UTC)
    path = file or Path(f"tutti-bundle-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    archive = Archive()
    try:
        asyncio.run(_collect(archive, suite, namespace, recordings, recording_mib * _MIB))
        manifest = archive.write(
            path,
            version=_version(),
            created_at=now.isoformat(timespec="seconds"),
            created_s=int(now.timestamp()),
        )
    except FileExistsError:
        click.echo(f"tutti: {path} exists", err=True)
        sys.exit(1)
    except (BusError, KubeError, OSError, NotReachable) as error:
        click.echo(f"tutti: {explained(error)}", err=True)
        sys.exit(1)
    _tell(path, manifest)


async def _collect(
    archive: Archive, suite: ServiceBus, namespace: str, recordings: Path | None, bytes_max: int
) -> None:
    data_dir = await suite.folder()
    async with suite.connected("tutti-bundle") as bus:
        found = await collection.services(archive, bus)
        collection.versions(archive, bus, found, _version())
        await collection.streams(archive, bus)
    if data_dir is not None:
        # Only of services on this machine: elsewhere their ports belong to other processes.
        await collection.metrics(archive, found)
        await asyncio.to_thread(collection.logs, archive, data_dir)
    folder = recordings or (data_dir / "recordings" if data_dir is not None else None)
    if folder is None:
        archive.miss("recording", "give --recordings, with a copy of the standby's folder")
    else:
        await asyncio.to_thread(collection.recordings, archive, folder, bytes_max)
    await _of_cluster(archive, suite, namespace)


async def _of_cluster(archive: Archive, suite: ServiceBus, namespace: str) -> None:
    try:
        async with opened(Access(kubeconfig=suite.kubeconfig, context=suite.context)) as client:
            await pods.cluster(archive, client)
            if namespace:
                await pods.logs(archive, client, namespace)
    except CredentialsError as error:
        archive.miss("version of the API server", str(error))


def _tell(path: Path, manifest: Manifest) -> None:
    size = sum(one.size_bytes for one in manifest.files)
    click.echo(f"{path}: {len(manifest.files)} files, {size / _MIB:.1f} MiB before compression")
    for one in manifest.missing:
        click.echo(f"  without {one.what}: {one.why}")


def _version() -> str:
    try:
        return importlib.metadata.version("tutti")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
