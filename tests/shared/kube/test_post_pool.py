"""The binding path's connections, against a server of bare bytes that breaks them in every way."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trustme

from shared.kube.credentials import client_context
from shared.kube.errors import ConnectionLost, MalformedAnswer, RequestTimeout
from shared.kube.http1 import Answer
from shared.kube.post_pool import PostPool
from tests.support.waiting import eventually

OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
LAST = b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Takes connections and hands each to `serve`; counts them."""

    def __init__(self, serve: Serve) -> None:
        self.serve = serve
        self.url = ""
        self.connections = 0
        self.gone = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client broke off; that is what some tests are about.
        finally:
            self.gone += 1
            writer.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


def always(answer: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            writer.write(answer)

    return serve


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@asynccontextmanager
async def served(serve: Serve, connections_max: int = 8) -> AsyncGenerator[tuple[Server, PostPool]]:
    server = Server(serve)
    listening = await asyncio.start_server(server.take, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/base"
    pool = PostPool(server.url, None, connections_max)
    try:
        yield server, pool
    finally:
        await pool.close()
        listening.close()
        await eventually(lambda: server.gone == server.connections)


async def post(pool: PostPool, body: bytes = b"{}", timeout_s: float = 5) -> Answer:
    return await pool.post(b"/x", b"Host: h\r\n", body, None, timeout_s)


async def test_a_connection_is_used_again_and_again() -> None:
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            seen.append(await read_request(reader))
            writer.write(OK[:20])
            await asyncio.sleep(0)
            writer.write(OK[20:])

    async with served(serve) as (server, pool):
        for _ in range(3):
            assert (await post(pool)).status == 201
        assert server.connections == 1
        assert seen[0] == b"POST /base/x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"


async def test_requests_beyond_the_limit_wait_for_a_connection() -> None:
    async with served(always(OK), connections_max=3) as (server, pool):
        answers = await asyncio.gather(*(post(pool) for _ in range(50)))
        assert {answer.status for answer in answers} == {201}
        assert server.connections == 3


async def test_waiting_for_a_connection_counts_into_the_time() -> None:
    async with served(silent, connections_max=1) as (_, pool):
        first = asyncio.create_task(post(pool, timeout_s=5), name="first")
        await asyncio.sleep(0)
        with pytest.raises(RequestTimeout, match="no free connection"):
            await post(pool, timeout_s=0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first


@pytest.mark.parametrize("way", ["timeout", "cancellation"])
async def test_a_late_answer_never_reaches_the_next_request(way: str) -> None:
    """The first request is given up; its answer comes afterwards, on a connection that is gone."""
    late = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        if b"first" in request:
            await late.wait()
            writer.write(LAST.replace(b"{}", b"11"))
        else:
            writer.write(LAST)

    async with served(serve) as (server, pool):
        if way == "timeout":
            with pytest.raises(RequestTimeout):
                await post(pool, b"first", timeout_s=0.05)
        else:
            task = asyncio.create_task(post(pool, b"first"), name="first")
            await eventually(lambda: server.connections == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await eventually(lambda: not pool._open)
        late.set()
        assert (await post(pool)).body == b"{}"
        assert server.connections == 2


async def test_a_connection_that_breaks_loses_its_request_only() -> None:
    answers = [OK[:30], OK]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answers.pop(0))
        if answers:
            writer.transport.abort()
        else:
            await reader.read()

    async with served(serve) as (server, pool):
        with pytest.raises(ConnectionLost):
            await post(pool)
        assert (await post(pool)).status == 201
        assert server.connections == 2


async def test_a_connection_that_the_server_closed_while_idle_is_not_used() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)

    async with served(serve) as (server, pool):
        await post(pool)
        await eventually(lambda: server.gone == 1)
        await eventually(lambda: not pool._open)
        assert (await post(pool)).status == 201
        assert server.connections == 2


async def test_a_connection_announced_as_the_last_is_not_used_again() -> None:
    async with served(always(LAST)) as (server, pool):
        await post(pool)
        await post(pool)
        assert server.connections == 2


async def test_a_server_that_speaks_unasked_is_not_trusted() -> None:
    answered = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)
        if not answered.is_set():
            await answered.wait()
            writer.write(OK)
        await reader.read()

    async with served(serve) as (server, pool):
        await post(pool)
        answered.set()
        await eventually(lambda: server.gone == 1)
        await post(pool)
        assert server.connections == 2


async def test_nonsense_is_malformed_and_costs_the_connection() -> None:
    async with served(always(b"SSH-2.0\r\n\r\n")) as (server, pool):
        for _ in range(2):
            with pytest.raises(MalformedAnswer, match=r"no HTTP/1\.1 answer"):
                await post(pool)
        assert server.connections == 2


async def test_a_closed_port_is_a_lost_connection() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        pool = PostPool(f"http://127.0.0.1:{closed.getsockname()[1]}", None, 1)
        for _ in range(3):
            with pytest.raises(ConnectionLost):
                await post(pool)


async def test_closing_the_pool_ends_what_is_under_way() -> None:
    async with served(silent) as (server, pool):
        task = asyncio.create_task(post(pool), name="post")
        await eventually(lambda: server.connections == 1)
        await pool.close()
        with pytest.raises(ConnectionLost):
            await task


async def test_closing_the_pool_ends_a_request_that_is_connecting() -> None:
    async with served(silent) as (_, pool):
        task = asyncio.create_task(post(pool), name="post")
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(ConnectionLost, match="closed before the connection"):
            await task


async def test_a_renewed_certificate_is_shown_on_new_connections() -> None:
    ca = trustme.CA()
    certificate = ca.issue_cert("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    server = Server(always(OK))
    listening = await asyncio.start_server(server.take, "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    pool = PostPool(f"https://127.0.0.1:{port}", None, 4)

    def ours() -> ssl.SSLContext:
        return client_context(
            "test",
            ca_pem=ca.cert_pem.bytes(),
            insecure=False,
            certificate_pem=None,
            key_pem=None,
        )

    old, new = ours(), ours()
    try:
        for tls, connections in ((old, 1), (old, 1), (new, 2), (new, 2)):
            assert (await pool.post(b"/", b"", b"{}", tls, 5)).status == 201
            assert server.connections == connections
        distrusting = client_context(
            "test", ca_pem=None, insecure=False, certificate_pem=None, key_pem=None
        )
        with pytest.raises(ConnectionLost, match="CERTIFICATE_VERIFY_FAILED"):
            await pool.post(b"/", b"", b"{}", distrusting, 5)
    finally:
        await pool.close()
        listening.close()
        await eventually(lambda: server.gone == server.connections)
