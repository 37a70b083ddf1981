"""An embedded cluster that also serves Tutti's API, as an API server with an APIService does."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from tests.controlplane.kubeconfig import write_kubeconfig
from tests.services.api.scene import GROUP_PATH, verdict, waiting
from tests.services.api.serving import Serving, a_server
from tutti.cli import main
from tutti.cluster.embedded import EmbeddedCluster, Settings

CRDS_DIR = Path(__file__).parents[3] / "deploy" / "crds"

Typed: TypeAlias = Callable[..., Coroutine[Any, Any, Result]]
"""Types a command of `tutti` as a user whose context has the namespace `b`."""


@pytest.fixture
def serving() -> Serving:
    serving = Serving()
    why = waiting("a/x", "b/first")
    serving.state.take_verdict(1, verdict("a", "x"))
    serving.state.take_verdict(2, verdict("b", "first", phase="Running", running=3, pending=0))
    serving.state.take_verdict(3, verdict("b", "second", queue="research", why=why))
    return serving


@asynccontextmanager
async def aggregated(cluster: str, api: str, ca: Path) -> AsyncIterator[str]:
    """The URL of an API server that sends requests for Tutti's group to its service."""
    trusted = ssl.create_default_context(cafile=str(ca))

    async def forward(request: web.Request) -> web.Response:
        base = api if request.path.startswith(GROUP_PATH) else cluster
        async with session.request(
            request.method,
            f"{base}{request.path_qs}",
            data=await request.read(),
            headers={
                "Authorization": request.headers.get("Authorization", ""),
                "Content-Type": request.headers.get("Content-Type", ""),
            },
            ssl=trusted,
        ) as answer:
            return web.Response(
                status=answer.status, body=await answer.read(), content_type=answer.content_type
            )

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(app)
    async with aiohttp.ClientSession() as session:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def create_namespaces(cluster: str, *names: str) -> None:
    """Namespaces for objects that admission checks."""
    async with aiohttp.ClientSession() as session:
        for name in names:
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            async with session.post(f"{cluster}/api/v1/namespaces", json=manifest) as answer:
                assert answer.status == 201, await answer.text()


@pytest.fixture
async def typed(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Typed]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    settings = Settings(crds=(CRDS_DIR,), pod_start_s=0, pod_stop_s=0)
    async with (
        EmbeddedCluster(settings) as cluster,
        a_server(serving, tmp_path) as server,
        aggregated(
            cluster.url, server.url.removesuffix(GROUP_PATH), tmp_path / "ca.crt"
        ) as address,
    ):
        await create_namespaces(cluster.url, "a", "b")

        async def run(*words: str, user: str = "admin", served: bool = True) -> Result:
            kubeconfig = write_kubeconfig(
                tmp_path / "kubeconfig",
                server=address if served else cluster.url,
                ca_pem=(tmp_path / "ca.crt").read_bytes(),
                credentials=user,
                namespace="b",
            )
            environ = {"KUBECONFIG": str(kubeconfig)}
            # In a thread, as it has a loop of its own.
            return await asyncio.to_thread(CliRunner(env=environ).invoke, main, words)

        yield run
