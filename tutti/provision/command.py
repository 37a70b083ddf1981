"""`tutti provision` and `tutti nats-reload`: keys and certificates for NATS."""

import asyncio
from pathlib import Path

import click

from shared.bus.permissions import REPLICAS, users
from shared.bus.setup import PLANNER_SETS
from tutti.api.access import Access, open_client
from tutti.api.failures import running
from tutti.api.flags import Flag, access_flags, namespace_flag
from tutti.provision.nats_process import keep_loaded, keep_storing
from tutti.provision.stores import provision_folder, provision_secrets


def _number_flag(name: str, default: int, what: str) -> Flag:
    return click.option(
        name,
        type=click.IntRange(min=1),
        default=default,
        help=f"Number of {what}.",
        show_default=True,
    )


@click.command()
@namespace_flag("Namespace of the Secrets.")
@click.option(
    "--name",
    "release",
    metavar="NAME",
    help="Name of the release; Secrets are named NAME-nats-USER.",
)
@click.option(
    "--folder",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write to FOLDER/USER/ instead of Secrets.",
)
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="HOST",
    help="Further DNS name or IP address of the NATS servers; repeatable.",
)
@_number_flag("--planners", PLANNER_SETS, "consumer sets for planners")
@_number_flag("--webhooks", REPLICAS, "webhook replicas")
@_number_flag("--apis", REPLICAS, "replicas of the API service")
@access_flags
@running()
async def provision(
    *,
    namespace: str | None,
    release: str | None,
    directory: Path | None,
    addresses: tuple[str, ...],
    planners: int,
    webhooks: int,
    apis: int,
    access: Access,
) -> None:
    """Create keys and certificates for NATS where they are missing, and renew them in time.

    For each user (watcher, gang-planner, binder, admission-webhook, api, controller-status,
    controller-jobs, provision, reader) a Secret NAME-nats-USER: `seed` (its nkey) and `ca.crt`. For
    the servers NAME-nats-server: `tls.crt`, `tls.key`, `ca.crt`, and `authorization.conf`, which
    their configuration includes. The CA itself is in NAME-nats-ca, which no pod mounts.

    Valid keys and certificates are kept. Run it once a week or more often.
    """
    nats_users = users(planners=planners, webhooks=webhooks, apis=apis)
    if directory is not None:
        if not addresses:
            raise click.UsageError(
                "--folder: give the addresses of the NATS servers with --address"
            )
        for path in await asyncio.to_thread(provision_folder, directory, nats_users, addresses):
            click.echo(f"wrote {path}")
    elif namespace and release:
        async with open_client(access) as client:
            await provision_secrets(
                client,
                nats_users,
                release=release,
                namespace=namespace,
                more_addresses=addresses,
                say=click.echo,
            )
    else:
        raise click.UsageError("either --namespace and --name, or --folder and --address")


@click.command(name="nats-reload")
@click.option(
    "--pid-file",
    type=click.Path(path_type=Path),
    required=True,
    help="File with nats-server's process id (`pid_file` in its configuration).",
)
@click.option(
    "--monitor-host", default="", metavar="HOST", help="Monitoring address of nats-server."
)
@click.option("--monitor-port", default=8222, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--store-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Store of nats-server. With --monitor-host, nats-server is stopped, for its kubelet to "
    "restart it, when its store has failed and the folder can be written again.",
)
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    metavar="FOLDER...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@running()
async def nats_reload(
    pid_file: Path,
    monitor_host: str,
    monitor_port: int,
    store_dir: Path | None,
    folders: tuple[Path, ...],
) -> None:
    """Make nats-server reload its files whenever one in FOLDER is replaced.

    Runs next to nats-server until it is stopped (in a pod: with shareProcessNamespace, and as the
    same user).
    """
    if bool(monitor_host) != (store_dir is not None):
        raise click.UsageError("--monitor-host and --store-dir: both or neither")
    host = f"[{monitor_host}]" if ":" in monitor_host else monitor_host
    work = [keep_loaded(folders, pid_file, click.echo)]
    if store_dir is not None:
        work.append(keep_storing(f"http://{host}:{monitor_port}", store_dir, pid_file, click.echo))
    await asyncio.gather(*work)
