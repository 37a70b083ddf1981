"""`tutti console`: serve the console on this machine, and open it in the browser."""

import asyncio
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from html import escape
from pathlib import Path

import click

from shared.console.files import API_PATH
from shared.kube.client import KubeClient
from shared.kube.errors import NotFound
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, run
from tutti.api.flags import access_flags
from tutti.console.server import HOST, ConsoleServer


@click.command()
@access_flags
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0: any free one."
)
@click.option("--browser/--no-browser", default=True, help="Open the console in the browser.")
def console(*, access: Access, port: int, browser: bool) -> None:
    """Serve the console at 127.0.0.1 until Ctrl-C, and open it in the browser.

    It shows gangs, queues and nodes with the rights of the kubeconfig's user. The address contains
    a token that is valid for this run only: do not share it.
    """
    run(_serve(access, port, browser=browser), interrupted=0)


async def _serve(access: Access, port: int, *, browser: bool) -> None:
    async with open_client(access) as client:
        await _require_api(client)
        server = ConsoleServer(client)
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(server.serving(port))
            except OSError as error:
                raise Refusal(f"--port {port}: cannot listen on {HOST}: {error.strerror}") from None
            click.echo(server.url)
            if browser:
                page = stack.enter_context(_page_leading_to(server.url))
                await asyncio.to_thread(webbrowser.open, page.as_uri())
            await asyncio.Event().wait()


async def _require_api(client: KubeClient) -> None:
    """Raises Refusal: the cluster does not serve the API."""
    try:
        await client.request("GET", API_PATH)
    except NotFound:
        raise Refusal(
            "the cluster does not serve visibility.tutti.dev: install the chart with api.enabled, "
            "or run `tutti up --api`"
        ) from None


@contextmanager
def _page_leading_to(url: str) -> Iterator[Path]:
    """A file that leads to the address and that only this user can read, for the length of the
    block: the arguments of a browser's process are visible to all users of the machine.
    """
    with tempfile.TemporaryDirectory(prefix="tutti-console-") as folder:
        page = Path(folder) / "console.html"
        target = escape(url, quote=True)
        page.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={target}">'
            f'<a href="{target}">The console</a>\n'
        )
        page.chmod(0o600)
        yield page
