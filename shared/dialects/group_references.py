"""Reads the gang that a pod declares, and detects declarations that no dialect reads.

A pod of ours with a reference that no dialect reads is not bound, since that could start a part of
its gang. While the API server does not serve the kinds of a dialect, its references count as not
read. Labels and annotations that only name a queue, an application or a priority declare no gang,
and are not in the table.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple, TypeAlias

from shared.contracts.annotations import GROUP_MIN_MEMBER, GROUP_NAME
from shared.contracts.identity import safe_token
from shared.dialects.owner_kinds import owner_kind
from shared.dialects.protocol import Dialect, GroupReference, Membership
from shared.dialects.workload_sizes import is_workload
from shared.kube.objects import ObjectMeta, PodSpec
from shared.model.gang_keys import MADE_FOR_PODS_PREFIX

_REMEDY: Final = f"name a PodGroup of scheduling.volcano.sh in the annotation {GROUP_NAME}"
#: Operators that write coscheduling's groups for any name but this one.
_OPERATOR: Final = "set the operator's --gang-scheduler-name=volcano"


#: References of known APIs and schedulers. A row counts as long as no dialect has its key among its
#: own references: the file of a new dialect replaces it.
KNOWN_REFERENCES: Final = (
    GroupReference(
        place="label",
        key="pod-group.scheduling.sigs.k8s.io",
        declared_by="coscheduling",
        remedy=_OPERATOR,
    ),
    GroupReference(
        place="label",
        key="pod-group.scheduling.sigs.k8s.io/name",
        declared_by="coscheduling",
        remedy=_OPERATOR,
    ),
    GroupReference(place="field", key="spec.schedulingGroup", declared_by="Kubernetes"),
    GroupReference(place="field", key="spec.workloadRef", declared_by="Kubernetes"),
    GroupReference(
        place="annotation", key="godel.bytedance.com/pod-group-name", declared_by="Gödel"
    ),
    GroupReference(
        place="annotation",
        key="scheduling.volcano.sh/group-name",
        declared_by="Volcano's device plugin",
    ),
)


class _Row(NamedTuple):
    """A row of the table: a reference, and the dialect that reads it, if any."""

    order: int
    reference: GroupReference
    dialect: Dialect | None


#: Instead of a value: the field has no part that is known here.
_UNKNOWN: Final = "?"


class Declaration(NamedTuple):
    """A reference that a pod has, and how it is read."""

    reference: GroupReference
    value: str
    #: The dialect that reads it; None: no dialect does, or its kinds are not served.
    dialect: Dialect | None
    #: The gang that it declares; None: it declares none by itself.
    membership: Membership | None


_Found: TypeAlias = tuple[_Row, str]
"""A reference that a pod has, and its value."""


def implied_group(metadata: ObjectMeta) -> str:
    """The name of the PodGroup that the podgroup controller makes for a bare pod: its own, or that
    of all bare pods of its owner.

    Pods of an owner whose kind is not known here have nothing in common that Tutti could follow:
    different tasks, queues and priorities (an Argo Workflow). They are one group only if they
    declare its minimum.
    """
    owner = metadata.controller
    if owner is None or not (
        is_workload(owner.api_version, owner.kind)
        or owner_kind(owner.api_version, owner.kind) is not None
        or metadata.annotations.get(GROUP_MIN_MEMBER)
    ):
        return _made_name(metadata.uid)
    return _made_name(owner.uid)


def _made_name(uid: str) -> str:
    return f"{MADE_FOR_PODS_PREFIX}{safe_token(uid)}"


def _made_names(metadata: ObjectMeta) -> frozenset[str]:
    """All names that a group which was made for the pod may have: those of earlier versions too."""
    owner = metadata.controller
    uids = (metadata.uid,) if owner is None else (metadata.uid, owner.uid)
    return frozenset(map(_made_name, uids))


class ReferenceTable:
    """All references, arranged so that a pod costs two set operations."""

    def __init__(
        self,
        dialects: Iterable[Dialect],
        known: Iterable[GroupReference] = KNOWN_REFERENCES,
    ) -> None:
        """Arrange the references.

        Args:
            dialects: All dialects, by precedence.
            known: References that count as not read, unless one of the dialects has their key.
        """
        read = [(reference, dialect) for dialect in dialects for reference in dialect.references]
        keys = {(reference.place, reference.key) for reference, _ in read}
        #: References that a dialect reads.
        self.by_dialects = tuple(reference for reference, _ in read)
        #: Those of which kube-scheduler takes no notice.
        self.kube_scheduler_ignores = tuple(
            reference for reference, dialect in read if dialect.kube_scheduler_ignores
        )
        #: References by which pods name a group object of a dialect.
        self.to_objects = tuple(
            reference for reference, dialect in read if not dialect.self_declared
        )
        #: References that no dialect reads.
        self.unread = tuple(
            reference for reference in known if (reference.place, reference.key) not in keys
        )
        self._labels: dict[str, _Row] = {}
        self._annotations: dict[str, _Row] = {}
        self._fields: dict[str, _Row] = {}
        places = {
            "label": self._labels,
            "annotation": self._annotations,
            "field": self._fields,
        }
        rows = (*read, *((reference, None) for reference in self.unread))
        for order, (reference, dialect) in enumerate(rows):
            places[reference.place].setdefault(reference.key, _Row(order, reference, dialect))
        self._label_keys = frozenset(self._labels)
        self._annotation_keys = frozenset(self._annotations)

    def read(
        self, metadata: ObjectMeta, spec: PodSpec, served: Collection[str] | None
    ) -> tuple[Membership | None, tuple[str, ...]]:
        """The gang that a pod declares, and why the pod must not be bound as its member.

        Args:
            metadata: The pod's, or its template's.
            spec: Likewise.
            served: Names of the dialects whose kinds are served; None: take all for served.

        Returns:
            The membership by the first dialect that reads a reference of the pod; None when the pod
            declares no gang that is read. And one sentence, sorted, for each reference that is not
            read, or that names another gang; () for most pods. A reference that is not read but
            names the same gang is harmless.
        """
        rows = self._found(metadata, spec)
        if not rows:
            return None, ()
        made = _made_names(metadata) if len(rows) > 1 else frozenset[str]()
        if made and any(value not in made and _is_read(row, value, served) for row, value in rows):
            # The controller made its group before the pod's own reference was read.
            rows = [pair for pair in rows if pair[1] not in made]
        joined, first = None, None
        for row, value in rows:
            if _is_read(row, value, served):
                joined = _membership(row, value, metadata)
                if joined is not None:
                    first = row
                    break
        if first is not None and len(rows) == 1:
            return joined, ()
        objections: list[str] = []
        for row, value in rows:
            is_read = _is_read(row, value, served)
            own = _membership(row, value, metadata) if is_read else None
            if own is None:
                own = joined if is_read else Membership(group_name=value)
            named = None if joined is not None and joined.group_name in made else joined
            objection = _objection(row.reference, own, named, first, is_read=is_read)
            if objection:
                objections.append(objection)
        return joined, tuple(sorted(objections))

    def declarations(
        self, metadata: ObjectMeta, spec: PodSpec, served: Collection[str] | None
    ) -> tuple[Declaration, ...]:
        """Every reference of a pod, by precedence: the first one with a membership is the pod's
        gang. For explanations and decisions about a pod's creation; `read` is the faster way to
        the gang. Arguments as for `read`.
        """
        return tuple(
            Declaration(row.reference, value, row.dialect, _membership(row, value, metadata))
            if _is_read(row, value, served)
            else Declaration(row.reference, value, None, None)
            for row, value in self._found(metadata, spec)
        )

    def is_ignored_by_kube_scheduler(
        self, metadata: ObjectMeta, spec: PodSpec, served: Collection[str] | None
    ) -> bool:
        """Whether kube-scheduler would bind this pod without regard to the gang that it declares.
        Arguments as for `read`.
        """
        declared = self.declarations(metadata, spec, served)
        dialect = next(
            (declaration.dialect for declaration in declared if declaration.membership is not None),
            None,
        )
        return dialect is not None and dialect.kube_scheduler_ignores

    def _found(self, metadata: ObjectMeta, spec: PodSpec) -> list[_Found]:
        """The references that the pod has, by precedence."""
        annotations, labels = metadata.annotations, metadata.labels
        rows: list[_Found] = []
        if not self._annotation_keys.isdisjoint(annotations):
            rows += [
                (self._annotations[key], annotations[key])
                for key in self._annotation_keys.intersection(annotations)
                if annotations[key]
            ]
        if not self._label_keys.isdisjoint(labels):
            rows += [
                (self._labels[key], labels[key])
                for key in self._label_keys.intersection(labels)
                if labels[key]
            ]
        # A field without a known name belongs to a later version of the API.
        if spec.scheduling_group is not None:
            row = self._fields["spec.schedulingGroup"]
            rows.append((row, spec.scheduling_group.pod_group_name or _UNKNOWN))
        if spec.workload_ref is not None:
            rows.append((self._fields["spec.workloadRef"], spec.workload_ref.name or _UNKNOWN))
        if len(rows) > 1:
            rows.sort(key=lambda pair: pair[0].order)
        return rows


def _is_read(row: _Row, value: str, served: Collection[str] | None) -> bool:
    dialect = row.dialect
    if dialect is None or value == _UNKNOWN:
        return False
    return served is None or not dialect.kinds or dialect.name in served


def _membership(row: _Row, value: str, metadata: ObjectMeta) -> Membership | None:
    """The gang that a reference declares, as its dialect reads it."""
    dialect = row.dialect
    if dialect is None:
        return None
    if dialect.membership is not None:
        return dialect.membership(metadata)
    if not row.reference.names_group:
        return None
    return Membership(group_name=value, self_declared=dialect.self_declared, scope=dialect.scope)


def _objection(
    reference: GroupReference,
    own: Membership | None,
    joined: Membership | None,
    first: _Row | None,
    *,
    is_read: bool,
) -> str:
    """Why the pod must not be bound for this reference; "" when there is no reason.

    Args:
        reference: The reference.
        own: The gang that it names.
        joined: The gang that the pod is read as a member of, by the reference `first`.
        first: Likewise.
        is_read: Whether a dialect reads the reference.
    """
    if joined is not None and first is not None and reference.names_group:
        if own is None or own.group_name == joined.group_name:
            return ""
        return (
            f"{first.reference.title} and {reference.title} ({reference.declared_by}) name two "
            "gangs; remove one, or give both the same name"
        )
    if is_read:
        return ""
    remedy = f"{reference.remedy}, or {_REMEDY}" if reference.remedy else _REMEDY
    return (
        f"{reference.title} declares a gang of {reference.declared_by}, which is not read here; "
        f"{remedy}"
    )
