"""Snapshots: frozen copies of the cluster state, cut into pages that readers fetch one by one.

A reader that starts, has a gap or reads a new epoch requests page 0 and gets a name; under that
name the further pages stay available for `LIFETIME_MS`. Readers that request the same version share
one frozen copy. Pages hold references to the cluster state's own (immutable) objects:
a snapshot costs little more than its encoding.

Pure: instants are arguments, and the caller freezes the cluster state at a flush boundary.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from services.watcher.core.changes import RECORDS, fitting, record
from services.watcher.core.cluster_state import Frozen
from shared.contracts.cluster import ObjectChanges, SnapshotPage, SnapshotUnavailable, Synced
from shared.contracts.subjects import PAGE_BYTES_MAX

#: A reader fetches all pages of a 50,000-pod snapshot in about a second; one that takes longer than
#: this begins again.
LIFETIME_MS: Final = 30_000
#: Planners, a webhook and a recorder may start at once; further snapshots would only use memory.
SNAPSHOTS_MAX: Final = 4
#: Bytes in a page for its own fields and those of its records.
_PAGE_OVERHEAD_BYTES: Final = 4096
#: Objects encoded at once to get their size: about a page of pods, so that halving is rare.
_CHUNK: Final = 1000


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster state between two flushes, and the record of CLUSTER that it corresponds to."""

    frozen: Frozen
    cluster_seq: int
    synced: Synced


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One frozen copy of the cluster state in pages."""

    name: str
    version: int
    kinds: tuple[str, ...]
    frozen_ms: int
    cluster_seq: int
    synced: Synced
    pages: tuple[tuple[ObjectChanges, ...], ...]


def paginate(
    frozen: Frozen, *, kinds: tuple[str, ...], epoch: int, at_ms: int, bytes_max: int
) -> tuple[tuple[ObjectChanges, ...], ...]:
    """The cluster state as pages of records whose encodings add up to at most `bytes_max`; at least
    one page.

    Empty `kinds`, as on the wire, means all; unknown kinds are ignored.
    """
    pages: list[tuple[ObjectChanges, ...]] = []
    page: list[ObjectChanges] = []
    left = bytes_max
    for kind in RECORDS:
        if kinds and kind not in kinds:
            continue
        for part, weight in _parts(frozen, kind, epoch, at_ms, bytes_max):
            if page and weight > left:
                pages.append(tuple(page))
                page, left = [], bytes_max
            page.append(part)
            left -= weight
    if page or not pages:
        pages.append(tuple(page))
    return tuple(pages)


def _parts(
    frozen: Frozen, kind: str, epoch: int, at_ms: int, bytes_max: int
) -> Iterator[tuple[ObjectChanges, int]]:
    objects = frozen.objects[kind]
    for start in range(0, len(objects), _CHUNK):
        chunk = record(kind, epoch=epoch, at_ms=at_ms, changed=objects[start : start + _CHUNK])
        for part, encoded in fitting(chunk, bytes_max):
            yield part, len(encoded)


class SnapshotCache:
    """The snapshots that readers may still be fetching: at most `SNAPSHOTS_MAX`, each at most
    `LIFETIME_MS` old.
    """

    def __init__(self) -> None:
        self._snapshots: dict[str, Snapshot] = {}
        self._made = 0

    def put(self, boundary: Boundary, *, kinds: tuple[str, ...], now_ms: int) -> Snapshot:
        """Keep the copy of a flush boundary."""
        self._expire(now_ms)
        while len(self._snapshots) >= SNAPSHOTS_MAX:
            del self._snapshots[next(iter(self._snapshots))]
        self._made += 1
        epoch, bytes_max = boundary.synced.epoch, PAGE_BYTES_MAX - _PAGE_OVERHEAD_BYTES
        snapshot = Snapshot(
            name=f"{epoch}-{self._made}",
            version=boundary.frozen.version,
            kinds=kinds,
            frozen_ms=now_ms,
            cluster_seq=boundary.cluster_seq,
            synced=boundary.synced,
            pages=paginate(
                boundary.frozen, kinds=kinds, epoch=epoch, at_ms=now_ms, bytes_max=bytes_max
            ),
        )
        self._snapshots[snapshot.name] = snapshot
        return snapshot

    def current(self, version: int, kinds: tuple[str, ...], now_ms: int) -> Snapshot | None:
        """A snapshot of this version of the cluster state with half of its lifetime left, or
        None.
        """
        self._expire(now_ms)
        for snapshot in self._snapshots.values():
            fresh = now_ms - snapshot.frozen_ms < LIFETIME_MS // 2
            if fresh and (snapshot.version, snapshot.kinds) == (version, kinds):
                return snapshot
        return None

    def page(self, name: str, number: int, now_ms: int) -> SnapshotPage | SnapshotUnavailable:
        """One page of a snapshot that was put before."""
        self._expire(now_ms)
        snapshot = self._snapshots.get(name)
        if snapshot is None:
            return SnapshotUnavailable(reason=f"snapshot {name} is not kept any more: ask again")
        if not 0 <= number < len(snapshot.pages):
            return SnapshotUnavailable(
                reason=f"snapshot {name} has pages 0 to {len(snapshot.pages) - 1}, not {number}"
            )
        return SnapshotPage(
            snapshot=name,
            page=number,
            pages=len(snapshot.pages),
            epoch=snapshot.synced.epoch,
            cluster_seq=snapshot.cluster_seq,
            synced=snapshot.synced,
            synced_age_ms=max(0, now_ms - snapshot.synced.at_ms),
            records=snapshot.pages[number],
        )

    def _expire(self, now_ms: int) -> None:
        old = [s.name for s in self._snapshots.values() if now_ms - s.frozen_ms > LIFETIME_MS]
        for name in old:
            del self._snapshots[name]
