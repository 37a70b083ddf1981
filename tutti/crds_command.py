"""`tutti crds`: our kinds, created and brought up to date, or written out."""

import asyncio

import click

_KUBE_BATCH = click.option(
    "--kube-batch",
    is_flag=True,
    help="Also kube-batch's PodGroups and Queues, of both its API groups.",
)


@click.group()
def crds() -> None:
    """Create our kinds and bring them up to date, or print them."""


@crds.command()
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig; else as kubectl does.")
@click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig.")
@click.option("--take-over", is_flag=True, help="Take over CRDs that another installation created.")
@_KUBE_BATCH
def install(kubeconfig: str, context: str, take_over: bool, kube_batch: bool) -> None:
    """Create our CRDs, or bring those that we made up to date.

    Those of kube-batch's kinds are created only with --kube-batch: beside them, `kubectl get queue`
    and `kubectl get podgroups` list kube-batch's.

    CRDs of a newer Tutti, and of other products, are left as they are and named. Ends
    with status 0 once the API server serves all of them.
    """
    from shared.kube.errors import CredentialsError, KubeError
    from tutti.api.failures import explained
    from tutti.up.crds import CrdsNotEstablished

    try:
        asyncio.run(_install(kubeconfig, context, take_over=take_over, kube_batch=kube_batch))
    except* (CredentialsError, KubeError, CrdsNotEstablished) as errors:
        raise click.ClickException(explained(_first(errors))) from None


@crds.command(name="print")
@_KUBE_BATCH
def show(kube_batch: bool) -> None:
    """Print them as YAML, for `kubectl apply --server-side -f -`."""
    from tutti.manifests.crds import OPT_IN_FOLDER, files

    shown = {
        path: text
        for path, text in files().items()
        if kube_batch or not path.startswith(f"{OPT_IN_FOLDER}/")
    }
    click.echo("---\n".join(text for _, text in sorted(shown.items())), nl=False)


async def _install(kubeconfig: str, context: str, *, take_over: bool, kube_batch: bool) -> None:
    from shared.kube.client import KubeClient
    from shared.kube.credentials import load
    from tutti.up import crds as installing

    async with KubeClient(await load(kubeconfig, context), user_agent="tutti-crds") as client:
        served = await installing.install(
            client, click.echo, take_over=take_over, kube_batch=kube_batch
        )
    click.echo(f"{served} CRDs are served")


def _first(errors: BaseExceptionGroup[Exception]) -> Exception:
    """One of them: each says the same of another CRD."""
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
