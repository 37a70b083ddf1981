"""The HTTP face: addresses, query parameters, representations and status codes."""

import asyncio
import logging
import random
from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import web

from tutti.cluster import discovery
from tutti.cluster.admission import Call
from tutti.cluster.api import Api
from tutti.cluster.errors import (
    ApiError,
    FieldError,
    bad_request,
    expired,
    no_such_path,
    not_allowed,
    unsupported,
)
from tutti.cluster.misbehave import Misbehaviour
from tutti.cluster.objects import Obj, Value, decode, encode
from tutti.cluster.resources import NAMESPACES, PODS, Resource
from tutti.cluster.selectors import Predicate, selector
from tutti.cluster.store import Stored
from tutti.cluster.tables import table
from tutti.cluster.watching import WATCH_S, Wish, lines

_log = logging.getLogger(__name__)

BODY_BYTES_MAX = 3 * 1024 * 1024  # the API server's own limit
_TRUE = ("1", "true", "True")
# Built-in kinds whose DELETE answers with the object even when it is gone at once.
_RETURNED = frozenset(
    [
        "pods",
        "services",
        "serviceaccounts",
        "resourcequotas",
        "persistentvolumes",
        "persistentvolumeclaims",
        "namespaces",
        "storageclasses",
    ]
)
_JSON_TYPES = ("", "application/json", "application/octet-stream")


def _parse(steps: list[str]) -> tuple[str, str, str, str, str, str] | None:
    """(group, version, namespace, plural, name, subresource) of a path, or None if it is no object's."""
    match steps:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return None
    match rest:
        case ["namespaces", name, *sub] if len(sub) == 0 or (
            len(sub) == 1 and sub[0] in ("status", "finalize")
        ):
            return group, version, "", "namespaces", name, "".join(sub)
        case ["namespaces", namespace, plural, *more] if len(more) <= 2:
            name, sub_name = [*more, "", ""][:2]
            return group, version, namespace, plural, name, sub_name
        case [plural, *more] if len(more) <= 2:
            name, sub_name = [*more, "", ""][:2]
            return group, version, "", plural, name, sub_name
    return None


