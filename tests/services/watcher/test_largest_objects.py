"""No object that etcd stores is too large for CLUSTER: it is named there, and not judged."""

from typing import Any

import pytest

from services.watcher.cluster_publisher import MESSAGE_BYTES
from services.watcher.core.changes import fitting
from services.watcher.core.snapshots import Boundary, SnapshotCache
from services.watcher.state import WatcherState
from shared.contracts import codec
from shared.contracts.cluster import SnapshotPage, Synced
from shared.contracts.subjects import MESSAGE_BYTES_MAX, PAGE_BYTES_MAX
from shared.dialects.discovery import readers
from shared.kube.decoding import Change, KindDecoder
from shared.kube.resources import Resource
from shared.model.bounds import OBJECT_BYTES_MAX, marker_of
from shared.model.objects import KINDS, ClusterObject
from tests.services.watcher.largest_objects import largest_objects

READERS = readers()
NEUTRAL_KIND = {struct: kind for kind, struct in KINDS.items()}
NAMES = ("tutti", "volcano", "default-scheduler", "")


def observed(resource: Resource, manifest: bytes) -> tuple[WatcherState, list[Any]]:
    """The state with this one object, and the objects as they are in CLUSTER's messages."""
    state = WatcherState(NAMES, podgroup_controller=True)
    for other in READERS:
        state.listed(READERS[other], [], 1)
    decoded = KindDecoder(READERS[resource][0].decoded).object(manifest)
    state.changed(READERS[resource], [Change("ADDED", decoded)], 9)
    sent: list[ClusterObject] = []
    for record in state.cluster_state.take(epoch=1, at_ms=1):
        for _, encoded in fitting(record, MESSAGE_BYTES):
            assert len(encoded) <= MESSAGE_BYTES
            sent += codec.decode_cluster(encoded).changed
    return state, sent


def assert_pages_fit(state: WatcherState, sent: list[Any]) -> None:
    cache = SnapshotCache()
    boundary = Boundary(
        frozen=state.cluster_state.freeze(),
        cluster_seq=1,
        synced=Synced(epoch=1, at_ms=1, watcher="w"),
    )
    name = cache.put(boundary, kinds=(), now_ms=1).name
    page = cache.page(name, 0, 1)
    assert isinstance(page, SnapshotPage)
    assert len(codec.encode(page)) <= PAGE_BYTES_MAX
    assert [one for record in page.records for one in record.changed] == sent


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("resource", READERS, ids=lambda one: one.title)
def test_an_object_at_etcds_limit_keeps_its_identity_and_fits_into_every_message(
    resource: Resource,
) -> None:
    for path, manifest in largest_objects(READERS[resource][0].decoded):
        state, sent = observed(resource, manifest)
        assert_pages_fit(state, sent)
        for one in sent:
            assert len(codec.encode(one)) <= OBJECT_BYTES_MAX, path
            assert (one.uid, one.resource_version) == ("uid-one", 7), path
            assert one.name.endswith("one"), path
            assert getattr(one, "namespace", "team") == "team", path
            known = state.too_large.get(NEUTRAL_KIND[type(one)], {})
            assert known.get(one.uid, "") == marker_of(one), path


def test_an_object_and_its_record_are_smaller_than_a_message() -> None:
    assert OBJECT_BYTES_MAX + 4096 <= MESSAGE_BYTES <= PAGE_BYTES_MAX <= MESSAGE_BYTES_MAX
