"""What the watcher knows: the cluster state, which kinds the API server serves, and how pods are
read.

It turns decoded objects of one resource into changes of the cluster state, for every neutral kind
that is read from it. Pure; the caller keeps the order: a resource is listed (or absent) before it
changes.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from services.watcher.core.cluster_state import ClusterState
from shared.dialects.discovery import dialects, dialects_watched_for_pods
from shared.dialects.protocol import Kind, ReadingContext
from shared.kube.decoding import Change, Undecodable
from shared.kube.resources import PODGROUPS_VOLCANO, Resource
from shared.model.bounds import bounded, marker_of
from shared.model.objects import ClusterObject

#: The kind of group that is created for bare pods, if the API server serves it.
IMPLIED_GROUPS_KIND: Final = PODGROUPS_VOLCANO
#: Problems kept until they are logged; further objects with problems are only counted.
_PROBLEMS_MAX: Final = 20


class WatcherState:
    """See the module's docstring."""

    def __init__(self, scheduler_names: Iterable[str], *, podgroup_controller: bool) -> None:
        """Begin knowing nothing; the arguments are the settings of these names."""
        self.cluster_state = ClusterState()
        #: How many objects did not fit their type, since the start.
        self.unreadable = 0
        self._podgroup_controller = podgroup_controller
        self._context = ReadingContext(
            scheduler_names=frozenset(scheduler_names), served=frozenset()
        )
        #: By resource, from its first list on: whether the API server serves it.
        self._served: dict[str, bool] = {}
        self._problems: list[str] = []
        #: Neutral kind -> UIDs of its objects that are too large, each with what is too large.
        self.too_large: dict[str, dict[str, str]] = {}

    @property
    def reading(self) -> ReadingContext:
        """How pods are read now; after a change of it, pods must be listed again."""
        return self._context

    def read(self, kinds: Sequence[Kind], objects: Iterable[object]) -> list[Any]:
        """Read objects of a list of the resource that all `kinds` are read from, a row each."""
        readable = [self._readable(kinds[0].resource, listed) for listed in objects]
        return [tuple(self._read(kind, decoded) for kind in kinds) for decoded in readable]

    def listed(self, kinds: Sequence[Kind], rows: Sequence[Any], resource_version: int) -> int:
        """Apply a whole list, as `read` has read it.

        Returns:
            The number of changes.

        Raises:
            ClusterWentBack: The list is older than what is known.
        """
        resource = kinds[0].resource
        self._note_service(resource, served=True)
        count = sum(
            self.cluster_state.relist(
                resource.title,
                kind.neutral,
                [model for row in rows if (model := row[position]) is not None],
                resource_version,
            )
            for position, kind in enumerate(kinds)
        )
        for kind in kinds:
            self._forget_too_large(kind)
        return count

    def changed(
        self, kinds: Sequence[Kind], changes: Iterable[Change[Any]], resource_version: int
    ) -> int:
        """Apply events of a watch up to that resourceVersion; returns the number of changes."""
        resource = kinds[0].resource
        source = resource.title
        count = 0
        for change in changes:
            deleted = change.type == "DELETED"
            decoded = change.object if deleted else self._readable(resource, change.object)
            for kind in kinds:
                model = None if deleted else self._read(kind, decoded)
                if model is not None:
                    count += self.cluster_state.observe(source, model)
                else:
                    # Deleted, or not needed for scheduling any more (a budget without owner).
                    metadata = decoded.metadata
                    last = self._read(kind, decoded) if deleted and kind.neutral == "pod" else None
                    count += self.cluster_state.forget(
                        source, kind.neutral, metadata.uid, metadata.version, last=last
                    )
                    self.too_large.get(kind.neutral, {}).pop(metadata.uid, None)
        self.cluster_state.reached(source, resource_version)
        return count

    def absent(self, kinds: Sequence[Kind]) -> int:
        """Remove all objects of kinds that are not served; returns the number of changes."""
        resource = kinds[0].resource
        self._note_service(resource, served=False)
        count = sum(self.cluster_state.withdraw(resource.title, kind.neutral) for kind in kinds)
        for kind in kinds:
            self._forget_too_large(kind)
        return count

    def served_dialects(self) -> tuple[str, ...]:
        """Names of the dialects that have a kind which is served, sorted."""
        return tuple(
            dialect.name
            for dialect in dialects()
            if any(self._served.get(kind.resource.title) for kind in dialect.kinds)
        )

    def take_problems(self) -> list[str]:
        """Remove and return the problems of objects since the last call, for the log."""
        problems, self._problems = self._problems, []
        return problems

    def _readable(self, resource: Resource, decoded: Any) -> Any:
        """Return the object; count and keep the problem of one that does not fit its type."""
        if isinstance(decoded, Undecodable):
            self.unreadable += 1
            self._note_problem(resource, decoded, decoded.error)
        return decoded

    def _read(self, kind: Kind, decoded: Any) -> ClusterObject | None:
        """The neutral object, within the bounds of all messages."""
        read = kind.neutral_object(decoded, self._context)
        if read is None:
            return None
        read = bounded(read)
        what = marker_of(read)
        if what or kind.neutral in self.too_large:
            known = self.too_large.setdefault(kind.neutral, {})
            if what and known.get(read.uid) != what:
                known[read.uid] = what
                self._note_problem(kind.resource, decoded, what)
            elif not what:
                known.pop(read.uid, None)
        return read

    def _forget_too_large(self, kind: Kind) -> None:
        """Forget those that are gone."""
        known = self.too_large.get(kind.neutral, {})
        for uid in [uid for uid in known if not self.cluster_state.has(kind.neutral, uid)]:
            del known[uid]

    def _note_problem(self, resource: Resource, decoded: Any, what: str) -> None:
        if len(self._problems) < _PROBLEMS_MAX:
            metadata = decoded.metadata
            self._problems.append(f"{resource.title} {metadata.namespace}/{metadata.name}: {what}")

    def _note_service(self, resource: Resource, *, served: bool) -> None:
        self._served[resource.title] = served
        served_dialects = dialects_watched_for_pods().intersection(self.served_dialects())
        if served_dialects != self._context.served:
            self._context = msgspec.structs.replace(self._context, served=served_dialects)
        if resource == IMPLIED_GROUPS_KIND:
            self._context = msgspec.structs.replace(
                self._context, implied_groups=served and self._podgroup_controller
            )
