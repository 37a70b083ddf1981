"""The simulated API server over HTTP, so that the suite of the API's behaviour can ask it.

The simulation itself calls `ApiServer` without HTTP, in virtual time. Here a request is carried out
at once, and virtual time passes only while a watch waits for events.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from shared.kube.errors import KubeError
from shared.kube.resources import Resource
from shared.kube.transport import Reply
from tests.simulation.kube_api import ApiServer, Refusal, Request, refused
from tests.simulation.kube_server import Etcd
from tests.simulation.loop import Dice, SimLoop
from tests.support.background import in_background

_STEP_S: Final = 0.01
_POLL_S: Final = 0.002


class HttpFront:
    """Answers HTTP requests from an `ApiServer` without faults."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.loop = SimLoop(Dice(1))
        self.etcd = Etcd(self.loop, resources)
        self.server = ApiServer(self.etcd, on_fault=lambda _: None)
        self.url = ""
        self._running = asyncio.Lock()

    @asynccontextmanager
    async def time_passing(self) -> AsyncIterator[None]:
        """Let virtual time pass by itself, much faster than real time."""
        async with in_background(self._pass_time(), name="virtual-time"):
            yield

    async def _pass_time(self) -> None:
        while True:
            await self._run_for(10 * _STEP_S)
            await asyncio.sleep(_POLL_S)

    async def _run_for(self, seconds: float) -> None:
        """One at a time, and in a thread: a loop that runs is the running loop of its thread."""
        async with self._running:
            await asyncio.to_thread(self.loop.run_for, seconds)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        params = dict(request.query)
        if request.method == "PATCH":
            params["content-type"] = request.content_type
        asked = Request("suite", request.method, request.path, params, await request.read())
        if request.query.get("watch"):
            return await self._watch(request, asked)
        async with self._running:
            return _response(self.server.carry_out(asked))

    async def _watch(self, request: web.BaseRequest, asked: Request) -> web.StreamResponse:
        try:
            watch = self.server.watch(asked)
        except Refusal as refusal:
            return _response(refused(refusal))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            while not watch.ended:
                for line in watch.lines:
                    await response.write(line + b"\n")
                watch.lines.clear()
                await self._run_for(_STEP_S)
                await asyncio.sleep(_POLL_S)
        except KubeError:
            pass
        finally:
            self.server.close(watch)
        return response


def _response(reply: Reply) -> web.Response:
    return web.Response(
        status=reply.status, body=reply.body, headers=reply.headers, content_type="application/json"
    )


@asynccontextmanager
async def http_front(resources: Iterable[Resource]) -> AsyncIterator[HttpFront]:
    """Serve an empty simulated API server on a free port of 127.0.0.1."""
    front = HttpFront(resources)
    runner = web.ServerRunner(web.Server(front.handle), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    front.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield front
    finally:
        await runner.cleanup()
