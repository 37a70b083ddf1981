"""Answers requests over HTTPS: authenticates, authorises, and sends objects, lists, tables and
watches, or a Status.
"""

import asyncio
import hashlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from services.api.authentication import Authenticator, User
from services.api.authorization import Authorizer
from services.api.core.openapi import (
    DOCUMENT_PATH,
    ROOT_PATH,
    VERSION_PATH,
    discovery_document,
    openapi_document,
)
from services.api.core.requests import ReadOptions, Target, read_options, read_target
from services.api.core.tables import row, table
from services.api.errors import RequestFailed, TokenRefused, status_of
from services.api.gangs import GangResource
from services.api.reporting import Reporting
from services.api.resources import CreatableResource, Page, ReadableResource
from services.api.user_limits import UserLimits
from shared.console.files import answer_file
from shared.contracts.visibility import API_VERSION, ListMeta
from shared.contracts.visibility_resources import ServedResource
from shared.runtime.guarded_server import Bodies, GuardedServer, RequestRefused

log = logging.getLogger(__name__)

#: Longer than the 90 s for which the API server keeps idle connections, so that it closes them.
KEEPALIVE_S: Final = 120.0
#: Time for requests in flight when the server stops; watches end at once.
SHUTDOWN_S: Final = 2.0
#: A reader of a watch that does not take a write for this long is disconnected.
SLOW_READER_S: Final = 10.0

#: What is written and not sent yet of a watch, at most: in the event loop, and again in the kernel.
#: Their own limits are megabytes, minutes of events until a reader that has stopped is noticed.
_UNSENT_BYTES: Final = 64 * 1024

#: As much as aiohttp reads without further settings: the manifests of a large workload.
BODY_BYTES_MAX: Final = 1024 * 1024

#: Questions that are answered or wait for their turn, and those of one user: with the longest
#: bodies, 64 and 8 MiB.
_QUESTIONS_MAX: Final = 64
_QUESTIONS_OF_USER_MAX: Final = 8

#: Headers of a proxy's answers have some kilobytes in all.
_WARNING_CHARACTERS_MAX: Final = 500

_JSON: Final = "application/json"
_encode: Final = msgspec.json.Encoder().encode


