"""Bodies on their way to an endpoint: where they go, what goes with them, what is tried again."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from shared.telemetry import otlp_post
from shared.telemetry.otlp_post import ExportFailed, Poster


class Endpoint:
    """Answers with the statuses it was given, then with 200."""

    def __init__(self) -> None:
        self.url = ""
        self.statuses: list[int] = []
        self.got: list[tuple[str, str, bytes]] = []

    async def answer(self, request: web.Request) -> web.Response:
        told = request.headers.get("x-token", "")
        self.got.append((request.path, told, await request.read()))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()
    app = web.Application()
    app.router.add_post("/{path:.*}", made.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


async def post(poster: Poster, body: bytes = b"x") -> None:
    try:
        await asyncio.to_thread(poster.post, body)
    finally:
        poster.close()


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("", "/v1/traces"),
        ("/", "/v1/traces"),
        ("/v1/traces", "/v1/traces"),
        ("/otlp/", "/otlp/v1/traces"),
    ],
)
async def test_bodies_go_to_the_path_of_traces_with_the_headers_that_are_set(
    endpoint: Endpoint, given: str, path: str
) -> None:
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "x-other=1, x-token=a%20b"}
    await post(Poster(endpoint.url + given, environ), b"\x00")
    assert endpoint.got == [(path, "a b", b"\x00")]


async def test_an_endpoint_that_is_busy_is_asked_again(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_post, "_FIRST_PAUSE_S", 0.001)
    endpoint.statuses = [503, 429]
    await post(Poster(endpoint.url, {}))
    assert len(endpoint.got) == 3


async def test_a_refusal_is_final(endpoint: Endpoint) -> None:
    endpoint.statuses = [401]
    with pytest.raises(ExportFailed, match="401"):
        await post(Poster(endpoint.url, {}))
    assert len(endpoint.got) == 1


async def test_nobody_there_is_a_failure_and_stopping_ends_the_tries() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        poster = Poster(f"http://127.0.0.1:{taken.getsockname()[1]}", {})
        poster.stop()
        with pytest.raises(ExportFailed, match="refused"):
            await post(poster)


def test_a_ca_that_cannot_be_read_is_said_at_once() -> None:
    with pytest.raises(FileNotFoundError):
        Poster("https://h:4318", {"OTEL_EXPORTER_OTLP_CERTIFICATE": "missing.pem"})
