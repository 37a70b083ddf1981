"""`tutti crds`: our kinds, created and brought up to date, or written out."""

import asyncio

import click


@click.group()
def crds() -> None:
    """Create our kinds and bring them up to date, or print them."""


@crds.command()
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig; else as kubectl does.")
@click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig.")
@click.option("--take-over", is_flag=True, help="Have CRDs that somebody else made become ours.")
def install(kubeconfig: str, context: str, take_over: bool) -> None:
    """Create our CRDs, or bring those that we made up to date.

    Those of a newer Tutti, and somebody else's, are left as they are, and it is said which. Ends
    with status 0 once the API server serves all of them.
    """
    from shared.kube.errors import CredentialsError, KubeError
    from tutti.up.crds import CrdsNotEstablished

    try:
        asyncio.run(_install(kubeconfig, context, take_over=take_over))
    except* (CredentialsError, KubeError, CrdsNotEstablished) as errors:
        raise click.ClickException(str(_first(errors))) from None


@crds.command(name="print")
def show() -> None:
    """Print them as YAML, for `kubectl apply --server-side -f -`."""
    from tutti.manifests.crds import files

    click.echo("---\n".join(text for _, text in sorted(files().items())), nl=False)


async def _install(kubeconfig: str, context: str, *, take_over: bool) -> None:
    from shared.kube.client import KubeClient
    from shared.kube.credentials import load
    from tutti.manifests.crds import manifests
    from tutti.up import crds as installing

    async with KubeClient(await load(kubeconfig, context), user_agent="tutti-crds") as client:
        await installing.install(client, click.echo, take_over=take_over)
    click.echo(f"{len(manifests())} CRDs are served")


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """One of them: each says the same of another CRD."""
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
