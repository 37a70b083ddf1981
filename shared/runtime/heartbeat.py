"""Heartbeats of the event loop, in systemd's protocol (sd_notify(3) with `WatchdogSec=`).

A supervisor that sets NOTIFY_SOCKET and WATCHDOG_USEC (`tutti up`, or systemd for a unit with
`WatchdogSec=`) receives `WATCHDOG=1` as long as the event loop runs. Without these variables
nothing is sent; a kubelet reads `/healthz` instead (`shared.runtime.health`), which the same event
loop answers.

A metric has the delay of the loop in the last minute. It shows a cycle that blocks the loop for
seconds before a supervisor considers the process hung.
"""

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Mapping
from typing import Final

#: Several heartbeats fit into a supervisor's timeout, since single ones may be lost.
EVERY_S: Final = 2.0
#: systemd's keep-alive ping.
BEAT: Final = b"WATCHDOG=1"
_BEATS_REMEMBERED: Final = 30
_MICROSECONDS: Final = 1_000_000
_BEATS_PER_BOUND: Final = 4


class Heartbeat:
    """Sends heartbeats while `run` runs, and measures the event loop's delay."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = supervisor_address(environ)
        self._every_s = interval_s(environ)
        self._late_s: deque[float] = deque(maxlen=_BEATS_REMEMBERED)

    @property
    def late_s(self) -> float:
        """The longest delay of the last heartbeats, in seconds."""
        return max(self._late_s, default=0.0)

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            while True:
                self._send(channel)
                due_s = loop.time() + self._every_s
                await asyncio.sleep(self._every_s)
                self._late_s.append(max(0.0, loop.time() - due_s))

    def _send(self, channel: socket.socket) -> None:
        if self._address is not None:
            # The supervisor's queue is full, or it restarts: it tolerates lost heartbeats.
            with contextlib.suppress(OSError):
                channel.sendto(BEAT, self._address)


def supervisor_address(environ: Mapping[str, str]) -> str | None:
    """The supervisor's socket; None: no supervisor expects heartbeats from this process."""
    address = environ.get("NOTIFY_SOCKET", "")
    meant = environ.get("WATCHDOG_PID", "")
    if not address or "WATCHDOG_USEC" not in environ or meant not in {"", str(os.getpid())}:
        return None
    # "@" replaces the zero byte of an abstract socket's address.
    return f"\0{address[1:]}" if address[0] == "@" else address


def interval_s(environ: Mapping[str, str]) -> float:
    """Seconds between two heartbeats: `EVERY_S`, or less for a supervisor with a short timeout."""
    try:
        bound_s = max(1, int(environ["WATCHDOG_USEC"])) / _MICROSECONDS
    except (KeyError, ValueError):
        return EVERY_S
    return min(EVERY_S, bound_s / _BEATS_PER_BOUND)
