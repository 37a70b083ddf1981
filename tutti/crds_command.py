"""`tutti crds`: installs or prints Tutti's CRDs."""

import click

from tutti.api.access import Access, open_client
from tutti.api.failures import running
from tutti.api.flags import access_flags
from tutti.manifests.crds import OPT_IN_FOLDER, files
from tutti.up import crds as installation

_KUBE_BATCH = click.option(
    "--kube-batch",
    is_flag=True,
    help="Include kube-batch's PodGroups and Queues, in both its API groups.",
)


@click.group()
def crds() -> None:
    """Install or update Tutti's CRDs, or print them."""


@crds.command()
@access_flags
@click.option("--take-over", is_flag=True, help="Take over CRDs that another installation created.")
@_KUBE_BATCH
@running()
async def install(access: Access, take_over: bool, kube_batch: bool) -> None:
    """Create Tutti's CRDs, or update those that Tutti created.

    CRDs of kube-batch's kinds are created only with --kube-batch: where they exist,
    `kubectl get queue` and `kubectl get podgroups` list kube-batch's objects.

    CRDs of a newer Tutti and of other products are left unchanged and reported. Exits with status 0
    once the API server serves all CRDs.
    """
    async with open_client(access) as client:
        served = await installation.install(
            client, click.echo, take_over=take_over, kube_batch=kube_batch
        )
    click.echo(f"{served} CRDs are served")


@crds.command(name="print")
@_KUBE_BATCH
def show(kube_batch: bool) -> None:
    """Print the CRDs as YAML, for `kubectl apply --server-side -f -`."""
    selected = {
        path: text
        for path, text in files().items()
        if kube_batch or not path.startswith(f"{OPT_IN_FOLDER}/")
    }
    click.echo("---\n".join(text for _, text in sorted(selected.items())), nl=False)
