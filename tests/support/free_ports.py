"""Ports for servers whose ports are chosen before they start."""

import socket
from contextlib import ExitStack, closing
from random import SystemRandom
from typing import Final

#: Below the ports that Linux gives to outgoing connections: one of those could take a free port
#: before its server listens on it.
_PORTS: Final = range(20_000, 32_768)


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 on which no server listens now."""
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            port = SystemRandom().choice(_PORTS)
            probe = stack.enter_context(closing(socket.socket()))
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found


def free_port() -> int:
    """A port of 127.0.0.1 on which no server listens now."""
    return free_ports(1)[0]
