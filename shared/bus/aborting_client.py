"""A NATS client that drops the connection to a silent server without delay, also one that is being
made, and that looks up a server's name once at a time.
"""

import asyncio
import socket
from typing import Any, Final

from nats.aio.client import Client, Srv
from typing_extensions import override


class AbortingClient(Client):
    """nats-py's client, except for three cases.

    It aborts a lost connection instead of closing it. Closing TLS waits for the peer's answer,
    thirty seconds by asyncio's and uvloop's default. A server whose machine died never answers, and
    the client would connect to another one only then: on real nodes, a gang waited 48 s for it.

    It aborts a connection that could not be made, too. If the server does not answer in the TLS
    handshake in time, nats-py closes the connection and waits for its end, which nothing reports
    then: the client would wait forever, and connect to no server.

    It waits for a lookup of the server's name before it connects, and an attempt that gives up
    leaves the lookup to the next one. uvloop's own lookup goes on when an attempt has given up, and
    its error is logged as an exception that was never retrieved. While no name resolves, each
    attempt would start another one, in a pool of four threads.
    """

    def __init__(self) -> None:
        super().__init__()
        #: Lookups in progress, by host and port.
        self._lookups: Final[dict[tuple[str | None, int | None], asyncio.Task[Any]]] = {}

    @override
    async def _attempt_reconnect(self) -> None:
        # A lost connection has nothing to flush.
        self._abort()
        await super()._attempt_reconnect()

    @override
    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except BaseException:
            self._abort()
            # The next attempt makes another one; until then there is none to wait for.
            self._transport = None
            raise

    def _abort(self) -> None:
        writer: Any = getattr(self._transport, "_io_writer", None)
        if isinstance(writer, asyncio.StreamWriter):
            writer.transport.abort()

    @override
    async def _connect_to_server(self, s: Srv) -> None:
        await self._look_up(s.uri.hostname, s.uri.port)
        await super()._connect_to_server(s)

    async def _look_up(self, host: str | None, port: int | None) -> None:
        """Wait for the lookup of a name. Raises OSError as it does, and TimeoutError."""
        loop, key = asyncio.get_running_loop(), (host, port)
        lookup = self._lookups.get(key)
        if lookup is None:
            lookup = self._lookups[key] = loop.create_task(
                loop.getaddrinfo(host, port, type=socket.SOCK_STREAM), name=f"look up {host}"
            )

            def settle(task: asyncio.Task[Any]) -> None:
                del self._lookups[key]
                if not task.cancelled():
                    task.exception()  # also of a lookup for which no attempt waits

            lookup.add_done_callback(settle)
        async with asyncio.timeout(self.options["connect_timeout"]):
            await asyncio.shield(lookup)
