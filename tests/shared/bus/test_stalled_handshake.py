"""A server that stalls in the TLS handshake of a first connection is left for another attempt."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from shared.bus.aborting_client import AbortingClient
from tests.controlplane.certificates import Authority
from tutti.nats_server import NatsServer, NatsServerSettings

Runner = Callable[[], asyncio.AbstractEventLoop]


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while received := await reader.read(65_536):
            writer.write(received)
            await writer.drain()


@asynccontextmanager
async def _stalling_once(server: NatsServer) -> AsyncIterator[str]:
    """A relay to the server, that passes nothing of its first client on; its address."""
    clients: list[asyncio.Task[None]] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        clients.append(task)
        host, _, port = server.url.removeprefix("nats://").rpartition(":")
        from_server, to_server = await asyncio.open_connection(host, int(port))
        directions = [_pass_on(from_server, writer)]
        if len(clients) > 1:
            directions.append(_pass_on(reader, to_server))
        try:
            await asyncio.gather(*directions)
        finally:
            to_server.close()
            writer.close()

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as listening:
        yield f"nats://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    for task in clients:
        task.cancel()
    await asyncio.gather(*clients, return_exceptions=True)


async def _connect_through_a_stalling_relay(folder: Path) -> None:
    authority = Authority()
    pair = authority.server(["127.0.0.1"])
    (folder / "tls.crt").write_bytes(pair.certificate_pem)
    (folder / "tls.key").write_bytes(pair.key_pem)
    files = f'cert_file: "{folder}/tls.crt", key_file: "{folder}/tls.key"'
    settings = NatsServerSettings(data_dir=folder / "nats", extra_config=f"tls {{ {files} }}\n")
    server = NatsServer(settings)
    await server.start()
    client = AbortingClient()
    trusting = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    try:
        async with _stalling_once(server) as url, asyncio.timeout(10):
            await client.connect(
                servers=[url],
                tls=trusting,
                connect_timeout=0.5,  # type: ignore[arg-type]  # a float works
                reconnect_time_wait=0.01,  # type: ignore[arg-type]  # a float works
                max_reconnect_attempts=-1,
            )
            assert client.is_connected
            await client.close()
    finally:
        await server.stop()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_handshake_without_an_answer_is_followed_by_another_attempt(
    new_loop: Runner, tmp_path: Path
) -> None:
    """As on a busy node: before, the first attempt gave up, and waited for its end forever."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_connect_through_a_stalling_relay(tmp_path))
