"""Detects hung processes.

A process that `tutti up` starts sends heartbeats while its event loop runs
(`shared.runtime.heartbeat`). A process that sends none and uses no CPU
hangs: it was stopped, or a system call does not return. A process that sends none but uses CPU gets
more time: a large cluster's first list and a long planning cycle block the loop for seconds, and
after a restart the same work would begin again.

The kernel reports the sender of each heartbeat, so no process can send for another. Linux only: on
other platforms hung processes are not detected.
"""

import asyncio
import os
import secrets
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from shared.runtime.heartbeat import BEAT
from tutti.lifeline import cpu_s

#: Limit without a heartbeat and without CPU time: far above the scheduling delays of a loaded
#: machine and, with a restart (2 s) and a redelivery (2 s), far below the 30 s within which a gang
#: that is bound in part is repaired.
SILENT_MAX_S: Final = 10.0
#: Limit without a heartbeat, but with CPU time.
BUSY_MAX_S: Final = 60.0
LOOK_EVERY_S: Final = 2.0
#: After a longer pause of our own the silence of a process proves nothing.
_LATE_S: Final = 3 * LOOK_EVERY_S
_MESSAGE_BYTES_MAX: Final = 1024
_CREDENTIALS: Final = struct.Struct("iII")
_MICROSECONDS: Final = 1_000_000

Say = Callable[[str], None]


class Heartbeats:
    """The last heartbeat of each process. It can be created before the event loop; heartbeats count
    from `listen` on.
    """

    def __init__(self) -> None:
        self._last_s: dict[int, float] = {}
        self._name = f"tutti-up-{os.getpid()}-{secrets.token_hex(8)}"
        self._channel: socket.socket | None = None
        if sys.platform == "linux":
            # An abstract socket leaves no file, and its path cannot be too long.
            self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self._channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self._channel.bind(f"\0{self._name}")

    @property
    def supported(self) -> bool:
        return self._channel is not None

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variables that make a process send heartbeats."""
        if self._channel is None:
            return {}
        return {
            "NOTIFY_SOCKET": f"@{self._name}",
            "WATCHDOG_USEC": str(int(SILENT_MAX_S * _MICROSECONDS)),
            "WATCHDOG_PID": "",
        }

    def listen(self) -> None:
        """Start to receive, in the running event loop."""
        if self._channel is not None:
            asyncio.get_running_loop().add_reader(
                self._channel.fileno(), self._on_readable, self._channel
            )

    def close(self) -> None:
        """Stop receiving."""
        if self._channel is not None:
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._channel.close()

    def last_s(self, pid: int) -> float | None:
        """When the process sent its last heartbeat, by the monotonic clock; None: not yet."""
        return self._last_s.get(pid)

    def forget(self, pid: int) -> None:
        self._last_s.pop(pid, None)

    def _on_readable(self, channel: socket.socket) -> None:
        while True:
            try:
                data, ancillary, _, _ = channel.recvmsg(
                    _MESSAGE_BYTES_MAX, socket.CMSG_SPACE(_CREDENTIALS.size)
                )
            except BlockingIOError:
                return
            for level, kind, content in ancillary:
                known = level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS
                if known and BEAT in data.split(b"\n"):
                    pid, _, _ = _CREDENTIALS.unpack(content[: _CREDENTIALS.size])
                    self._last_s[pid] = time.monotonic()


class Watchdog:
    """Detects whether one process hangs. Pure: times come from the caller's monotonic clock."""

    def __init__(self, now_s: float) -> None:
        """Watch a process that has just been started."""
        self._looked_s = self._beat_s = self._sign_s = now_s
        self._cpu_s: float | None = None

    def judge(self, now_s: float, beat_s: float | None, cpu_s: float | None) -> str:
        """Why the process hangs; "" if it does not seem to. `beat_s` is the time of its last
        heartbeat, None: none yet; `cpu_s` the CPU time that it has used, None: unknown.
        """
        late, self._looked_s = now_s - self._looked_s > _LATE_S, now_s
        if late:
            self._beat_s = self._sign_s = now_s
        if beat_s is not None and beat_s > self._beat_s:
            self._beat_s = beat_s
        if cpu_s != self._cpu_s:
            self._cpu_s, self._sign_s = cpu_s, now_s
        self._sign_s = max(self._sign_s, self._beat_s)
        if now_s - self._sign_s >= SILENT_MAX_S:
            return f"no sign of life for {now_s - self._sign_s:.0f} s"
        if now_s - self._beat_s >= BUSY_MAX_S:
            return f"busy, and no heartbeat for {now_s - self._beat_s:.0f} s"
        return ""


class Watched(Protocol):
    """A process that may be killed."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def send_signal(self, number: signal.Signals, /) -> None:
        """Signal it; nothing happens when it has ended."""
        ...


async def kill_when_hung(
    process: Watched, title: str, last_beat_s: Callable[[], float | None], say: Say
) -> None:
    """Watch a process until it hangs, then kill it and return."""
    watchdog = Watchdog(time.monotonic())
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        why = watchdog.judge(time.monotonic(), last_beat_s(), cpu_s(process.pid))
        if why:
            say(f"{title} (pid {process.pid}) hangs, {why}: killed")
            process.send_signal(signal.SIGKILL)
            return
