"""The local server in front of the API, which a scripted API server answers."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from shared.console.files import API_PATH
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tests.support.scripted_apiserver import (
    Answer,
    ScriptedApiServer,
    answer,
    event,
    failure,
    reset,
    scripted_apiserver,
    status,
    watch,
)
from tutti.console_command import ConsoleServer

GANGS = f"{API_PATH}/gangs"
JSON = {"Content-Type": "application/json"}


class Console:
    """A console's server, and a browser with its token."""

    def __init__(self, url: str, api: ScriptedApiServer, session: aiohttp.ClientSession) -> None:
        address, _, token = url.partition("/console/#token=")
        self.address = address
        self.token = token
        self.api = api
        self.session = session

    @asynccontextmanager
    async def asks(
        self,
        path: str,
        method: str = "GET",
        body: bytes | io.BytesIO | None = None,
        known: str = "",
        **headers: str,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a request with the token, unless a header replaces it."""
        given = {"Authorization": f"Bearer {self.token}", **headers}
        if known:
            given["If-None-Match"] = known
        async with self.session.request(
            method, f"{self.address}{path}", headers=given, data=body, allow_redirects=False
        ) as response:
            yield response


@asynccontextmanager
async def a_console(folder: Path, *script: Answer) -> AsyncIterator[Console]:
    async with scripted_apiserver(*script) as api:
        config = {
            "clusters": [{"name": "x", "cluster": {"server": api.url}}],
            "users": [{"name": "x", "user": {"token": "secret-of-the-kubeconfig"}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "current-context": "x",
        }
        path = folder / "kubeconfig"
        path.write_bytes(msgspec.json.encode(config))
        async with KubeClient(await load(str(path))) as client, aiohttp.ClientSession() as session:
            server = ConsoleServer(client)
            async with server.serving(0):
                yield Console(server.url, api, session)


async def test_the_browser_gets_the_files_without_the_token(tmp_path: Path) -> None:
    async with (
        a_console(tmp_path) as console,
        console.asks("/console/", Authorization="") as response,
    ):
        assert response.status == 200
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert console.token not in await response.text()


async def test_a_request_is_sent_on_with_the_kubeconfigs_credentials(tmp_path: Path) -> None:
    headers = {**JSON, "ETag": '"x"', "Warning": '299 - "late"', "X-Other": "1"}
    async with a_console(tmp_path, answer(200, {"items": []}, headers)) as console:
        async with console.asks(f"{GANGS}?limit=5", known='"y"') as response:
            assert (response.status, await response.json()) == (200, {"items": []})
            assert (response.headers["ETag"], response.headers["Warning"]) == (
                '"x"',
                headers["Warning"],
            )
            assert "X-Other" not in response.headers
        (asked,) = console.api.requests
        assert (asked.method, asked.path, asked.query) == ("GET", GANGS, {"limit": "5"})
        assert asked.headers["Authorization"] == "Bearer secret-of-the-kubeconfig"
        assert asked.headers["If-None-Match"] == '"y"'


@pytest.mark.parametrize("given", ["", "Bearer ", "Bearer wrong", "Basic {token}", "{token}"])
async def test_without_the_token_no_request_reaches_the_api_server(
    tmp_path: Path, given: str
) -> None:
    async with a_console(tmp_path) as console:
        authorization = given.format(token=console.token)
        async with console.asks(GANGS, Authorization=authorization) as response:
            assert response.status == 401
        assert not console.api.requests


@pytest.mark.parametrize("path", ["/console/", GANGS])
@pytest.mark.parametrize("host", ["evil.example", "localhost:{port}", "127.0.0.1", "127.0.0.1:1"])
async def test_a_request_for_another_host_is_refused(tmp_path: Path, host: str, path: str) -> None:
    async with a_console(tmp_path) as console:
        port = console.address.rpartition(":")[2]
        async with console.asks(path, Host=host.format(port=port)) as response:
            assert response.status == 421
        assert not console.api.requests


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/kube-system/secrets",
        "/",
        f"{API_PATH}x/gangs",
        f"{API_PATH}/../../../api/v1/secrets",
        f"{API_PATH}/%2e%2e/%2e%2e/%2e%2e/api/v1/secrets",
        f"{API_PATH}/..%2f..%2f..%2fapi/v1/secrets",
    ],
)
async def test_nothing_but_the_api_is_asked(tmp_path: Path, path: str) -> None:
    async with a_console(tmp_path, answer(200, {})) as console:
        async with console.asks(path) as response:
            assert response.status == 404
        assert not console.api.requests


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", GANGS),
        ("POST", f"{API_PATH}/namespaces/a/fits/x"),
        ("DELETE", f"{GANGS}/x"),
        ("PUT", f"{API_PATH}/namespaces/a/fits"),
        ("PATCH", f"{GANGS}/x"),
    ],
)
async def test_nothing_is_changed(tmp_path: Path, method: str, path: str) -> None:
    async with a_console(tmp_path) as console:
        async with console.asks(path, method, b"{}") as response:
            assert response.status == 405
        assert not console.api.requests


async def test_a_question_is_sent_on(tmp_path: Path) -> None:
    async with a_console(tmp_path, answer(201, {"status": {"fits": True}}, JSON)) as console:
        path = f"{API_PATH}/namespaces/team/fits"
        async with console.asks(path, "POST", b'{"spec":{}}') as response:
            assert (response.status, await response.json()) == (201, {"status": {"fits": True}})
        assert console.api.requests[0].json == {"spec": {}}


async def test_a_question_that_is_too_long_is_refused(tmp_path: Path) -> None:
    async with a_console(tmp_path) as console:
        path = f"{API_PATH}/namespaces/team/fits"
        body = io.BytesIO(b"x" * (1024 * 1024 + 1))
        async with console.asks(path, "POST", body) as response:
            assert response.status == 413
        assert not console.api.requests


async def test_a_watch_is_sent_on_as_it_comes(tmp_path: Path) -> None:
    first, second = ({"metadata": {"name": name}} for name in ("a", "b"))
    async with a_console(tmp_path) as console:
        lines_of = (event("ADDED", first), event("ADDED", second))
        console.api.then(watch(lambda: console.api, *lines_of, then="end"))
        async with console.asks(f"{GANGS}?watch=true&resourceVersion=7") as response:
            lines = [msgspec.json.decode(line) async for line in response.content]
        assert [one["object"]["metadata"]["name"] for one in lines] == ["a", "b"]
        assert console.api.requests[0].query == {"watch": "true", "resourceVersion": "7"}


async def test_a_refusal_of_the_api_server_reaches_the_browser(tmp_path: Path) -> None:
    script = (
        answer(403, status(403, "Forbidden", "you may not"), JSON),
        failure(410, "Expired", "list again"),
    )
    async with a_console(tmp_path, *script) as console:
        async with console.asks(GANGS) as response:
            assert (response.status, (await response.json())["message"]) == (403, "you may not")
        async with console.asks(f"{GANGS}?watch=true") as response:
            assert response.status == 410
            assert "list again" in (await response.json())["message"]


async def test_a_broken_connection_to_the_api_server_is_reported(tmp_path: Path) -> None:
    async with a_console(tmp_path, reset, reset) as console, console.asks(GANGS) as response:
        assert response.status == 502
        assert (await response.json())["kind"] == "Status"


async def test_each_run_has_a_token_of_its_own(tmp_path: Path) -> None:
    async with a_console(tmp_path) as one, a_console(tmp_path) as other:
        assert one.token != other.token
        assert len(one.token) >= 32  # 192 bits
