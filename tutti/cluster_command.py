"""`tutti cluster up`: an embedded cluster for users without one."""

import asyncio
import signal
from pathlib import Path
from typing import get_args

import click

from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.manifests.crds import manifests
from tutti.tf_operator.stand_in import CRD_FILE, Gang, TfOperator


@click.group()
def cluster() -> None:
    """Run a small Kubernetes API server in one process, with simulated nodes."""


@cluster.command()
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("embedded.kubeconfig"),
    show_default=True,
    help="File to write the kubeconfig to.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0: any free port.")
@click.option(
    "--nodes",
    type=click.IntRange(0, 10_000),
    default=4,
    show_default=True,
    help="Number of simulated nodes, each with 4 CPU, 16 GiB and one GPU.",
)
@click.option(
    "--node-label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Label of the nodes; repeatable.",
)
@click.option(
    "--crds",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Further CRDs beside Tutti's own: a manifest or a folder; repeatable.",
)
@click.option(
    "--gang",
    type=click.Choice(get_args(Gang)),
    default="podgroup",
    show_default=True,
    help="How the stand-in for the tf-operator declares gangs.",
)
def up(
    *,
    kubeconfig: Path,
    port: int,
    nodes: int,
    labels: tuple[str, ...],
    crds: tuple[Path, ...],
    gang: Gang,
) -> None:
    """Serve until SIGTERM or Ctrl-C. Nothing is stored on disk."""
    settings = Settings(
        port=port,
        nodes=nodes,
        node_labels=_labels(labels),
        crds=(*manifests(), CRD_FILE, *crds),
    )
    asyncio.run(_serve(settings, gang, kubeconfig.expanduser().absolute()))


def _labels(given: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not (key and equals):
            raise click.UsageError(f"--node-label {item}: must be KEY=VALUE")
        labels[key] = value
    return labels


async def _serve(settings: Settings, gang: Gang, kubeconfig: Path) -> None:
    """Serve until a signal; writes the kubeconfig before it prints the kubeconfig's path."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with EmbeddedCluster(settings) as cluster, TfOperator(cluster.api, gang):
        cluster.kubeconfig(kubeconfig)
        click.echo(f"tutti: embedded cluster at {cluster.url}; kubeconfig: {kubeconfig}")
        await stop.wait()
