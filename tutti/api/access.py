"""How commands reach the API server: one set of flags, one client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click
import msgspec

from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tutti.api.conventions import conventions

#: A command sends a few requests at once; every followed log holds a connection of its own.
CONNECTIONS_MAX = 64
#: klog's level from which a Kubernetes client logs its requests.
_LOG_REQUESTS = 4


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach the API server."""

    #: Path of a file; "" for kubectl's default locations, or a pod's service account.
    kubeconfig: str = ""
    #: Context in it; "" for the current one.
    context: str = ""
    #: URL that replaces the kubeconfig's; "" to keep it.
    server: str = ""
    #: At level 4 and above, every request is logged on standard error.
    verbosity: int = 0


@asynccontextmanager
async def open_client(access: Access) -> AsyncIterator[KubeClient]:
    """An open client. Raises CredentialsError when there is no usable kubeconfig."""
    credentials = await load(access.kubeconfig, access.context, server=access.server)

    def log_request(verb: str, status: int) -> None:
        click.echo(f"{verb} {credentials.server}: {status or 'no answer'}", err=True)

    client = KubeClient(
        credentials,
        connections_max=CONNECTIONS_MAX,
        user_agent="tutti-cli",
        on_call=log_request if access.verbosity >= _LOG_REQUESTS else None,
    )
    async with client:
        yield client


@asynccontextmanager
async def open_namespace(access: Access, namespace: str) -> AsyncIterator[tuple[KubeClient, str]]:
    """An open client, and the namespace: as given, or else the program's or the context's."""
    async with open_client(access) as client:
        yield client, namespace_or_default(namespace, client.credentials.namespace)


def namespace_or_default(given: str, of_context: str) -> str:
    return given or conventions().namespace or of_context
