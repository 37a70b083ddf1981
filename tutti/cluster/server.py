"""The HTTP face: from requests to calls, and from what they return to representations."""

import asyncio
import hmac
import logging

from aiohttp import web

from tutti.cluster import discovery
from tutti.cluster.admission import Call
from tutti.cluster.api import Api
from tutti.cluster.errors import ApiError, bad_request, details_of, expired
from tutti.cluster.misbehave import Misbehaviour
from tutti.cluster.objects import Obj, dig, encode
from tutti.cluster.queries import (
    body_of,
    call_of,
    check_list,
    delete_options_of,
    number,
    selected,
    wish_of,
)
from tutti.cluster.store import Stored
from tutti.cluster.tables import table
from tutti.cluster.watching import lines

_log = logging.getLogger(__name__)

BODY_BYTES_MAX = 3 * 1024 * 1024  # the API server's own limit
# Built-in kinds whose DELETE answers with the object even when it is gone at once.
_RETURNED = (
    *("pods", "services", "serviceaccounts", "resourcequotas", "persistentvolumes"),
    *("persistentvolumeclaims", "namespaces", "storageclasses"),
)
_SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


class Server:
    """Requests in, answers out."""

    def __init__(self, api: Api, token: str = "") -> None:
        self._api = api
        self._authorization = f"Bearer {token}".encode() if token else b""
        self._watching: set[asyncio.Transport] = set()
        self.misbehave = Misbehaviour(self._drop_watches, api.store.expire_all)

    def app(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    def _drop_watches(self) -> None:
        """Breaks every open watch off in the middle, as a dying connection does."""
        for transport in self._watching:
            transport.abort()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except ApiError as error:
            return _failure(error)
        except web.HTTPRequestEntityTooLarge:
            return _failure(ApiError(413, "RequestEntityTooLarge", "the request is too large"))
        except Exception as error:  # noqa: BLE001 - one request's bug must not end the others
            _log.exception("%s %s failed", request.method, request.path)
            return _failure(ApiError(500, "InternalError", f"Internal error occurred: {error!r}"))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in ("/healthz", "/readyz", "/livez"):
            return web.Response(text="ok")
        given = request.headers.get("Authorization", "").encode()
        if self._authorization and not hmac.compare_digest(given, self._authorization):
            raise ApiError(401, "Unauthorized", "Unauthorized")
        if path == "/openapi/v2":
            # An empty document (in protobuf): kubectl then leaves all validation to us.
            return web.Response(body=b"", content_type="application/octet-stream")
        if path == "/tutti/misbehave":
            if request.method == "POST":
                self.misbehave.obey(await request.read())
            return _json({"done": self.misbehave.done})
        document = discovery.answer(path, self._api.registry)
        if document is not None:
            return _json(document)
        verb, call = call_of(request, self._api.registry)
        fault = self.misbehave.fault(verb, call)
        if fault is None:
            return await self._do(verb, call, request)
        await asyncio.sleep(fault.latency_ms / 1000)
        answer = None
        if fault.error is None or fault.after:
            answer = await self._do(verb, call, request)
        if fault.error is not None or answer is None:
            raise fault.error or AssertionError("a fault without effect")
        return answer

    async def _do(self, verb: str, call: Call, request: web.Request) -> web.StreamResponse:
        api = self._api
        match verb:
            case "watch":
                return await self._watch(call, request)
            case "list":
                return self._list(call, request)
            case "get":
                return _list_or_table(request, call, [api.get(call)], {}, single=True)
            case "create":
                return await self._create(call, request)
            case "update":
                body = await body_of(request)
                return _object(call, await api.update(call, lambda _: body))
            case "patch":
                content_type = request.headers.get("Content-Type", "")
                return _object(call, await api.patch(call, content_type, await request.read()))
            case "delete":
                obj, gone = await api.delete(call, await delete_options_of(request, call))
                if not gone or call.resource.plural in _RETURNED:
                    return _object(call, obj)
                details = details_of(call.resource, call.name) | {"uid": obj["metadata"]["uid"]}
                return _json({**_SUCCESS, "details": details}, warnings=call.warnings)
            case _:
                options = await delete_options_of(request, call)
                wanted = selected(call, request.query)
                gone_ones = await api.delete_collection(call, wanted, options)
                rows = [Stored(obj, int(obj["metadata"]["resourceVersion"])) for obj in gone_ones]
                return _list_or_table(request, call, rows, _version(api.store.revision))

    async def _create(self, call: Call, request: web.Request) -> web.Response:
        body = await body_of(request)
        if call.subresource not in ("binding", "eviction"):
            return _object(call, await self._api.create(call, body), status=201)
        if not isinstance(dig(body, "metadata"), dict):
            raise bad_request("the body of the request has no metadata")
        call.name = call.name or str(body["metadata"].get("name") or "")
        if call.subresource == "binding":
            await self._api.bind(call, body)
        else:
            await self._api.evict(call, body)
        return _json({**_SUCCESS, "code": 201}, status=201, warnings=call.warnings)

    def _list(self, call: Call, request: web.Request) -> web.Response:
        query, revision = request.query, self._api.store.revision
        check_list(query)
        asked = number(query, "resourceVersion")
        if asked > revision:
            text = f"Too large resource version: {asked}, current: {revision}"
            raise ApiError(504, "Timeout", text, retry_after_s=1)
        if query.get("resourceVersionMatch") == "Exact" and asked < revision:
            raise expired(f"too old resource version: {asked} ({revision})")
        # `limit` is not kept: a list comes whole, for which its client has to be ready anyway.
        rows = self._api.select(call, selected(call, query))
        return _list_or_table(request, call, rows, _version(revision))

    async def _watch(self, call: Call, request: web.Request) -> web.StreamResponse:
        wish = wish_of(call, request.query)
        as_table = _wants_table(request)

        def encoded(row: Stored) -> bytes:
            if as_table:
                return encode(table(call, [row], _version(row.revision)))
            return row.encoded(call.resource, call.version)

        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        transport = request.transport
        if transport is None:
            return response  # the client has gone already
        self._watching.add(transport)
        try:
            async for piece in lines(self._api.store, call, wish, encoded):
                await response.write(piece)
            await response.write_eof()
        except ConnectionResetError:
            pass  # the client left, or was dropped on demand; there is nobody to tell
        finally:
            self._watching.discard(transport)
        return response


def _version(revision: int) -> Obj:
    return {"resourceVersion": str(revision)}


def _wants_table(request: web.Request) -> bool:
    return "as=Table" in request.headers.get("Accept", "")


def _json(
    document: object, *, status: int = 200, warnings: list[str] | None = None
) -> web.Response:
    response = web.Response(body=encode(document), status=status, content_type="application/json")
    for text in warnings or ():
        # A JSON string of ASCII text is a quoted-string of HTTP.
        response.headers.add("Warning", f"299 - {encode(text).decode()}")
    return response


def _object(call: Call, obj: Obj, *, status: int = 200) -> web.Response:
    return _json(call.resource.view(obj, call.version), status=status, warnings=call.warnings)


def _failure(error: ApiError) -> web.Response:
    response = _json(error.body(), status=error.code)
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response


def _list_or_table(
    request: web.Request, call: Call, rows: list[Stored], metadata: Obj, *, single: bool = False
) -> web.Response:
    """Rows as the client wants them, made of encodings that exist already.

    Typed kinds' items in a list go without kind and apiVersion, as in Kubernetes.
    """
    if _wants_table(request):
        return _json(table(call, rows, metadata))
    resource = call.resource
    items = [row.encoded(resource, call.version) for row in rows]
    if single:
        return web.Response(body=items[0], content_type="application/json")
    version = resource.api_version(call.version)
    head = {"kind": resource.kind + "List", "apiVersion": version, "metadata": metadata}
    if not resource.custom:
        typed = len(encode({"kind": resource.kind, "apiVersion": version}))
        items = [b"{" + item[typed:] for item in items]
    body = encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"
    return web.Response(body=body, content_type="application/json")
