"""Parses requests: path, query parameters, DeleteOptions."""

import random
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from aiohttp import web

from tutti.cluster.admission import Call
from tutti.cluster.errors import (
    bad_request,
    invalid,
    no_such_path,
    not_allowed,
    not_permitted,
    not_supported,
    unsupported,
)
from tutti.cluster.objects import Obj, Value, decode
from tutti.cluster.resources import PODS, Registry, Resource
from tutti.cluster.selectors import Predicate, selector
from tutti.cluster.watches import WATCH_S, WatchRequest

_TRUE = ("1", "true", "True")
_JSON_TYPES = ("", "application/json", "application/octet-stream")
# Verbs by method: of an object or its status, of a collection, of binding and eviction.
_ON_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_COLLECTION = {"GET": "list", "POST": "create"}
_ON_ACTION = {"POST": "create"}


class _Address(NamedTuple):
    group: str
    version: str
    namespace: str
    plural: str
    name: str = ""
    subresource: str = ""


def _address(path: str) -> _Address:
    """The address of an object or a collection. Raises ApiError 404 for another path."""
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
    return _Address(group, version, namespace, first, *more)


def call_of(request: web.Request, registry: Registry) -> tuple[str, Call]:
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
    strict = request.query.get("fieldValidation") == "Strict"
    return verb, Call(resource, version, namespace, name, sub, bool(dry_run), strict)


def _verb(request: web.Request, resource: Resource, name: str, sub: str) -> str:
    acts = sub in ("binding", "eviction") and resource.key == PODS
    if sub and not acts and not (sub == "status" and resource.has_status):
        raise no_such_path()
    verbs = _ON_ACTION if acts else _ON_OBJECT if name else _ON_COLLECTION
    verb = verbs.get(request.method)
    if verb is None or (sub and verb == "delete"):
        raise not_allowed()
    return "watch" if verb == "list" and request.query.get("watch") in _TRUE else verb


def _number(query: Mapping[str, str], name: str) -> int:
    """A query parameter that is a whole number; 0 when it is absent. Raises ApiError 400."""
    text = query.get(name) or "0"
    if not text.isascii() or not text.isdigit():
        raise bad_request(f'{name}: Invalid value: "{text}": must be a whole number, 0 or more')
    return int(text)


def selected(call: Call, query: Mapping[str, str]) -> Predicate | None:
    """The predicate of the call's selectors; None: all objects."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return selector(labels, fields, call.resource.plural, call.namespace)


def watch_request_of(call: Call, query: Mapping[str, str]) -> WatchRequest:
    """The parameters of a watch. Raises ApiError 400, and 422 for a streaming list.

    Clients that prefer streaming lists then fall back to a list.
    """
    if "sendInitialEvents" in query:
        error = not_permitted("sendInitialEvents", "streaming lists are not supported here")
        raise invalid("ListOptions", "meta.k8s.io", "", [error])
    # Random, so that the watches of many clients do not end together.
    spread_s = WATCH_S * (1 + random.random())  # noqa: S311 - no secret
    return WatchRequest(
        revision=_number(query, "resourceVersion") or None,
        bookmarks=query.get("allowWatchBookmarks") in _TRUE,
        timeout_s=_number(query, "timeoutSeconds") or spread_s,
        wanted=selected(call, query),
    )


async def body_of(request: web.Request) -> Value:
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


async def delete_options_of(request: web.Request, call: Call) -> Obj:
    """DeleteOptions from the body, or without one from the query; sets the call's dry run.

    Raises:
        ApiError: 400, 415.
    """
    sent = await body_of(request) if await request.read() else None
    query = {key: value for key, value in request.query.items() if key != "dryRun"}
    try:
        options = msgspec.convert(query if sent is None else sent, _DeleteOptions, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(f"DeleteOptions: {error}") from error
    call.dry_run = call.dry_run or options.dry_run == ["All"]
    found: Obj = msgspec.to_builtins(options)
    return found
