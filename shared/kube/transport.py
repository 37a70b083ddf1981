"""Requests to the API server over one pool of connections.

`Transport.send` is the one interface: it adds credentials, bounds the time, renews credentials
after a 401 and turns every fault of the connection into a `TransportError`. It retries nothing
else: callers decide whether and when to retry. `client` builds on it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol, Self, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from shared.kube.connections import Connector, LineStream, describe
from shared.kube.credentials import Authorization, Credentials
from shared.kube.errors import (
    ConnectionLost,
    MalformedAnswer,
    RequestTimeout,
    TransportError,
    api_error,
)
from shared.kube.post_pool import PostPool

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
OnCall = Callable[[str, int], None]
"""Called after every request with the verb and the HTTP status, 0 when there was no answer."""

#: The API server answers or gives up within 60 s; half of that is long enough for any single
#: object.
TIMEOUT_S: Final = 30.0


_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class _Answer(Protocol):
    @property
    def status(self) -> int: ...


A = TypeVar("A", bound=_Answer)


class Reply(msgspec.Struct, frozen=True):
    """A complete answer. `headers` is case-insensitive, and empty for a successful `post`."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    def raise_for_status(self) -> None:
        """Raise the `ApiError` of a status of 400 or above."""
        if self.status >= 400:
            raise api_error(self.status, self.body, self.headers.get("Retry-After"))


