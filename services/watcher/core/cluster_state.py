"""The cluster state: every object that scheduling needs, by UID, and what has changed since the
last flush.

In: neutral objects, as read from the API server's lists and watches, each from one *source* (an API
resource; two dialects feed the same neutral kind). Out: change records, and frozen copies for
snapshots.

Invariants:
- An object is in the cluster state exactly as long as its newest version is one that scheduling
  needs (`concerns`).
- A change is pending exactly for objects whose neutral model, resourceVersion aside, differs from
  what the last flush left with the readers (or may: a change undone before the flush is sent all
  the same).
- Within one cluster state no object's resourceVersion goes back.

No clock, no I/O. `core.changes` bounds the size of messages; `cluster_publisher` decides when to
flush.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from services.watcher.core.changes import RECORDS, record
from shared.contracts.cluster import Gone, ObjectChanges
from shared.model.invariants import InvariantViolation
from shared.model.objects import KINDS, ClusterObject, Pod, PodGroup
from shared.model.owners import KUBERNETES_JOB, maker_of

_NEUTRAL_KIND: Final = {struct: kind for kind, struct in KINDS.items()}
_ENDED: Final = frozenset({"Succeeded", "Failed"})
#: Kinds whose objects change in large numbers, mostly after Tutti's own decisions: bindings,
#: phases, and the counts of controllers. Changes of known ones are not urgent.
_NOT_URGENT: Final = frozenset({"pod", "podgroup", "resourcequota", "budget", "workload"})


def concerns(observed: ClusterObject) -> bool:
    """Whether scheduling needs this object.

    A pod of another scheduler is needed while it uses capacity: from its node or nominated node on
    until it ends. A misdirected one is needed while it waits, too, because its gang reports it.
    Tutti's own pods are needed until they are deleted, because succeeded members count for their
    gang.
    """
    if not isinstance(observed, Pod) or observed.ours:
        return True
    if observed.phase in _ENDED:
        return False
    return bool(observed.node or observed.nominated_node) or observed.misdirected


def _judged(observed: ClusterObject, known: ClusterObject | None) -> ClusterObject:
    """The object as readers get it: a pod that succeeded because it was made to end has failed.

    A program may exit with 0 because its pod is deleted or evicted. All controllers but the Jobs of
    Kubernetes make such a pod again. Only changes show the order of deletion and end. Of a pod that
    is listed with both, an eviction decides: ended pods are seldom marked as disrupted.
    """
    if not isinstance(observed, Pod) or observed.phase != "Succeeded":
        return observed
    evicted = observed.disrupted and observed.deleting
    if maker_of(observed) == KUBERNETES_JOB:
        made_to_end = False
    elif not isinstance(known, Pod):
        made_to_end = evicted
    elif known.phase in _ENDED:
        made_to_end = known.phase == "Failed"
    else:
        made_to_end = known.deleting or evicted
    return msgspec.structs.replace(observed, phase="Failed") if made_to_end else observed


class ClusterWentBack(Exception):
    """A list has an older resourceVersion than one known before: etcd was restored from a backup.

    Only a new epoch may override newer resourceVersions, so the process begins a new generation.
    """


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """The whole cluster state at one flush boundary; `version` counts flushes that changed it."""

    version: int
    objects: dict[str, tuple[ClusterObject, ...]]


class ClusterState:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, ClusterObject]] = {kind: {} for kind in RECORDS}
        #: (source, neutral kind) -> UIDs of its objects that are in the cluster state, in order of
        #: arrival. One object may be read into two kinds.
        self._sources: dict[tuple[str, str], dict[str, None]] = {}
        #: Source -> newest resourceVersion known of it, from a list, an event or a bookmark.
        self._versions: dict[str, int] = {}
        self._pending: dict[str, dict[str, ClusterObject | Gone]] = {kind: {} for kind in RECORDS}
        self._version = 0
        self._urgent = False

    def observe(self, source: str, observed: ClusterObject) -> bool:
        """Apply the newest version of an object; True when readers must be sent it.

        An older resourceVersion of a UID than the one known is ignored.
        """
        kind = _NEUTRAL_KIND[type(observed)]
        known = self._objects[kind].get(observed.uid)
        if known is not None and observed.resource_version < known.resource_version:
            return False
        observed = _judged(observed, known)
        if not concerns(observed):
            return self.forget(source, kind, observed.uid, observed.resource_version, last=observed)
        self._objects[kind][observed.uid] = observed
        self._sources.setdefault((source, kind), {})[observed.uid] = None
        if known is not None and known == msgspec.structs.replace(
            observed, resource_version=known.resource_version
        ):
            return False
        self._mark(kind, observed.uid, observed)
        self._urgent = self._urgent or known is None or kind not in _NOT_URGENT
        return True

    def forget(
        self,
        source: str,
        kind: str,
        uid: str,
        resource_version: int,
        *,
        last: ClusterObject | None = None,
    ) -> bool:
        """Remove an object that was deleted or is not needed any more; True when it was in the
        cluster state. `last`: the object as it was then; None: not known, or it does not matter.
        """
        known = self._objects[kind].get(uid)
        if known is None or resource_version < known.resource_version:
            return False
        del self._objects[kind][uid]
        self._sources[source, kind].pop(uid, None)
        judged = None if last is None else _judged(last, known)
        succeeded = isinstance(judged, Pod) and judged.phase == "Succeeded"
        gone = Gone(uid=uid, resource_version=resource_version, succeeded=succeeded)
        self._mark(kind, uid, gone)
        self._urgent = self._urgent or kind not in _NOT_URGENT
        return True

    def relist(
        self, source: str, kind: str, listed: Iterable[ClusterObject], resource_version: int
    ) -> int:
        """Make the state of one source equal to a whole list of it; returns the number of
        changes.

        Raises:
            ClusterWentBack: The list is older than what is known of this source.
        """
        known_up_to = self._versions.get(source, 0)
        if resource_version < known_up_to:
            raise ClusterWentBack(
                f"{source} was known up to resourceVersion {known_up_to}, "
                f"a list answers {resource_version}"
            )
        self.reached(source, resource_version)
        vanished = dict(self._sources.get((source, kind), {}))
        changes = 0
        for observed in listed:
            vanished.pop(observed.uid, None)
            changes += self.observe(source, observed)
        for uid in vanished:
            changes += self.forget(source, kind, uid, resource_version)
        return changes

    def withdraw(self, source: str, kind: str) -> int:
        """Remove all objects of a source whose kind is not served any more; returns their number.

        Its resourceVersion is forgotten, so a kind that is served again starts from nothing.
        """
        version = self._versions.pop(source, 0)
        uids = list(self._sources.get((source, kind), {}))
        for uid in uids:
            known = self._objects[kind][uid].resource_version
            self.forget(source, kind, uid, max(version, known))
        return len(uids)

    def reached(self, source: str, resource_version: int) -> None:
        """Record that the source was read up to this resourceVersion (list, event or bookmark)."""
        self._versions[source] = max(resource_version, self._versions.get(source, 0))

    def resource_versions(self) -> tuple[tuple[str, int], ...]:
        """(source, resourceVersion up to which it was read), sorted."""
        return tuple(sorted(self._versions.items()))

    def has_pending(self) -> bool:
        """Whether a flush has changes to send."""
        return any(self._pending.values())

    def has_urgent(self) -> bool:
        """Whether a pending change may lead to a decision at once: a new object, or a change of any
        kind but those of `_NOT_URGENT`.
        """
        return self._urgent

    def take(self, *, epoch: int, at_ms: int) -> list[ObjectChanges]:
        """Remove and return all pending changes, one record per kind, in the order of `RECORDS`."""
        records: list[ObjectChanges] = []
        for kind, pending in self._pending.items():
            if not pending:
                continue
            changes = pending.values()
            records.append(
                record(
                    kind,
                    epoch=epoch,
                    at_ms=at_ms,
                    changed=[change for change in changes if not isinstance(change, Gone)],
                    removed=[change for change in changes if isinstance(change, Gone)],
                )
            )
            self._pending[kind] = {}
        self._version += bool(records)
        self._urgent = False
        return records

    def open_epoch(self) -> None:
        """Drop pending changes: a new epoch begins with a snapshot, which has every object."""
        for pending in self._pending.values():
            pending.clear()
        self._urgent = False
        self._version += 1

    def freeze(self) -> Frozen:
        """A copy of the cluster state, at a flush boundary: no change may be pending.

        Raises:
            InvariantViolation: A change is pending, so that the copy would correspond to no
            sequence of CLUSTER.
        """
        if self.has_pending():
            raise InvariantViolation("snapshot", "was taken with changes pending")
        return Frozen(
            version=self._version,
            objects={kind: tuple(objects.values()) for kind, objects in self._objects.items()},
        )

    def groups(self) -> list[PodGroup]:
        """Every gang object in the cluster state."""
        return [
            group for group in self._objects["podgroup"].values() if isinstance(group, PodGroup)
        ]

    def has(self, kind: str, uid: str) -> bool:
        """Whether the cluster state holds an object."""
        return uid in self._objects[kind]

    def count(self, kind: str) -> int:
        """How many objects of a neutral kind the cluster state holds."""
        return len(self._objects[kind])

    def _mark(self, kind: str, uid: str, change: ClusterObject | Gone) -> None:
        pending = self._pending[kind]
        # Removed and inserted again: changes stay in the order in which the API server sent them.
        pending.pop(uid, None)
        pending[uid] = change
