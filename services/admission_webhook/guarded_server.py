"""What keeps clients that are no API server from holding the webhook's memory.

Every client that reaches the port may send: the address is no secret, and the addresses of an API
server are unknown. So connections are counted, one that never sends a request is closed, a body
must say how long it is, arrive in time, and find room among those that are in flight.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web
from typing_extensions import override

#: The API server takes requests of up to 3 MiB; an update brings the object twice.
BODY_BYTES_MAX: Final = 8 * 1024 * 1024
#: Of all bodies together: eight of the longest, or some thousands of pods.
HELD_BYTES_MAX: Final = 8 * BODY_BYTES_MAX
#: The API server sends a review in one go and waits ten seconds for its answer at most. A client
#: that takes longer to send one only holds memory of ours.
BODY_TIMEOUT_S: Final = 10.0
#: After an answer, for the rest of a refused body: a client that still sends sees the answer.
LINGER_S: Final = 2.0
#: An API server opens some hundreds at worst, when many objects are made at once over HTTP/1.1.
CONNECTIONS_MAX: Final = 2000


class Unwelcome(Exception):
    """A request that is not taken: its status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status

    def response(self) -> web.Response:
        """The answer to it."""
        return web.Response(status=self.status, text=str(self))


class Bodies:
    """The bodies of all requests that are being read or answered."""

    def __init__(
        self, *, held_bytes_max: int = HELD_BYTES_MAX, timeout_s: float = BODY_TIMEOUT_S
    ) -> None:
        self._left_bytes = held_bytes_max
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def read(self, request: web.BaseRequest) -> AsyncIterator[bytes]:
        """The body of a request, once it has come whole; its room is taken until the block is left.

        Raises:
            Unwelcome: It has no length or too much of it, there is no room for it now, or it did
                not arrive in time.
            web.HTTPRequestEntityTooLarge: What was compressed is too long.
        """
        length = request.content_length
        if length is None:
            raise Unwelcome(411, "a review states its length (Content-Length)")
        if length > BODY_BYTES_MAX:
            raise Unwelcome(413, f"a review has at most {BODY_BYTES_MAX} bytes")
        if length > self._left_bytes:
            raise Unwelcome(503, "too many reviews are in flight")
        self._left_bytes -= length
        try:
            try:
                async with asyncio.timeout(self._timeout_s):
                    body = await request.read()
            except TimeoutError:
                raise Unwelcome(408, f"a review arrives within {self._timeout_s:g} s") from None
            yield body
        finally:
            self._left_bytes += length


class GuardedServer(web.Server):
    """aiohttp's server, with a limit of connections and of patience with silent ones."""

    def __init__(
        self,
        handler: Any,
        *,
        connections_max: int = CONNECTIONS_MAX,
        silence_s: float = BODY_TIMEOUT_S,
        **options: Any,
    ) -> None:
        super().__init__(handler, lingering_time=LINGER_S, **options)
        self._connections_max = connections_max
        self._silence_s = silence_s
        #: Connections that have not sent a request yet, and what will close them.
        self._silent: dict[Any, asyncio.TimerHandle] = {}

    def heard(self, handler: Any) -> None:
        """A request came on this connection."""
        timer = self._silent.pop(handler, None)
        if timer is not None:
            timer.cancel()

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
        self.heard(handler)
        super().connection_lost(handler, exc)