class Transport:
    """One pool of connections to one API server. `async with` opens and closes it.

    Requests beyond `connections_max` wait for a free connection; every open watch holds one.
    `user_agent` is shown in the API server's audit log; `on_call` (see `OnCall`) must be quick and
    must not raise.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections_max: int = 64,
        user_agent: str = "tutti",
        on_call: OnCall | None = None,
    ) -> None:
        self.credentials = credentials
        self._server = credentials.server
        self._server_hostname = credentials.tls_server_name or None
        self._connections_max = connections_max
        self._user_agent = user_agent
        self._on_call = on_call
        self._session: aiohttp.ClientSession | None = None
        self._posts = PostPool(self._server, self._server_hostname, connections_max)
        #: Header lines of `post`, and the authorization that they contain.
        self._lines = b""
        self._lines_of: Authorization | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=Connector(self._connections_max),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Compression costs the API server more than it saves: the network is nearly always
            # fast.
            headers={"User-Agent": self._user_agent, "Accept-Encoding": "identity"},
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
            # A watch line may be 4 MiB long (etcd's limit on an object is 1.5 MiB); the stream's
            # high-water mark is twice this.
            read_bufsize=2**21,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Break all connections, and wait until they are closed; requests in flight end with
        `ConnectionLost`. Idempotent.
        """
        if self._session is not None:
            session, self._session = self._session, None
            try:
                await self._posts.close()
            finally:
                await session.close()

    async def send(
        self,
        method: Method,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        if_none_match: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> Reply:
        """Send one request and read the whole answer, of any status.

        After a 401 the credentials are renewed, if possible, and the request is sent again. Nothing
        else is retried. After a TransportError or cancellation the request may or may not have been
        carried out. `path` is percent-encoded, as `Resource.path` makes it; `if_none_match` is the
        header of this name, "" for none; `timeout_s` covers everything, waiting for a connection
        included.

        Raises:
            RequestTimeout: No whole answer in time.
            ConnectionLost: No connection, or it broke.
            CredentialsError: They could not be renewed.
        """
        url = _url(self._server, path, params)
        given = _Given(body, content_type, if_none_match)
        status = 0
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._authorized(partial(self._exchange, method, url, given))
            status = reply.status
        except TimeoutError as error:
            raise RequestTimeout(f"{method} {path}: no answer within {timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(f"{method} {path}: {describe(error)}") from error
        finally:
            if self._on_call is not None:
                self._on_call(method, status)
        return reply

    async def request(
        self,
        method: Method,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float = TIMEOUT_S,
    ) -> Reply:
        """As `send`, but raises an answer of 400 or above as its `ApiError`."""
        reply = await self.send(
            method, path, params=params, body=body, content_type=content_type, timeout_s=timeout_s
        )
        reply.raise_for_status()
        return reply

    async def post(self, path: str, body: bytes, *, timeout_s: float = TIMEOUT_S) -> Reply:
        """As `send` with POST, for small JSON bodies and answers, at half of its CPU. `path` may
        have a query.

        Raises:
            RequestTimeout: No whole answer in time.
            ConnectionLost: No connection, or it broke.
            MalformedAnswer: The answer is no HTTP.
            CredentialsError: They could not be renewed.
        """
        self._open_session()
        status = 0
        try:
            reply = await self._authorized(partial(self._post, path, body, timeout_s))
            status = reply.status
        except (TransportError, MalformedAnswer) as error:
            raise type(error)(f"POST {path}: {error}") from error
        finally:
            if self._on_call is not None:
                self._on_call("POST", status)
        return reply

    async def _authorized(self, attempt: Callable[[Authorization], Awaitable[A]]) -> A:
        """The answer to an attempt; after a 401 that of another one, if there are other
        credentials.
        """
        authorization = self.credentials.fresh() or await self.credentials.refresh()
        answer = await attempt(authorization)
        if answer.status == 401:
            renewed = await self.credentials.renew(authorization)
            if renewed is not None:
                return await attempt(renewed)
        return answer

    async def _post(
        self, path: str, body: bytes, timeout_s: float, authorization: Authorization
    ) -> Reply:
        if authorization is not self._lines_of:
            self._lines, self._lines_of = self._header_lines(authorization), authorization
        answer = await self._posts.post(
            path.encode("ascii"), self._lines, body, authorization.tls, timeout_s
        )
        headers = answer.headers() if answer.status >= 400 else _NO_HEADERS
        return Reply(answer.status, answer.body, headers)

    def _header_lines(self, authorization: Authorization) -> bytes:
        lines = [
            ("Host", self._posts.host),
            ("User-Agent", self._user_agent),
            ("Accept", "application/json"),
            ("Content-Type", "application/json"),
            *authorization.headers.items(),
        ]
        return "".join(f"{name}: {value}\r\n" for name, value in lines).encode()

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        silence_s: float,
    ) -> AsyncIterator[LineStream]:
        """Open a GET whose answer is a stream of lines without end: a watch. After `silence_s`
        seconds without a byte it is considered dead.

        Raises:
            ApiError: The answer is an error.
            TransportError: As `send`; also what `LineStream.batch` raises inside.
            CredentialsError: They could not be renewed.
        """
        url = _url(self._server, path, params)
        response = await self._open_stream(url, path, silence_s)
        try:
            yield LineStream(response, f"GET {path}")
        finally:
            # Breaks the connection when the answer has not ended: there is no other way out of a
            # watch.
            response.close()

    async def chunks(self, path: str, params: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The bytes of a GET's answer as they arrive: a pod's log.

        Raises:
            ApiError: The answer is an error.
            ConnectionLost: The connection broke.
            RequestTimeout: The answer did not begin in time.
            CredentialsError: They could not be renewed.
        """
        url = _url(self._server, path, params)
        response = await self._open_stream(url, path, None)
        try:
            while chunk := await response.content.readany():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(f"GET {path}: {describe(error)}") from error
        finally:
            response.close()

    async def _exchange(
        self,
        method: Method,
        url: URL,
        given: "_Given",
        authorization: Authorization,
    ) -> Reply:
        async with self._open_session().request(
            method,
            url,
            data=given.body,
            headers=given.headers(authorization),
            ssl=authorization.tls if authorization.tls is not None else True,
            server_hostname=self._server_hostname,
            allow_redirects=False,
        ) as response:
            return Reply(response.status, await response.read(), response.headers)

    async def _open_stream(
        self, url: URL, path: str, silence_s: float | None
    ) -> aiohttp.ClientResponse:
        status = 0
        try:
            async with asyncio.timeout(TIMEOUT_S):
                response = await self._authorized(partial(self._begin, url, silence_s))
                status = response.status
                if status < 400:
                    return response
                body = await response.read()
        except TimeoutError as error:
            raise RequestTimeout(f"GET {path}: no answer within {TIMEOUT_S:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(f"GET {path}: {describe(error)}") from error
        finally:
            if self._on_call is not None:
                self._on_call("WATCH", status)
        raise api_error(status, body, response.headers.get("Retry-After"))

    async def _begin(
        self, url: URL, silence_s: float | None, authorization: Authorization
    ) -> aiohttp.ClientResponse:
        response = await self._open_session().get(
            url,
            headers=authorization.headers,
            ssl=authorization.tls if authorization.tls is not None else True,
            server_hostname=self._server_hostname,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence_s),
        )
        if response.status >= 400:
            await response.read()  # Its connection is free for another attempt.
        return response

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise ConnectionLost("the client is not open: use it in `async with`")
        return self._session


class _Given(NamedTuple):
    """What a request has besides its credentials."""

    body: bytes | None
    content_type: str
    if_none_match: str

    def headers(self, authorization: Authorization) -> Mapping[str, str]:
        """All headers of the request."""
        headers = authorization.headers
        if self.body is not None:
            headers = authorization.headers_for(self.content_type)
        if not self.if_none_match:
            return headers
        return {**headers, "If-None-Match": self.if_none_match}


def _url(server: str, path: str, params: Mapping[str, str] | None) -> URL:
    """The whole URL. Its parts are encoded already, so yarl need not encode them."""
    query = f"?{urlencode(params)}" if params else ""
    return URL(f"{server}{path}{query}", encoded=True)
