"""Task groups of YuniKorn: an application's first pod declares them, and each pod names its own.

YuniKorn reserves their resources with placeholder pods, and replaces these by the application's
pods as they are created: a Spark driver creates its executors only when it runs. Here the sum of
all task groups is the group's `minResources`: no pod is placed before all of it fits, and the rest
is reserved, without placeholder pods, until the placeholders' timeout. After that the pods are
placed as capacity becomes free, as with the style Soft. The style Hard, which lets the application
fail, has the same effect here.

The queue's path is not read: queues of Tutti are those of Volcano.
"""

from functools import lru_cache
from typing import Final

import msgspec

from shared.contracts.annotations import RESERVE_SECONDS
from shared.dialects.kubebatch_fields import read_min_resources
from shared.dialects.numbers import natural
from shared.dialects.pod_declared import declared_by
from shared.dialects.protocol import Dialect, GroupReference, Membership, PodKeys
from shared.kube.objects import ObjectMeta, PodSpec, Quantity
from shared.model.objects import Resources

NAME: Final = "yunikorn"
_GROUPS: Final = "yunikorn.apache.org/task-groups"
_GROUP: Final = "yunikorn.apache.org/task-group-name"
_PARAMETERS: Final = "yunikorn.apache.org/schedulingPolicyParameters"
_TIMEOUT: Final = "placeholderTimeoutInSeconds="
_TIMEOUT_S: Final = 900
_APPLICATION: Final = PodKeys(
    annotations=("yunikorn.apache.org/app-id",),
    labels=("yunikorn.apache.org/app-id", "spark-app-selector", "applicationId"),
)


class _TaskGroup(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    min_member: int = 0
    min_resource: dict[str, Quantity] = {}


_decode: Final = msgspec.json.Decoder(list[_TaskGroup]).decode


def membership(metadata: ObjectMeta, spec: PodSpec) -> Membership | None:
    """The pod's application, with its task groups if the pod declares them."""
    del spec
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
        settings=((RESERVE_SECONDS, str(_timeout_s(given.get(_PARAMETERS, "")))),),
        errors=errors,
    )


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


def _timeout_s(parameters: str) -> int:
    for one in parameters.split():
        if one.startswith(_TIMEOUT):
            return natural(one.removeprefix(_TIMEOUT)) or _TIMEOUT_S
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
)
