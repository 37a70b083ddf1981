"""The user and the API server: the flags for both, and the client that they give."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click
import msgspec

from shared.kube.client import KubeClient
from shared.kube.credentials import load

#: A command asks a few things side by side; every followed log holds one connection of its own.
CONNECTIONS_MAX = 64
#: klog's level from which a Kubernetes client logs its requests.
_TELL_REQUESTS = 4


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach the API server.

    Attributes:
        kubeconfig: Path of a file; "" for the usual places, and the service account in a pod.
        context: Context in it; "" for the current one.
        server: URL that replaces the kubeconfig's; "" to keep it.
        verbosity: At level 4 and above, every request is logged on standard error.
    """

    kubeconfig: str = ""
    context: str = ""
    server: str = ""
    verbosity: int = 0


@asynccontextmanager
async def open_client(access: Access) -> AsyncIterator[KubeClient]:
    """An open client; `client.credentials.namespace` is the context's namespace.

    Raises:
        CredentialsError: No usable kubeconfig.
    """
    credentials = await load(access.kubeconfig, access.context, server=access.server)

    def told(verb: str, status: int) -> None:
        click.echo(f"{verb} {credentials.server}: {status or 'no answer'}", err=True)

    client = KubeClient(
        credentials,
        connections_max=CONNECTIONS_MAX,
        user_agent="tutti-cli",
        on_call=told if access.verbosity >= _TELL_REQUESTS else None,
    )
    async with client:
        yield client
