"""Watches of gangs.

A watch has no queue of events: it has the set of places that may have changed since its last
events, and sends their present state. So a slow reader costs little, and one that does not take a
write in time is disconnected. Watches write one after another, each in its own pass of the event
loop: a change that concerns hundreds of them does not delay the answers to other requests.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Iterator,
)
from typing import Final

from services.api.core.gang_book import GangBook, GangEntry, Place
from services.api.core.gang_objects import GangForms
from services.api.core.requests import FieldSelector, ReadOptions, Target
from services.api.core.start_estimates import NO_ESTIMATES, StartEstimates, no_estimates
from services.api.core.versions import Version
from services.api.core.watch_events import EventKind, WatchEvents
from services.api.errors import RequestFailed

#: Changes are collected for this long, so that a burst is one write; users see them within 0.2 s.
_COLLECT_S: Final = 0.1
#: A write ends at this length or number of events, so that neither many watches that begin at once
#: nor a burst of changes keeps the event loop from other requests for long.
_WRITE_BYTES: Final = 256 * 1024
_WRITE_EVENTS: Final = 100
#: How long a watch or read waits for a version that this replica has not reached.
VERSION_WAIT_S: Final = 3.0


class Watching:
    """The watches of one process, and the wait for versions."""

    def __init__(self, book: Callable[[], GangBook]) -> None:
        self._book = book
        self._watches: set[GangWatch] = set()
        self._moved = asyncio.Event()
        #: Held by the watch that writes next.
        self._turn = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._watches)

    async def take_turn(self) -> None:
        """Wait for a pass of the event loop in which no other watch goes on from here.

        Other requests are answered in between. If all watches together need more time than there
        is, each gets its turns later, and its changes are collected for longer.
        """
        async with self._turn:
            await asyncio.sleep(0)

    def changed(self, places: Iterable[Place]) -> None:
        """Gangs at these places may have changed, or the version has."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        touched = frozenset(places)
        if touched:
            for watch in self._watches:
                watch.mark(touched)

    def end(self, why: RequestFailed | None) -> None:
        """End all watches, with an error or without one."""
        for watch in self._watches:
            watch.end(why)

    async def reach(self, version: Version | None) -> None:
        """Wait until this replica has read up to a version.

        Raises:
            RequestFailed: 410, it has not in time: the version is of another life of the streams.
        """
        if version is None:
            return
        try:
            async with asyncio.timeout(VERSION_WAIT_S):
                while not self._book().read.contains(version):
                    await self._moved.wait()
        except TimeoutError:
            raise RequestFailed(
                410, f"resourceVersion {version.text()} is not known: list again"
            ) from None

    def open(self, watch: "GangWatch") -> None:
        """Pass changes to a watch."""
        self._watches.add(watch)

    def close(self, watch: "GangWatch") -> None:
        """Pass it no more changes."""
        self._watches.discard(watch)


