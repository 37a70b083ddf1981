"""Reads a busy watch in slices of time: all that arrives within some milliseconds together.

An API server sends every watch event as a packet of its own. Read one by one, each costs a wakeup,
a read, a pass through TLS, HTTP and the line splitter, and the reader's work per batch: together
more than half of a watcher's CPU. So a busy stream is delayed between its batches, while a stream
that was quiet is read at once.

The kernel delays it, by the number of bytes from which a socket counts as readable (SO_RCVLOWAT):
the process does not run until the slice is over or so many bytes have come, while the end of a
connection, its errors and TCP keepalive are still reported at once. Pausing the transport would not
help: under TLS, uvloop continues to read the socket and only delays the decryption. (CPU per event,
measured at 650 events per second: 0.13 ms when each is read alone, 0.10 ms with the transport
paused for 10 ms at a time, 0.05 ms with SO_RCVLOWAT.)
"""

import asyncio
import socket
import sys
from contextlib import suppress
from typing import Final

from shared.pacing import TokenBucket

#: Slices per second of a busy stream with new objects, for which users may be waiting.
PER_S: Final = 100
#: Tokens of a slice of a stream without new objects: 25 per second.
_PATIENT_TOKENS: Final = 4
#: Time after new objects in which more are expected: creations and changes alternate.
NEWS_S: Final = 0.25
#: Batches without delay after a quiet time: a gang of eight is eight pods created and eight bound,
#: with a factor of safety.
BURST: Final = 80
#: So many bytes end a slice early: more than the busiest watch sends in a slice.
_WORTH_BYTES: Final = 512 * 1024


class Slices:
    """Delays the reads of one connection."""

    def __init__(self, transport: asyncio.BaseTransport | None) -> None:
        """Delay reads of `transport`; None: the answer has no connection of its own."""
        self._transport = transport
        self._bucket = TokenBucket(burst=BURST, per_s=PER_S)
        self._news_at_s = 0.0

    async def turn(self, *, news: bool) -> None:
        """Return when the next batch may be read: at once, unless the stream is busy.

        Afterwards the connection has its normal settings, also after an exception. `news`: whether
        the last batch had new objects. Without any for `NEWS_S`, slices are longer.
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
        """Let the socket count as readable from `count` bytes on; with 1, the kernel checks again
        what has arrived.
        """
        # On other systems the option does not wake up a waiting reader; the wait alone helps too.
        if sys.platform != "linux" or self._transport is None or self._transport.is_closing():
            return
        connection = self._transport.get_extra_info("socket")
        if connection is not None:
            with suppress(OSError):  # It broke at this moment; its reader gets the error.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