class Server:
    """Requests in, answers out."""

    def __init__(self, api: Api) -> None:
        self._api = api
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
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.path)
            return _failure(ApiError(500, "InternalError", f"Internal error occurred: {error!r}"))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in ("/healthz", "/readyz", "/livez"):
            return web.Response(text="ok")
        if (
            path == "/openapi/v2"
        ):  # an empty document (in protobuf): kubectl then validates nothing itself
            return web.Response(body=b"", content_type="application/octet-stream")
        if path == "/tutti/misbehave":
            if request.method == "POST":
                self.misbehave.obey(await request.read())
            return _json({"done": self.misbehave.done})
        if (
            request.method == "GET"
            and (document := discovery.answer(path, self._api.registry)) is not None
        ):
            return _json(document)
        verb, call = self._call(request)
        fault = self.misbehave.fault(verb, call)
        if fault is not None and fault.latency_ms:
            await asyncio.sleep(fault.latency_ms / 1000)
        if fault is not None and fault.error is not None and not fault.after:
            raise fault.error
        answer = await self._do(verb, call, request)
        if fault is not None and fault.error is not None:
            raise fault.error
        return answer

    def _call(self, request: web.Request) -> tuple[str, Call]:
        """What a request wants.

        Raises:
            ApiError: 404 for an address without a kind, 405 for a method it does not have, 400 or 422 for parameters.
        """
        steps = [step for step in request.path.split("/") if step]
        address = _parse(steps)
        if address is None:
            raise no_such_path()
        group, version, namespace, plural, name, subresource = address
        if (group, plural, name) == ("", "bindings", ""):
            plural, subresource = (
                "pods",
                "binding",
            )  # the old way to bind: the pod's name is in the body
        resource = self._api.registry.find(group, version, plural)
        if resource is None or (namespace and not resource.namespaced):
            raise no_such_path()
        verb = _verb(request, resource, name, subresource, namespace)
        query = request.query
        dry_run = query.getall("dryRun", [])
        if dry_run not in ([], ["All"]):
            raise _bad_option("dryRun", ",".join(dry_run), 'supported values: "All"')
        validation = query.get("fieldValidation") or "Warn"
        if validation not in ("Ignore", "Warn", "Strict"):
            raise _bad_option(
                "fieldValidation", validation, 'supported values: "Ignore", "Strict", "Warn"'
            )
        return verb, Call(
            resource=resource,
            version=version,
            namespace=namespace,
            name=name,
            subresource=subresource,
            dry_run=bool(dry_run),
            field_validation=validation,
        )

    async def _do(self, verb: str, call: Call, request: web.Request) -> web.StreamResponse:
        api = self._api
        match verb:
            case "watch":
                return await self._watch(call, request)
            case "list":
                return self._list(call, request)
            case "get":
                row = api.get(call)
                if _wants_table(request):
                    return _json(table(call, [row], {"resourceVersion": str(row.revision)}))
                return web.Response(
                    body=row.encoded(call.resource, call.version), content_type="application/json"
                )
            case "create":
                return await self._create(call, request)
            case "update":
                body = await _body(request)
                return _object(call, await api.update(call, lambda _: body))
            case "patch":
                return _object(
                    call,
                    await api.patch(
                        call, request.headers.get("Content-Type", ""), await request.read()
                    ),
                )
            case "delete":
                obj, gone = await api.delete(call, await _delete_options(call, request))
                if gone and call.resource.plural not in _RETURNED:
                    return _json(_success(call, obj), warnings=call.warnings)
                return _object(call, obj)
            case _:
                chosen = await api.delete_collection(
                    call, _selected(call, request.query), await _delete_options(call, request)
                )
                revision = api.store.revision
                rows = [Stored(obj, int(obj["metadata"]["resourceVersion"])) for obj in chosen]
                return _list_response(call, rows, {"resourceVersion": str(revision)})

    async def _create(self, call: Call, request: web.Request) -> web.Response:
        body = await _body(request)
        if call.subresource in ("binding", "eviction"):
            if not isinstance(body, dict):
                raise bad_request("the body of the request is not an object")
            if not call.name:
                call.name = str((body.get("metadata") or {}).get("name") or "")
            await (self._api.bind if call.subresource == "binding" else self._api.evict)(call, body)
            return _json({**_SUCCESS, "code": 201}, status=201, warnings=call.warnings)
        return _object(call, await self._api.create(call, body), status=201)

    def _list(self, call: Call, request: web.Request) -> web.Response:
        query = request.query
        if "sendInitialEvents" in query:
            raise _bad_list_option("sendInitialEvents", "sendInitialEvents is forbidden for list")
        revision = self._api.store.revision
        asked = _number(query, "resourceVersion") or 0
        if asked > revision:
            text = f"Too large resource version: {asked}, current: {revision}"
            raise ApiError(504, "Timeout", text, retry_after_s=1)
        if query.get("resourceVersionMatch") == "Exact" and asked < revision:
            raise expired(f"too old resource version: {asked} ({revision})")
        # `limit` is not kept: a list comes whole, which its client has to be ready for anyway.
        rows, metadata = (
            self._api.select(call, _selected(call, query)),
            {"resourceVersion": str(revision)},
        )
        if _wants_table(request):
            return _json(table(call, rows, metadata))
        return _list_response(call, rows, metadata)

    async def _watch(self, call: Call, request: web.Request) -> web.StreamResponse:
        wish = _wish(call, request.query)
        as_table = _wants_table(request)
        first = True

        def encoded(row: Stored) -> bytes:
            nonlocal first
            if not as_table:
                return row.encoded(call.resource, call.version)
            with_head, first = first, False
            return encode(
                table(call, [row], {"resourceVersion": str(row.revision)}, with_head=with_head)
            )

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


def _verb(
    request: web.Request, resource: Resource, name: str, subresource: str, namespace: str
) -> str:
    known = {"status"} if resource.has_status else set[str]()
    known |= {"binding", "eviction"} if resource.key == PODS else set()
    known |= {"finalize"} if resource.key == NAMESPACES else set()
    if subresource and subresource not in known:
        raise no_such_path()
    verb = ""
    if request.method == "GET":
        watch = request.query.get("watch") in _TRUE
        verb = "get" if name else "watch" if watch else "list"
    elif subresource in ("binding", "eviction") or not name:
        verb = {"POST": "create", "DELETE": "deletecollection"}.get(request.method, "")
    else:
        verb = {"PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(request.method, "")
    if not verb or (subresource and verb in ("delete", "deletecollection")):
        raise not_allowed()
    if verb not in ("list", "watch") and resource.namespaced and not namespace:
        raise not_allowed()
    return verb


def _bad_option(name: str, value: str, rule: str) -> ApiError:
    text = f'Invalid value: "{value}": {rule}'
    cause = FieldError(name, "FieldValueInvalid", text).cause
    return ApiError(422, "Invalid", f' "" is invalid: {name}: {text}', details={"causes": [cause]})


def _bad_list_option(name: str, why: str) -> ApiError:
    cause = FieldError(name, "FieldValueForbidden", f"Forbidden: {why}").cause
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]}
    text = f'ListOptions.meta.k8s.io "" is invalid: {name}: Forbidden: {why}'
    return ApiError(422, "Invalid", text, details=details)


