"""What the watcher knows: the cluster state, which kinds the API server serves, and how pods are
read.

Turns decoded objects of one resource into changes of the cluster state, for every kind that it is
read into. Pure; its caller sees to the order: a resource is listed (or found absent) before it
changes.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from services.watcher.core.cluster_state import ClusterState
from shared.dialects.discovery import dialects, dialects_watched_for_pods
from shared.dialects.protocol import Kind, ReadingContext
from shared.kube.decoding import Change, Undecodable
from shared.kube.resources import PODGROUPS_VOLCANO, Resource
from shared.model.objects import ClusterObject

#: The kind whose presence means that bare pods can be given a group.
IMPLIED_GROUPS_KIND: Final = PODGROUPS_VOLCANO
#: Problems kept until they are logged; a flood of malformed objects is counted, not listed.
_PROBLEMS_MAX: Final = 20

Service = Literal["unknown", "served", "absent"]


class WatcherState:
    """See the module's docstring.

    Attributes:
        picture: The cluster state: all objects that scheduling needs.
        unreadable: How many objects did not fit their type, since the start.
    """

    def __init__(self, scheduler_names: Iterable[str], *, podgroup_controller: bool) -> None:
        """Begin knowing nothing; the arguments are the settings of these names."""
        self.cluster_state = ClusterState()
        self.unreadable = 0
        self._podgroup_controller = podgroup_controller
        self._context = ReadingContext(scheduler_names=frozenset(scheduler_names))
        self._served: dict[str, bool] = {}
        self._problems: list[str] = []

    @property
    def implied_groups(self) -> bool:
        """Whether bare pods are being read as members of the group that will be made for them."""
        return self._context.implied_groups

    @property
    def reading(self) -> ReadingContext:
        """How pods are read now; pods that were read in another way must be read again."""
        return self._context

    def service_of(self, kind: Kind) -> Service:
        """Whether the API server serves the kind, as far as it is known yet."""
        served = self._served.get(kind.resource.title)
        if served is None:
            return "unknown"
        return "served" if served else "absent"

    def listed(
        self, kinds: Sequence[Kind], objects: Iterable[object], resource_version: int
    ) -> int:
        """Take a whole list of the resource that all `kinds` are read from.

        Returns:
            The number of changes.

        Raises:
            ClusterWentBack: The list is older than what is known.
        """
        resource = kinds[0].resource
        self._note_service(resource, served=True)
        found = [self._readable(resource, one) for one in objects]
        return sum(
            self.cluster_state.relist(
                resource.title,
                kind.neutral,
                [model for one in found if (model := self._read(kind, one)) is not None],
                resource_version,
            )
            for kind in kinds
        )

    def changed(
        self, kinds: Sequence[Kind], changes: Iterable[Change[Any]], resource_version: int
    ) -> int:
        """Take what a watch reported, up to that resourceVersion; returns the number of changes."""
        resource = kinds[0].resource
        source = resource.title
        count = 0
        for change in changes:
            deleted = change.type == "DELETED"
            found = change.object if deleted else self._readable(resource, change.object)
            for kind in kinds:
                model = None if deleted else self._read(kind, found)
                if model is not None:
                    count += self.cluster_state.observe(source, model)
                else:
                    # Deleted, or no longer anything that scheduling needs (a budget without owner).
                    metadata = found.metadata
                    count += self.cluster_state.forget(
                        source, kind.neutral, metadata.uid, metadata.version
                    )
        self.cluster_state.reached(source, resource_version)
        return count

    def absent(self, kinds: Sequence[Kind]) -> int:
        """Take that the kinds are not served (any more): there are no such objects."""
        resource = kinds[0].resource
        self._note_service(resource, served=False)
        return sum(self.cluster_state.withdraw(resource.title, kind.neutral) for kind in kinds)

    def served_dialects(self) -> tuple[str, ...]:
        """Names of the dialects that have a kind which is served, sorted."""
        return tuple(
            dialect.name
            for dialect in dialects()
            if any(self.service_of(kind) == "served" for kind in dialect.kinds)
        )

    def take_problems(self) -> list[str]:
        """What could not be read since the last call, for the log; at most a few."""
        problems, self._problems = self._problems, []
        return problems

    def _readable(self, resource: Resource, found: Any) -> Any:
        """The object itself; what does not fit its type is noted, once for all readers."""
        if isinstance(found, Undecodable):
            self.unreadable += 1
            if len(self._problems) < _PROBLEMS_MAX:
                metadata = found.metadata
                self._problems.append(
                    f"{resource.title} {metadata.namespace}/{metadata.name}: {found.error}"
                )
        return found

    def _read(self, kind: Kind, found: Any) -> ClusterObject | None:
        if isinstance(found, Undecodable):
            return kind.read_undecodable(found, self._context)
        return kind.read(found, self._context)

    def _note_service(self, resource: Resource, *, served: bool) -> None:
        self._served[resource.title] = served
        served_dialects = dialects_watched_for_pods().intersection(self.served_dialects())
        if served_dialects != self._context.served:
            self._context = msgspec.structs.replace(self._context, served=served_dialects)
        if resource == IMPLIED_GROUPS_KIND:
            self._context = msgspec.structs.replace(
                self._context, implied_groups=served and self._podgroup_controller
            )
