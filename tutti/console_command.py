"""`tutti console`: serves the console on 127.0.0.1, and opens it in the browser: its files, and the
API with the credentials of the kubeconfig.

Any user of this machine can connect to the port, and any web page can make a browser send requests
to it. So requests to the API need a token that only this run's browser was given, in a header that
no other site can set, and every request needs the `Host` that the server listens on (a name of
another site may resolve to 127.0.0.1).
"""

import asyncio
import hmac
import secrets
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from html import escape
from pathlib import Path
from typing import Final

import click
from aiohttp import web

from shared.console.files import API_PATH, HEADERS, ROOT_PATH, answer_file
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, KubeError, NotFound, RequestTimeout, TransportError
from shared.runtime.guarded_server import Bodies, GuardedServer, RequestRefused
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, running
from tutti.api.flags import access_flags

HOST: Final = "127.0.0.1"
#: As the API service allows.
_BODY_BYTES_MAX: Final = 1024 * 1024
#: A Fit of a large cluster takes 45 s at most.
_TIMEOUT_S: Final = 60.0
#: The console ends a watch after two minutes, also one without any change.
_SILENCE_S: Final = 180.0
#: Questions: these POSTs store nothing.
_QUESTIONS: Final = ("/fits", "/explanations")
_JSON: Final = "application/json"
#: Headers of the API server's answers that the console reads.
_PASSED: Final = ("ETag", "Warning", "Retry-After", "Content-Type")


class ConsoleServer:
    """One run's server. `serving` starts and stops it."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._token = secrets.token_urlsafe(24)
        self._bodies = Bodies(body_bytes_max=_BODY_BYTES_MAX)
        self._server: GuardedServer | None = None
        #: Address that requests must name; "" until it listens.
        self._host = ""

    @property
    def url(self) -> str:
        """The address for the browser, with the token in the fragment, which is never sent."""
        return f"http://{self._host}{ROOT_PATH}/#token={self._token}"

    @asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator[None]:
        """Serve for the length of the block; 0: at any free port. Raises OSError."""
        self._server = GuardedServer(self._handle, access_log=None, handler_cancellation=True)
        runner = web.ServerRunner(self._server, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, port).start()
            self._host = f"{HOST}:{runner.addresses[0][1]}"
            yield
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._server is not None:
            self._server.note_request(request.protocol)
        if request.headers.get("Host", "") != self._host:
            return _failed(421, f"the host must be {self._host}")
        if request.method == "GET":
            file = answer_file(request.path, request.headers.get("If-None-Match", ""))
            if file is not None:
                return file
        if not self._is_authorized(request):
            return _failed(401, "open the address that `tutti console` has printed")
        try:
            return await self._pass(request)
        except ApiError as error:
            return _failed(error.status, str(error))
        except RequestTimeout as error:
            return _failed(504, str(error))
        except KubeError as error:
            return _failed(502, str(error))

    def _is_authorized(self, request: web.BaseRequest) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        given = token.encode("utf-8", "surrogateescape")
        return scheme == "Bearer" and hmac.compare_digest(given, self._token.encode())

    async def _pass(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send a request to the API server. Raises KubeError."""
        path = request.rel_url.raw_path
        inside = path == API_PATH or path.startswith(f"{API_PATH}/")
        # `..%2f` is one part of a raw path, and may be two of the path that the API server reads.
        if not inside or ".." in request.path.split("/"):
            return _failed(404, f"only {API_PATH} is passed to the API server")
        if request.method == "POST" and path.endswith(_QUESTIONS):
            return await self._pass_question(request, path)
        if request.method != "GET":
            return _failed(405, "the console reads, and asks whether gangs fit")
        if request.query.get("watch") in {"true", "1"}:
            return await self._pass_watch(request, path)
        reply = await self._client.send(
            "GET",
            path,
            params=dict(request.query),
            if_none_match=request.headers.get("If-None-Match", ""),
            timeout_s=_TIMEOUT_S,
        )
        return _passed(reply.status, reply.headers, reply.body)

    async def _pass_question(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        try:
            async with self._bodies.read(request) as body:
                reply = await self._client.send("POST", path, body=body, timeout_s=_TIMEOUT_S)
        except RequestRefused as refusal:
            return _failed(refusal.status, str(refusal))
        except web.HTTPRequestEntityTooLarge as refusal:
            return _failed(413, refusal.text or "the body is too large")
        return _passed(reply.status, reply.headers, reply.body)

    async def _pass_watch(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        async with self._client.stream(path, dict(request.query), silence_s=_SILENCE_S) as stream:
            response = web.StreamResponse(headers={**HEADERS, "Content-Type": _JSON})
            await response.prepare(request)
            try:
                while lines := await stream.batch():
                    await response.write(b"".join(line + b"\n" for line in lines))
            except (TransportError, ConnectionError):
                # The browser begins another watch, or has left.
                return response
            await response.write_eof()
            return response


def _passed(status: int, headers: Mapping[str, str], body: bytes) -> web.Response:
    kept = {name: headers[name] for name in _PASSED if name in headers}
    return web.Response(status=status, headers={**HEADERS, **kept}, body=body)


def _failed(status: int, message: str) -> web.Response:
    """A refusal in the form of the API server's."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
    return web.json_response({**body, "message": message}, status=status, headers=HEADERS)


@click.command()
@access_flags
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0: any free one."
)
@click.option("--browser/--no-browser", default=True, help="Open the console in the browser.")
@running(interrupted=0)
async def console(*, access: Access, port: int, browser: bool) -> None:
    """Serve the console at 127.0.0.1 until Ctrl-C, and open it in the browser.

    It shows gangs, queues and nodes with the rights of the kubeconfig's user. The address contains
    a token that is valid for this run only: do not share it.
    """
    async with open_client(access) as client:
        await _require_api(client)
        server = ConsoleServer(client)
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(server.serving(port))
            except OSError as error:
                raise Refusal(f"--port {port}: cannot listen on {HOST}: {error.strerror}") from None
            click.echo(server.url)
            if browser:
                page = stack.enter_context(_page_leading_to(server.url))
                await asyncio.to_thread(webbrowser.open, page.as_uri())
            await asyncio.Event().wait()


async def _require_api(client: KubeClient) -> None:
    """Raises Refusal: the cluster does not serve the API."""
    try:
        await client.request("GET", API_PATH)
    except NotFound:
        raise Refusal(
            "the cluster does not serve visibility.tutti.dev: run `tutti up --api` on the API "
            "server's machine, or set api.enabled in the chart"
        ) from None


@contextmanager
def _page_leading_to(url: str) -> Iterator[Path]:
    """A file that leads to the address and that only this user can read, for the length of the
    block: the arguments of a browser's process are visible to all users of the machine.
    """
    with tempfile.TemporaryDirectory(prefix="tutti-console-") as folder:
        page = Path(folder) / "console.html"
        target = escape(url, quote=True)
        page.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={target}">'
            f'<a href="{target}">The console</a>\n'
        )
        page.chmod(0o600)
        yield page
