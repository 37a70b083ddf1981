"""Watches of gangs.

A watch has no queue of events: it has the set of places that may have changed since its last write,
and sends their present state. So a slow reader costs little, and one that does not take a write in
time is disconnected.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable
from typing import Final

from services.api.core.gang_book import DeletedGang, GangBook, GangEntry, Place
from services.api.core.gang_objects import GangForms
from services.api.core.requests import ReadOptions, Target
from services.api.core.versions import Version
from services.api.core.watch_events import WatchEvents
from services.api.errors import RequestFailed

#: Changes are collected for this long, so that a burst is one write; users see them within 0.2 s.
_COLLECT_S: Final = 0.1
#: Events in one write.
_EVENTS_MAX: Final = 500
#: How long a watch or read waits for a version that this replica has not reached.
VERSION_WAIT_S: Final = 3.0


class Watching:
    """The watches of one process, and the wait for versions."""

    def __init__(self, book: Callable[[], GangBook]) -> None:
        self._book = book
        self._watches: set[GangWatch] = set()
        self._moved = asyncio.Event()

    def __len__(self) -> int:
        return len(self._watches)

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
    ) -> None:
        """Nothing is sent before `events`.

        Raises:
            RequestFailed: 410, deletions since its version are not known any more.
        """
        self._book = book
        self._target = target
        self._options = options
        self._sees_all = sees_all
        self._dirty: set[Place] = set()
        self._news = asyncio.Event()
        self._ended = False
        self._failure: RequestFailed | None = None
        #: What has been sent; None: nothing, so that each gang is an addition.
        self._sent = None if options.send_initial else options.version
        #: With a selector that a gang may begin or cease to match: the places that matched.
        selector = options.selector
        self._matching: set[Place] | None = (
            set() if selector.phase is not None or selector.queue is not None else None
        )
        self._begin()

    def mark(self, places: frozenset[Place]) -> None:
        """Gangs at these places may have changed."""
        of_namespace = self._target.namespace
        self._dirty |= (
            {place for place in places if place[0] == of_namespace} if of_namespace else places
        )
        if self._dirty:
            self._news.set()

    def end(self, why: RequestFailed | None) -> None:
        """End it, with an error or without one."""
        self._ended, self._failure = True, why
        self._news.set()

    async def events(
        self, made: WatchEvents, sees: Callable[[set[str]], Awaitable[Container[str]]]
    ) -> AsyncIterator[bytes]:
        """What to write, until the watch ends. `sees` returns those of some namespaces that its
        user may see.
        """
        initial = self._options.send_initial
        while True:
            if self._failure is not None:
                yield made.error(self._failure)
            if self._ended:
                return
            book, places, self._dirty = self._book(), self._dirty, set()
            self._news.clear()
            visible = await sees({namespace for namespace, _ in places})
            upto = book.read
            lines = [
                line
                for place in sorted(places)
                if place[0] in visible
                for line in self._lines(book, place, made)
            ]
            self._sent = upto
            for at in range(0, len(lines), _EVENTS_MAX):
                yield b"".join(lines[at : at + _EVENTS_MAX])
            if initial:
                initial = False
                yield made.bookmark(book.version.text(), initial_end=True)
            await self._news.wait()
            await asyncio.sleep(_COLLECT_S)

    def _begin(self) -> None:
        book, sent = self._book(), self._sent
        if sent is None:
            self._dirty = set(book.places(self._target.namespace, None))
            return
        if not book.knows_deletions_since(sent):
            raise RequestFailed(410, f"resourceVersion {sent.text()} is too old: list again")
        changed = set(book.changed_since(sent))
        if self._matching is not None:
            unchanged = set(book.places(self._target.namespace, None)) - changed
            self._matching = {place for place in unchanged if self._matches(place)}
        gone = {place for place, one in book.deletions.items() if not sent.contains(one.version)}
        self.mark(frozenset(changed | gone))

    def _matches(self, place: Place) -> bool:
        """Whether the gang at a place is one that is watched."""
        book = self._book()
        entry = book.get(place)
        return entry is not None and matches(entry, self._target, self._options)

    def _lines(self, book: GangBook, place: Place, made: WatchEvents) -> list[bytes]:
        entry, gone = book.get(place), book.deletions.get(place)
        sent = self._sent
        lines: list[bytes] = []
        if gone is not None and sent is not None and not sent.contains(gone.version):
            lines += self._deleted(place, gone, made)
        if entry is None:
            return lines
        forms = book.forms(entry, sees_all=self._sees_all)
        if not matches(entry, self._target, self._options):
            # It matched, and does not any more: for this watch, it is gone.
            if self._matching is not None and place in self._matching:
                self._matching.discard(place)
                lines.append(made.event("DELETED", forms))
            return lines
        new = sent is None or not sent.contains(entry.since)
        if self._matching is not None:
            new = place not in self._matching
            self._matching.add(place)
        lines.append(made.event("ADDED" if new else "MODIFIED", forms))
        return lines

    def _deleted(self, place: Place, gone: DeletedGang, made: WatchEvents) -> list[bytes]:
        forms = gone.forms[self._sees_all]
        if self._matching is not None:
            if place not in self._matching:
                return []
            self._matching.discard(place)
        elif not _selected(forms, self._target, self._options):
            return []
        return [made.event("DELETED", forms)]


def matches(entry: GangEntry, target: Target, options: ReadOptions) -> bool:
    """Whether a gang is one of those that a request asks for."""
    verdict, selector = entry.verdict, options.selector
    namespace, name = entry.place
    return (
        target.name in {"", name}
        and selector.name in {None, name}
        and selector.namespace in {None, namespace}
        and selector.phase in {None, verdict.phase}
        and selector.queue in {None, verdict.queue}
    )


def _selected(forms: GangForms, target: Target, options: ReadOptions) -> bool:
    """The same for a gang that is gone, by its name only."""
    metadata, selector = forms.gang.metadata, options.selector
    return (
        target.name in {"", metadata.name}
        and selector.name in {None, metadata.name}
        and selector.namespace in {None, metadata.namespace}
    )
