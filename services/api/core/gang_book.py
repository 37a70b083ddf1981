"""All gangs by namespace and name, each with its newest verdict, its members and its version.

A gang's name is that of its verdict. Where gangs of two APIs share it, the gang that was seen first
has it, and the name of another one continues with `:` and its id. So does every name that has a
`:` itself, which a pod's annotation may have: no name that a user chooses is another gang's.
"""

import bisect
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from services.api.core.cluster_state import ClusterState
from services.api.core.gang_objects import (
    GangForms,
    TraceUrl,
    build_gang,
    forms_of,
    no_trace_url,
)
from services.api.core.versions import Version
from shared.contracts.verdicts import Verdict

#: Deletions that are kept for watchers that begin at an earlier version.
DELETIONS_MAX: Final = 4_096

#: Between a name and an id. Names of Kubernetes' objects do not have it.
_SEPARATOR: Final = ":"

Place = tuple[str, str]
"""Namespace and name of a gang: the order of lists."""


class GangEntry(msgspec.Struct, eq=False):
    """One gang that exists."""

    verdict: Verdict
    version: Version
    place: Place
    #: The version since which a gang is at this place.
    since: Version
    #: Its forms, by whether the reader sees all namespaces; empty after each change.
    forms: dict[bool, GangForms] = {}


class DeletedGang(msgspec.Struct, frozen=True):
    """A gang that is gone, or that has another name now: as it was last, in both forms."""

    place: Place
    version: Version
    forms: dict[bool, GangForms]


