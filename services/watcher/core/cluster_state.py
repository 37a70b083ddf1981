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

No clock, no I/O. What a message may weigh is `core.changes`; when to flush is the service's
business.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from services.watcher.core.changes import RECORDS, ChangeRecord, record
from services.watcher.errors import ClusterWentBack
from shared.contracts.cluster import Gone
from shared.model.invariants import InvariantViolation
from shared.model.objects import KINDS, ClusterObject, Pod, PodGroup

_NEUTRAL_KIND: Final = {struct: kind for kind, struct in KINDS.items()}
_ENDED: Final = frozenset({"Succeeded", "Failed"})
#: Kinds whose objects change in crowds, mostly by what we have decided ourselves: bindings, phases,
#: and what controllers count of them.
_CROWDED: Final = frozenset({"pod", "podgroup", "resourcequota", "budget", "workload"})


def concerns(observed: ClusterObject) -> bool:
    """Whether scheduling needs this object.

    A foreign pod matters only while it takes room: not before it has a node, or its scheduler says
    which it will have, not after it has ended. Our own pods matter to the end, because succeeded
    members count for their gang.
    """
    if not isinstance(observed, Pod) or observed.ours:
        return True
    return bool(observed.node or observed.nominated_node) and observed.phase not in _ENDED


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
        self._news = False

    def observe(self, source: str, observed: ClusterObject) -> bool:
        """Take the newest version of an object; True when this is news to the readers.

        An older resourceVersion of a UID than the one known is ignored.
        """
        kind = _NEUTRAL_KIND[type(observed)]
        known = self._objects[kind].get(observed.uid)
        if known is not None and observed.resource_version < known.resource_version:
            return False
        if not concerns(observed):
            return self.forget(source, kind, observed.uid, observed.resource_version)
        self._objects[kind][observed.uid] = observed
        self._sources.setdefault((source, kind), {})[observed.uid] = None
        if known is not None and known == msgspec.structs.replace(
            observed, resource_version=known.resource_version
        ):
            return False
        self._mark(kind, observed.uid, observed)
        self._news = self._news or known is None or kind not in _CROWDED
        return True

    def forget(self, source: str, kind: str, uid: str, resource_version: int) -> bool:
        """Take out what was deleted, or is none of our business any more; True when it was in the
        cluster state.
        """
        known = self._objects[kind].get(uid)
        if known is None or resource_version < known.resource_version:
            return False
        del self._objects[kind][uid]
        self._sources[source, kind].pop(uid, None)
        self._mark(kind, uid, Gone(uid=uid, resource_version=resource_version))
        self._news = self._news or kind not in _CROWDED
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
        """Take out everything of a source whose kind is not served any more; how much it was.

        What is known of its resourceVersions is forgotten: a kind that comes back begins again.
        """
        version = self._versions.pop(source, 0)
        uids = list(self._sources.get((source, kind), {}))
        for uid in uids:
            known = self._objects[kind][uid].resource_version
            self.forget(source, kind, uid, max(version, known))
        return len(uids)

    def reached(self, source: str, resource_version: int) -> None:
        """The source is known up to this resourceVersion (a list, an event, a bookmark)."""
        self._versions[source] = max(resource_version, self._versions.get(source, 0))

    def resource_versions(self) -> tuple[tuple[str, int], ...]:
        """(source, resourceVersion up to which it is known), sorted."""
        return tuple(sorted(self._versions.items()))

    def has_pending(self) -> bool:
        """Whether a flush would have anything to send."""
        return any(self._pending.values())

    def has_news(self) -> bool:
        """Whether anything pending may lead to a decision at once: a new object, or what happens to
        anything but pods and groups. What happens to known ones of these has time.
        """
        return self._news

    def take(self, *, epoch: int, at_ms: int) -> list[ChangeRecord]:
        """Everything that changed since the last call, one record per kind, in the order of
        `RECORDS`.
        """
        records: list[ChangeRecord] = []
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
        self._news = False
        return records

    def open_epoch(self) -> None:
        """Drop what is pending: a new epoch begins with a snapshot, which holds everything."""
        for pending in self._pending.values():
            pending.clear()
        self._news = False
        self._version += 1

    def freeze(self) -> Frozen:
        """A copy of the cluster state. Only at a flush boundary: nothing may be pending.

        Raises:
            InvariantViolation: Something is pending, so that the copy would stand for no sequence
            of CLUSTER.
        """
        if self.has_pending():
            raise InvariantViolation("snapshot", "was taken with changes pending")
        return Frozen(
            version=self._version,
            objects={kind: tuple(objects.values()) for kind, objects in self._objects.items()},
        )

    def groups(self) -> list[PodGroup]:
        """Every gang object in the cluster state."""
        return [one for one in self._objects["podgroup"].values() if isinstance(one, PodGroup)]

    def count(self, kind: str) -> int:
        """How many objects of a neutral kind the cluster state holds."""
        return len(self._objects[kind])

    def _mark(self, kind: str, uid: str, change: ClusterObject | Gone) -> None:
        pending = self._pending[kind]
        # Out and in again: the newest change takes its place in the order in which the API server
        # sent them.
        pending.pop(uid, None)
        pending[uid] = change
