"""Task groups of YuniKorn: an application's first pod declares them, and each pod names its own.

YuniKorn reserves their resources with placeholder pods, and replaces these by the application's
pods as they are created: a Spark driver creates its executors only when it runs. Here the sum of
all task groups is the group's `minResources`: no pod is placed before all of it fits, and the rest
is reserved, without placeholder pods, until the placeholders' timeout. After that the pods are
placed as capacity becomes free.

With the style Hard, YuniKorn lets an application fail whose placeholders are not all placed within
the timeout. Here the timeout is the gang's placement deadline: if no pod is placed by then, none is
placed any more, and the pods' condition says so. They stay Pending: only their owner ends them.

A queue's path is the name of the Volcano Queue that `tutti migrate queues` makes of that queue.
"""

from functools import lru_cache
from typing import Final

import msgspec

from shared.contracts.annotations import PLACEMENT_DEADLINE_SECONDS, RESERVE_SECONDS
from shared.dialects.field_checks import natural
from shared.dialects.ignored_fields import ignored, ignored_marks
from shared.dialects.kubebatch_fields import read_min_resources
from shared.dialects.pod_declared import declared_by
from shared.dialects.protocol import (
    Dialect,
    DurationAnnotation,
    GroupReference,
    Membership,
    PodKeys,
)
from shared.kinds.queue import name_of_path
from shared.kube.objects import ObjectMeta, Quantity
from shared.model.objects import Labels, Resources

NAME: Final = "yunikorn"
_GROUPS: Final = "yunikorn.apache.org/task-groups"
_GROUP: Final = "yunikorn.apache.org/task-group-name"
_PARAMETERS: Final = "yunikorn.apache.org/schedulingPolicyParameters"
_TIMEOUT: Final = "placeholderTimeoutInSeconds="
_TIMEOUT_S: Final = 900
_HARD: Final = "gangSchedulingStyle=Hard"
_APPLICATION: Final = PodKeys(
    annotations=("yunikorn.apache.org/app-id",),
    labels=("yunikorn.apache.org/app-id", "spark-app-selector", "applicationId"),
)
#: YuniKorn reads a queue's label before its annotation; `PodKeys` has the other order.
_QUEUE: Final = "yunikorn.apache.org/queue"
_QUEUE_LABELS: Final = (_QUEUE, "queue")


class _TaskGroup(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    min_member: int = 0
    min_resource: dict[str, Quantity] = {}


_decode: Final = msgspec.json.Decoder(list[_TaskGroup]).decode


def membership(metadata: ObjectMeta) -> Membership | None:
    """The pod's application, with its task groups if the pod declares them."""
    given = metadata.annotations
    name = _APPLICATION.read(metadata)
    text = given.get(_GROUPS)
    if not name:
        missing = ("metadata.labels[yunikorn.apache.org/app-id]: missing",)
        return declared_by(metadata, metadata.name, dialect=NAME, min_member=1, errors=missing)
    if not text:
        return Membership(group_name=name, scope=NAME)
    needed, errors = _sum_of(text)
    return declared_by(
        metadata,
        name,
        dialect=NAME,
        min_member=1,
        min_resources=needed,
        queue=_queue(metadata),
        settings=_settings(given.get(_PARAMETERS, "")),
        errors=errors,
    )


def _queue(metadata: ObjectMeta) -> str:
    """The queue of the pod's path; "" without one, and for the root queue, which takes no pods."""
    labels = metadata.labels
    path = next((labels[key] for key in _QUEUE_LABELS if labels.get(key)), "")
    return name_of_path(path or metadata.annotations.get(_QUEUE, ""))


@lru_cache(maxsize=256)
def _sum_of(text: str) -> tuple[Resources, tuple[str, ...]]:
    """The resources of all members of all task groups, and what is wrong with them."""
    path = f"metadata.annotations[{_GROUPS}]"
    try:
        groups = _decode(text)
    except msgspec.MsgspecError as error:
        return (), (f"{path}: {error}",)
    total: dict[str, int] = {}
    errors: list[str] = []
    for group in groups:
        if group.min_member < 0:
            errors.append(f"{path}: minMember of {group.name[:50]} is negative")
        amounts, problems = read_min_resources(group.min_resource)
        errors += [f"{path}: {problem}" for problem in problems]
        for resource, amount in amounts or ():
            total[resource] = total.get(resource, 0) + amount * max(group.min_member, 0)
    return tuple(sorted(total.items())), tuple(errors)


def _settings(parameters: str) -> Labels:
    """The settings that the policy's parameters imply."""
    timeout = str(_timeout_s(parameters))
    settings = ((RESERVE_SECONDS, timeout),)
    if _HARD in parameters.split():
        return (*settings, (PLACEMENT_DEADLINE_SECONDS, timeout))
    return settings


def _timeout_s(parameters: str) -> int:
    """The timeout of placeholders that the policy's parameters name, or the default."""
    for parameter in parameters.split():
        if parameter.startswith(_TIMEOUT):
            return natural(parameter.removeprefix(_TIMEOUT)) or _TIMEOUT_S
    return _TIMEOUT_S


DIALECT: Final = Dialect(
    name=NAME,
    precedence=95,
    references=(
        GroupReference(place="annotation", key=_GROUPS, declared_by="YuniKorn", names_group=False),
        GroupReference(place="annotation", key=_GROUP, declared_by="YuniKorn", names_group=False),
    ),
    membership=membership,
    self_declared=True,
    role=PodKeys(annotations=(_GROUP,)),
    scope=NAME,
    durations=(DurationAnnotation(key=_PARAMETERS, setting=RESERVE_SECONDS, read=_timeout_s),),
    ignored=(
        *ignored(
            "Pod",
            "it is for placeholder pods, which are not created: the pods' own fields count",
            *(
                f"metadata.annotations[{_GROUPS}][].{field}"
                for field in (
                    "labels",
                    "annotations",
                    "nodeSelector",
                    "tolerations",
                    "affinity",
                    "topologySpreadConstraints",
                )
            ),
        ),
        *ignored_marks(
            "annotations",
            "limits of users are not enforced, only those of queues",
            "yunikorn.apache.org/user.info",
        ),
    ),
)
