"""`tutti bundle`: the files of a bug report in one archive."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from shared.kube.errors import CredentialsError
from shared.runtime.program_version import program_version
from tutti.api.access import open_client
from tutti.api.failures import Refusal, run
from tutti.bundle import collection
from tutti.bundle.archive import Archive, Manifest
from tutti.service_access import ServiceBus, service_options

_MIB: Final = 1 << 20


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@service_options
@click.option(
    "--namespace",
    "-n",
    default="",
    metavar="NAME",
    help="Namespace of Tutti in the cluster: also collect the logs of its pods.",
)
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
        found = await collection.services(archive, bus)
        collection.versions(archive, bus, found, program_version())
        await collection.streams(archive, bus)
    if data_dir is not None:
        # Only services on this machine: elsewhere these ports belong to other processes.
        await collection.metrics(archive, found)
        await asyncio.to_thread(collection.logs, archive, data_dir)
    folder = recordings or (data_dir / "recordings" if data_dir is not None else None)
    if folder is None:
        archive.miss("recording", "give --recordings, with a copy of the standby's folder")
    else:
        await asyncio.to_thread(collection.recordings, archive, folder, bytes_max)
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
            await collection.cluster_version(archive, client)
            if namespace:
                await collection.pod_logs(archive, client, namespace)
    except CredentialsError as error:
        archive.miss("version of the API server", str(error))


def _report(path: Path, manifest: Manifest) -> None:
    size = sum(one.size_bytes for one in manifest.files)
    click.echo(f"{path}: {len(manifest.files)} files, {size / _MIB:.1f} MiB before compression")
    for one in manifest.missing:
        click.echo(f"  without {one.what}: {one.why}")
