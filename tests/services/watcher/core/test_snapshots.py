"""Snapshots: whole, in pages of bounded size, for a bounded time, of bounded number."""

from services.watcher.core.cluster_state import ClusterState, Frozen
from services.watcher.core.snapshots import (
    LIFETIME_MS,
    SNAPSHOTS_MAX,
    Boundary,
    Snapshot,
    SnapshotCache,
    paginate,
)
from shared.contracts import codec
from shared.contracts.cluster import SnapshotPage, SnapshotUnavailable, Synced
from shared.contracts.subjects import PAGE_BYTES_MAX
from tests.services.watcher.core.objects import group, node, pod

SYNCED = Synced(epoch=7, at_ms=1, watcher="w")


def state_of(pods: int) -> ClusterState:
    cluster_state = ClusterState()
    for number in range(pods):
        cluster_state.observe("pods", pod(f"p{number}", shape=b"x" * 300))
    cluster_state.observe("nodes", node("n"))
    cluster_state.observe("groups", group("g"))
    cluster_state.take(epoch=7, at_ms=1)
    return cluster_state


def cached(cache: SnapshotCache, frozen: Frozen, *, now_ms: int = 0, seq: int = 42) -> Snapshot:
    boundary = Boundary(frozen=frozen, cluster_seq=seq, synced=SYNCED)
    return cache.put(boundary, kinds=(), now_ms=now_ms)


def test_the_pages_hold_the_whole_snapshot_and_none_is_too_large() -> None:
    frozen = state_of(4000).freeze()
    cache = SnapshotCache()
    snapshot = cached(cache, frozen)
    assert len(snapshot.pages) > 2
    seen: dict[str, int] = {}
    for number in range(len(snapshot.pages)):
        page = cache.page(snapshot.name, number, 0)
        assert isinstance(page, SnapshotPage)
        assert (page.page, page.pages, page.epoch, page.cluster_seq) == (
            number,
            len(snapshot.pages),
            7,
            42,
        )
        encoded = codec.encode(page)
        assert len(encoded) <= PAGE_BYTES_MAX
        assert codec.decode_snapshot_answer(encoded) == page
        for record in page.records:
            name = type(record).__name__
            seen[name] = seen.get(name, 0) + len(record.changed)
    assert seen == {"NodeChanges": 1, "PodGroupChanges": 1, "PodChanges": 4000}


def test_an_empty_cluster_has_one_empty_page() -> None:
    frozen = ClusterState().freeze()
    assert paginate(frozen, kinds=(), epoch=1, at_ms=1, bytes_max=1000) == ((),)


def test_small_kinds_share_a_page() -> None:
    pages = paginate(state_of(3).freeze(), kinds=(), epoch=1, at_ms=1, bytes_max=10_000)
    assert [[type(record).__name__ for record in page] for page in pages] == [
        ["NodeChanges", "PodGroupChanges", "PodChanges"]
    ]


def test_only_the_kinds_asked_for_are_sent() -> None:
    pages = paginate(
        state_of(3).freeze(), kinds=("node", "no-such"), epoch=1, at_ms=1, bytes_max=10_000
    )
    assert [[type(record).__name__ for record in page] for page in pages] == [["NodeChanges"]]


def test_readers_that_start_together_share_a_snapshot() -> None:
    frozen = state_of(1).freeze()
    cache = SnapshotCache()
    snapshot = cached(cache, frozen)
    assert cache.current(frozen.version, (), LIFETIME_MS // 3) is snapshot
    assert cache.current(frozen.version, ("queue",), 0) is None
    assert cache.current(frozen.version + 1, (), 0) is None
    # With little life left a reader might not get to its last page.
    assert cache.current(frozen.version, (), LIFETIME_MS // 2) is None


def test_a_snapshot_is_dropped_after_its_time() -> None:
    cache = SnapshotCache()
    snapshot = cached(cache, state_of(1).freeze(), now_ms=1000)
    assert isinstance(cache.page(snapshot.name, 0, 1000 + LIFETIME_MS), SnapshotPage)
    assert isinstance(cache.page(snapshot.name, 0, 1001 + LIFETIME_MS), SnapshotUnavailable)


def test_the_oldest_snapshot_gives_way_to_a_new_one() -> None:
    cache = SnapshotCache()
    frozen = state_of(1).freeze()
    names = [cached(cache, frozen, seq=seq).name for seq in range(SNAPSHOTS_MAX + 1)]
    assert len(set(names)) == SNAPSHOTS_MAX + 1
    assert isinstance(cache.page(names[0], 0, 0), SnapshotUnavailable)
    assert isinstance(cache.page(names[1], 0, 0), SnapshotPage)


def test_a_page_that_does_not_exist_is_refused_with_the_pages_there_are() -> None:
    cache = SnapshotCache()
    snapshot = cached(cache, state_of(1).freeze())
    for number in (-1, 1):
        answer = cache.page(snapshot.name, number, 0)
        assert isinstance(answer, SnapshotUnavailable)
        assert "has pages 0 to 0" in answer.reason
