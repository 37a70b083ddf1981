"""A proxy in front of a real kube-apiserver that notes every request: what was tried, not what was
allowed.

TLS on both sides; bearer tokens pass through, client certificates do not.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
from aiohttp import web

from tests.controlplane.cluster import ControlPlane

_HOP: Final = frozenset({"connection", "host", "transfer-encoding", "content-length"})


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str


class CountingProxy:
    """Where it listens, and what was asked so far."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []

    def writes(self) -> list[Asked]:
        """Requests that could change something."""
        return [one for one in self.asked if one.method not in {"GET", "HEAD"}]


@asynccontextmanager
async def counting_proxy(control_plane: ControlPlane, folder: Path) -> AsyncIterator[CountingProxy]:
    """Run one for the length of the block; `folder` takes its certificate."""
    proxy = CountingProxy()
    pair = control_plane.authority.server(["127.0.0.1"])
    certificate, key = folder / "proxy.crt", folder / "proxy.key"
    certificate.write_bytes(pair.certificate_pem)
    key.write_bytes(pair.key_pem)
    inner = ssl.create_default_context(cadata=control_plane.authority.certificate_pem.decode())
    outer = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    outer.load_cert_chain(certificate, key)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        control_plane.server,
        connector=aiohttp.TCPConnector(ssl=inner, limit=0),
        timeout=timeout,
        auto_decompress=False,
    ) as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            proxy.asked.append(Asked(request.method, request.path))
            return await _forward(session, request)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", forward)
        runner = web.AppRunner(app, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=outer)
        await site.start()
        host, port = runner.addresses[0][:2]
        proxy.url = f"https://{host}:{port}"
        try:
            yield proxy
        finally:
            await runner.cleanup()


async def _forward(session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
    headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP}
    # None, not b"": aiohttp would name a content type, which discovery of the API server refuses.
    body = await request.read() or None
    async with session.request(
        request.method, request.rel_url, headers=headers, data=body
    ) as answer:
        kept = {key: value for key, value in answer.headers.items() if key.lower() not in _HOP}
        response = web.StreamResponse(status=answer.status, headers=kept)
        await response.prepare(request)
        # A watch ends when either side has gone.
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
        return response
