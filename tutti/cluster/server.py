"""The HTTP server: from requests to calls, and from their results to responses; a watch is a
history, filtered by a selector, as a stream of JSON lines.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus

import msgspec
from aiohttp import web
from msgspec.structs import replace

from tutti.api.objects import field
from tutti.cluster import discovery
from tutti.cluster.admission import ADMIN_GROUPS, Call
from tutti.cluster.aggregation import Aggregator
from tutti.cluster.api import Api
from tutti.cluster.errors import (
    ApiError,
    bad_request,
    details_of,
    invalid,
    no_such_path,
    not_allowed,
    not_permitted,
    not_supported,
    unsupported,
)
from tutti.cluster.objects import Obj, Value, decode, encode
from tutti.cluster.patches import APPLY_PATCH
from tutti.cluster.resources import (
    ACCESS_REVIEWS,
    NAMESPACES,
    PODS,
    REVIEWS,
    TOKEN_REVIEWS,
    Key,
    Registry,
    Resource,
)
from tutti.cluster.selectors import Predicate, selector
from tutti.cluster.store import Change, Store, Stored
from tutti.cluster.tables import table

# Duration of a watch without a timeout of the client (the real server: 30 to 60 min).
WATCH_S = 1800
# Interval of bookmarks of an idle watch, and the time of the last one before its end.
BOOKMARK_S = 60
LAST_BOOKMARK_BEFORE_END_S = 2

Encode = Callable[[Stored], bytes]


def _line(kind: str, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), obj)


def _bookmark(call: Call, revision: int) -> bytes:
    metadata = {"resourceVersion": str(revision), "creationTimestamp": None}
    return _line("BOOKMARK", encode(call.resource.view({"metadata": metadata}, call.version)))


def _next_bookmark(now_s: float, end_s: float) -> float:
    soon_s = min(now_s + BOOKMARK_S, end_s - LAST_BOOKMARK_BEFORE_END_S)
    return soon_s if soon_s > now_s else end_s


def seen(change: Change, wanted: Predicate | None) -> tuple[str, Stored] | None:
    """A change through a selector: a new match is ADDED, a lost match is DELETED."""
    if wanted is None:
        return change.type, change.stored
    before = change.previous if change.previous and wanted(change.previous.obj) else None
    if change.type != "DELETED" and wanted(change.stored.obj):
        return ("MODIFIED" if before else "ADDED"), change.stored
    if before is None:
        return None
    going = change.type == "DELETED"
    return "DELETED", change.stored if going else Stored(before.obj, change.revision)


async def lines(
    store: Store,
    call: Call,
    encoded: Encode,
    *,
    revision: int | None,
    bookmarks: bool,
    timeout_s: float,
    wanted: Predicate | None,
) -> AsyncIterator[bytes]:
    """The stream, in pieces of whole lines, until its timeout; without a revision, it begins with
    all present objects.

    After a lost history the last line is an error 410. It can be cancelled at any point.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    next_bookmark = _next_bookmark(loop.time(), end)
    log = store.log(call.resource.key)
    if revision is None:
        revision = store.revision
        rows = store.rows(call.resource.key, call.namespace)
        chosen = [row for row in rows if wanted is None or wanted(row.obj)]
        if chosen:
            yield b"".join(_line("ADDED", encoded(row)) for row in chosen)
    while True:
        changed = log.changed
        try:
            changes = log.after(revision)
        except ApiError as error:
            yield _line("ERROR", encode(error.body()))
            return
        # The history is read up to here, so the position advances: an idle reader never expires.
        revision = max(revision, store.revision)
        events = [event for change in changes if (event := seen(change, wanted))]
        if events:
            yield b"".join(_line(kind, encoded(stored)) for kind, stored in events)
        if changes:
            continue
        until = min(end, next_bookmark) if bookmarks else end
        try:
            async with asyncio.timeout_at(until):
                await changed.wait()
        except TimeoutError:
            if until == end:
                return
            next_bookmark = _next_bookmark(loop.time(), end)
            yield _bookmark(call, revision)


_log = logging.getLogger(__name__)

BODY_BYTES_MAX = 3 * 1024 * 1024  # the API server's own limit
_SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_TRUE = ("1", "true", "True")
_JSON_TYPES = ("", "application/json", "application/octet-stream")
# Verbs by method: of an object or its status, of a collection, of binding and eviction.
_ON_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_ON_ACTION = {"POST": "create"}
_LOG = "log"
#: The log of every container.
_NO_LOG = "This node is simulated: no program runs in the pod, so there is nothing in its log.\n"


