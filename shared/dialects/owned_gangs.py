"""The gang that all pods of an operator's object form, read from the object. Pure.

For pods that no group object and no annotation makes a gang. Their owner, or an object above it,
asks for one by `tutti.dev/gang: all`; their queue or namespace asks for all objects that do not say
otherwise. `owner_kinds` has the kinds.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from shared.contracts import annotations
from shared.contracts.identity import safe_token
from shared.dialects.owner_kinds import OWNER_KINDS, OwnerKind, owner_kind
from shared.dialects.protocol import JsonObject
from shared.dialects.run_limits import annotations_of_owner
from shared.dialects.workload_sizes import ALL
from shared.kube.objects import KubeObject, ObjectMeta
from shared.kube.pod_usage import Usage, add, usage_of, written
from shared.kube.quantities import QuantityError
from shared.model.gang_keys import MADE_FOR_PODS_PREFIX

#: Owners above a pod that are read: operators nest fewer.
STEPS_MAX: Final = 5
#: Names of the groups that Tutti makes begin so.
PREFIX: Final = MADE_FOR_PODS_PREFIX
#: A larger number in an object is not believed; the planner refuses such gangs by name.
_PODS_MAX: Final = 1_000_000


class Owned(NamedTuple):
    """An object above a pod, with its kind."""

    kind: OwnerKind
    owner: KubeObject

    @property
    def annotations(self) -> Mapping[str, str]:
        """What a group of its pods inherits of it."""
        return annotations_of_owner(self.owner)


def default_counts(owners: Sequence[Owned]) -> bool:
    """Whether a queue or a namespace may ask for a gang of these owners' pods: if no owner has an
    annotation of its own.
    """
    return not any(annotations.GANG in owned.owner.metadata.annotations for owned in owners)


def gang_owner(owners: Sequence[Owned], *, asked_by_default: bool) -> Owned | None:
    """The owner all of whose pods are one gang, or one gang for each of its parts; None: no owner
    asks for that.

    Args:
        owners: The objects above the pods, from the direct owner up.
        asked_by_default: Whether the pods' queue or namespace asks for it, and counts
            (`default_counts`).
    """
    asked: int | None = None
    stated = [owned.owner.metadata.annotations.get(annotations.GANG) for owned in owners]
    if ALL in stated:
        asked = len(stated) - 1 - stated[::-1].index(ALL)
    elif owners and asked_by_default:
        asked = len(owners) - 1
    if asked is None:
        return None
    for index in range(asked, -1, -1):
        kind = owners[index].kind
        if kind.parts is not None and not (kind.direct_pods and index):
            return owners[index]
    return None


def is_made_for_pods(group: ObjectMeta) -> bool:
    """Whether Tutti, or Volcano's controller, made the group for pods that named none: it is named
    after its controller.
    """
    owner = group.controller
    return owner is not None and group.name.startswith(f"{PREFIX}{safe_token(owner.uid)}")


def is_of_whole_owner(group: ObjectMeta) -> bool:
    """Whether a group that was made for pods is of an operator's object which asked for one gang of
    all its pods: `group_sizes` are its declaration then.
    """
    owner = group.controller
    kind = None if owner is None else owner_kind(owner.api_version, owner.kind)
    is_whole = kind is not None and kind.parts is not None
    return is_whole and group.annotations.get(annotations.GANG) == ALL


def may_be_owned(pod: ObjectMeta) -> bool:
    """Whether the pod's controller, or an object above it, may be of a kind with gangs."""
    if any(kind.part_label in pod.labels for kind in OWNER_KINDS if kind.part_label):
        return True
    above = pod.controller
    return above is not None and owner_kind(above.api_version, above.kind) is not None


def queue_for(pod: ObjectMeta, owners: Sequence[Owned]) -> str:
    """The queue that the pod names, else the nearest object above it that names one."""
    above = [owned.owner.metadata.annotations for owned in owners]
    named = (each.get(annotations.QUEUE_NAME) for each in (pod.annotations, *above))
    return next(filter(None, named), "default")


def group_name(owned: Owned, pod: ObjectMeta) -> str:
    """The name of the group of this pod: the same for all generations of its pods. "": the pod does
    not have the label that numbers its gang.
    """
    name = f"{PREFIX}{owned.owner.metadata.uid}"
    if not owned.kind.part_label:
        return name
    part = pod.labels.get(owned.kind.part_label, "")
    return f"{name}-{safe_token(part)}" if part else ""


def is_wanted(owned: Owned, name: str) -> bool:
    """Whether the owner has pods for the group of this name at present."""
    if owned.kind.is_suspended(owned.owner):
        return False
    if not owned.kind.part_label:
        return True
    part = name.removeprefix(f"{PREFIX}{owned.owner.metadata.uid}-")
    return not part.isdecimal() or int(part) < owned.kind.gangs(owned.owner)


def group_sizes(owned: Owned) -> JsonObject:
    """The fields of the group's spec that follow its owner: `minMember`, and where they are known
    `minTaskMember` and `minResources`. {} if the owner creates no pods now.
    """
    parts = owned.kind.parts(owned.owner) if owned.kind.parts is not None else []
    least = sum(part.least for part in parts)
    if least == 0:
        return {}
    sizes: JsonObject = {"minMember": min(least, _PODS_MAX)}
    if len(parts) > 1:
        roles: dict[str, int] = {}
        for part in parts:
            roles[part.role] = min(roles.get(part.role, 0) + part.least, _PODS_MAX)
        sizes["minTaskMember"] = roles
    total: Usage = {}
    try:
        for part in parts:
            if part.expected:
                add(total, usage_of(part.template.spec), min(part.expected, _PODS_MAX))
    except QuantityError:
        return sizes  # the API server refuses the pods with the reason
    return {**sizes, "minResources": written(total)}
