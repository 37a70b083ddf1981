"""A client of the simulated API server: the real `KubeClient` on a simulated transport.

Everything above one request and one watch (encoding, decoding, errors, list-watch) is the real
code. A request is handed to the server at once and counts as an effect of its generation; the
answer comes back in the world's time and is dropped when the generation was killed by then.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self
from urllib.parse import parse_qsl

from typing_extensions import override

from shared.kube.client import KubeClient
from shared.kube.errors import ConnectionLost, KubeError, RequestTimeout, api_error
from shared.kube.transport import TIMEOUT_S, Reply
from tests.simulation.kube_api import ApiServer, Refusal, Request
from tests.simulation.kube_server import Watch
from tests.simulation.loop import Generation

_NO_PARAMS: Final[Mapping[str, str]] = {}


class SimKubeClient(KubeClient):
    """The client of a generation, whose name the server's truth records as the writer."""

    def __init__(self, server: ApiServer, generation: Generation) -> None:
        # Not super().__init__: there are no credentials and no connections here.
        self._sim = server
        self._generation = generation

    @override
    async def __aenter__(self) -> Self:
        return self

    @override
    async def close(self) -> None:
        return

    @override
    async def send(
        self,
        method: Any,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        if_none_match: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> Reply:
        # The simulated API server has no ETags, so it answers with the whole body.
        given = dict(params or _NO_PARAMS)
        if method == "PATCH":
            given["content-type"] = content_type
        return await self._ask(method, path, given, body or b"", timeout_s)

    @override
    async def post(self, path: str, body: bytes, *, timeout_s: float = TIMEOUT_S) -> Reply:
        path, _, query = path.partition("?")
        return await self._ask("POST", path, dict(parse_qsl(query)), body, timeout_s)

    async def _ask(
        self, method: str, path: str, params: Mapping[str, str], body: bytes, timeout_s: float
    ) -> Reply:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def answered(reply: Reply | KubeError) -> None:
            if answer.done():
                return
            if isinstance(reply, KubeError):
                answer.set_exception(reply)
            else:
                answer.set_result(reply)

        # One that died at its last effect would only do here what it would have done next.
        if self._generation.alive:
            self._sim.submit(Request(self._generation.name, method, path, params, body), answered)
            self._generation.effect()
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError as error:
            raise RequestTimeout(f"{method} {path}: no answer within {timeout_s:g} s") from error

    @override
    @asynccontextmanager
    async def stream(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        silence_s: float,
        timeout_s: float = TIMEOUT_S,
    ) -> AsyncIterator[Any]:
        await asyncio.sleep(0.001)
        try:
            watch = self._sim.watch(Request(self._generation.name, "GET", path, params, b""))
        except Refusal as refusal:
            body = b'{"kind":"Status","reason":"%s","message":"%s"}' % (
                refusal.reason.encode(),
                refusal.message.encode(),
            )
            raise api_error(refusal.status, body) from None
        self._generation.on_death.append(lambda: self._sim.close(watch))
        try:
            yield SimLines(watch, path, silence_s)
        finally:
            self._sim.close(watch)


class SimLines:
    """What `LineStream` is to a real watch."""

    def __init__(self, watch: Watch, what: str, silence_s: float) -> None:
        self._watch = watch
        self._what = what
        self._silence_s = silence_s

    async def batch(self, **_pace: bool) -> list[bytes]:
        """See `LineStream.batch`. Patience saves wake-ups of a real socket; here is none."""
        watch = self._watch
        if not watch.lines and not watch.ended:
            await self._wait()
        if watch.lines:
            lines, watch.lines = watch.lines, []
            return lines
        if watch.error is not None:
            raise ConnectionLost(f"{self._what}: {watch.error}")
        return []

    async def _wait(self) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        self._watch.wake = wake
        try:
            async with asyncio.timeout(self._silence_s):
                await woken
        except TimeoutError as error:
            raise RequestTimeout(f"{self._what}: silent for too long") from error
