"""Connections to the API server: detection of a dead peer, their end, and the lines of a watch."""

import asyncio
import socket
import ssl
from collections.abc import Iterable
from functools import partial
from typing import Any, Final
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from typing_extensions import override

from shared.kube.errors import ConnectionLost, MalformedAnswer, RequestTimeout
from shared.kube.slices import Slices

#: Limit of a line of a watch. etcd stores objects up to 1.5 MiB; their JSON may be longer.
LINE_BYTES_MAX: Final = 4 * 1024 * 1024

#: A peer that vanished silently (a node that died, a NAT entry that was dropped) is detected after
#: about 30 s: the kernel probes a silent connection, so an idle watch need not be reopened to prove
#: that it is alive.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
#: Likewise for a connection with unacknowledged data: it breaks after 30 s.
_USER_TIMEOUT_MS: Final = 30_000
#: An aborted connection is closed in the event loop's next turn.
_CLOSING_S_MAX: Final = 1.0


class Connector(aiohttp.TCPConnector):
    """A pool of at most `connections_max` connections, each with TCP keepalive.

    A connection that is not used again (its request was cancelled, its watch was left) is aborted.
    aiohttp would close it, and forget it: under TLS, closing waits for the peer's answer, 30 s by
    asyncio's and uvloop's default, and an event loop that ends before leaves the socket open.
    """

    def __init__(self, connections_max: int) -> None:
        super().__init__(
            limit=connections_max,
            # Go's server closes idle connections after minutes; closing first avoids losing a POST
            # to that race.
            keepalive_timeout=45.0,
            socket_factory=_socket,
        )
        #: All open connections; aiohttp does not know those whose request is cancelled as they are
        #: made.
        self._open: WeakSet[_Connection] = WeakSet()
        self._factory = partial(_make_connection, self._loop, self._open)

    @override
    async def close(self, *, abort_ssl: bool = True) -> None:
        """Abort all connections, and wait until they are closed. Idempotent."""
        connections = tuple(self._open)
        for connection in connections:
            connection.abort()
        await super().close(abort_ssl=abort_ssl)
        await wait_lost(connection.lost for connection in connections)


class _Connection(ResponseHandler):
    """One connection of a `Connector`, and in its register while it is open."""

    def __init__(self, loop: asyncio.AbstractEventLoop, register: WeakSet["_Connection"]) -> None:
        super().__init__(loop)
        self._register = register
        #: Done when the connection is closed.
        self.lost: asyncio.Future[None] = loop.create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._register.add(self)

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        self._register.discard(self)
        self.lost.set_result(None)
        super().connection_lost(exc)

    @override
    def close(self) -> None:
        self.abort()

    @override
    def abort(self) -> None:
        # Not `super().abort()`: it forgets the answer, and a task that reads it would never learn
        # of the connection's end.
        if self.transport is not None:
            self.transport.abort()


def _make_connection(
    loop: asyncio.AbstractEventLoop, register: WeakSet[_Connection]
) -> ResponseHandler:
    return _Connection(loop, register)


async def wait_lost(connections: Iterable[asyncio.Future[None]]) -> None:
    """Wait until aborted connections are closed; each has a future that is done when it is.

    A second at most: uvloop does not report the end of a connection whose request was cancelled in
    the turn of the event loop in which the connection was made.
    """
    lost = list(connections)
    if lost:
        await asyncio.wait(lost, timeout=_CLOSING_S_MAX)


def _socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    tune(made)
    return made


def tune(connection: socket.socket) -> None:
    """Let the kernel detect a vanished peer, and send small requests without delay."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, seconds in _KEEPALIVE:
        # Not every system has all of them; SO_KEEPALIVE alone works with the system's own times.
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MS)


class LineStream:
    """The lines of one open answer, read in batches: all that has arrived, or on a busy stream all
    that arrives in one slice of time (`slices`).
    """

    def __init__(self, response: aiohttp.ClientResponse, what: str) -> None:
        self._content = response.content
        self._what = what
        connection = response.connection
        self._slices = Slices(connection.transport if connection is not None else None)
        #: Pieces of a line whose end has not arrived.
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    async def batch(self, *, news: bool = True) -> list[bytes]:
        """All whole lines that have arrived, at least one; [] when the answer has ended.

        Empty lines are left out. A batch is bounded by the connection's read buffer (4 MiB) plus
        one line. When the answer ends within a line, that line is dropped. `news`: whether the last
        batch had new objects, so that users may wait for the next one. If not, a busy stream is
        read in larger batches.

        Raises:
            ConnectionLost: The connection broke.
            RequestTimeout: No line came within the stream's limit of silence.
            MalformedAnswer: A line is longer than LINE_BYTES_MAX.
        """
        await self._slices.turn(news=news)
        while True:
            try:
                chunk = await self._content.readany()
            except TimeoutError as error:
                raise RequestTimeout(f"{self._what}: silent for too long") from error
            except (aiohttp.ClientError, OSError, RuntimeError) as error:
                # aiohttp raises RuntimeError when it has closed the connection itself.
                raise ConnectionLost(f"{self._what}: {describe(error)}") from error
            if not chunk:
                return []
            lines = self._split(chunk)
            if lines:
                return lines

    def _split(self, chunk: bytes) -> list[bytes]:
        *lines, rest = chunk.split(b"\n")
        if lines:
            if self._rest:
                lines[0] = b"".join((*self._rest, lines[0]))
                self._rest.clear()
            self._rest_bytes = 0
        if rest:
            self._rest.append(rest)
            self._rest_bytes += len(rest)
        if self._rest_bytes > LINE_BYTES_MAX:
            raise MalformedAnswer(f"{self._what}: a line is longer than {LINE_BYTES_MAX} bytes")
        return [line for line in lines if line]


def describe(error: BaseException) -> str:
    """The text of a transport's exception, with an explanation where a user can fix the cause."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            f"the certificate of {error.host}:{error.port} is not valid: {error.certificate_error}"
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        where, cause = f"{error.host}:{error.port}", error.os_error
        if isinstance(cause, ssl.SSLError):
            return f"no TLS connection to {where}: {cause.reason or cause}"
        if isinstance(cause, ConnectionRefusedError):
            return f"nothing listens at {where}: connection refused"
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return f"the host name {error.host} cannot be resolved"
        return f"no connection to {where}: {cause.strerror or cause}"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
