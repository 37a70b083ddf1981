"""Distinguishes a living replica from a killed one, by asking it for its certificate."""

import asyncio
import contextlib
import ipaddress
import ssl
from typing import Final
from urllib.parse import urlsplit

from services.admission_webhook.core.configurations import Member

#: A living process on this machine shakes hands within milliseconds.
HANDSHAKE_S: Final = 1.0


def is_loopback(url: str) -> bool:
    """Whether the URL means the machine that it is used on."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def answers(member: Member) -> bool:
    """Whether a server with a certificate of the member's CA listens at its URL.

    A port that another program has taken over since answers with another certificate, or none.
    """
    url = urlsplit(member.address.url)
    host = url.hostname or ""
    try:
        trust = ssl.create_default_context(cadata=member.ca)
        async with asyncio.timeout(HANDSHAKE_S):
            _, writer = await asyncio.open_connection(
                host, url.port or 443, ssl=trust, server_hostname=host
            )
    except (OSError, ValueError, TimeoutError):  # ssl.SSLError is an OSError
        return False
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(HANDSHAKE_S):
            await writer.wait_closed()
    return True
