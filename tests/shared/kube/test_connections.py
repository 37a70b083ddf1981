"""The end of connections: a closed client leaves none open, and no task waits for a broken one."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import psutil
import pytest
import trustme
from aiohttp import web
from yarl import URL

from shared.kube.client import KubeClient
from shared.kube.credentials import Credentials
from shared.kube.errors import ConnectionLost
from shared.kube.kubeconfig import Access
from tests.support.scripted_apiserver import ScriptedApiServer, scripted_apiserver
from tests.support.waiting import eventually


@asynccontextmanager
async def over_tls() -> AsyncGenerator[tuple[ScriptedApiServer, Credentials]]:
    """A server without a script, and what a client needs for it."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    async with scripted_apiserver(tls=context) as server:
        access = Access(origin="test", server=server.url, ca_pem=ca.cert_pem.bytes())
        yield server, Credentials(access)


def open_to(server: ScriptedApiServer) -> list[int]:
    """Our ends of connections to the server, as ports."""
    port = URL(server.url).port
    connections = psutil.Process().net_connections("tcp")
    return [one.laddr.port for one in connections if one.raddr and one.raddr.port == port]


async def test_a_client_that_closes_does_not_wait_for_a_server_that_reads_no_more() -> None:
    async def answer_and_read_no_more(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{}\n")
        assert request.transport is not None
        request.transport.pause_reading()
        await server.hang()
        request.transport.abort()
        return response

    async with over_tls() as (server, credentials):
        server.then(answer_and_read_no_more)
        async with (
            KubeClient(credentials) as client,
            client.stream("/x", {"watch": "true"}, silence_s=5) as stream,
        ):
            assert await stream.batch() == [b"{}"]
            assert len(open_to(server)) == 1
        assert not open_to(server)


async def test_a_request_that_is_cancelled_at_any_moment_leaves_no_connection() -> None:
    async with over_tls() as (server, credentials):
        turns = 0
        # A connection takes about ten turns of the event loop.
        while len(server.requests) < 3:
            async with KubeClient(credentials) as client:
                task = asyncio.create_task(client.request("GET", "/x"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            assert not open_to(server), turns
            turns += 1


@pytest.mark.parametrize("head", ["Transfer-Encoding: chunked", "Content-Length: 100"])
async def test_closing_the_client_ends_tasks_that_wait_for_the_rest_of_an_answer(head: str) -> None:
    async def answer_in_part(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        name, _, value = head.partition(": ")
        if name == "Content-Length":
            response.content_length = int(value)
        await response.prepare(request)
        await response.write(b"{}\n")
        await server.hang()
        return response

    async with scripted_apiserver() as server:
        server.then(answer_in_part, answer_in_part)
        async with KubeClient(Credentials(Access(origin="test", server=server.url))) as client:

            async def watch() -> None:
                async with client.stream("/x", {"watch": "true"}, silence_s=50) as stream:
                    while True:
                        await stream.batch()

            reading = [
                asyncio.create_task(watch()),
                asyncio.create_task(client.request("GET", "/x")),
            ]
            await eventually(lambda: len(server.requests) == 2)
            await client.close()
            done, waiting = await asyncio.wait(reading, timeout=30)
            for task in waiting:
                task.cancel()
            assert not waiting
            assert all(isinstance(task.exception(), ConnectionLost) for task in done)
