"""While no name resolves, the client has one lookup in progress, and no error is left over."""

import asyncio
import gc
import socket
from typing import Any
from urllib.parse import urlparse

import pytest
from nats.aio.client import Srv

from shared.bus.aborting_client import AbortingClient


class Resolver:
    """Answers lookups with an error once it is released."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = asyncio.Event()

    async def getaddrinfo(self, host: str, port: int, **options: Any) -> None:
        del port, options
        self.asked.append(host)
        await self.released.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


async def test_attempts_share_a_lookup_that_outlasts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, resolver = asyncio.get_running_loop(), Resolver()
    left_over: list[Any] = []
    monkeypatch.setattr(loop, "getaddrinfo", resolver.getaddrinfo)
    loop.set_exception_handler(lambda _, context: left_over.append(context))
    client = AbortingClient()
    client.options["connect_timeout"] = 0
    server = Srv(urlparse("nats://nats.example:4222"))
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await client._connect_to_server(server)
    assert resolver.asked == ["nats.example"]
    lookups = list(client._lookups.values())
    resolver.released.set()
    await asyncio.wait(lookups)
    client.options["connect_timeout"] = 2
    with pytest.raises(socket.gaierror):
        await client._connect_to_server(server)
    assert resolver.asked == ["nats.example"] * 2
    del lookups
    gc.collect()
    assert not left_over
