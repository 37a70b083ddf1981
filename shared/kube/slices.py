"""Reading a busy watch in slices: what arrives within some milliseconds is read at once (ADR 0013).

An API server sends every watch event as a packet of its own. Read one by one, each costs a wakeup,
a read, a pass through TLS, HTTP and the line splitter, and whatever the reader does per batch: of a
watcher's CPU more than half. So a lasting stream is delayed between its batches, while a stream
that was quiet is read at once.

It is delayed in the kernel, by the number of bytes from which on a socket counts as readable
(SO_RCVLOWAT): nothing of ours runs until the slice is over or so much has come, and the end of a
connection, its errors and TCP keepalive are reported at once as ever. Pausing the transport instead
would not do: under TLS, uvloop continues reading the socket and only puts off the decryption
(measured with 650 events a second, per event: 0.13 ms of CPU with each read alone, 0.10 with the
transport paused for 10 ms at a time, 0.05 so).
"""

import asyncio
import socket
import sys
from contextlib import suppress
from typing import Final

from shared.pacing import TokenBucket

#: Slices of a lasting stream in which new objects appear, which a user may be waiting for.
PER_S: Final = 100
#: Without new objects one costs as much as so many of those: 25 a second.
_PATIENT_TOKENS: Final = 4
#: So long after new objects more are expected: creations and changes take turns.
NEWS_S: Final = 0.25
#: Free after a quiet while: a gang of eight is eight pods created and eight bound, twice over.
BURST: Final = 80
#: So much is worth waking up for at any time: above what the busiest watch brings in a slice.
_WORTH_BYTES: Final = 512 * 1024


class Slices:
    """When to read one connection next."""

    def __init__(self, transport: asyncio.BaseTransport | None) -> None:
        """Slice the reading of `transport`; None: of what has no connection of its own."""
        self._transport = transport
        self._bucket = TokenBucket(burst=BURST, per_s=PER_S)
        self._news_at_s = 0.0

    async def turn(self, *, news: bool) -> None:
        """Return when the next batch may be read: at once, but for a lasting stream.

        However it ends, the connection then is as it was: it may be used for something else.

        Args:
            news: New objects came last; without any, what comes has time after a while.
        """
        now_s = asyncio.get_running_loop().time()
        if news:
            self._news_at_s = now_s
        patient = now_s - self._news_at_s > NEWS_S
        wait_s = self._bucket.draw(now_s, _PATIENT_TOKENS if patient else 1)
        if not wait_s:
            return
        self._wake_from(_WORTH_BYTES)
        try:
            await asyncio.sleep(wait_s)
        finally:
            self._wake_from(1)

    def _wake_from(self, count: int) -> None:
        """Have the socket count as readable from so many bytes on; with 1, the kernel looks again
        at what has come.
        """
        # Elsewhere the option does not wake up a waiting reader; the wait alone helps, too.
        if sys.platform != "linux" or self._transport is None or self._transport.is_closing():
            return
        connection = self._transport.get_extra_info("socket")
        if connection is not None:
            with suppress(OSError):  # It broke at this moment; its reader gets the error.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
