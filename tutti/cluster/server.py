"""The HTTP server: from requests to calls, and from their results to responses."""

import asyncio
import logging

from aiohttp import web

from tutti.cluster import discovery
from tutti.cluster.admission import Call
from tutti.cluster.api import Api
from tutti.cluster.errors import ApiError, bad_request, details_of
from tutti.cluster.faults import FaultInjector
from tutti.cluster.objects import Obj, dig, encode
from tutti.cluster.queries import body_of, call_of, delete_options_of, selected, watch_request_of
from tutti.cluster.resources import PODS
from tutti.cluster.store import Stored
from tutti.cluster.tables import table
from tutti.cluster.watches import lines

_log = logging.getLogger(__name__)

BODY_BYTES_MAX = 3 * 1024 * 1024  # the API server's own limit
_SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


class Server:
    """Answers HTTP requests with the API, discovery and injected faults."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._watching: set[asyncio.Transport] = set()
        self.faults = FaultInjector(self._drop_watches, api.store.expire_all)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    def _drop_watches(self) -> None:
        """Abort every open watch, as a lost connection does."""
        for transport in self._watching:
            transport.abort()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except ApiError as error:
            return _failure(error)
        except web.HTTPRequestEntityTooLarge:
            return _failure(ApiError(413, "RequestEntityTooLarge", "the request is too large"))
        except Exception as error:  # noqa: BLE001 - one request's bug must not end other requests
            _log.exception("%s %s failed", request.method, request.path)
            return _failure(ApiError(500, "InternalError", f"Internal error occurred: {error!r}"))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in ("/healthz", "/readyz", "/livez"):
            return web.Response(text="ok")
        if path == "/openapi/v2":
            # An empty document (in protobuf): kubectl then leaves validation to the server.
            return web.Response(body=b"", content_type="application/octet-stream")
        if path == "/tutti/misbehave":
            if request.method == "POST":
                self.faults.apply(await request.read())
            return _json({"done": self.faults.done})
        document = discovery.answer(path, self._api.registry)
        if document is not None:
            return _json(document)
        verb, call = call_of(request, self._api.registry)
        rule = self.faults.rule_for(verb, call)
        if rule is None:
            return await self._do(verb, call, request)
        await asyncio.sleep(rule.latency_ms / 1000)
        if rule.status and not rule.after:
            raise rule.error(call)
        answer = await self._do(verb, call, request)
        if rule.status:
            raise rule.error(call)
        return answer

    async def _do(self, verb: str, call: Call, request: web.Request) -> web.StreamResponse:
        api = self._api
        match verb:
            case "watch":
                return await self._watch(call, request)
            case "list":
                # `limit` is ignored: a list is complete, which clients must support.
                wanted = selected(call, request.query)
                rows = api.store.rows(call.resource.key, call.namespace)
                chosen = [row for row in rows if wanted is None or wanted(row.obj)]
                return _list(request, call, chosen, api.store.revision)
            case "get":
                return _one(request, call, api.get(call))
            case "create":
                return await self._create(call, request)
            case "update":
                body = await body_of(request)
                return _object(call, await api.update(call, lambda _: body))
            case "patch":
                content_type = request.headers.get("Content-Type", "")
                return _object(call, await api.patch(call, content_type, await request.read()))
            case _:
                obj, gone = await api.delete(call, await delete_options_of(request, call))
                if not gone or call.resource.key == PODS:
                    return _object(call, obj)
                details = details_of(call.resource, call.name) | {"uid": obj["metadata"]["uid"]}
                return _json({**_SUCCESS, "details": details}, warnings=call.warnings)

    async def _create(self, call: Call, request: web.Request) -> web.Response:
        body = await body_of(request)
        if call.subresource not in ("binding", "eviction"):
            return _object(call, await self._api.create(call, body), status=201)
        if dig(body, "metadata.name") != call.name:
            kind = call.subresource.capitalize()
            raise bad_request(f"name in URL does not match name in {kind} object")
        act = self._api.bind if call.subresource == "binding" else self._api.evict
        await act(call, body)
        return _json({**_SUCCESS, "code": 201}, status=201, warnings=call.warnings)

    async def _watch(self, call: Call, request: web.Request) -> web.StreamResponse:
        watch = watch_request_of(call, request.query)
        as_table = _wants_table(request)

        def encoded(row: Stored) -> bytes:
            if as_table:
                return encode(table(call, [row], row.revision))
            return row.encoded(call.resource, call.version)

        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        transport = request.transport
        if transport is None:
            return response  # the client has gone already
        self._watching.add(transport)
        try:
            await response.prepare(request)
            async for piece in lines(self._api.store, call, watch, encoded):
                await response.write(piece)
            await response.write_eof()
        except ConnectionResetError:
            pass  # the client left, or its watch was aborted
        finally:
            self._watching.discard(transport)
        return response


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


def _one(request: web.Request, call: Call, row: Stored) -> web.Response:
    if _wants_table(request):
        return _json(table(call, [row], row.revision))
    return web.Response(
        body=row.encoded(call.resource, call.version), content_type="application/json"
    )


def _list(request: web.Request, call: Call, rows: list[Stored], revision: int) -> web.Response:
    """A list in the requested representation, made of cached encodings.

    Items of typed kinds have no kind and apiVersion in a list, as in Kubernetes.
    """
    if _wants_table(request):
        return _json(table(call, rows, revision))
    resource = call.resource
    items = [row.encoded(resource, call.version) for row in rows]
    own = {"kind": resource.kind, "apiVersion": resource.api_version(call.version)}
    if not resource.custom:
        items = [b"{" + item[len(encode(own)) :] for item in items]
    head = own | {"kind": resource.kind + "List", "metadata": {"resourceVersion": str(revision)}}
    body = encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"
    return web.Response(body=body, content_type="application/json")