class ApiServer:
    """The HTTPS server. `start` it, `stop` it."""

    def __init__(
        self,
        authenticator: Authenticator,
        authorizer: Authorizer,
        resources: Mapping[str, ReadableResource],
        questions: Mapping[str, CreatableResource],
        gangs: GangResource,
        reporting: Reporting,
        *,
        watch_limits: UserLimits,
        unavailable: Callable[[ServedResource], str],
        warning: Callable[[], str],
        now_ms: Callable[[], int],
    ) -> None:
        """`resources` are those that are read, and `questions` those that are answered, by their
        plural names; of `gangs` there are watches, too. `unavailable` returns why a resource cannot
        be served now; "": it can. `warning` returns a remark for users about all answers; "": none.
        `watch_limits` are those of watches.
        """
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._resources = resources
        self._questions = questions
        self._gangs = gangs
        self._bodies = Bodies(body_bytes_max=BODY_BYTES_MAX)
        self._reporting = reporting
        self._watch_limits = watch_limits
        self._question_limits = UserLimits(
            "questions", in_all=_QUESTIONS_MAX, of_user=_QUESTIONS_OF_USER_MAX, retry_s=1
        )
        self._unavailable = unavailable
        self._warning = warning
        self._now_ms = now_ms
        self._server: GuardedServer | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext) -> int:
        """Listen, and return the port (chosen by the kernel if `port` is 0).

        Raises:
            OSError: The address is in use, or not one of this machine.
        """
        server = self._server = GuardedServer(
            self._handle,
            keepalive_timeout=KEEPALIVE_S,
            handler_cancellation=True,
        )
        return await server.listen(host, port, context, shutdown_s=SHUTDOWN_S)

    async def stop(self) -> None:
        """Finish the requests in flight and stop listening. Safe to call twice."""
        if self._server is not None:
            await self._server.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._server is not None:
            self._server.note_request(request.protocol)
        file = _file_of_console(request)
        if file is not None:
            return file
        began_s = asyncio.get_running_loop().time()
        try:
            response = await self._respond(request)
        except RequestFailed as failure:
            response = _failed(failure)
        except Exception:
            # A bug. The client gets a Status, and the connection, which others share, stays open.
            log.exception("%s %s failed", request.method, request.path)
            response = _failed(RequestFailed(500, "an internal error occurred"))
        seconds = asyncio.get_running_loop().time() - began_s
        # A watch that was answered has its length, which is no time of an answer.
        is_watch = not isinstance(response, web.Response)
        self._reporting.answered(response.status, None if is_watch else seconds)
        return response

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        user = await self._authenticator.authenticate(request)
        document = _document(request.path.rstrip("/"))
        if document is not None:
            return self._sent(request, _encode(document))
        target = read_target(request.path)
        if request.method == "POST":
            return await self._create(request, user, target)
        if request.method != "GET":
            raise RequestFailed(405, f"{target.resource.plural} cannot be changed")
        options = read_options(request.query, request.headers.get("Accept", ""))
        self._check_available(target.resource)
        verb = "get" if target.name else "watch" if options.watch else "list"
        if verb not in target.resource.verbs:
            raise RequestFailed(405, f"{target.resource.plural}: {verb} is not served")
        await self._authorizer.require(
            user,
            verb,
            target.resource.plural,
            namespace=target.namespace,
            name=target.name,
        )
        return await self._read(request, user, verb, target, options)

    async def _create(
        self, request: web.BaseRequest, user: User, target: Target
    ) -> web.StreamResponse:
        plural = target.resource.plural
        question = self._questions.get(plural)
        if question is None or target.name or not target.namespace:
            raise RequestFailed(405, f"{plural} cannot be created here")
        self._check_available(target.resource)
        await self._authorizer.require(user, "create", plural, namespace=target.namespace)
        try:
            with self._question_limits.one_more(user.name):
                async with self._bodies.read(request) as body:
                    answered = await question.create(user, target, body)
        except RequestRefused as refusal:
            raise RequestFailed(refusal.status, str(refusal)) from None
        except web.HTTPRequestEntityTooLarge as refusal:
            raise RequestFailed(413, refusal.text or "the body is too large") from None
        return web.Response(status=201, body=answered, content_type=_JSON)

    def _check_available(self, resource: ServedResource) -> None:
        why = self._unavailable(resource)
        if why:
            raise RequestFailed(503, why, retry_after_s=1)

    async def _read(
        self,
        request: web.BaseRequest,
        user: User,
        verb: str,
        target: Target,
        options: ReadOptions,
    ) -> web.StreamResponse:
        resource = self._resources[target.resource.plural]
        match verb:
            case "watch":
                return await self._watch(request, user, target, options)
            case "get":
                item = await resource.get(user, target)
                if options.answer == "object":
                    return self._sent(request, bytes(item.json))
                version = item.object.metadata.resource_version
                page = Page([item], ListMeta(resource_version=version))
                return self._sent(request, self._table(resource, page, options))
            case _:
                page = await resource.list(user, target, options)
                if options.answer == "table":
                    body = self._table(resource, page, options)
                else:
                    body = _list(f"{target.resource.kind}List", page)
                return self._sent(request, body, page.remark)

    def _table(self, resource: ReadableResource, page: Page, options: ReadOptions) -> bytes:
        now_ms = self._now_ms()
        rows = (
            row(
                resource.cells(item.object, now_ms),
                item.object.metadata,
                item.json,
                options.row_object,
            )
            for item in page.items
        )
        return _encode(table(resource.columns, rows, page.metadata))

    async def _watch(
        self, request: web.BaseRequest, user: User, target: Target, options: ReadOptions
    ) -> web.StreamResponse:
        with self._watch_limits.one_more(user.name):
            async with self._gangs.watch(user, target, options) as lines:
                return await self._stream(request, lines, options)

    async def _stream(
        self, request: web.BaseRequest, lines: AsyncIterator[bytes], options: ReadOptions
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache"})
        self._warn(response)
        await response.prepare(request)
        _limit_unsent(request)
        try:
            await self._write_all(request, response, lines, options.timeout_s)
        except ConnectionError:
            # The client has left, or was disconnected.
            pass
        except Exception:
            # A bug. No other answer is possible any more.
            log.exception("a watch of %s failed", request.path)
            _disconnect(request)
        return response

    async def _write_all(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        lines: AsyncIterator[bytes],
        limit_s: float,
    ) -> None:
        """Write lines until they end or the time has passed. Raises ConnectionError."""
        whole = asyncio.timeout(limit_s)
        try:
            async with whole:
                async for more in lines:
                    await self._write(request, response.write(more))
        except TimeoutError:
            if not whole.expired():
                raise
        await self._write(request, response.write_eof())

    async def _write(self, request: web.BaseRequest, writing: Awaitable[None]) -> None:
        wait = asyncio.timeout(SLOW_READER_S)
        try:
            async with wait:
                await writing
        except TimeoutError:
            if not wait.expired():
                raise
            self._reporting.slow_readers.inc()
            _disconnect(request)
            raise ConnectionResetError("a watch was not read in time") from None

    def _sent(self, request: web.BaseRequest, body: bytes, remark: str = "") -> web.Response:
        """An answer with its ETag; without a body if the client has it. `remark` is for the user;
        "": none.
        """
        etag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
        known = request.headers.get("If-None-Match", "").split(",")
        # A proxy that compresses an answer makes its ETag a weak one (`W/`).
        if {etag, "*"} & {tag.strip().removeprefix("W/") for tag in known}:
            response = web.Response(status=304)
        else:
            response = web.Response(body=body, content_type=_JSON)
        response.headers["ETag"] = etag
        self._warn(response, remark)
        return response

    def _warn(self, response: web.StreamResponse, remark: str = "") -> None:
        warning = "; ".join(filter(None, (self._warning(), remark)))
        if warning:
            # RFC 7234: 299, a persistent warning; kubectl prints its text. A user's name in it may
            # have any characters.
            text = warning.replace("\\", "").replace('"', "'")
            plain = "".join(character if " " <= character <= "~" else "?" for character in text)
            response.headers["Warning"] = f'299 - "{plain[:_WARNING_CHARACTERS_MAX]}"'


def _file_of_console(request: web.BaseRequest) -> web.Response | None:
    """A file of the console, for all clients: there is nothing of the cluster in it."""
    if request.method != "GET":
        return None
    return answer_file(request.path, request.headers.get("If-None-Match", ""))


def _disconnect(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _limit_unsent(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.set_write_buffer_limits(high=_UNSENT_BYTES)
    connection = request.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)


def _document(path: str) -> dict[str, Any] | None:
    """The document of discovery or OpenAPI at a path; None: there is none."""
    match path:
        case _ if path == ROOT_PATH:
            version = hashlib.blake2b(_encode(openapi_document()), digest_size=16).hexdigest()
            url = f"{DOCUMENT_PATH}?hash={version}"
            return {"paths": {VERSION_PATH.lstrip("/"): {"serverRelativeURL": url}}}
        case _ if path == DOCUMENT_PATH:
            return openapi_document()
        case _:
            return discovery_document(path)


def _list(kind: str, page: Page) -> bytes:
    return _encode(
        {
            "kind": kind,
            "apiVersion": API_VERSION,
            "metadata": page.metadata,
            "items": [item.json for item in page.items],
        }
    )


def _failed(failure: RequestFailed) -> web.Response:
    response = web.Response(
        status=failure.status, body=_encode(status_of(failure)), content_type=_JSON
    )
    if failure.retry_after_s is not None:
        response.headers["Retry-After"] = str(failure.retry_after_s)
    if failure.status == 401:
        # RFC 6750: a request without a token has no error.
        error = ' error="invalid_token"' if isinstance(failure, TokenRefused) else ""
        response.headers["WWW-Authenticate"] = f"Bearer{error}"
    return response
