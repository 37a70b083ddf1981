"""An API server that answers from a script: for faults that a real one cannot be asked to make.

Each request takes the next answer of the script; when the script is used up, requests hang until
the server closes. What was asked is kept in `requests`.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec
from aiohttp import web

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Asked(msgspec.Struct, frozen=True):
    """One request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


class ScriptedApiServer:
    """See the module. Made by `scripted_apiserver`."""

    def __init__(self, *script: Answer) -> None:
        self.requests: list[Asked] = []
        self.url = ""
        self._script = deque(script)
        self._closing = asyncio.Event()

    def then(self, *answers: Answer) -> None:
        """Lengthen the script."""
        self._script.extend(answers)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        self.requests.append(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                request.headers,
                await request.read(),
            )
        )
        if not self._script:
            await self._closing.wait()
            raise ConnectionResetError
        return await self._script.popleft()(request)

    async def hang(self) -> None:
        """Wait until the server closes."""
        await self._closing.wait()

    def close(self) -> None:
        """Let go of everything that hangs."""
        self._closing.set()


@asynccontextmanager
async def scripted_apiserver(
    *script: Answer, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[ScriptedApiServer]:
    """Serve the script on a free port of 127.0.0.1, over https when a context is given."""
    server = ScriptedApiServer(*script)
    runner = web.ServerRunner(web.Server(server.handle), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        server.close()
        await runner.cleanup()


def answer(status: int, body: object = None, headers: Mapping[str, str] | None = None) -> Answer:
    """A whole answer: bytes as they are, anything else as JSON."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)

    async def respond(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=raw, headers=headers)

    return respond


def failure(code: int, reason: str, message: str = "", **fields: Any) -> Answer:
    """A Status of an error."""
    return answer(code, status(code, reason, message, **fields))


def status(code: int, reason: str, message: str = "", **fields: Any) -> dict[str, Any]:
    """The body of `failure`, and the object of a watch's ERROR event."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        **fields,
    }


def listing(version: int | str, *items: object, continue_: str = "") -> Answer:
    """A list."""
    metadata = {"resourceVersion": str(version), "continue": continue_}
    return answer(200, {"kind": "List", "metadata": metadata, "items": list(items)})


def event(kind: str, thing: object) -> bytes:
    """One line of a watch."""
    return msgspec.json.encode({"type": kind, "object": thing}) + b"\n"


def watch(
    server: Callable[[], ScriptedApiServer],
    *chunks: bytes,
    then: Literal["hang", "end", "reset"] = "hang",
) -> Answer:
    """A watch that says so much, each chunk in its own write, and then hangs, ends or breaks."""

    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if then == "hang":
            await server().hang()
        if then == "reset" and request.transport is not None:
            request.transport.abort()
        return response

    return respond


async def reset(request: web.BaseRequest) -> web.StreamResponse:
    """Break the connection instead of answering."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def pods(names: Iterable[str], version: int = 1) -> list[dict[str, Any]]:
    """Pods that have nothing but their identity."""
    return [pod(name, version) for name in names]


def pod(name: str, version: int = 1, **fields: Any) -> dict[str, Any]:
    """A pod that has nothing but its identity, and the fields given."""
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}"}
    return {"metadata": {**metadata, "resourceVersion": str(version)}, **fields}
