"""What the webhook knows of queues after snapshots and changes."""

import pytest

from services.admission_webhook.state import QueueBook
from shared.contracts.cluster import Gone, QueueChanges, SnapshotPage, Synced
from shared.model.objects import Queue
from tests.services.admission_webhook.reviews import volcano_queue


def page(*queues: Queue, epoch: int = 2) -> SnapshotPage:
    return SnapshotPage(
        snapshot="s",
        page=0,
        pages=1,
        epoch=epoch,
        cluster_seq=5,
        synced=Synced(epoch=epoch, at_ms=0, watcher="w"),
        records=(QueueChanges(epoch=epoch, at_ms=0, changed=queues),),
    )


def book(*queues: Queue) -> QueueBook:
    made = QueueBook()
    made.replace([page(*queues)])
    return made


def changes(*changed: Queue, removed: tuple[Gone, ...] = (), epoch: int = 2) -> QueueChanges:
    return QueueChanges(epoch=epoch, at_ms=0, changed=changed, removed=removed)


def test_a_snapshot_replaces_everything() -> None:
    known = book(volcano_queue("a"), volcano_queue("b"))
    known.replace([page(volcano_queue("c"), epoch=9)])
    assert [known.tree.exists(name) for name in "abc"] == [False, False, True]
    assert known.epoch == 9


def test_changes_come_in_and_older_versions_do_not() -> None:
    known = book(volcano_queue("a", version=5, state="Open"))
    known.apply(changes(volcano_queue("a", version=4, state="Closed"), volcano_queue("b")))
    assert known.tree.exists("b")
    assert known.tree.objection("a", "job") == ""
    known.apply(changes(volcano_queue("a", version=6, state="Closed")))
    assert "`Closed`" in known.tree.objection("a", "job")


def test_a_queue_that_is_gone_is_gone_unless_it_was_made_again() -> None:
    known = book(volcano_queue("a", version=5))
    known.apply(changes(removed=(Gone(uid="u-a", resource_version=4),)))
    assert known.tree.exists("a")
    known.apply(changes(removed=(Gone(uid="u-a", resource_version=6),)))
    assert not known.tree.exists("a")


def test_queues_of_other_dialects_are_not_volcanos() -> None:
    other = Queue(uid="x", dialect="incubator", name="a", resource_version=1)
    assert not book(other).tree.exists("a")


def test_a_record_of_another_epoch_is_a_bug_of_the_caller() -> None:
    with pytest.raises(AssertionError):
        book().apply(changes(epoch=3))
