"""Clients that are no API server: slow, silent, many, large, compressed, or of another century."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from aiohttp import web
from typing_extensions import override

from services.admission_webhook import review_server
from shared.runtime.guarded_server import (
    BODY_BYTES_MAX,
    Bodies,
    GuardedServer,
    RequestRefused,
)
from tests.services.admission_webhook.reviews import a_queue, review
from tests.services.admission_webhook.serving import HOST, Webhook

HEAD = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


#: Longer than any test.
_EVER_S = 60.0


class Patience(NamedTuple):
    """How long the server of a test waits: for ever unless the test is about that."""

    body_s: float = _EVER_S
    silence_s: float = _EVER_S


@pytest.fixture
def patience() -> Patience:
    return Patience()


@pytest.fixture
async def webhook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: Patience
) -> AsyncIterator[Webhook]:
    """A server with room for one body and three connections."""

    def server(handler: Any, **options: Any) -> GuardedServer:
        return GuardedServer(handler, connections_max=3, silence_s=patience.silence_s, **options)

    def bodies() -> Bodies:
        return Bodies(timeout_s=patience.body_s, held_bytes_max=BODY_BYTES_MAX)

    monkeypatch.setattr(review_server, "Bodies", bodies)
    monkeypatch.setattr(review_server, "GuardedServer", server)
    async with Webhook(tmp_path).running() as running:
        yield running


@asynccontextmanager
async def connected(webhook: Webhook) -> AsyncIterator[tuple[asyncio.StreamReader, Any]]:
    """A connection of a client that trusts the server."""
    port = int(webhook.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection(HOST, port, ssl=webhook.trust())
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("patience", [Patience(body_s=0.05)])
async def test_a_body_that_does_not_come_is_not_waited_for(webhook: Webhook) -> None:
    async with connected(webhook) as (reader, writer):
        writer.write(HEAD % 1_000 + b"{")
        assert b" 408 " in await reader.readline()
    assert webhook.figure('reviews_total{result="malformed"}') == 1


async def test_a_body_that_is_too_long_is_refused_before_it_comes(webhook: Webhook) -> None:
    async with connected(webhook) as (reader, writer):
        writer.write(HEAD % (BODY_BYTES_MAX + 1))
        assert b" 413 " in await reader.readline()


@pytest.mark.parametrize("patience", [Patience(silence_s=0.05)])
async def test_a_connection_on_which_nothing_comes_is_closed(webhook: Webhook) -> None:
    async with connected(webhook) as (reader, _):
        assert await reader.read() == b""


class _Transport(asyncio.Transport):
    aborted = False

    @override
    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize("asked", [True, False])
async def test_a_connection_on_which_a_request_came_stays_open(asked: bool) -> None:
    server, connection, transport = GuardedServer(None, silence_s=0.0), object(), _Transport()
    server.connection_made(connection, transport)
    if asked:
        server.note_request(connection)
    await asyncio.sleep(0.01)
    assert transport.aborted is not asked


async def test_more_connections_than_an_api_server_opens_are_closed(webhook: Webhook) -> None:
    async with (
        connected(webhook),
        connected(webhook),
        connected(webhook),
        connected(webhook) as (reader, writer),
    ):
        writer.write(HEAD % 2 + b"{}")
        assert await _all_of(reader) == b"", "the fourth gets no answer"
    async with asyncio.timeout(30):
        while not await _is_answered(webhook):
            pass  # until the server has seen that they are gone


async def _is_answered(webhook: Webhook) -> bool:
    try:
        return bool((await webhook.validate(review(a_queue())))["allowed"])
    except aiohttp.ClientError:
        return False


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_bodies_that_together_are_too_large_are_refused_until_there_is_room(
    webhook: Webhook,
) -> None:
    async with connected(webhook) as (_, writer):
        writer.write(HEAD % BODY_BYTES_MAX + b"{")
        await writer.drain()
        async with asyncio.timeout(5):
            status, _ = await webhook.post("/validate", b"{}")
            while status == 400:  # the other one's head has not been read yet
                status, _ = await webhook.post("/validate", b"{}")
        assert status == 503
    async with asyncio.timeout(30):
        while (await webhook.post("/validate", b"{}"))[0] == 503:
            pass  # until the server has seen that the other one is gone


async def test_a_body_says_how_long_it_is(webhook: Webhook) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield review(a_queue())

    async with webhook.session.post(
        webhook.url + "/validate", data=chunks(), ssl=webhook.trust()
    ) as answer:
        assert answer.status == 411


async def test_a_bomb_of_zeros_is_not_unpacked(webhook: Webhook) -> None:
    bomb = gzip.compress(b"0" * (BODY_BYTES_MAX + 1))
    assert len(bomb) < 10_000
    async with webhook.session.post(
        webhook.url + "/validate",
        data=bomb,
        headers={"Content-Encoding": "gzip"},
        ssl=webhook.trust(),
    ) as answer:
        assert answer.status in {400, 413}
    assert (await webhook.validate(review(a_queue())))["allowed"]


async def test_room_is_given_back_whatever_becomes_of_the_answer() -> None:
    class Request(web.BaseRequest):
        def __init__(self) -> None:
            pass

        @property
        @override
        def content_length(self) -> int:
            return BODY_BYTES_MAX

        @override
        async def read(self) -> bytes:
            return b""

    bodies = Bodies(held_bytes_max=BODY_BYTES_MAX)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with bodies.read(Request()):
                raise ZeroDivisionError
    async with bodies.read(Request()):
        with pytest.raises(RequestRefused):
            async with bodies.read(Request()):
                pass


def _versions() -> Iterator[tuple[ssl.TLSVersion, bool]]:
    yield ssl.TLSVersion.TLSv1, False
    yield ssl.TLSVersion.TLSv1_1, False
    yield ssl.TLSVersion.TLSv1_2, True
    yield ssl.TLSVersion.TLSv1_3, True


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(("version", "spoken"), list(_versions()), ids=str)
async def test_nothing_older_than_tls_1_2_is_spoken(
    webhook: Webhook, version: ssl.TLSVersion, spoken: bool
) -> None:
    context = webhook.trust()
    # OpenSSL's own default refuses what is old; this client would speak it.
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    asked = webhook.session.post(webhook.url + "/validate", data=b"{}", ssl=context)
    if spoken:
        assert (await asked).status == 400
    else:
        with pytest.raises(aiohttp.ClientConnectorError):
            await asked


async def test_a_review_nested_beyond_reading_is_judged_by_what_can_be_read(
    webhook: Webhook,
) -> None:
    body = review(a_queue(weight=-1))
    deep = body.replace(b'"weight":', b'"x":' + b"[" * 20_000 + b"]" * 20_000 + b',"weight":')
    answer = await webhook.validate(deep)
    assert not answer["allowed"]
    assert answer["status"]["details"]["causes"][0]["field"] == "spec.weight"
