"""What the watcher knows: the picture, which kinds the API server serves, and how pods are read.

Turns decoded objects of one kind into changes of the picture. Pure; whoever feeds it sees to the
order: a kind is listed (or found absent) before it changes.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from services.watcher.core.picture import Picture
from shared.dialects.discovery import dialects
from shared.dialects.protocol import Kind, ReadingContext
from shared.kube.decoding import Change, Undecodable
from shared.kube.resources import PODGROUPS_VOLCANO
from shared.model.objects import ClusterObject

#: The kind whose presence means that bare pods can be given a group.
IMPLIED_GROUPS_KIND: Final = PODGROUPS_VOLCANO
#: Problems kept until they are logged; a flood of malformed objects is counted, not listed.
_PROBLEMS_MAX: Final = 20

Service = Literal["unknown", "served", "absent"]


class WatcherState:
    """See the module's docstring.

    Attributes:
        picture: All objects that scheduling needs.
        unreadable: How many objects did not fit their type, since the start.
    """

    def __init__(self, scheduler_names: Iterable[str], *, podgroup_controller: bool) -> None:
        """Begin knowing nothing; the arguments are the settings of these names."""
        self.picture = Picture()
        self.unreadable = 0
        self._podgroup_controller = podgroup_controller
        self._context = ReadingContext(scheduler_names=frozenset(scheduler_names))
        self._served: dict[str, bool] = {}
        self._problems: list[str] = []

    @property
    def implied_groups(self) -> bool:
        """Whether bare pods are being read as members of the group that will be made for them."""
        return self._context.implied_groups

    def service_of(self, kind: Kind) -> Service:
        """Whether the API server serves the kind, as far as it is known yet."""
        served = self._served.get(kind.resource.title)
        if served is None:
            return "unknown"
        return "served" if served else "absent"

    def listed(self, kind: Kind, objects: Iterable[object], resource_version: int) -> int:
        """Take a whole list; returns the number of changes. Raises ClusterWentBack."""
        self._note_service(kind, served=True)
        read = [self._read(kind, found) for found in objects]
        return self.picture.relist(
            kind.resource.title,
            kind.neutral,
            [model for model in read if model is not None],
            resource_version,
        )

    def changed(self, kind: Kind, changes: Iterable[Change[Any]], resource_version: int) -> int:
        """Take what a watch reported, up to that resourceVersion; returns the number of changes."""
        source = kind.resource.title
        count = 0
        for change in changes:
            found = change.object
            model = self._read(kind, found) if change.type != "DELETED" else None
            if model is not None:
                count += self.picture.observe(source, model)
            else:
                # Deleted, or no longer anything that scheduling needs (a budget without owner).
                metadata = found.metadata
                count += self.picture.forget(source, kind.neutral, metadata.uid, metadata.version)
        self.picture.reached(source, resource_version)
        return count

    def absent(self, kind: Kind) -> int:
        """Take that the kind is not served (any more): there are no such objects."""
        self._note_service(kind, served=False)
        return self.picture.withdraw(kind.resource.title, kind.neutral)

    def awake(self) -> tuple[str, ...]:
        """Names of the dialects that have a kind which is served, sorted."""
        return tuple(
            dialect.NAME
            for dialect in dialects()
            if any(self.service_of(kind) == "served" for kind in dialect.KINDS)
        )

    def take_problems(self) -> list[str]:
        """What could not be read since the last call, for the log; at most a few."""
        problems, self._problems = self._problems, []
        return problems

    def _read(self, kind: Kind, found: object) -> ClusterObject | None:
        if not isinstance(found, Undecodable):
            return kind.read(found, self._context)
        self.unreadable += 1
        if len(self._problems) < _PROBLEMS_MAX:
            metadata = found.metadata
            self._problems.append(
                f"{kind.resource.title} {metadata.namespace}/{metadata.name}: {found.error}"
            )
        return kind.read_undecodable(found, self._context)

    def _note_service(self, kind: Kind, *, served: bool) -> None:
        self._served[kind.resource.title] = served
        if kind.resource == IMPLIED_GROUPS_KIND:
            self._context = msgspec.structs.replace(
                self._context, implied_groups=served and self._podgroup_controller
            )
