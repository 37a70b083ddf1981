"""`tutti provision` and `tutti nats-reload` as they are typed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from shared.bus.permissions import REPLICAS, User, users
from shared.bus.setup import PLANNER_SETS
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import KubeError
from tutti.provision import cluster, folder
from tutti.provision.planning import BadSecret
from tutti.provision.reloading import keep_loaded
from tutti.provision.restarting import keep_storing


@click.command()
@click.option("--namespace", metavar="NS", help="Namespace of the Secrets.")
@click.option("--name", "release", metavar="NAME", help="Release: Secrets are NAME-nats-USER.")
@click.option(
    "--folder",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep it in FOLDER/USER/ instead of in Secrets.",
)
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="HOST",
    help="DNS name or IP address of the NATS servers beside those in the cluster; repeatable.",
)
@click.option(
    "--planners",
    type=click.IntRange(min=1),
    default=PLANNER_SETS,
    help="Sets of consumers for planners.",
    show_default=True,
)
@click.option(
    "--webhooks",
    type=click.IntRange(min=1),
    default=REPLICAS,
    help="Webhook replicas.",
    show_default=True,
)
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig; else as kubectl does.")
@click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig.")
def provision(
    *,
    namespace: str | None,
    release: str | None,
    directory: Path | None,
    addresses: tuple[str, ...],
    planners: int,
    webhooks: int,
    kubeconfig: str,
    context: str,
) -> None:
    """Make keys and certificates for NATS where they are missing, and renew them in time.

    For each user (watcher, gang-planner, binder, admission-webhook, controller-status,
    controller-jobs, provision, reader) a Secret NAME-nats-USER: `seed` (its nkey) and `ca.crt`. For
    the servers NAME-nats-server: `tls.crt`, `tls.key`, `ca.crt`, and `authorization.conf`, which
    their configuration includes. The CA itself is in NAME-nats-ca, which no pod mounts.

    What is there and good stays: run it as often as wanted, once a week at least.
    """
    who = users(planners=planners, webhooks=webhooks)
    try:
        if directory is not None:
            if not addresses:
                raise click.UsageError(
                    "--folder: give the addresses of the NATS servers with --address"
                )
            for path in folder.provision(directory, who, addresses):
                click.echo(f"wrote {path}")
        elif namespace and release:
            asyncio.run(_in_cluster(who, release, namespace, addresses, (kubeconfig, context)))
        else:
            raise click.UsageError("either --namespace and --name, or --folder and --address")
    except (BadSecret, cluster.Busy, KubeError, OSError) as error:
        raise click.ClickException(str(error)) from None


async def _in_cluster(
    who: Sequence[User],
    release: str,
    namespace: str,
    addresses: Sequence[str],
    access: tuple[str, str],
) -> None:
    async with KubeClient(await load(*access), user_agent="tutti-provision") as client:
        await cluster.provision(
            client,
            who,
            release=release,
            namespace=namespace,
            more_addresses=addresses,
            say=click.echo,
        )


@click.command(name="nats-reload")
@click.option(
    "--pid-file",
    type=click.Path(path_type=Path),
    required=True,
    help="Where nats-server writes its process id (`pid_file` in its configuration).",
)
@click.option("--monitor-host", default="", metavar="HOST", help="Its monitoring address.")
@click.option("--monitor-port", default=8222, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--store-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Its store: with --monitor-host it is ended, to be started again, when writing failed and "
    "works again.",
)
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    metavar="FOLDER...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
def nats_reload(
    pid_file: Path,
    monitor_host: str,
    monitor_port: int,
    store_dir: Path | None,
    folders: tuple[Path, ...],
) -> None:
    """Have nats-server read its files again whenever one in FOLDER was replaced.

    Runs beside it (in a pod: with shareProcessNamespace and as the same user) until it is stopped.
    """
    if bool(monitor_host) != (store_dir is not None):
        raise click.UsageError("--monitor-host and --store-dir: both or neither")
    host = f"[{monitor_host}]" if ":" in monitor_host else monitor_host
    try:
        asyncio.run(_keep(pid_file, f"http://{host}:{monitor_port}", store_dir, folders))
    except OSError as error:
        raise click.ClickException(str(error)) from None


async def _keep(
    pid_file: Path, monitor_url: str, store_dir: Path | None, folders: tuple[Path, ...]
) -> None:
    work = [keep_loaded(folders, pid_file, click.echo)]
    if store_dir is not None:
        work.append(keep_storing(monitor_url, store_dir, pid_file, click.echo))
    await asyncio.gather(*work)
