"""Watches: a stored history, seen through a selector, as a stream of JSON lines."""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec

from tutti.cluster.admission import Call
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import Obj, encode
from tutti.cluster.selectors import Predicate
from tutti.cluster.store import Change, Follower, Store, Stored

# Without a deadline of the client's a watch ends after this long (the real server: 30 to 60 minutes).
WATCH_S = 1800
# How often a quiet watch is told where it stands, and how long before its end it is told once more (as the real one does).
BOOKMARK_S = 60
LAST_BOOKMARK_BEFORE_END_S = 2

Encode = Callable[[Stored], bytes]


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a watch request asks for."""

    revision: int | None  # None: begin with everything that is there
    initial_bookmark: bool  # say when the beginning is complete
    bookmarks: bool
    timeout_s: float
    wanted: Predicate | None


def _line(kind: str, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), obj)


def _bookmark(call: Call, revision: int, *, initial_end: bool = False) -> bytes:
    metadata: Obj = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    resource = call.resource
    obj = {
        "kind": resource.kind,
        "apiVersion": resource.api_version(call.version),
        "metadata": metadata,
    }
    return _line("BOOKMARK", encode(obj))


def _next_bookmark(now_s: float, end_s: float) -> float:
    soon_s = min(now_s + BOOKMARK_S, end_s - LAST_BOOKMARK_BEFORE_END_S)
    return soon_s if soon_s > now_s else end_s


def seen(change: Change, wanted: Predicate | None) -> tuple[str, Stored] | None:
    """A change as a selector's reader sees it: what comes into view is ADDED, what leaves it DELETED."""
    if wanted is None:
        return change.type, change.stored
    now = change.type != "DELETED" and wanted(change.stored.obj)
    before = change.previous is not None and wanted(change.previous.obj)
    if now:
        return ("MODIFIED" if before else "ADDED"), change.stored
    if not before or change.previous is None:
        return None
    if change.type == "DELETED":
        return "DELETED", change.stored
    return "DELETED", Stored(change.previous.obj, change.revision)


async def lines(store: Store, call: Call, wish: Wish, encoded: Encode) -> AsyncIterator[bytes]:
    """The stream, in pieces of whole lines, until its time is over or its history is lost (a last line says 410).

    Cancellation ends it at any point; nothing remains.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + wish.timeout_s
    next_bookmark = _next_bookmark(loop.time(), end)
    with Follower(store, call.resource.key, wish.revision) as follower:
        if wish.revision is None:
            # Taken in one step with the follower's position: no change falls between them.
            rows = store.rows(call.resource.key, call.namespace)
            chosen = [row for row in rows if wish.wanted is None or wish.wanted(row.obj)]
            piece = b"".join(_line("ADDED", encoded(row)) for row in chosen)
            if wish.initial_bookmark:
                piece += _bookmark(call, follower.revision, initial_end=True)
            if piece:
                yield piece
        while True:
            until = min(end, next_bookmark) if wish.bookmarks else end
            try:
                async with asyncio.timeout_at(until):
                    changes = await follower.read()
            except TimeoutError:
                if until == end:
                    return
                next_bookmark = _next_bookmark(loop.time(), end)
                yield _bookmark(call, follower.revision)
                continue
            except ApiError as error:
                yield _line("ERROR", encode(error.body()))
                return
            events = [event for change in changes if (event := seen(change, wish.wanted))]
            if events:
                yield b"".join(_line(kind, encoded(stored)) for kind, stored in events)
