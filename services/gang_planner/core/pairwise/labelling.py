"""Keeps the profile of every pod in line: with its labels, its namespace's, and what terms ask for.

Terms come with pods. A selector that nobody asked about before is compared with the pods that have
its anchor (`terms`), found by `LabelIndex`, and with no others. In a cluster without terms nothing
of this costs anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from services.gang_planner.core.pairwise.terms import Matcher, Subject
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.members import Member
from services.gang_planner.core.tables.shapes import ShapeEntry, ShapeTable
from services.gang_planner.core.tables.surroundings import Table
from shared.model.objects import Labels, Pod
from shared.model.surroundings import Namespace

if TYPE_CHECKING:
    from services.gang_planner.state import State

_NONE: Final[Mapping[str, str]] = {}
_DECODER: Final = msgspec.msgpack.Decoder(Labels)


@lru_cache(maxsize=8192)
def decoded(labels: bytes) -> Mapping[str, str]:
    """Labels as a pod carries them, as a mapping; what is none has none."""
    if not labels:
        return _NONE
    try:
        return dict(_DECODER.decode(labels))
    except (msgspec.DecodeError, msgspec.ValidationError):
        return _NONE


class LabelIndex:
    """Pods by value of the label keys that some matcher is anchored at, and namespaces by name."""

    def __init__(self, namespaces: Table[Namespace]) -> None:
        self._by_key: dict[str, dict[str, dict[str, None]]] = {}
        self._namespaces = namespaces
        self._by_name: dict[str, Mapping[str, str]] = {}
        self._read_at = -1

    def put(self, pod: Pod) -> None:
        """A pod appeared."""
        if self._by_key:
            for key, value in decoded(pod.labels).items():
                values = self._by_key.get(key)
                if values is not None:
                    values.setdefault(value, {})[pod.uid] = None

    def remove(self, pod: Pod) -> None:
        """A pod is gone, or changes its labels."""
        if self._by_key:
            for key, value in decoded(pod.labels).items():
                values = self._by_key.get(key)
                if values is None:
                    continue
                del values[value][pod.uid]
                if not values[value]:
                    del values[value]

    def candidates(self, matcher: Matcher, members: Mapping[str, Member]) -> Iterable[str]:
        """UIDs of the pods that it can be about."""
        if not matcher.anchors:
            return list(members)
        found: list[str] = []
        for key, value in matcher.anchors:
            values = self._by_key.get(key)
            if values is None:
                values = self._track(key, members)
            found.extend(values.get(value, ()))
        return found

    def namespace(self, name: str) -> Mapping[str, str]:
        """Labels of a namespace."""
        if self._read_at != self._namespaces.changes:
            self._read_at = self._namespaces.changes
            self._by_name = {one.name: dict(one.labels) for one in self._namespaces.values()}
        return self._by_name.get(name, _NONE)

    def _track(self, key: str, members: Mapping[str, Member]) -> dict[str, dict[str, None]]:
        values = self._by_key[key] = {}
        for uid, member in members.items():
            value = decoded(member.pod.labels).get(key)
            if value is not None:
                values.setdefault(value, {})[uid] = None
        return values


def entry_of(state: "State", pod: Pod) -> ShapeEntry:
    """The entry of a pod as it is. When its shape asks for labels that nobody asked for before,
    other pods get other entries.
    """
    shapes = state.shapes
    entry = entry_of_shape(state, pod.shape)
    if not shapes.terms.any:
        return entry
    profile = shapes.terms.profile(_subject(state, pod))
    return shapes.intern(pod.shape, profile) if profile else entry


def entry_of_shape(state: "State", encoded: bytes) -> ShapeEntry:
    """The entry of a shape whose pod's labels are not known: it carries its terms, and no selector
    means it.
    """
    entry = state.shapes.intern(encoded)
    if state.shapes.terms.fresh:
        regard(state)
    return entry


def entry_of_lost(state: "State", encoded: bytes, namespace: str, labels: bytes) -> ShapeEntry:
    """The entry of a pod that is gone, as its successor will have it."""
    entry = entry_of_shape(state, encoded)
    terms = state.shapes.terms
    if not terms.any or not namespace:
        return entry
    subject = Subject(namespace, state.labels.namespace(namespace), decoded(labels), False)
    profile = terms.profile(subject)
    return state.shapes.intern(encoded, profile) if profile else entry


def lasting(state: "State", member: Member) -> ShapeEntry:
    """The entry that the pod would have if it were not being deleted: its successor's."""
    if not member.pod.deleting or not state.shapes.terms.any:
        return member.shape
    return entry_of(state, msgspec.structs.replace(member.pod, deleting=False))


