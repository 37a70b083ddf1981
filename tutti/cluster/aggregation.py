"""Aggregated APIs: requests to the group and version of an APIService go to its server.

The server is found by its Service, which must lead to a name outside the cluster (ExternalName):
there is no network of pods. A certificate of this cluster's front proxy, whose authority is in the
usual ConfigMap, vouches for the user in the headers. That user is always the administrator.
"""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final, NamedTuple

import aiohttp
from aiohttp import web
from yarl import URL

from shared.runtime.certificate_authority import Issued, issue, new_authority
from tutti.api.objects import field
from tutti.cluster.admission import ADMIN, ADMIN_GROUPS
from tutti.cluster.api import Api
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import Obj, encode, set_condition
from tutti.cluster.resources import API_SERVICES, SERVICES
from tutti.cluster.store import Stored

_PROXY_NAME: Final = "front-proxy-client"
_USER_HEADER: Final = "X-Remote-User"
_GROUP_HEADER: Final = "X-Remote-Group"
_EXTRA_PREFIX: Final = "X-Remote-Extra-"
#: No cluster of a process lives as long.
_LIFETIME: Final = timedelta(days=365)
_CONNECT_S: Final = 5.0
#: As the API server's, for all requests but watches.
_REQUEST_S: Final = 60.0
_CONNECTIONS_MAX: Final = 256
#: Authorities are replaced.
_CONTEXTS_MAX: Final = 32
#: How often servers are looked at: whether an APIService is new, and whether its server answers.
_LOOK_S: Final = 0.2
_CHECK_EVERY_S: Final = 10.0
_FAILED_AGAIN_S: Final = 1.0
#: Headers of one connection, and those that only the front proxy may set.
_NOT_PASSED: Final = frozenset(
    (
        *("connection", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("authorization", "content-length", _USER_HEADER.lower(), _GROUP_HEADER.lower()),
    )
)


class _Check(NamedTuple):
    """The last look at a server: of which APIService, when, and whether it answered."""

    revision: int
    at_s: float
    passed: bool


class Aggregator:
    """Passes requests on, and keeps the condition Available of APIServices (`run`)."""

    def __init__(self, api: Api) -> None:
        self._api = api
        now = datetime.now(UTC)
        authority = new_authority("front-proxy-ca", now, _LIFETIME)
        self._proxy = issue(authority, _PROXY_NAME, (_PROXY_NAME,), now, _LIFETIME, for_peers=True)
        #: The ConfigMap from which servers learn which front proxy to trust.
        self.trusted: Obj = _trusted_proxy(authority)
        self._session: aiohttp.ClientSession | None = None
        self._checks: dict[str, _Check] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def run(self) -> None:
        """Look at servers until cancelled."""
        while True:
            rows = self._registrations()
            names = {row.obj["metadata"]["name"] for row in rows}
            self._checks = {name: check for name, check in self._checks.items() if name in names}
            for row in rows:
                if self._is_due(row):
                    await self._look_at(row)
            await asyncio.sleep(_LOOK_S)

    async def close(self) -> None:
        """Close the connections to servers."""
        if self._session is not None:
            await self._session.close()

    def groups(self) -> Iterator[tuple[str, str]]:
        """The group and version of each server."""
        for row in self._registrations():
            yield row.obj["spec"]["group"], row.obj["spec"]["version"]

    def registered(self, path: str) -> Stored | None:
        """The APIService of a path, or None if no server has registered for it."""
        match path.split("/", 4):
            case ["", "apis", group, version, *_]:
                row = self._api.store.get(API_SERVICES, "", f"{version}.{group}")
                return row if row is not None and _has_server(row) else None
            case _:
                return None

    async def forward(self, row: Stored, request: web.Request) -> web.StreamResponse:
        """The answer of an APIService's server. Raises ApiError 503."""
        headers = [(k, v) for k, v in request.headers.items() if _is_passed(k)]
        body = await request.read() or None
        total_s = None if "watch" in request.query else _REQUEST_S
        try:
            async with self._ask(
                row, request.raw_path, total_s, method=request.method, headers=headers, data=body
            ) as answer:
                return await _passed_on(request, answer)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            why = f"its server does not answer: {_reason(error)}"
            raise ApiError(503, "ServiceUnavailable", why) from error

    def _registrations(self) -> list[Stored]:
        return [row for row in self._api.store.rows(API_SERVICES) if _has_server(row)]

    def _is_due(self, row: Stored) -> bool:
        last = self._checks.get(row.obj["metadata"]["name"])
        if last is None or last.revision != row.revision:
            return True
        pause_s = _CHECK_EVERY_S if last.passed else _FAILED_AGAIN_S
        return asyncio.get_running_loop().time() >= last.at_s + pause_s

    async def _look_at(self, row: Stored) -> None:
        """Ask a server for its discovery document, and set the condition Available."""
        name = row.obj["metadata"]["name"]
        why = await self._why_unavailable(row)
        call = self._api.call(API_SERVICES[1], name=name, group=API_SERVICES[0], sub="status")

        def change(new: Obj) -> None:
            fields = {"reason": "Passed", "message": "all checks passed"}
            if why:
                fields = {"reason": "FailedDiscoveryCheck", "message": why}
            set_condition(
                new.setdefault("status", {}), "Available", "False" if why else "True", **fields
            )

        try:
            await self._api.modify(call, change)
        except ApiError:
            return  # it was deleted, or keeps changing: the next look sees it
        written = self._api.store.get(API_SERVICES, "", name)
        if written is not None:
            at_s = asyncio.get_running_loop().time()
            self._checks[name] = _Check(written.revision, at_s, not why)

    async def _why_unavailable(self, row: Stored) -> str:
        path = f"/apis/{row.obj['spec']['group']}/{row.obj['spec']['version']}"
        try:
            async with self._ask(row, path, _CONNECT_S) as answer:
                return "" if answer.status == HTTPStatus.OK else f"it answered {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return f"failing or missing response: {_reason(error)}"

    def _ask(
        self,
        row: Stored,
        path: str,
        total_s: float | None,
        *,
        method: str = "GET",
        headers: Sequence[tuple[str, str]] = (),
        data: bytes | None = None,
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """A request to an APIService's server, as the administrator.

        Raises:
            ValueError: The APIService leads nowhere, or its caBundle cannot be read.
        """
        service: Obj = field(row.obj, "spec.service") or {}
        namespace, name = service.get("namespace", ""), service.get("name", "")
        row_of_service = self._api.store.get(SERVICES, namespace, name)
        host = (
            field(row_of_service.obj, "spec.externalName") if row_of_service is not None else None
        )
        if not host:
            raise ValueError(f"Service {namespace}/{name} leads to no name outside the cluster")
        if self._session is None:
            # What is passed on stays as it was packed.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS_MAX), auto_decompress=False
            )
        identity = [(_USER_HEADER, ADMIN), *((_GROUP_HEADER, group) for group in ADMIN_GROUPS)]
        return self._session.request(
            method,
            URL(f"https://{host}:{service.get('port', 443)}{path}", encoded=True),
            headers=[*headers, *identity],
            data=data,
            ssl=self._context(field(row.obj, "spec.caBundle") or ""),
            server_hostname=f"{name}.{namespace}.svc",
            timeout=aiohttp.ClientTimeout(total=total_s, sock_connect=_CONNECT_S),
            allow_redirects=False,
        )

    def _context(self, bundle: str) -> ssl.SSLContext:
        """TLS that trusts a caBundle and shows the front proxy's certificate."""
        if bundle not in self._contexts:
            context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
            with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
                pem.write(self._proxy.key_pem + self._proxy.certificate_pem)
                pem.flush()
                context.load_cert_chain(pem.name)
            if len(self._contexts) >= _CONTEXTS_MAX:
                self._contexts.clear()
            self._contexts[bundle] = context
        return self._contexts[bundle]


def _has_server(row: Stored) -> bool:
    """Without a Service, an APIService is about a group of this cluster itself."""
    return field(row.obj, "spec.service") is not None


def _trusted_proxy(authority: Issued) -> Obj:
    return {
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "requestheader-client-ca-file": authority.certificate_pem.decode(),
            "requestheader-allowed-names": encode([_PROXY_NAME]).decode(),
            "requestheader-username-headers": encode([_USER_HEADER]).decode(),
            "requestheader-group-headers": encode([_GROUP_HEADER]).decode(),
            "requestheader-extra-headers-prefix": encode([_EXTRA_PREFIX]).decode(),
        },
    }


def _is_passed(header: str) -> bool:
    return header.lower() not in _NOT_PASSED and not header.lower().startswith(
        _EXTRA_PREFIX.lower()
    )


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


async def _passed_on(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Send a server's answer as it comes: a watch has no end."""
    response = web.StreamResponse(status=answer.status)
    for key, value in answer.headers.items():
        if _is_passed(key):
            response.headers.add(key, value)
    response.content_length = answer.content_length
    await response.prepare(request)
    try:
        async for piece in answer.content.iter_any():
            await response.write(piece)
        await response.write_eof()
    except (aiohttp.ClientError, OSError):
        # One side is gone, in the middle of the answer; the other one must see that.
        if request.transport is not None:
            request.transport.abort()
    return response
