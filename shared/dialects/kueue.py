"""Plain pod groups of Kueue: pods name their group in a label, and its size in an annotation.

Kueue admits such a group by its quota, and then removes its scheduling gates from the pods; it
binds nothing. Tutti places the pods together once all of them exist without gates: the total count
is the group's only number. LocalQueue, priority class and topology annotations are Kueue's
business, which writes the nodes that it chose into the pods' node selectors.

A pod that also names a group of another API is a member of that group: then Kueue's group is one of
quota only.
"""

from typing import Final

from shared.contracts.annotations import LOCAL_QUEUE
from shared.dialects.ignored_fields import ignored_marks
from shared.dialects.pod_declared import declared_by, number_of_pods
from shared.dialects.protocol import Dialect, GroupReference, Membership
from shared.kube.objects import ObjectMeta

NAME: Final = "kueue"
_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
_TOTAL: Final = "kueue.x-k8s.io/pod-group-total-count"


def membership(metadata: ObjectMeta) -> Membership | None:
    """The pod's group; None when its name is empty."""
    name = metadata.labels.get(_GROUP) or metadata.annotations.get(_GROUP)
    if not name:
        return None
    total, errors = number_of_pods(metadata, _TOTAL, least=1)
    return declared_by(metadata, name, dialect=NAME, min_member=total, errors=errors)


DIALECT: Final = Dialect(
    name=NAME,
    precedence=94,
    references=(
        GroupReference(place="label", key=_GROUP, declared_by="Kueue", names_group=False),
        GroupReference(place="annotation", key=_GROUP, declared_by="Kueue", names_group=False),
    ),
    membership=membership,
    self_declared=True,
    scope=NAME,
    ignored=(
        *ignored_marks(
            "labels",
            "Kueue reads it when it admits the group by its quota",
            LOCAL_QUEUE,
            "kueue.x-k8s.io/priority-class",
        ),
        *ignored_marks(
            "annotations",
            "Kueue reads it when it admits or replaces the group's pods",
            "kueue.x-k8s.io/pod-group-fast-admission",
            "kueue.x-k8s.io/pod-group-serving",
            "kueue.x-k8s.io/retriable-in-group",
            "kueue.x-k8s.io/role-hash",
        ),
        *ignored_marks(
            "annotations",
            "Kueue chooses the domain, and writes it into the pod's node selector",
            "kueue.x-k8s.io/podset-required-topology",
            "kueue.x-k8s.io/podset-preferred-topology",
            "kueue.x-k8s.io/podset-unconstrained-topology",
            "kueue.x-k8s.io/podset-slice-required-topology",
            "kueue.x-k8s.io/podset-slice-size",
            "kueue.x-k8s.io/podset-group-name",
        ),
    ),
)
