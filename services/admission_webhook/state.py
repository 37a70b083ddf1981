"""What the webhook knows of the cluster: the queues of Volcano's dialect, the queues that
namespaces name, and the priority classes, as CLUSTER contains them.

Within an epoch an older resourceVersion of a UID is ignored; a snapshot replaces everything.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from services.admission_webhook.core.queue_tree import QueueTree
from shared.contracts.cluster import (
    NamespaceChanges,
    PriorityClassChanges,
    QueueChanges,
    SnapshotPage,
)
from shared.dialects.volcano import NAME as VOLCANO

if TYPE_CHECKING:
    from shared.model.objects import PriorityClass, Queue
    from shared.model.reference_objects import Namespace


class QueueBook:
    """The queues by UID, and the view of them that rules take."""

    def __init__(self) -> None:
        self._queues: dict[str, Queue] = {}
        self._tree: QueueTree | None = None
        self._namespaces: dict[str, Namespace] = {}
        #: Namespace -> the queue that it names; those that name none are left out.
        self.namespace_queues: Mapping[str, str] = {}
        self._classes: dict[str, PriorityClass] = {}
        #: Names of the priority classes.
        self.priority_classes: frozenset[str] = frozenset()
        #: Of the watcher that published this state; 0 before the first snapshot.
        self.epoch = 0

    @property
    def tree(self) -> QueueTree:
        """The queues as they are now; made again only after a change."""
        if self._tree is None:
            self._tree = QueueTree(self._queues.values())
        return self._tree

    def replace(self, pages: Iterable[SnapshotPage]) -> None:
        """Forget everything and take over a snapshot."""
        self._queues.clear()
        self._namespaces.clear()
        self._classes.clear()
        self.priority_classes = frozenset()
        for page in pages:
            self.epoch = page.epoch
            for record in page.records:
                if isinstance(record, QueueChanges):
                    self.apply(record)
                elif isinstance(record, NamespaceChanges):
                    self.apply_namespaces(record)
                elif isinstance(record, PriorityClassChanges):
                    self.apply_priority_classes(record)
        self._tree = None

    def apply(self, changes: QueueChanges) -> None:
        """Apply one record to the state. One of another epoch is a mistake of the caller's."""
        assert changes.epoch == self.epoch, (changes.epoch, self.epoch)
        for queue in changes.changed:
            known = self._queues.get(queue.uid)
            newer = known is None or known.resource_version <= queue.resource_version
            if queue.dialect == VOLCANO and newer:
                self._queues[queue.uid] = queue
        for gone in changes.removed:
            known = self._queues.get(gone.uid)
            if known is not None and known.resource_version <= gone.resource_version:
                del self._queues[gone.uid]
        self._tree = None

    def apply_namespaces(self, changes: NamespaceChanges) -> None:
        """The same for namespaces."""
        assert changes.epoch == self.epoch, (changes.epoch, self.epoch)
        for namespace in changes.changed:
            known = self._namespaces.get(namespace.uid)
            if known is None or known.resource_version <= namespace.resource_version:
                self._namespaces[namespace.uid] = namespace
        for gone in changes.removed:
            known = self._namespaces.get(gone.uid)
            if known is not None and known.resource_version <= gone.resource_version:
                del self._namespaces[gone.uid]
        self.namespace_queues = {
            one.name: one.queue for one in self._namespaces.values() if one.queue
        }

    def apply_priority_classes(self, changes: PriorityClassChanges) -> None:
        """The same for priority classes."""
        assert changes.epoch == self.epoch, (changes.epoch, self.epoch)
        for one in changes.changed:
            known = self._classes.get(one.uid)
            if known is None or known.resource_version <= one.resource_version:
                self._classes[one.uid] = one
        for gone in changes.removed:
            known = self._classes.get(gone.uid)
            if known is not None and known.resource_version <= gone.resource_version:
                del self._classes[gone.uid]
        self.priority_classes = frozenset(one.name for one in self._classes.values())
