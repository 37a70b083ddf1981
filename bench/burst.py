"""Sends many small requests to an API server for as little CPU as Python takes.

The yardstick must be hard to beat, and a loaded creation must really be at full speed: so requests
are bytes made beforehand, each connection sends its next one from the callback that saw the last
answer, and of a success nothing but the status is looked at. Only HTTP/1.1 over TLS, only answers
that end by their length or by a last chunk; everything else is an error.
"""

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast
from urllib.parse import urlsplit

from typing_extensions import override

HTTP_ERROR = 300
_END_OF_HEAD = b"\r\n\r\n"
#: JSON escapes line ends, so within a body this is the last chunk and nothing else.
_LAST_CHUNK = b"\r\n0\r\n\r\n"
#: Called with a request's index and the monotonic times when it was sent and when it was answered.
OnAnswer: TypeAlias = Callable[[int, float, float], None]


class BurstRefused(RuntimeError):
    """A request was refused or its connection broke; what was sent before it may have happened."""


class BurstClient:
    """Makes requests for one server and sends them; keeps nothing open between bursts."""

    def __init__(self, server: str, tls: ssl.SSLContext) -> None:
        url = urlsplit(server)
        self._host, self._port = url.hostname or "", url.port or 443
        self._netloc = url.netloc
        self._tls = tls

    def post(self, path: str, body: object) -> bytes:
        """Return a whole POST request."""
        data = json.dumps(body, separators=(",", ":")).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._netloc}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        return head.encode() + data

    async def send(
        self,
        requests: Iterable[bytes],
        *,
        connections: int,
        on_answer: OnAnswer | None = None,
    ) -> None:
        """Send all requests in their order, one at a time on each connection, all answered 2xx.

        Args:
            requests: whole requests.
            connections: how many may be in flight; they are opened before the first is sent.
            on_answer: called for each answer.

        Raises:
            BurstRefused: See there.
        """
        feed = _Feed(list(requests), on_answer)
        loop = asyncio.get_running_loop()
        lanes: list[_Lane] = []
        try:
            for _ in range(min(connections, len(feed.requests))):
                lane = _Lane(feed)
                await loop.create_connection(
                    lambda lane=lane: lane,  # type: ignore[misc]  # mypy cannot infer the default
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._host,
                )
                lanes.append(lane)
            for lane in lanes:
                lane.send_next()
            if feed.requests:
                await feed.done
        finally:
            for lane in lanes:
                lane.close()


class _Feed:
    """The requests of one burst and how far it has come."""

    def __init__(self, requests: Sequence[bytes], on_answer: OnAnswer | None) -> None:
        self.requests = requests
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._on_answer = on_answer
        self._taken = 0
        self._answered = 0

    def take(self) -> int | None:
        """The index of the next request; None when all are in flight or one has failed."""
        if self._taken == len(self.requests) or self.done.done():
            return None
        self._taken += 1
        return self._taken - 1

    def answered(self, index: int, status: int, answer: bytes, sent_s: float) -> None:
        """One answer came whole."""
        if status >= HTTP_ERROR:
            request = self.requests[index].split(b"\r\n", 1)[0].decode()
            text = answer.partition(_END_OF_HEAD)[2][:400].decode(errors="replace")
            self.fail(f"{request}: {status}: {text}")
            return
        if self._on_answer is not None:
            self._on_answer(index, sent_s, time.monotonic())
        self._answered += 1
        if self._answered == len(self.requests) and not self.done.done():
            self.done.set_result(None)

    def fail(self, why: str) -> None:
        """End the burst; the first reason counts."""
        if not self.done.done():
            self.done.set_exception(BurstRefused(why))


class _Lane(asyncio.Protocol):
    """One connection."""

    def __init__(self, feed: _Feed) -> None:
        self._feed = feed
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._index: int | None = None
        self._sent_s = 0.0

    def send_next(self) -> None:
        """Send the next request, if there is one."""
        self._index = self._feed.take()
        if self._index is None:
            return
        if self._transport is None:
            self._feed.fail("a connection broke before it was used")
            return
        self._sent_s = time.monotonic()
        self._transport.write(self._feed.requests[self._index])

    def close(self) -> None:
        """Break the connection."""
        if self._transport is not None:
            self._transport.abort()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        received = self._received = self._received + data if self._received else data
        if self._index is None:
            self._feed.fail(f"an answer without a request: {received[:80]!r}")
            return
        try:
            whole = is_whole(received)
        except ValueError as error:
            self._feed.fail(str(error))
            return
        if whole:
            self._received = b""
            self._feed.answered(self._index, int(received[9:12]), received, self._sent_s)
            self.send_next()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._index is not None:
            self._feed.fail(f"the connection broke: {exc or 'closed by the server'}")


def is_whole(answer: bytes) -> bool:
    """Whether these bytes are one whole HTTP/1.1 answer.

    Raises:
        ValueError: they cannot become one, or its end cannot be known.
    """
    end = answer.find(_END_OF_HEAD)
    if end < 0:
        return False
    if not answer.startswith(b"HTTP/1.1 "):
        raise ValueError(f"no HTTP/1.1 answer: {answer[:80]!r}")
    head = answer[:end].lower()
    at = head.find(b"\r\ncontent-length:")
    if at >= 0:
        length = int(head[at + 17 :].split(b"\r\n", 1)[0])
        return len(answer) >= end + len(_END_OF_HEAD) + length
    if b"\r\ntransfer-encoding: chunked" in head:
        return answer.endswith(_LAST_CHUNK)
    raise ValueError(f"an answer without a length: {answer[:200]!r}")
