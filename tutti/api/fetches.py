"""Lists objects, and follows their changes."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from shared.kube.client import KubeClient
from shared.kube.decoding import Bookmark, KindDecoder, ListPage, Undecodable
from shared.kube.errors import ApiError, Gone, KubeError, MalformedAnswer, NotFound, TransportError
from shared.kube.resources import Resource
from shared.pacing import Backoff
from tutti.api.objects import Object, name_of, namespace_of, text

#: kubectl's; an API server answers pages of this size from its cache.
_PAGE: Final = 500
#: The API server ends a watch sooner; silence beyond this is a dead connection.
_SILENCE_S: Final = 400.0
_WATCH_S: Final = 300
_BACKOFF_S_BASE: Final = 0.1
_BACKOFF_S_MAX: Final = 10.0

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]

K = TypeVar("K")
T = TypeVar("T")

_decoder: Final = KindDecoder[dict[str, Any]](dict[str, Any])


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A selection of objects of a kind; namespace "": of all, or of a kind without namespaces."""

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def params(self) -> dict[str, str]:
        given = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {key: value for key, value in given.items() if value}


def named(resource: Resource, obj: Object) -> Wanted:
    """The object with the name and the namespace of `obj`."""
    return Wanted(
        resource=resource,
        namespace=namespace_of(obj),
        field_selector=f"metadata.name={name_of(obj)}",
    )


async def at_once(keys: Iterable[K], work: Callable[[K], Coroutine[Any, Any, T]]) -> dict[K, T]:
    """What `work` returns for each key, all at the same time. Raises an ExceptionGroup."""
    async with asyncio.TaskGroup() as group:
        tasks = {key: group.create_task(work(key), name=f"{key}") for key in keys}
    return {key: task.result() for key, task in tasks.items()}


async def get(client: KubeClient, resource: Resource, name: str, namespace: str = "") -> Object:
    """Read one object. Raises NotFound, and as `KubeClient.request` does."""
    reply = await client.request("GET", resource.path(namespace, name))
    obj: Object = msgspec.json.decode(reply.body)
    return obj


async def find(
    client: KubeClient, resource: Resource, name: str, kind: type[T], *, namespace: str = ""
) -> T | None:
    """One object, decoded as `kind`; None: there is none. Raises as `get` does."""
    try:
        return await client.get(resource, name, kind, namespace=namespace)
    except NotFound:
        return None


async def fetch(client: KubeClient, wanted: Wanted) -> list[Object]:
    """List with a consistent read. Raises as `KubeClient.request` does."""
    objects, _ = await _listed(client, wanted)
    return objects


async def list_typed(
    client: KubeClient,
    resource: Resource,
    kind: type[T],
    *,
    namespace: str = "",
    field_selector: str = "",
) -> list[T]:
    """All objects of a kind, decoded as `kind`, without undecodable ones. Raises as `get` does."""
    wanted = Wanted(resource=resource, namespace=namespace, field_selector=field_selector)
    return [
        item
        async for page in _pages(client, wanted, kind)
        for item in page.items
        if not isinstance(item, Undecodable)
    ]


async def follow(
    client: KubeClient, wanted: Wanted
) -> AsyncGenerator[tuple[EventType, Object], None]:
    """Every present object as ADDED, then each change, without gaps, until the caller stops.

    A lost connection is resumed with growing pauses. After a gap that a watch cannot bridge,
    changed objects follow as MODIFIED, and deleted ones as DELETED in their last known state.

    Raises KubeError when the first list fails, or the API server refuses; later transient failures
    are retried.
    """
    backoff = Backoff(base_s=_BACKOFF_S_BASE, max_s=_BACKOFF_S_MAX)
    known: dict[str, Object] = {}
    version = ""
    first = True
    while True:
        try:
            if not version:
                objects, version = await _listed(client, wanted)
                first = False
                for change in _differences(known, objects):
                    yield change
            async for kind, obj in _watched(client, wanted, version):
                version = text(obj, "metadata.resourceVersion") or version
                backoff.reset()
                if kind == "BOOKMARK":
                    continue
                _remember(known, kind, obj)
                yield kind, obj
            # A watch that ends at once, again and again, must not become a hot loop.
            await asyncio.sleep(backoff.next_s())
        except Gone:
            version = ""
        except (TransportError, MalformedAnswer, ApiError) as error:
            if first or not _is_transient(error):
                raise
            await asyncio.sleep(backoff.next_s())


async def _pages(client: KubeClient, wanted: Wanted, kind: type[T]) -> AsyncIterator[ListPage[T]]:
    token = ""
    while True:
        page = await client.list(
            wanted.resource,
            kind,
            namespace=wanted.namespace,
            label_selector=wanted.label_selector,
            field_selector=wanted.field_selector,
            limit=_PAGE,
            continue_=token,
        )
        yield page
        token = page.metadata.continue_
        if not token:
            return


async def _listed(client: KubeClient, wanted: Wanted) -> tuple[list[Object], str]:
    # Items of a list have no kind of their own when the kind is built in.
    known = {"apiVersion": wanted.resource.api_version, "kind": wanted.resource.kind}
    objects: list[Object] = []
    version = ""
    async for page in _pages(client, wanted, dict[str, Any]):
        objects += [{**known, **_decoded(item)} for item in page.items]
        version = page.metadata.resource_version
    return objects, version


async def _watched(
    client: KubeClient, wanted: Wanted, version: str
) -> AsyncIterator[tuple[EventType | Literal["BOOKMARK"], Object]]:
    params = {
        **wanted.params(),
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(_WATCH_S),
    }
    path = wanted.resource.path(wanted.namespace)
    async with client.stream(path, params, silence_s=_SILENCE_S) as stream:
        while lines := await stream.batch():
            for line in lines:
                try:
                    change = _decoder.change(line)
                except msgspec.MsgspecError as error:
                    what = f"watch of {wanted.resource.title}"
                    raise MalformedAnswer(f"{what}: {error}") from None
                if isinstance(change, Bookmark):
                    metadata = {"resourceVersion": change.resource_version}
                    yield "BOOKMARK", {"metadata": metadata}
                else:
                    yield change.type, _decoded(change.object)


def _decoded(item: Object | Undecodable) -> Object:
    """Any JSON object decodes as a dict."""
    if isinstance(item, Undecodable):
        raise MalformedAnswer(f"{item.metadata.name}: {item.error}")
    return item


def _is_transient(error: KubeError) -> bool:
    """Whether a retry may succeed: the API server starts, or sheds load."""
    return not isinstance(error, ApiError) or error.status >= 500 or error.status == 429


def _differences(known: dict[str, Object], objects: list[Object]) -> list[tuple[EventType, Object]]:
    """The changes that a list shows, in its order; `known` is updated."""
    present = {text(each, "metadata.uid") for each in objects}
    gone = [uid for uid in known if uid not in present]
    changes: list[tuple[EventType, Object]] = [("DELETED", known.pop(uid)) for uid in gone]
    for each in objects:
        before = known.get(text(each, "metadata.uid"))
        if before is None:
            changes.append(("ADDED", each))
        elif text(before, "metadata.resourceVersion") != text(each, "metadata.resourceVersion"):
            changes.append(("MODIFIED", each))
        known[text(each, "metadata.uid")] = each
    return changes


def _remember(known: dict[str, Object], kind: EventType, obj: Object) -> None:
    uid = text(obj, "metadata.uid")
    if kind == "DELETED":
        known.pop(uid, None)
    else:
        known[uid] = obj