class Server:
    """Answers HTTP requests with the API and discovery."""

    def __init__(self, api: Api, aggregator: Aggregator) -> None:
        self._api = api
        self._aggregator = aggregator
        self._watching: set[asyncio.Transport] = set()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    def drop_watches(self) -> None:
        """Abort every open watch, as a lost connection does."""
        for transport in self._watching:
            transport.abort()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self.answer(request)
        except ApiError as error:
            return _failure(error)
        except web.HTTPRequestEntityTooLarge:
            return _failure(ApiError(413, "RequestEntityTooLarge", "the request is too large"))
        except Exception as error:  # noqa: BLE001 - one request's bug must not end other requests
            _log.exception("%s %s failed", request.method, request.path)
            return _failure(ApiError(500, "InternalError", f"Internal error occurred: {error!r}"))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The answer to a request. Raises ApiError."""
        path = request.path
        if path in ("/healthz", "/readyz", "/livez"):
            return web.Response(text="ok")
        registration = self._aggregator.registered(path.removeprefix(discovery.OPENAPI_V3))
        if registration is not None:
            return await self._aggregator.forward(registration, request)
        if path == discovery.OPENAPI_V2:
            # Empty, in protobuf.
            return web.Response(body=b"", content_type="application/octet-stream")
        document = discovery.document(path, self._api.registry, self._aggregator.groups())
        if document is not None:
            return _json(document)
        verb, call = _call_of(request, self._api.registry)
        return await self.carry_out(verb, call, request)

    async def carry_out(self, verb: str, call: Call, request: web.Request) -> web.StreamResponse:
        """The answer to a request about objects. Raises ApiError."""
        api = self._api
        match verb:
            case "watch":
                return await self._watch(call, request)
            case "list":
                # `limit` is ignored: a list is complete, which clients must support.
                return _list(request, call, self._chosen(call, request), api.store.revision)
            case "get":
                return self._get(request, call)
            case "create":
                return await self._create(call, request)
            case "update":
                body = await _body_of(request)
                return _object(call, await api.update(call, lambda _: body))
            case "patch":
                content_type = request.headers.get("Content-Type", "")
                if content_type.startswith(APPLY_PATCH):
                    manager, force = (
                        request.query.get("fieldManager", ""),
                        request.query.get("force"),
                    )
                    obj, is_new = await api.apply(
                        call, await request.read(), manager, force=force in _TRUE
                    )
                    return _object(call, obj, status=201 if is_new else 200)
                return _object(call, await api.patch(call, content_type, await request.read()))
            case "deletecollection":
                return await self._delete_all(call, request)
            case _:
                obj, gone = await api.delete(call, await _delete_options_of(request, call))
                if not gone or call.resource.key == PODS:
                    return _object(call, obj)
                details = details_of(call.resource, call.name) | {"uid": obj["metadata"]["uid"]}
                return _json({**_SUCCESS, "details": details}, warnings=call.warnings)

    def _get(self, request: web.Request, call: Call) -> web.Response:
        if call.subresource == _LOG:
            self._api.get(replace(call, subresource=""))
            return web.Response(text=_NO_LOG)
        return _one(request, call, self._api.get(call))

    def _chosen(self, call: Call, request: web.Request) -> list[Stored]:
        """The objects of a collection that the request's selectors choose."""
        wanted = _selected(call, request.query)
        rows = self._api.store.rows(call.resource.key, call.namespace)
        return [row for row in rows if wanted is None or wanted(row.obj)]

    async def _delete_all(self, call: Call, request: web.Request) -> web.Response:
        """Delete each chosen object; the answer lists them as they were before."""
        options = await _delete_options_of(request, call)
        api = self._api
        chosen, revision = self._chosen(call, request), api.store.revision
        for row in chosen:
            try:
                await api.delete(replace(call, name=row.obj["metadata"]["name"]), options)
            except ApiError as error:
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
        return _list(request, call, chosen, revision)

    async def _create(self, call: Call, request: web.Request) -> web.Response:
        body = await _body_of(request)
        if call.resource.key in REVIEWS:
            return _object(call, _reviewed(call.resource.key, body), status=201)
        if call.subresource not in ("binding", "eviction"):
            return _object(call, await self._api.create(call, body), status=201)
        if field(body, "metadata.name") != call.name:
            kind = call.subresource.capitalize()
            raise bad_request(f"name in URL does not match name in {kind} object")
        act = self._api.bind if call.subresource == "binding" else self._api.evict
        await act(call, body)
        return _json({**_SUCCESS, "code": 201}, status=201, warnings=call.warnings)

    async def _watch(self, call: Call, request: web.Request) -> web.StreamResponse:
        as_table = _wants_table(request)

        def encoded(row: Stored) -> bytes:
            if as_table:
                return encode(table(call, [row], row.revision))
            return row.encoded(call.resource, call.version)

        pieces = self._watch_lines(call, request.query, encoded)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        transport = request.transport
        if transport is None:
            return response  # the client has gone already
        self._watching.add(transport)
        try:
            await response.prepare(request)
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
        except ConnectionResetError:
            pass  # the client left, or its watch was aborted
        finally:
            self._watching.discard(transport)
        return response

    def _watch_lines(
        self, call: Call, query: Mapping[str, str], encoded: Encode
    ) -> AsyncIterator[bytes]:
        """The lines of a watch. Raises ApiError 400, and 422 for a streaming list.

        Clients that prefer streaming lists then fall back to a list.
        """
        if "sendInitialEvents" in query:
            error = not_permitted("sendInitialEvents", "streaming lists are not supported here")
            raise invalid("ListOptions", "meta.k8s.io", "", [error])
        # Random, so that the watches of many clients do not end together.
        spread_s = WATCH_S * (1 + random.random())  # noqa: S311 - no secret
        return lines(
            self._api.store,
            call,
            encoded,
            revision=_number(query, "resourceVersion") or None,
            bookmarks=query.get("allowWatchBookmarks") in _TRUE,
            timeout_s=_number(query, "timeoutSeconds") or spread_s,
            wanted=_selected(call, query),
        )


