"""Every object, one counter of revisions, and per kind a bounded history that watches are read from.

Invariants: a stored object is never changed, only replaced; each change takes the next revision and is its object's
`resourceVersion`; what a reader missed because it was too slow or away too long is an `expired` error, never a gap.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from tutti.cluster.errors import expired
from tutti.cluster.objects import Obj, encode
from tutti.cluster.resources import Key, Resource

Place = tuple[str, str]  # (namespace or "", name)

# Changes kept per kind. The real API server keeps some hundreds to some ten thousands, by demand.
HISTORY_MAX = 10_000


class Stored:
    """One state of one object, with its encodings: each is made once, for all watchers and lists."""

    __slots__ = ("_encoded", "obj", "revision")

    def __init__(self, obj: Obj, revision: int) -> None:
        self.obj = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(revision)}}
        self.revision = revision
        self._encoded: dict[tuple[str, str], bytes] = {}

    def encoded(self, resource: Resource, version: str) -> bytes:
        """The object's JSON in one served version."""
        known = self._encoded.get((resource.group, version))
        if known is None:
            known = self._encoded[(resource.group, version)] = encode(
                resource.view(self.obj, version)
            )
        return known


class Change(NamedTuple):
    """ADDED, MODIFIED or DELETED (with the object's last state, under the deletion's revision)."""

    revision: int
    type: str
    stored: Stored
    previous: Stored | None


class Log:
    """One kind's history."""

    def __init__(self, floor: int, history_max: int) -> None:
        self._changes: list[Change] = []
        self._floor = floor  # reading from below this revision would miss something
        self._history_max = history_max
        self.wakers: set[asyncio.Event] = set()

    def append(self, change: Change) -> None:
        """Adds a change and wakes the readers. Trims in halves, so that a change costs no copy of the history."""
        self._changes.append(change)
        if len(self._changes) > 2 * self._history_max:
            dropped = len(self._changes) - self._history_max
            self._floor = self._changes[dropped - 1].revision
            del self._changes[:dropped]
        self.wake()

    def wake(self) -> None:
        """Lets every reader look again."""
        for waker in self.wakers:
            waker.set()

    def expire(self, floor: int) -> None:
        """Forgets everything before a revision."""
        self._changes.clear()
        self._floor = floor
        self.wake()

    def after(self, revision: int) -> list[Change]:
        """What happened since a revision.

        Raises:
            ApiError: 410 when the history does not reach back so far.
        """
        if revision < self._floor:
            raise expired(f"too old resource version: {revision} ({self._floor})")
        return self._changes[
            bisect_right(self._changes, revision, key=lambda change: change.revision) :
        ]


class Store:
    """The objects. Everything here is synchronous: between two awaits of its callers nothing else happens."""

    def __init__(self, history_max: int = HISTORY_MAX) -> None:
        self.revision = 1
        self._floor = 1  # where the histories begin
        self._history_max = history_max
        self._tables: dict[Key, dict[Place, Stored]] = {}
        self._logs: dict[Key, Log] = {}
        self.uids: dict[str, tuple[Key, Place]] = {}
        self.listeners: list[Callable[[Key, Change], None]] = []

    def log(self, key: Key) -> Log:
        """A kind's history (made at the first question; nothing happened to the kind before)."""
        if key not in self._logs:
            self._logs[key] = Log(self._floor, self._history_max)
        return self._logs[key]

    def get(self, key: Key, namespace: str, name: str) -> Stored | None:
        """One object's present state."""
        return self._tables.get(key, {}).get((namespace, name))

    def rows(self, key: Key, namespace: str = "") -> list[Stored]:
        """All objects of a kind (in one namespace), ordered by namespace and name as etcd would."""
        table = self._tables.get(key, {})
        return [table[place] for place in sorted(table) if not namespace or place[0] == namespace]

    def oldest(self, key: Key, kept_max: int) -> Stored | None:
        """The object of a kind that was created first, once there are more than so many."""
        table = self._tables.get(key, {})
        return next(iter(table.values())) if len(table) > kept_max else None

    def keys(self) -> list[Key]:
        """The kinds that have objects."""
        return [key for key, table in self._tables.items() if table]

    def put(self, key: Key, obj: Obj) -> Stored:
        """Writes an object under the next revision."""
        metadata = obj["metadata"]
        place = (metadata.get("namespace", ""), metadata["name"])
        log = self.log(key)
        self.revision += 1
        table = self._tables.setdefault(key, {})
        previous = table.get(place)
        stored = table[place] = Stored(obj, self.revision)
        self.uids[metadata["uid"]] = (key, place)
        self._tell(
            key, log, Change(self.revision, "MODIFIED" if previous else "ADDED", stored, previous)
        )
        return stored

    def remove(self, key: Key, obj: Obj) -> Stored:
        """Takes an object out; `obj` is the last state that its watchers see.

        Raises:
            KeyError: There is no such object.
        """
        metadata = obj["metadata"]
        log = self.log(key)
        previous = self._tables[key].pop((metadata.get("namespace", ""), metadata["name"]))
        self.revision += 1
        self.uids.pop(metadata["uid"], None)
        stored = Stored(obj, self.revision)
        self._tell(key, log, Change(self.revision, "DELETED", stored, previous))
        return stored

    def _tell(self, key: Key, log: Log, change: Change) -> None:
        log.append(change)
        for listener in self.listeners:
            listener(key, change)

    def expire_all(self) -> None:
        """Forgets every history: each watch, open or resumed, meets 410 (what etcd's compaction does to the slow)."""
        self.revision += 1
        self._floor = self.revision
        for log in self._logs.values():
            log.expire(self.revision)


class Follower:
    """One reader of one kind's history; a position in it, so a slow reader costs no memory of its own."""

    def __init__(self, store: Store, key: Key, revision: int | None = None) -> None:
        self._store = store
        self._log = store.log(key)
        self.revision = store.revision if revision is None else revision
        self._waker = asyncio.Event()

    async def read(self) -> list[Change]:
        """Waits until there is something and returns all of it.

        Cancellation loses nothing: the position moves when changes are returned. A Follower that is no longer read must be
        closed by leaving `with`.

        Raises:
            ApiError: 410 when changes were lost.
        """
        while True:
            self._waker.clear()
            changes = self._log.after(self.revision)
            # Nothing more up to here: the position may follow the store's, so that an idle reader does not expire.
            self.revision = max(self.revision, self._store.revision)
            if changes:
                return changes
            await self._waker.wait()

    def __enter__(self) -> "Follower":
        self._log.wakers.add(self._waker)
        return self

    def __exit__(self, *_: object) -> None:
        self._log.wakers.discard(self._waker)
