"""Records of bounded size: nothing is lost, nothing is doubled, the order stays."""

import pytest

from services.watcher.core.changes import RECORDS, fitting, record
from shared.contracts import codec
from shared.contracts.cluster import Gone
from shared.model.invariants import InvariantViolation
from shared.model.objects import KINDS
from tests.services.watcher.core.objects import pod


def test_every_neutral_kind_has_a_record() -> None:
    assert set(RECORDS) == set(KINDS)


def test_a_small_record_is_sent_as_it_is() -> None:
    small = record("pod", epoch=1, at_ms=2, changed=[pod("a")])
    assert list(fitting(small, 1000)) == [(small, codec.encode(small))]


@pytest.mark.parametrize(("changed", "removed"), [(100, 0), (0, 100), (99, 1), (1, 99), (37, 64)])
def test_a_large_record_is_cut_into_parts_that_hold_it_all(changed: int, removed: int) -> None:
    whole = record(
        "pod",
        epoch=1,
        at_ms=2,
        changed=[pod(f"c{i}", i) for i in range(changed)],
        removed=[Gone(uid=f"r{i}", resource_version=i) for i in range(removed)],
    )
    parts = list(fitting(whole, 600))
    assert len(parts) > 1
    assert all(len(encoded) <= 600 for _, encoded in parts)
    assert all(codec.decode_cluster(encoded) == part for part, encoded in parts)
    assert [one for part, _ in parts for one in part.changed] == list(whole.changed)
    assert [one for part, _ in parts for one in part.removed] == list(whole.removed)


def test_an_object_that_no_message_holds_is_our_bug() -> None:
    with pytest.raises(InvariantViolation, match="bytes, and a message holds"):
        list(fitting(record("pod", epoch=1, at_ms=2, changed=[pod("a", shape=b"x" * 999)]), 500))