def _reviewed(key: Key, body: Obj) -> Obj:
    """The body of a review with its answer in the status. No token is known, and a user may do
    everything as a member of the administrators' group, and nothing otherwise.
    """
    if key == TOKEN_REVIEWS:
        return body | {"status": {"user": {}, "error": "this cluster knows no tokens"}}
    if key == ACCESS_REVIEWS:
        allowed = ADMIN_GROUPS[0] in (field(body, "spec.groups") or ())
        return body | {"status": {"allowed": allowed, "reason": "" if allowed else "no RBAC here"}}
    raise KeyError(key)


def _address(path: str) -> tuple[str, str, str, str, str, str]:
    """Group, version, namespace, plural, name and subresource of an object or a collection. Raises
    ApiError 404 for another path.
    """
    match [step for step in path.split("/") if step]:
        case ["api", version, first, *more]:
            group = ""
        case ["apis", group, version, first, *more]:
            pass
        case _:
            raise no_such_path()
    namespace = ""
    if first == "namespaces" and len(more) >= 2 and more[1] != "status":
        namespace, first, *more = more
    if len(more) > 2:
        raise no_such_path()
    name, subresource, *_ = *more, "", ""
    return group, version, namespace, first, name, subresource


def _call_of(request: web.Request, registry: Registry) -> tuple[str, Call]:
    """The verb and the call.

    Raises:
        ApiError: 404 for an unknown kind, 405 for an unsupported method, 422 for parameters.
    """
    group, version, namespace, plural, name, sub = _address(request.path)
    resource = registry.get((group, plural))
    if resource is None or version not in resource.versions:
        raise no_such_path()
    if namespace and not resource.namespaced:
        raise no_such_path()
    verb = _verb(request, resource, name, sub)
    if verb not in ("list", "watch") and resource.namespaced and not namespace:
        raise not_allowed()
    dry_run = request.query.getall("dryRun", [])
    if dry_run not in ([], ["All"]):
        error = not_supported("dryRun", dry_run[0], ["All"])
        raise invalid(f"{verb.capitalize()}Options", "meta.k8s.io", "", [error])
    validation = request.query.get("fieldValidation", "")
    return verb, Call(resource, version, namespace, name, sub, bool(dry_run), validation)


def _verb(request: web.Request, resource: Resource, name: str, sub: str) -> str:
    acts = sub in ("binding", "eviction") and resource.key == PODS
    if sub == _LOG and resource.key == PODS and request.method == "GET":
        return "get"
    if sub and not acts and not (sub == "status" and resource.has_status):
        raise no_such_path()
    verbs = _ON_ACTION if acts else _ON_OBJECT if name else _ON_COLLECTION
    verb = verbs.get(request.method)
    if verb == "deletecollection" and resource.key == NAMESPACES:
        raise not_allowed()
    if verb is None or (sub and verb == "delete"):
        raise not_allowed()
    if resource.key in REVIEWS and verb != "create":
        raise not_allowed()
    return "watch" if verb == "list" and request.query.get("watch") in _TRUE else verb


def _number(query: Mapping[str, str], name: str) -> int:
    """A query parameter that is a whole number; 0 when it is absent. Raises ApiError 400."""
    text = query.get(name) or "0"
    if not text.isascii() or not text.isdigit():
        raise bad_request(f'{name}: Invalid value: "{text}": must be a whole number, 0 or more')
    return int(text)


def _selected(call: Call, query: Mapping[str, str]) -> Predicate | None:
    """The predicate of the call's selectors; None: all objects."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return selector(labels, fields, call.resource.plural, call.namespace)


async def _body_of(request: web.Request) -> Value:
    """The request's JSON. Raises ApiError 400 or 415."""
    content_type = request.content_type if "Content-Type" in request.headers else ""
    if content_type not in _JSON_TYPES:
        raise unsupported(content_type, "application/json")
    try:
        return decode(await request.read())
    except ValueError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error


class _DeleteOptions(msgspec.Struct, rename="camel", omit_defaults=True):
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    preconditions: dict[str, str] | None = None
    dry_run: list[str] | None = None


async def _delete_options_of(request: web.Request, call: Call) -> Obj:
    """DeleteOptions from the body, or without one from the query; sets the call's dry run.

    Raises:
        ApiError: 400, 415.
    """
    sent = await _body_of(request) if await request.read() else None
    query = {key: value for key, value in request.query.items() if key != "dryRun"}
    try:
        options = msgspec.convert(query if sent is None else sent, _DeleteOptions, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(f"DeleteOptions: {error}") from error
    call.dry_run = call.dry_run or options.dry_run == ["All"]
    plain: Obj = msgspec.to_builtins(options)
    return plain


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
