"""All objects, one counter of revisions, and per kind a bounded history for watches.

Invariants: a stored object is never modified, only replaced; each change has the next revision,
which is its object's `resourceVersion`; a reader that was too slow gets an `expired` error, never a
gap.
"""

import asyncio
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from tutti.cluster.errors import expired
from tutti.cluster.objects import Obj, encode
from tutti.cluster.resources import Key, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

Place = tuple[str, str]  # (namespace or "", name)

# Length of a kind's history. The real API server keeps some hundreds to some ten thousands changes.
HISTORY_MAX = 10_000


def place_of(obj: Obj) -> Place:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Stored:
    """One state of one object, with cached encodings for all watches and lists."""

    __slots__ = ("_encoded", "obj", "revision")

    def __init__(self, obj: Obj, revision: int) -> None:
        self.obj = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(revision)}}
        self.revision = revision
        self._encoded: dict[tuple[str, str], bytes] = {}

    def encoded(self, resource: Resource, version: str) -> bytes:
        """The object's JSON in one served version."""
        key = (resource.group, version)
        if key not in self._encoded:
            self._encoded[key] = encode(resource.view(self.obj, version))
        return self._encoded[key]


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
        self._floor = floor  # the history is complete from this revision on
        self._history_max = history_max
        #: Set, and replaced by another one, when the history changes.
        self.changed = asyncio.Event()

    def append(self, change: Change) -> None:
        """Add a change. The history is trimmed by half, so that most changes copy nothing."""
        self._changes.append(change)
        dropped = len(self._changes) - self._history_max
        if dropped > self._history_max:
            self._floor = self._changes[dropped - 1].revision
            del self._changes[:dropped]
        self._wake_readers()

    def expire(self, floor: int) -> None:
        """Discard the changes before a revision."""
        self._changes.clear()
        self._floor = floor
        self._wake_readers()

    def _wake_readers(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, revision: int) -> list[Change]:
        """The changes since a revision; ApiError 410 if the history does not reach it."""
        if revision < self._floor:
            raise expired(f"too old resource version: {revision} ({self._floor})")
        first = bisect_right(self._changes, revision, key=lambda change: change.revision)
        return self._changes[first:]


class Store:
    """The objects. All methods are synchronous: each is atomic for its callers."""

    def __init__(self, history_max: int = HISTORY_MAX) -> None:
        self.revision = 1
        self._floor = 1  # where the histories begin
        self._history_max = history_max
        self._tables: dict[Key, dict[Place, Stored]] = {}
        self._logs: dict[Key, Log] = {}
        self.uids: dict[str, tuple[Key, Place]] = {}
        self.listeners: list[Callable[[Key, Change], None]] = []

    def log(self, key: Key) -> Log:
        """A kind's history; it is created at the first access, before the kind's first change."""
        if key not in self._logs:
            self._logs[key] = Log(self._floor, self._history_max)
        return self._logs[key]

    def get(self, key: Key, namespace: str, name: str) -> Stored | None:
        return self._tables.get(key, {}).get((namespace, name))

    def rows(self, key: Key, namespace: str = "") -> list[Stored]:
        """All objects of a kind (in one namespace), ordered by namespace and name as in etcd."""
        table = self._tables.get(key, {})
        return [table[place] for place in sorted(table) if namespace in ("", place[0])]

    def oldest(self, key: Key, kept_max: int) -> Stored | None:
        """The first created object of a kind, if there are more than `kept_max`."""
        table = self._tables.get(key, {})
        return next(iter(table.values())) if len(table) > kept_max else None

    def kinds(self) -> list[Key]:
        """The kinds that have objects."""
        return [key for key, table in self._tables.items() if table]

    def put(self, key: Key, obj: Obj) -> Stored:
        """Store an object with the next revision."""
        self.revision += 1
        table, place = self._tables.setdefault(key, {}), place_of(obj)
        previous, stored = table.get(place), Stored(obj, self.revision)
        table[place] = stored
        self.uids[obj["metadata"]["uid"]] = (key, place)
        kind = "MODIFIED" if previous else "ADDED"
        return self._record(key, Change(self.revision, kind, stored, previous))

    def remove(self, key: Key, obj: Obj) -> Stored:
        """Remove an existing object; `obj` is its last state, for watchers."""
        self.revision += 1
        previous, stored = self._tables[key].pop(place_of(obj)), Stored(obj, self.revision)
        del self.uids[obj["metadata"]["uid"]]
        return self._record(key, Change(self.revision, "DELETED", stored, previous))

    def _record(self, key: Key, change: Change) -> Stored:
        self.log(key).append(change)
        for listener in self.listeners:
            listener(key, change)
        return change.stored

    def expire_all(self) -> None:
        """Discard every history: each open or resumed watch gets 410, as after a compaction."""
        self.revision += 1
        self._floor = self.revision
        for log in self._logs.values():
            log.expire(self.revision)
