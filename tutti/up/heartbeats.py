"""Receives the heartbeats of the processes that `tutti up` starts (`shared.runtime.heartbeat`).

The kernel reports the sender of each, so no process can send for another. Linux only: on other
platforms hung processes are not detected.
"""

import asyncio
import os
import secrets
import socket
import struct
import sys
import time
from collections.abc import Mapping
from typing import Final

from shared.runtime.heartbeat import BEAT
from tutti.up.watchdog import SILENT_MAX_S

_MESSAGE_BYTES_MAX: Final = 1024
_CREDENTIALS: Final = struct.Struct("iII")
_MICROSECONDS: Final = 1_000_000


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
