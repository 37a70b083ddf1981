"""Limits that keep clients other than the API server from exhausting a server's memory.

Any client that reaches the port may send requests: the addresses of the API server are unknown. So
the number of connections is limited, a connection without a request is closed, and a body must
state its length, arrive in time, and fit into the memory for all bodies in flight.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web
from typing_extensions import override

#: The API server accepts objects of up to 3 MiB; an update's review has the object twice.
BODY_BYTES_MAX: Final = 8 * 1024 * 1024
#: Limit for all bodies together: eight of the longest, or some thousands of pods.
HELD_BYTES_MAX: Final = 8 * BODY_BYTES_MAX
#: The API server sends a review at once and waits at most ten seconds for the answer.
BODY_TIMEOUT_S: Final = 10.0
#: How long the rest of a refused body is read, so that a client that still sends gets the answer.
LINGER_S: Final = 2.0
#: An API server opens some hundreds at most, when many objects are created at once over HTTP/1.1.
CONNECTIONS_MAX: Final = 2000


class RequestRefused(Exception):
    """A request that is not answered as asked: the HTTP status, and the reason as text."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status

    def response(self) -> web.Response:
        """The HTTP response."""
        return web.Response(status=self.status, text=str(self))


class Bodies:
    """The bodies of all requests that are being read or answered."""

    def __init__(
        self,
        *,
        body_bytes_max: int = BODY_BYTES_MAX,
        held_bytes_max: int = HELD_BYTES_MAX,
        timeout_s: float = BODY_TIMEOUT_S,
    ) -> None:
        self._body_bytes_max = body_bytes_max
        self._left_bytes = held_bytes_max
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def read(self, request: web.BaseRequest) -> AsyncIterator[bytes]:
        """The whole body of a request. Its length counts as in flight until the block is left.

        Raises:
            RequestRefused: It states no length or too large a one, too many bodies are in flight,
                or it did not arrive in time.
            web.HTTPRequestEntityTooLarge: The decompressed body is too long.
        """
        length = request.content_length
        if length is None:
            raise RequestRefused(411, "the length of the body must be stated (Content-Length)")
        if length > self._body_bytes_max:
            raise RequestRefused(413, f"the body must have at most {self._body_bytes_max} bytes")
        if length > self._left_bytes:
            raise RequestRefused(503, "the bodies in flight are too long together")
        self._left_bytes -= length
        try:
            try:
                async with asyncio.timeout(self._timeout_s):
                    body = await request.read()
            except TimeoutError:
                raise RequestRefused(
                    408, f"the body must arrive within {self._timeout_s:g} s"
                ) from None
            yield body
        finally:
            self._left_bytes += length


class GuardedServer(web.Server):
    """aiohttp's server with a limit of connections and a timeout for the first request of each."""

    def __init__(
        self,
        handler: Any,
        *,
        connections_max: int = CONNECTIONS_MAX,
        silence_s: float = BODY_TIMEOUT_S,
        **options: Any,
    ) -> None:
        super().__init__(handler, lingering_time=LINGER_S, **{"access_log": None, **options})
        self._connections_max = connections_max
        self._silence_s = silence_s
        self._runner: web.ServerRunner | None = None
        #: Connections without a request yet, and the timers that will close them.
        self._silent: dict[Any, asyncio.TimerHandle] = {}

    def note_request(self, handler: Any) -> None:
        """Keep the connection open: it has sent a request."""
        timer = self._silent.pop(handler, None)
        if timer is not None:
            timer.cancel()

    async def listen(
        self, host: str, port: int, context: ssl.SSLContext, *, shutdown_s: float
    ) -> int:
        """Listen for HTTPS, and return the port (chosen by the kernel if `port` is 0). `shutdown_s`
        is the time for requests in flight when the server stops.

        Raises:
            OSError: The address is in use, or not one of this machine.
        """
        runner = self._runner = web.ServerRunner(self, shutdown_timeout=shutdown_s)
        await runner.setup()
        await web.TCPSite(runner, host, port, ssl_context=context, backlog=1024).start()
        return int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Finish the requests in flight and stop listening. Safe to call twice."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @override
    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > self._connections_max:
            transport.abort()
            return
        loop = asyncio.get_running_loop()
        self._silent[handler] = loop.call_later(self._silence_s, transport.abort)

    @override
    def connection_lost(self, handler: Any, exc: BaseException | None = None) -> None:
        self.note_request(handler)
        super().connection_lost(handler, exc)
