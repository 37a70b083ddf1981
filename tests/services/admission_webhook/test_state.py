"""The webhook's reference objects after snapshots and changes."""

import pytest

from services.admission_webhook.state import ReferenceTables
from shared.contracts.cluster import Gone, QueueChanges, SnapshotPage
from shared.model.invariants import InvariantViolation
from shared.model.objects import Queue
from tests.services.admission_webhook.reviews import volcano_queue
from tests.support.snapshots import snapshot_of


def page(*queues: Queue, epoch: int = 2) -> SnapshotPage:
    return snapshot_of(queues, at_ms=0, epoch=epoch, cluster_seq=5)


def tables(*queues: Queue) -> ReferenceTables:
    return ReferenceTables([page(*queues)])


def changes(*changed: Queue, removed: tuple[Gone, ...] = (), epoch: int = 2) -> QueueChanges:
    return QueueChanges(epoch=epoch, at_ms=0, changed=changed, removed=removed)


def test_reference_tables_hold_the_objects_and_the_epoch_of_a_snapshot() -> None:
    known = ReferenceTables([page(volcano_queue("c"), epoch=9)])
    assert [known.tree.exists(name) for name in "abc"] == [False, False, True]
    assert known.epoch == 9


def test_reference_tables_apply_changes_and_ignore_older_versions() -> None:
    known = tables(volcano_queue("a", version=5, state="Open"))
    known.apply(changes(volcano_queue("a", version=4, state="Closed"), volcano_queue("b")))
    assert known.tree.exists("b")
    assert known.tree.objection("a", "job") == ""
    known.apply(changes(volcano_queue("a", version=6, state="Closed")))
    assert "`Closed`" in known.tree.objection("a", "job")


def test_reference_tables_ignore_a_removal_that_is_older_than_the_queue() -> None:
    known = tables(volcano_queue("a", version=5))
    known.apply(changes(removed=(Gone(uid="u-a", resource_version=4),)))
    assert known.tree.exists("a")
    known.apply(changes(removed=(Gone(uid="u-a", resource_version=6),)))
    assert not known.tree.exists("a")


def test_reference_tables_leave_out_queues_of_other_dialects() -> None:
    other = Queue(uid="x", dialect="incubator", name="a", resource_version=1)
    assert not tables(other).tree.exists("a")


def test_a_record_of_another_epoch_violates_an_invariant() -> None:
    with pytest.raises(InvariantViolation, match="own epoch"):
        tables().apply(changes(epoch=3))
