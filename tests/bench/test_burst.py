"""The lean client, over real TLS against a real HTTP server."""

import ssl
from collections.abc import AsyncIterator

import pytest
import trustme
from aiohttp import web
from aiohttp.test_utils import TestServer

from bench.burst import BurstClient, BurstRefused, is_whole

LENGTH = b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def server() -> AsyncIterator[tuple[BurstClient, list[str]]]:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append((await request.json())["name"])
        match request.path:
            case "/refused":
                return web.json_response({"message": "no room"}, status=409)
            case "/chunked":
                response = web.StreamResponse()
                response.enable_chunked_encoding()
                await response.prepare(request)
                await response.write(b'{"a":')
                await response.write(b"1}")
                return response
            case "/gone":
                assert request.transport is not None
                request.transport.abort()
            case _:
                pass
        return web.json_response({}, status=201)

    app = web.Application()
    app.router.add_post("/{any}", answer)
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    client_tls = ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.configure_trust(client_tls)
    running = TestServer(app, scheme="https")
    await running.start_server(ssl=tls)
    try:
        yield BurstClient(str(running.make_url("")), client_tls), seen
    finally:
        await running.close()


async def test_all_requests_are_sent_once_and_each_answer_is_reported(
    server: tuple[BurstClient, list[str]],
) -> None:
    client, seen = server
    answered: dict[int, tuple[float, float]] = {}

    def note(index: int, sent_s: float, answered_s: float) -> None:
        answered[index] = sent_s, answered_s

    paths = ["/plain", "/chunked"] * 25
    requests = [client.post(path, {"name": str(i)}) for i, path in enumerate(paths)]
    await client.send(requests, connections=8, on_answer=note)
    assert sorted(seen, key=int) == [str(i) for i in range(50)]
    assert sorted(answered) == list(range(50))
    assert all(sent_s < answered_s for sent_s, answered_s in answered.values())


async def test_a_refusal_ends_the_burst_with_the_servers_words(
    server: tuple[BurstClient, list[str]],
) -> None:
    client, _ = server
    requests = [client.post("/plain", {"name": "a"}), client.post("/refused", {"name": "b"})]
    with pytest.raises(BurstRefused, match=r"POST /refused HTTP/1.1: 409: .*no room"):
        await client.send(requests, connections=1)


async def test_a_connection_that_breaks_before_its_answer_is_an_error(
    server: tuple[BurstClient, list[str]],
) -> None:
    client, _ = server
    with pytest.raises(BurstRefused, match="the connection broke"):
        await client.send([client.post("/gone", {"name": "a"})], connections=1)


async def test_nothing_to_send_is_done_at_once(server: tuple[BurstClient, list[str]]) -> None:
    client, seen = server
    await client.send([], connections=4)
    assert seen == []


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        pytest.param(LENGTH[:30], False, id="half a head"),
        pytest.param(LENGTH + b"abc", False, id="body too short"),
        pytest.param(LENGTH + b"abcd", True, id="body of its length"),
        pytest.param(CHUNKED + b"2\r\n{}\r\n", False, id="last chunk missing"),
        pytest.param(CHUNKED + b"2\r\n{}\r\n0\r\n\r\n", True, id="last chunk there"),
    ],
)
def test_an_answer_is_whole_by_its_length_or_its_last_chunk(answer: bytes, whole: bool) -> None:
    assert is_whole(answer) is whole


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0 hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"]
)
def test_an_answer_without_an_end_is_refused(answer: bytes) -> None:
    with pytest.raises(ValueError, match="answer"):
        is_whole(answer)
