"""Watches: a history, filtered by a selector, as a stream of JSON lines."""

import asyncio
from collections.abc import AsyncIterator, Callable

from tutti.cluster.admission import Call
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import encode
from tutti.cluster.selectors import Predicate
from tutti.cluster.store import Change, Store, Stored

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
