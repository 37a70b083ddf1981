"""Keeps the profile of every pod up to date with its labels, its namespace's labels, and the
selectors of all terms.

Pods bring new terms. A new selector is compared only with pods that have its anchor (`terms`),
which `LabelIndex` finds. In a cluster without terms, none of this runs.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.inter_pod.label_index import LabelIndex, decoded
from services.gang_planner.core.state.inter_pod.terms import Matcher, Subject
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry, ShapeTable
from services.gang_planner.core.state.tables import Tables
from shared.model.objects import Pod

#: Pods with which all new terms of hypothetical pods are compared, each time it is: about 2 s.
_COMPARED_MAX: Final = 100_000


def entry_of(tables: Tables, pod: Pod) -> ShapeEntry:
    """The entry of a pod now. A new selector in its shape updates the entries of other pods."""
    shapes = tables.shapes
    entry = entry_of_shape(tables, pod.shape)
    if not shapes.terms.any:
        return entry
    profile = shapes.terms.profile(_subject(tables.labels, pod))
    return shapes.intern(pod.shape, profile) if profile else entry


def entry_of_shape(tables: Tables, encoded: bytes) -> ShapeEntry:
    """The entry of a shape whose pod's labels are unknown: with its terms and an empty profile."""
    entry = tables.shapes.intern(encoded)
    if tables.shapes.terms.fresh:
        regard(tables)
    return entry


def entry_of_lost(tables: Tables, encoded: bytes, namespace: str, labels: bytes) -> ShapeEntry:
    """The entry that the successor of a lost pod will have."""
    entry = entry_of_shape(tables, encoded)
    terms = tables.shapes.terms
    if not terms.any or not namespace:
        return entry
    subject = Subject(namespace, tables.labels.namespace(namespace), decoded(labels), False)
    profile = terms.profile(subject)
    return tables.shapes.intern(encoded, profile) if profile else entry


def lasting(tables: Tables, member: Member) -> ShapeEntry:
    """The entry that the pod would have if it were not being deleted, as its successor will."""
    if not member.pod.deleting or not tables.shapes.terms.any:
        return member.shape
    return entry_of(tables, msgspec.structs.replace(member.pod, deleting=False))


def asked(
    tables: Tables, shapes: ShapeTable, node_capacity: NodeCapacity, pods: Sequence[Pod]
) -> list[ShapeEntry] | None:
    """Entries of hypothetical pods in a separate shape table with a copy of the tables' terms.
    Existing pods that new terms select are counted in `node_capacity`, also a copy. None: new terms
    would have to be compared with too many pods.
    """
    compared = 0
    terms = shapes.terms
    for pod in pods:
        shapes.intern(pod.shape)
    for matcher in terms.fresh:
        tally = ((matcher.number, 1),)
        candidates = list(tables.labels.candidates(matcher, tables.members))
        compared += len(candidates)
        if compared > _COMPARED_MAX:
            return None
        for uid in candidates:
            member = tables.members[uid]
            if matcher.matches(_subject(tables.labels, member.pod)):
                for slot in _places(tables, member):
                    node_capacity.pairs.add(slot, tally, 1)
    terms.fresh = []
    return [shapes.intern(pod.shape, terms.profile(_subject(tables.labels, pod))) for pod in pods]


def regard(tables: Tables) -> None:
    """Compare all new matchers with the existing pods."""
    terms = tables.shapes.terms
    fresh, terms.fresh = terms.fresh, []
    _refresh_all(tables, fresh)


def namespaces_changed(tables: Tables) -> None:
    """Compare matchers with namespace selectors again after labels of namespaces changed."""
    _refresh_all(tables, tables.shapes.terms.by_namespace())


def follow(tables: Tables, member: Member, before: Pod) -> None:
    """Update the entry of a changed pod; `before` is its previous version."""
    pod = member.pod
    if pod.labels == before.labels and pod.deleting == before.deleting:
        return
    if tables.shapes.terms.any and refresh(tables, member) and member.slot is not None:
        # Nodes that it excluded may be eligible for other pods now.
        tables.node_capacity.freed += 1


def refresh(tables: Tables, member: Member) -> bool:
    """Update the entry of one pod. Returns whether it changed."""
    if member.pod.shape != member.shape.encoded:
        # A change of its shape is in progress and will set its entry.
        return False
    entry = entry_of(tables, member.pod)
    if entry is member.shape:
        return False
    _reshape(tables, member, entry)
    return True


def _refresh_all(tables: Tables, matchers: Iterable[Matcher]) -> None:
    uids: dict[str, None] = {}
    for matcher in matchers:
        uids.update(dict.fromkeys(tables.labels.candidates(matcher, tables.members)))
    for uid in uids:
        refresh(tables, tables.members[uid])
    tables.relabel_lost()


def _reshape(tables: Tables, member: Member, entry: ShapeEntry) -> None:
    """Replace the entry of a pod by another entry of the same shape in all tables."""
    before, gang = member.shape, member.gang
    if gang is not None:
        gang.reshape(member, entry)
        tables.gangs.touch(gang)
    for reservation in tables.reservations.rows(member.pod.uid):
        if reservation.shape is before:
            tables.node_capacity.exchange(reservation.slot, before, entry)
            reservation.shape = entry
    promised = tables.reservations.promised.get(member.pod.uid)
    if promised is not None and promised.shape is before:
        tables.node_capacity.exchange(promised.slot, before, entry)
        promised.shape = entry
        if gang is not None:
            gang.hold(before, -1)
            gang.hold(entry, 1)
    if member.slot is not None:
        tables.node_capacity.exchange(member.slot, before, entry)
    member.shape = entry


def _places(tables: Tables, member: Member) -> list[int]:
    """Slots on which a pod is counted: its node, and the nodes with reservations for it."""
    places = [reservation.slot for reservation in tables.reservations.rows(member.pod.uid)]
    promised = tables.reservations.promised.get(member.pod.uid)
    if promised is not None:
        places.append(promised.slot)
    if member.slot is not None:
        places.append(member.slot)
    return places


def _subject(labels: LabelIndex, pod: Pod) -> Subject:
    return Subject(
        pod.namespace,
        labels.namespace(pod.namespace),
        decoded(pod.labels),
        pod.deleting,
    )
