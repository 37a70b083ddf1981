"""`tutti mcp`: serves read-only tools to an assistant over standard input and output."""

import importlib.util

import click

from tutti.api.access import Access
from tutti.api.failures import Refusal, running
from tutti.api.flags import access_flags, namespace_flag


@click.command()
@namespace_flag()
@access_flags
@running(interrupted=0)
async def mcp(*, access: Access, namespace: str) -> None:
    """Serve read-only tools to an assistant over the Model Context Protocol.

    The assistant starts this command, and speaks to it over standard input and output. The tools
    are why, fits, queues and gangs, with the rights of the kubeconfig. Needs the extra `mcp` of
    Tutti's package.
    """
    if importlib.util.find_spec("mcp") is None or importlib.util.find_spec("mcp_types") is None:
        raise Refusal(
            "the SDK of the Model Context Protocol is missing: install Tutti with its extra "
            "`mcp` (pip install '.[mcp]')"
        )
    # The SDK's import takes a while, and is an extra.
    from tutti.client.asynchronous import AsyncClient
    from tutti.mcp.server import build_server

    client = AsyncClient(
        kubeconfig=access.kubeconfig,
        context=access.context,
        server=access.server,
        namespace=namespace,
    )
    async with client:
        await build_server(client).run_stdio_async()
