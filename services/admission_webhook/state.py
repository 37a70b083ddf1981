"""The reference objects in CLUSTER: Volcano's queues, the queues that namespaces name, and
PriorityClasses by name.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar, assert_never

from shared.admission.queue_tree import QueueTree
from shared.contracts.cluster import (
    Gone,
    NamespaceChanges,
    PriorityClassChanges,
    QueueChanges,
    SnapshotPage,
)
from shared.dialects.protocol import VOLCANO
from shared.model.invariants import InvariantViolation
from shared.model.objects import PriorityClass, Queue
from shared.model.reference_objects import Namespace

ReferenceChanges: TypeAlias = QueueChanges | NamespaceChanges | PriorityClassChanges


T = TypeVar("T", Queue, Namespace, PriorityClass)


class _Table(Generic[T]):
    """Objects by UID; a change or removal older than the known resourceVersion is ignored."""

    def __init__(self) -> None:
        self.by_uid: dict[str, T] = {}

    def apply(self, changed: Iterable[T], removed: Iterable[Gone]) -> None:
        for current in changed:
            known = self.by_uid.get(current.uid)
            if known is None or known.resource_version <= current.resource_version:
                self.by_uid[current.uid] = current
        for gone in removed:
            known = self.by_uid.get(gone.uid)
            if known is not None and known.resource_version <= gone.resource_version:
                del self.by_uid[gone.uid]


class ReferenceTables:
    """The reference objects of one watcher epoch, and the views of them that rules take."""

    def __init__(self, snapshot: Iterable[SnapshotPage] = ()) -> None:
        """Take the objects of a snapshot; without one, there are none and the epoch is 0."""
        self._queues: _Table[Queue] = _Table()
        self._namespaces: _Table[Namespace] = _Table()
        self._classes: _Table[PriorityClass] = _Table()
        self._tree: QueueTree | None = None
        #: Namespace -> the queue that it names; only namespaces that name one.
        self.namespace_queues: Mapping[str, str] = {}
        #: Names of the PriorityClasses.
        self.priority_classes: frozenset[str] = frozenset()
        #: Epoch of the watcher that published these objects.
        self.epoch = 0
        for page in snapshot:
            self.epoch = page.epoch
            for record in page.records:
                if isinstance(record, ReferenceChanges):
                    self.apply(record)

    @property
    def tree(self) -> QueueTree:
        """The current queues; built again only after a change."""
        if self._tree is None:
            self._tree = QueueTree(self._queues.by_uid.values())
        return self._tree

    def apply(self, changes: ReferenceChanges) -> None:
        """Apply one record.

        Raises:
            InvariantViolation: It is a record of another epoch.
        """
        if changes.epoch != self.epoch:
            raise InvariantViolation(
                "reference objects",
                "changes apply to their own epoch only",
                epoch=self.epoch,
                record_epoch=changes.epoch,
            )
        match changes:
            case QueueChanges():
                volcanos = (queue for queue in changes.changed if queue.dialect == VOLCANO)
                self._queues.apply(volcanos, changes.removed)
                self._tree = None
            case NamespaceChanges():
                self._namespaces.apply(changes.changed, changes.removed)
                namespaces = self._namespaces.by_uid.values()
                self.namespace_queues = {
                    namespace.name: namespace.queue for namespace in namespaces if namespace.queue
                }
            case PriorityClassChanges():
                self._classes.apply(changes.changed, changes.removed)
                self.priority_classes = frozenset(
                    priority_class.name for priority_class in self._classes.by_uid.values()
                )
            case _:
                assert_never(changes)
