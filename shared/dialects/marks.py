"""Marks by which pods declare a gang in an API that Tutti knows, and whether a dialect reads them.

A pod of ours with a mark that is not read is not bound: alone it would start a part of its gang. A
dialect that reads a mark is named in its row; while the cluster does not serve the dialect's kinds,
the mark counts as not read. Labels and annotations that only name a queue, an application or a
priority declare no gang, and have no row here.
"""

from collections.abc import Collection, Iterator
from typing import Final, Literal

import msgspec

from shared.contracts import annotations
from shared.kube import objects as kube

_REMEDY: Final = (
    f"name a PodGroup of scheduling.volcano.sh in the annotation {annotations.GROUP_NAME}"
)


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    place: Literal["label", "annotation", "field"]
    #: Key of the label or annotation, or path of the field.
    key: str
    #: The API or scheduler that gives the mark its meaning.
    declared_by: str
    #: What makes Tutti read the gang; said before the general remedy.
    remedy: str = ""
    #: Whether the value is the gang's name; a value that is not, is a list or the name of a part.
    names_gang: bool = True
    #: Name of the dialect that reads it; None: no dialect does.
    read_by: str | None = None

    @property
    def title(self) -> str:
        """What users look for in their manifests: "label scheduling.x-k8s.io/pod-group"."""
        return f"{self.place} {self.key}"


_COSCHEDULING: Final = "coscheduling"
#: Operators that write coscheduling's groups for any name but this one.
_OPERATOR: Final = "start the operator with --gang-scheduler-name=volcano"
MARKS: Final[tuple[Mark, ...]] = (
    Mark(
        place="label",
        key="scheduling.x-k8s.io/pod-group",
        declared_by=_COSCHEDULING,
        remedy=_OPERATOR,
    ),
    Mark(
        place="label",
        key="pod-group.scheduling.sigs.k8s.io",
        declared_by=_COSCHEDULING,
        remedy=_OPERATOR,
    ),
    Mark(
        place="label",
        key="pod-group.scheduling.sigs.k8s.io/name",
        declared_by=_COSCHEDULING,
        remedy=_OPERATOR,
    ),
    Mark(place="field", key="spec.schedulingGroup", declared_by="Kubernetes"),
    Mark(place="field", key="spec.workloadRef", declared_by="Kubernetes"),
    Mark(place="label", key="kueue.x-k8s.io/pod-group-name", declared_by="Kueue"),
    Mark(place="annotation", key="kueue.x-k8s.io/pod-group-name", declared_by="Kueue"),
    Mark(place="annotation", key="pod-group-name", declared_by="KAI"),
    Mark(place="label", key="kai.scheduler/subgroup-name", declared_by="KAI", names_gang=False),
    Mark(
        place="annotation",
        key="yunikorn.apache.org/task-groups",
        declared_by="YuniKorn",
        names_gang=False,
    ),
    Mark(
        place="annotation",
        key="yunikorn.apache.org/task-group-name",
        declared_by="YuniKorn",
        names_gang=False,
    ),
    Mark(place="annotation", key="gang.scheduling.koordinator.sh/name", declared_by="Koordinator"),
    Mark(
        place="label",
        key="grove.io/podgang",
        declared_by="Grove",
        remedy="give Grove the scheduler profile volcano",
    ),
    Mark(place="annotation", key="godel.bytedance.com/pod-group-name", declared_by="Gödel"),
    Mark(
        place="annotation",
        key="scheduling.volcano.sh/group-name",
        declared_by="Volcano's device plugin",
    ),
)
#: Dialects on which it depends how a pod is read.
READERS: Final = frozenset(mark.read_by for mark in MARKS if mark.read_by is not None)


class Table:
    """The marks by place, as they are looked up for every pod."""

    def __init__(self, marks: Collection[Mark]) -> None:
        self.labels = {mark.key: mark for mark in marks if mark.place == "label"}
        self.notes = {mark.key: mark for mark in marks if mark.place == "annotation"}
        self.fields = {mark.key: mark for mark in marks if mark.place == "field"}
        self.label_keys = frozenset(self.labels)
        self.note_keys = frozenset(self.notes)


_TABLE: Final = Table(MARKS)


def unread(
    metadata: kube.ObjectMeta,
    spec: kube.PodSpec,
    awake: Collection[str] = (),
    table: Table = _TABLE,
) -> tuple[str, ...]:
    """One sentence for each declaration for which the pod must not be bound; () for most pods.

    A mark with the name that the pod also gives in `scheduling.k8s.io/group-name` says nothing new;
    with another name, the pod is in two gangs.

    Args:
        metadata: The pod's, or its template's.
        spec: Likewise.
        awake: Names of dialects whose kinds are served.
        table: The known marks.
    """
    if (
        table.label_keys.isdisjoint(metadata.labels)
        and table.note_keys.isdisjoint(metadata.annotations)
        and spec.scheduling_group is None
        and spec.workload_ref is None
    ):
        return ()
    group = metadata.annotations.get(annotations.GROUP_NAME, "")
    found = (_objection(*one, group, awake) for one in _found(metadata, spec, table))
    return tuple(sorted(sentence for sentence in found if sentence))


def _found(
    metadata: kube.ObjectMeta, spec: kube.PodSpec, table: Table
) -> Iterator[tuple[Mark, str]]:
    for key, mark in table.labels.items():
        yield mark, metadata.labels.get(key, "")
    for key, mark in table.notes.items():
        yield mark, metadata.annotations.get(key, "")
    group, workload = spec.scheduling_group, spec.workload_ref
    # A reference without a name that is known here is one of a later version.
    fields = {
        "spec.schedulingGroup": "" if group is None else group.pod_group_name or "?",
        "spec.workloadRef": "" if workload is None else workload.name or "?",
    }
    for key, mark in table.fields.items():
        yield mark, fields[key]


def _objection(mark: Mark, value: str, group: str, awake: Collection[str]) -> str:
    """The sentence about one mark of a pod; "" where it has none, or a harmless one."""
    if not value or (mark.names_gang and value == group):
        return ""
    if mark.names_gang and group:
        return (
            f"annotation {annotations.GROUP_NAME} and {mark.title} ({mark.declared_by}) name two "
            "gangs; remove one, or give both the same name"
        )
    if mark.read_by in awake:
        return ""
    remedy = f"{mark.remedy}, or {_REMEDY}" if mark.remedy else _REMEDY
    return f"{mark.title} declares a gang of {mark.declared_by}, which is not read here; {remedy}"
