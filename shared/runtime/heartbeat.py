"""Heartbeats of the event loop, in systemd's protocol (sd_notify(3) with `WatchdogSec=`).

A supervisor that sets NOTIFY_SOCKET and WATCHDOG_USEC gets `WATCHDOG=1` for as long as the event
loop turns. `tutti up` is one, and a systemd unit with `WatchdogSec=` is another. Where neither is
set nothing is sent; kubelets read `/healthz` instead (`shared.runtime.health`). Both mean the same:
the loop that does the work has turned.

How late the loop was in the last minute is a metric: a cycle that blocks it for seconds is seen
before anything takes it for hung.
"""

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Mapping
from typing import Final

#: Several beats fit into every supervisor's bound: single ones may be lost.
EVERY_S: Final = 1.0
#: What systemd calls a keep-alive ping.
BEAT: Final = b"WATCHDOG=1"
_BEATS_REMEMBERED: Final = 60
_MICROSECONDS: Final = 1_000_000
_BEATS_PER_BOUND: Final = 4


class Heartbeat:
    """Beats from `run` on until cancelled."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = supervisor_address(environ)
        self._every_s = min(EVERY_S, _bound_s(environ) / _BEATS_PER_BOUND)
        self._late_s: deque[float] = deque(maxlen=_BEATS_REMEMBERED)

    @property
    def late_s(self) -> float:
        """By how many seconds the worst of the last beats came late."""
        return max(self._late_s, default=0.0)

    async def run(self) -> None:
        """Beat until cancelled."""
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
            # Its queue is full, or it is being replaced: it counts silence, not single beats.
            with contextlib.suppress(OSError):
                channel.sendto(BEAT, self._address)


def supervisor_address(environ: Mapping[str, str]) -> str | None:
    """Where beats go; None: no supervisor asked for them, or not for ours."""
    address = environ.get("NOTIFY_SOCKET", "")
    meant = environ.get("WATCHDOG_PID", "")
    if not address or "WATCHDOG_USEC" not in environ or meant not in {"", str(os.getpid())}:
        return None
    # "@" stands for the zero byte of an abstract socket.
    return f"\0{address[1:]}" if address[0] == "@" else address


def _bound_s(environ: Mapping[str, str]) -> float:
    try:
        return max(1, int(environ["WATCHDOG_USEC"])) / _MICROSECONDS
    except (KeyError, ValueError):
        return EVERY_S * _BEATS_PER_BOUND