def asked(
    state: "State", shapes: ShapeTable, ground: Ground, pods: Sequence[Pod]
) -> list[ShapeEntry]:
    """Entries of pods that do not exist, in a table of their own; the state is only read.

    Args:
        state: What is there.
        shapes: The question's table; its terms are a copy of the state's.
        ground: A copy of the state's ground: pods that nobody asked for before are counted there.
        pods: What the question is about.
    """
    terms = shapes.terms
    for pod in pods:
        shapes.intern(pod.shape)
    for matcher in terms.fresh:
        tally = ((matcher.number, 1),)
        for uid in state.labels.candidates(matcher, state.members):
            member = state.members[uid]
            if matcher.matches(_subject(state, member.pod)):
                for slot in _places(state, member):
                    ground.pairs.add(slot, tally, 1)
    terms.fresh = []
    return [shapes.intern(pod.shape, terms.profile(_subject(state, pod))) for pod in pods]


def regard(state: "State") -> None:
    """Compare what is newly asked for with the pods."""
    terms = state.shapes.terms
    fresh, terms.fresh = terms.fresh, []
    _refresh_all(state, fresh)


def namespaces_changed(state: "State") -> None:
    """Labels of namespaces changed: compare again what looks at them."""
    _refresh_all(state, state.shapes.terms.by_namespace())


def follow(state: "State", member: Member, before: Pod) -> None:
    """The pod has changed: give it the entry that it has now."""
    pod = member.pod
    if pod.labels == before.labels and pod.deleting == before.deleting:
        return
    if state.shapes.terms.any and refresh(state, member) and member.slot >= 0:
        # What it kept others from may be open to them now.
        state.ground.freed += 1


def refresh(state: "State", member: Member) -> bool:
    """Bring one pod's entry in line; True: it has another one now."""
    if member.pod.shape != member.shape.encoded:
        # Its shape is being changed, and its entry with it.
        return False
    entry = entry_of(state, member.pod)
    if entry is member.shape:
        return False
    _reshape(state, member, entry)
    return True


def _refresh_all(state: "State", matchers: Iterable[Matcher]) -> None:
    found: dict[str, None] = {}
    for one in matchers:
        found.update(dict.fromkeys(state.labels.candidates(one, state.members)))
    for uid in found:
        refresh(state, state.members[uid])
    if state.debts.open_count:
        state.debts.relabel(state)


def _reshape(state: "State", member: Member, entry: ShapeEntry) -> None:
    """Put another entry of the same shape in the place of a pod's, in all tables."""
    before, gang = member.shape, member.gang
    if gang is not None:
        gang.reshape(member, entry)
        state.gangs.touch(gang)
    for room in state.rooms.rows(member.pod.uid):
        if room.shape is before:
            state.ground.exchange(room.slot, before, entry)
            room.shape = entry
    promised = state.rooms.promised.get(member.pod.uid)
    if promised is not None and promised.shape is before:
        state.ground.exchange(promised.slot, before, entry)
        promised.shape = entry
        if gang is not None:
            gang.hold(before, -1)
            gang.hold(entry, 1)
    if member.slot >= 0:
        state.ground.exchange(member.slot, before, entry)
    member.shape = entry


def _places(state: "State", member: Member) -> list[int]:
    """Nodes on which a pod is counted: its own, and those that room is kept on for it."""
    places = [room.slot for room in state.rooms.rows(member.pod.uid)]
    promised = state.rooms.promised.get(member.pod.uid)
    if promised is not None:
        places.append(promised.slot)
    if member.slot >= 0:
        places.append(member.slot)
    return places


def _subject(state: "State", pod: Pod) -> Subject:
    return Subject(
        pod.namespace,
        state.labels.namespace(pod.namespace),
        decoded(pod.labels),
        pod.deleting,
    )