def _number(query: Mapping[str, str], name: str) -> int | None:
    """A query parameter that is a number; None when it is absent."""
    text = query.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise bad_request(
            f'{name}: Invalid value: "{text}": must be a whole number that is not negative'
        )
    return int(text)


def _selected(call: Call, query: Mapping[str, str]) -> Predicate | None:
    label_text, field_text = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return selector(label_text, field_text, call.resource.plural, call.namespace)


def _wish(call: Call, query: Mapping[str, str]) -> Wish:
    initial = query.get("sendInitialEvents")
    match_rule = query.get("resourceVersionMatch", "")
    if initial is not None and match_rule != "NotOlderThan":
        raise _bad_list_option(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )
    if initial is None and match_rule:
        raise _bad_list_option(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )
    revision = _number(query, "resourceVersion") or 0
    from_start = initial in _TRUE or (initial is None and not revision)
    bookmarks = query.get("allowWatchBookmarks") in _TRUE
    timeout_s = _number(query, "timeoutSeconds")
    return Wish(
        revision=None if from_start else revision,
        initial_bookmark=initial in _TRUE and bookmarks,
        bookmarks=bookmarks,
        # Spread, so that many clients' watches do not end together.
        timeout_s=timeout_s or WATCH_S * (1 + random.random()),  # noqa: S311 - no secret
        wanted=_selected(call, query),
    )


async def _body(request: web.Request) -> Value:
    content_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
    if content_type not in _JSON_TYPES:
        raise unsupported(content_type, "application/json")
    try:
        return decode(await request.read())
    except ValueError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error


async def _delete_options(call: Call, request: web.Request) -> Obj:
    """DeleteOptions from the body, or from the query where there is none."""
    raw = await request.read()
    body = await _body(request) if raw else {}
    if not isinstance(body, dict):
        raise bad_request("DeleteOptions is not an object")
    query = request.query
    if not raw:
        body = {name: query[name] for name in ("propagationPolicy",) if name in query}
        if (grace_s := _number(query, "gracePeriodSeconds")) is not None:
            body["gracePeriodSeconds"] = grace_s
    grace = body.get("gracePeriodSeconds")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise bad_request("DeleteOptions: gracePeriodSeconds is not a whole number")
    if not isinstance(body.get("preconditions") or {}, dict):
        raise bad_request("DeleteOptions: preconditions is not an object")
    call.dry_run = call.dry_run or body.get("dryRun") == ["All"]
    return body


def _wants_table(request: web.BaseRequest) -> bool:
    return "as=Table" in request.headers.get("Accept", "")


_SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def _success(call: Call, obj: Obj) -> Obj:
    group = {"group": call.resource.group} if call.resource.group else {}
    metadata = obj["metadata"]
    details = {
        "name": metadata["name"],
        **group,
        "kind": call.resource.plural,
        "uid": metadata["uid"],
    }
    return {**_SUCCESS, "details": details}


def _json(
    document: object, *, status: int = 200, warnings: list[str] | None = None
) -> web.Response:
    response = web.Response(body=encode(document), status=status, content_type="application/json")
    for text in warnings or ():
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response


def _object(call: Call, obj: Obj, *, status: int = 200) -> web.Response:
    return _json(call.resource.view(obj, call.version), status=status, warnings=call.warnings)


def _failure(error: ApiError) -> web.Response:
    response = _json(error.body(), status=error.code)
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s)
    response.set_status(error.code, HTTPStatus(error.code).phrase)
    return response


def _list_response(call: Call, rows: list[Stored], metadata: Obj) -> web.Response:
    """A list made of encodings that exist already; typed kinds' items go without kind and apiVersion, as in Kubernetes."""
    resource = call.resource
    version = resource.api_version(call.version)
    head = encode({"kind": resource.kind + "List", "apiVersion": version, "metadata": metadata})[
        :-1
    ]
    items = [row.encoded(resource, call.version) for row in rows]
    if not resource.custom:
        typed = len(encode({"kind": resource.kind, "apiVersion": version}))
        items = [b"{" + item[typed:] for item in items]
    body = head + b',"items":[' + b",".join(items) + b"]}"
    return web.Response(body=body, content_type="application/json")