class GangBook:
    """See the module's docstring. It is called after `cluster` has applied a record."""

    def __init__(self, cluster: ClusterState, trace_url: TraceUrl = no_trace_url) -> None:
        self.cluster = cluster
        self._trace_url = trace_url
        #: The last record of each stream that was read.
        self.read = Version(0, cluster.seq)
        #: The version of the whole: that of the newest change of any gang.
        self.version = self.read
        #: The newest deletion that is not in `deletions` any more.
        self.forgotten = Version()
        #: Oldest first.
        self.deletions: OrderedDict[Place, DeletedGang] = OrderedDict()
        self._entries: dict[str, GangEntry] = {}
        self._ids: dict[Place, str] = {}
        self._order: list[Place] = []
        #: Gangs in each namespace.
        self._counts: Counter[str] = Counter()
        #: Ids of the gangs in the order of their last changes, each with what was read at it.
        self._changes: OrderedDict[str, Version] = OrderedDict()
        #: Ids of the gangs that share a name, the first one of which has it.
        self._shared: dict[Place, list[str]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    # Changes. Each returns the places whose gangs changed or are gone.

    def put_verdict(self, seq: int, verdict: Verdict) -> set[Place]:
        """The next verdict of a gang."""
        self.read = Version(max(self.read.verdicts, seq), self.read.cluster)
        known = self._entries.get(verdict.gang_id)
        if verdict.phase == "Gone":
            if known is None:
                return set()
            self.version = Version(seq, self.version.cluster)
            return self._remove(verdict.gang_id, known)
        self.version = Version(seq, self.version.cluster)
        cluster_seq = self.version.cluster if known is None else known.version.cluster
        version = Version(seq, cluster_seq)
        if known is not None and _place(known.verdict) == _place(verdict):
            known.verdict, known.version, known.forms = verdict, version, {}
            self._note_change(verdict.gang_id)
            return {known.place}
        touched: set[Place] = set() if known is None else self._remove(verdict.gang_id, known)
        return touched | self._insert(verdict, version)

    def put_cluster(self, seq: int, gang_ids: Iterable[str]) -> set[Place]:
        """Record `seq` of CLUSTER, which `cluster` has applied, concerned these gangs."""
        self.read = Version(self.read.verdicts, seq)
        touched: set[Place] = set()
        for gang_id in gang_ids:
            entry = self._entries.get(gang_id)
            if entry is not None:
                self.version = Version(self.version.verdicts, seq)
                entry.version = Version(entry.version.verdicts, seq)
                entry.forms = {}
                self._note_change(gang_id)
                touched.add(entry.place)
        return touched

    def replace_cluster(self, cluster: ClusterState) -> set[Place]:
        """Another snapshot: any gang may have changed."""
        self.cluster = cluster
        self.read = Version(self.read.verdicts, cluster.seq)
        self.version = Version(self.version.verdicts, cluster.seq)
        for gang_id, entry in self._entries.items():
            entry.version = Version(entry.version.verdicts, cluster.seq)
            entry.forms = {}
            self._note_change(gang_id)
        return set(self._ids)

    # Reads.

    def get(self, place: Place) -> GangEntry | None:
        """The gang of a namespace and name."""
        gang_id = self._ids.get(place)
        return None if gang_id is None else self._entries[gang_id]

    def places(self, namespace: str, after: Place | None) -> Iterator[Place]:
        """Gangs of a namespace ("": of all), in order, behind `after`."""
        start = 0 if not namespace else bisect.bisect_left(self._order, (namespace, ""))
        if after is not None:
            start = max(start, bisect.bisect_right(self._order, after))
        for at in range(start, len(self._order)):
            place = self._order[at]
            if namespace and place[0] != namespace:
                return
            yield place

    def namespaces(self) -> set[str]:
        """Namespaces that have gangs."""
        return set(self._counts)

    def changed_since(self, version: Version) -> Iterator[Place]:
        """Gangs that are newer than a version, the newest first; it costs what it returns."""
        for gang_id, read in reversed(self._changes.items()):
            if version.contains(read):
                return
            entry = self._entries[gang_id]
            if not version.contains(entry.version):
                yield entry.place

    def forms(self, entry: GangEntry, *, sees_all: bool) -> GangForms:
        """The gang's object and JSON; made once for each version."""
        forms = entry.forms.get(sees_all)
        if forms is None:
            verdict = entry.verdict
            gang = verdict.gang_id, verdict.uid, verdict.namespace
            members = self.cluster.members(*gang) if verdict.members else ()
            made = build_gang(
                verdict,
                entry.place[1],
                self.cluster.owner(*gang),
                members,
                entry.version,
                self._trace_url,
                sees_all=sees_all,
            )
            forms = entry.forms[sees_all] = forms_of(made)
        return forms

    def knows_deletions_since(self, version: Version) -> bool:
        """Whether a watcher that begins at a version gets every deletion."""
        return version.contains(self.forgotten)

    def _note_change(self, gang_id: str) -> None:
        """The gang is the one that changed last."""
        self._changes.pop(gang_id, None)
        self._changes[gang_id] = self.read

    # Names.

    def _insert(self, verdict: Verdict, version: Version) -> set[Place]:
        place = _place(verdict)
        sharing = self._shared.setdefault(place, [])
        self._entries[verdict.gang_id] = GangEntry(verdict, version, place, version)
        sharing.append(verdict.gang_id)
        sharing.sort(key=lambda sharer: (self._entries[sharer].verdict.first_seen_ms, sharer))
        return self._name(place, sharing, version)

    def _remove(self, gang_id: str, entry: GangEntry) -> set[Place]:
        place = _place(entry.verdict)
        sharing = self._shared[place]
        sharing.remove(gang_id)
        self._delete_name(entry, self.version)
        del self._entries[gang_id]
        del self._changes[gang_id]
        touched = {entry.place}
        if not sharing:
            del self._shared[place]
            return touched
        return touched | self._name(place, sharing, self.version)

    def _name(self, place: Place, sharing: list[str], version: Version) -> set[Place]:
        """Give the gangs that share a name their names; the first one has the name itself."""
        touched: set[Place] = set()
        namespace, name = place
        plain = 0 if _SEPARATOR in name else 1
        wanted = [place] * plain + [
            (namespace, f"{name}{_SEPARATOR}{gang_id}") for gang_id in sharing[plain:]
        ]
        moved = [
            (gang_id, to)
            for gang_id, to in zip(sharing, wanted, strict=True)
            if self._ids.get(to) != gang_id
        ]
        for gang_id, _ in moved:
            entry = self._entries[gang_id]
            if self._ids.get(entry.place) == gang_id:
                touched.add(entry.place)
                self._delete_name(entry, version)
        for gang_id, to in moved:
            entry = self._entries[gang_id]
            entry.place, entry.forms = to, {}
            entry.version = entry.since = entry.version.merged(version)
            self._ids[to] = gang_id
            self._counts[to[0]] += 1
            self._note_change(gang_id)
            bisect.insort(self._order, to)
            touched.add(to)
        return touched

    def _delete_name(self, entry: GangEntry, version: Version) -> None:
        entry.version, entry.forms = version, {}
        forms = {all_: self.forms(entry, sees_all=all_) for all_ in (False, True)}
        del self._ids[entry.place]
        self._counts[entry.place[0]] -= 1
        if not self._counts[entry.place[0]]:
            del self._counts[entry.place[0]]
        del self._order[bisect.bisect_left(self._order, entry.place)]
        self.deletions.pop(entry.place, None)
        self.deletions[entry.place] = DeletedGang(entry.place, version, forms)
        if len(self.deletions) > DELETIONS_MAX:
            _, oldest = self.deletions.popitem(last=False)
            self.forgotten = self.forgotten.merged(oldest.version)


def _place(verdict: Verdict) -> Place:
    return verdict.namespace, verdict.name