class GangWatch:
    """One watch of gangs, from a version on."""

    def __init__(
        self,
        book: Callable[[], GangBook],
        target: Target,
        options: ReadOptions,
        *,
        sees_all: bool,
        estimates: Callable[[], Awaitable[StartEstimates]] = no_estimates,
    ) -> None:
        """Nothing is sent before `events`. `estimates` is called before each write of events.

        Raises:
            RequestFailed: 410, deletions since its version are not known any more.
        """
        self._book = book
        self._target = target
        self._options = options
        self._sees_all = sees_all
        self._read_estimates = estimates
        self._estimates = NO_ESTIMATES
        self._dirty: set[Place] = set()
        self._news = asyncio.Event()
        self._ended = False
        self._failure: RequestFailed | None = None
        #: What has been sent; None: nothing, so that each gang is an addition.
        self._sent = None if options.send_initial else options.version
        #: With a selector that a gang may begin or cease to match: the places that matched, as far
        #: as the client knows.
        selector = options.selector
        self._matching: set[Place] | None = (
            set() if selector.phase is not None or selector.queue is not None else None
        )
        #: Whether gangs of all namespaces and names are watched: the usual case of many watches.
        self._of_all = not (target.namespace or target.name) and selector == FieldSelector(
            phase=selector.phase, queue=selector.queue
        )
        self._begin()

    def mark(self, places: Iterable[Place]) -> None:
        """Gangs at these places may have changed."""
        self._dirty.update(
            places
            if self._of_all
            else (place for place in places if is_named(place, self._target, self._options))
        )
        if self._dirty:
            self._news.set()

    def end(self, why: RequestFailed | None) -> None:
        """End it, with an error or without one."""
        self._ended, self._failure = True, why
        self._news.set()

    async def events(
        self,
        made: WatchEvents,
        sees: Callable[[set[str]], Awaitable[Container[str]]],
        take_turn: Callable[[], Awaitable[None]],
    ) -> AsyncIterator[bytes]:
        """What to write, until the watch ends. `sees` returns those of some namespaces that its
        user may see; `take_turn` is called before each write of events.
        """
        initial = self._options.send_initial
        while True:
            self._news.clear()
            if self._failure is not None:
                yield made.error(self._failure)
            if self._ended:
                return
            self._estimates = await self._read_estimates()
            await take_turn()
            visible = await self._visible(sees)
            book, places, self._dirty = self._book(), self._dirty, set()
            # Of the last writes, gangs may be newer than this: then they count as changed again.
            reached, version = book.read, book.version.text()
            visible_places = [place for place in sorted(places) if place[0] in visible]
            for count, write in enumerate(self._writes(book, visible_places, made)):
                if count:
                    await take_turn()
                yield write
            self._sent = reached
            if initial:
                initial = False
                yield made.bookmark(version, initial_end=True)
            await self._news.wait()
            await asyncio.sleep(_COLLECT_S)

    async def _visible(
        self, sees: Callable[[set[str]], Awaitable[Container[str]]]
    ) -> Container[str]:
        """Those namespaces that the user may see, of all changes, also of those that arrive while
        rights are checked.
        """
        checked: set[str] = set()
        visible: Container[str] = ()
        while not (wanted := {namespace for namespace, _ in self._dirty}) <= checked:
            visible, checked = await sees(wanted), wanted
        return visible

    def _begin(self) -> None:
        book, sent = self._book(), self._sent
        every = book.places(self._target.namespace, None)
        if sent is None:
            self.mark(every)
            return
        if not book.knows_deletions_since(sent):
            raise RequestFailed(410, f"resourceVersion {sent.text()} is too old: list again")
        changed = set(book.changed_since(sent))
        gone = {
            place for place, deleted in book.deletions.items() if not sent.contains(deleted.version)
        }
        if self._matching is not None:
            # Whether those that have changed matched at that version is not known any more.
            self._matching = gone | {place for place in changed if self._existed(place, sent)}
            self._matching |= {
                place for place in every if place not in changed and self._has(place)
            }
        self.mark(changed | gone)

    def _existed(self, place: Place, version: Version) -> bool:
        """Whether the gang at a place was there at a version."""
        entry = self._book().get(place)
        return entry is not None and version.contains(entry.since)

    def _has(self, place: Place) -> bool:
        """Whether the gang at a place matches."""
        entry = self._book().get(place)
        return entry is not None and matches(entry, self._target, self._options)

    def _writes(
        self, book: GangBook, places: Iterable[Place], made: WatchEvents
    ) -> Iterator[bytes]:
        """The events of some places, joined to writes. It ends early if the watch ends."""
        lines: list[bytes] = []
        size = 0
        for place in places:
            # What changed since the first write is in this one.
            self._dirty.discard(place)
            for kind, forms in self._changes(book, place):
                lines.append(made.event(kind, forms))
                size += len(lines[-1])
            if size >= _WRITE_BYTES or len(lines) >= _WRITE_EVENTS:
                yield b"".join(lines)
                lines, size = [], 0
                if self._ended:
                    return
        if lines:
            yield b"".join(lines)

    def _changes(self, book: GangBook, place: Place) -> Iterator[tuple[EventKind, GangForms]]:
        """The events of a place since what was sent, and the gang in each."""
        entry, gone, sent = book.get(place), book.deletions.get(place), self._sent
        if gone is not None and sent is not None and not sent.contains(gone.version):
            if self._matching is None or place in self._matching:
                yield "DELETED", gone.forms[self._sees_all]
            if self._matching is not None:
                self._matching.discard(place)
        if entry is None:
            return
        forms = self._estimates.join(entry, book.forms(entry, sees_all=self._sees_all))
        new = sent is None or not sent.contains(entry.since)
        if self._matching is not None:
            new = place not in self._matching
            if not matches(entry, self._target, self._options):
                if not new:
                    # It matched, and does not any more: for this watch, it is gone.
                    self._matching.discard(place)
                    yield "DELETED", forms
                return
            self._matching.add(place)
        yield "ADDED" if new else "MODIFIED", forms


def is_named(place: Place, target: Target, options: ReadOptions) -> bool:
    """Whether a request is for gangs of this namespace and name."""
    selector, (namespace, name) = options.selector, place
    return (
        target.namespace in {"", namespace}
        and target.name in {"", name}
        and selector.name in {None, name}
        and selector.namespace in {None, namespace}
    )


def matches(entry: GangEntry, target: Target, options: ReadOptions) -> bool:
    """Whether a gang is one of those that a request asks for."""
    verdict, selector = entry.verdict, options.selector
    return (
        is_named(entry.place, target, options)
        and selector.phase in {None, verdict.phase}
        and selector.queue in {None, verdict.queue}
    )
