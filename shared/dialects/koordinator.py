"""Gangs of Koordinator that pods declare in annotations, with a name and a minimum.

Gangs with the label of coscheduling have an object, and belong to the dialect `coscheduling`.
`waiting-time` is the time for which pods may wait on nodes for the rest of their gang: here the
time after which a gang that was bound in part is released. The modes say whether the pods that
wait on nodes keep these when another one fails. Here no pod waits on a node, so both are the same.

Gangs that name each other in `groups` are admitted together. Here they are one gang, in which each
of them is a role with its minimum. A pod knows only its own gang's minimum. Each other gang needs
one pod, until its own pods declare more.
"""

from typing import Final

import msgspec

from shared.contracts.annotations import (
    PREFERRED_TOPOLOGY,
    REPAIR_DEADLINE_SECONDS,
    REQUIRED_TOPOLOGY,
)
from shared.dialects.ignored_fields import IgnoredField, ignored_marks
from shared.dialects.pod_declared import (
    GROUPS,
    declared_by,
    name_of_all,
    number_of_pods,
    other_gangs,
)
from shared.dialects.protocol import Dialect, DurationAnnotation, GroupReference, Membership
from shared.kinds.durations import duration_ms
from shared.kube.objects import ObjectMeta

NAME: Final = "koordinator"
_PREFIX: Final = "gang.scheduling.koordinator.sh/"
_GROUP: Final = f"{_PREFIX}name"
_MINIMUM: Final = f"{_PREFIX}min-available"
_WAITING: Final = f"{_PREFIX}waiting-time"


def ignored_annotations(kind: str) -> tuple[IgnoredField, ...]:
    """Annotations of pods, or of the groups that pods name by a label, that are not acted upon."""
    keys = {
        "mode": "no pod waits on a node for the rest of its gang, so all modes are the same",
        "match-policy": "acts as once-satisfied: pods of a gang that has started are placed singly",
        "total-number": "pods above the minimum are placed as capacity becomes free",
        "network-topology-spec": f"only the annotation {REQUIRED_TOPOLOGY} or {PREFERRED_TOPOLOGY} "
        "names a topology",
    }
    return tuple(
        IgnoredField(kind=kind, path=f"metadata.annotations[{_PREFIX}{key}]", because=because)
        for key, because in keys.items()
    )


def _seconds(text: str) -> int | None:
    found_ms = duration_ms(text)
    return None if found_ms is None else found_ms // 1000


def membership(metadata: ObjectMeta) -> Membership | None:
    """The pod's gang; None when its name is empty."""
    given = metadata.annotations
    name = given.get(_GROUP)
    if not name:
        return None
    minimum, errors = number_of_pods(metadata, _MINIMUM, least=0)
    others, objection = other_gangs(given.get(GROUPS, ""), metadata.namespace, name)
    if objection:
        errors += (f"metadata.annotations[{GROUPS}]: {objection}",)
    waiting_s = _seconds(given.get(_WAITING, ""))
    settings = ((REPAIR_DEADLINE_SECONDS, str(waiting_s)),) if waiting_s else ()
    if not others:
        return declared_by(
            metadata, name, dialect=NAME, min_member=minimum, settings=settings, errors=errors
        )
    joined = declared_by(
        metadata,
        name_of_all((name, *others)),
        dialect=NAME,
        min_member=minimum + len(others),
        min_task_member=tuple(sorted(((name, minimum), *((other, 1) for other in others)))),
        settings=settings,
        errors=errors,
    )
    return msgspec.structs.replace(joined, role=name)


DIALECT: Final = Dialect(
    name=NAME,
    precedence=36,
    references=(GroupReference(place="annotation", key=_GROUP, declared_by="Koordinator"),),
    membership=membership,
    self_declared=True,
    scope=NAME,
    durations=(DurationAnnotation(key=_WAITING, setting=REPAIR_DEADLINE_SECONDS, read=_seconds),),
    ignored=(
        *ignored_annotations("Pod"),
        *ignored_marks(
            "annotations",
            "the pods of a gang are not ordered within a domain",
            f"{_PREFIX}network-topology-index",
        ),
    ),
)
