"""Updates of a workload's PodGroup when the workload changes. Pure.

A group is created when the workload's first pod exists. Then it follows the workload's annotations
and size, and is deleted once the workload was scaled to zero and no pod names the group any more.
Groups of users are never changed: ours are named after their controller's UID.
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec

from services.controller.core.workloads.sizes import Workload, gang_size
from shared.kinds.metadata import OwnerReference
from shared.kinds.podgroup import PodGroup
from shared.kube.quantities import QuantityError, amount, format_quantity

JsonObject: TypeAlias = dict[str, Any]

#: Our groups are named by this prefix and the UID of the pods' controller.
PREFIX: Final = "podgroup-"
#: Kinds of workloads whose groups are updated; groups of other kinds are created once.
FOLLOWED: Final = ("ReplicaSet", "StatefulSet")
_INHERITED: Final = "volcano.sh/"
#: Annotations that a group gets from its pods.
FROM_PODS: Final = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)


class Upkeep(msgspec.Struct, frozen=True, kw_only=True):
    """The write to one group."""

    action: Literal["nothing", "change", "remove"] = "nothing"
    #: Merge patch, for `change`.
    patch: JsonObject = {}


NOTHING: Final = Upkeep()
REMOVE: Final = Upkeep(action="remove")


def owner_of(group: PodGroup) -> OwnerReference | None:
    """The workload for which the group was created; None for a user's group, or another kind."""
    for owner in group.metadata.owner_references:
        if owner.controller and owner.kind in FOLLOWED and owner.api_version == "apps/v1":
            return owner if group.metadata.name == f"{PREFIX}{owner.uid}" else None
    return None


def upkeep(group: PodGroup, kind: str, workload: Workload) -> Upkeep:
    """The write to a group, given its workload. `remove` requires that no pod names the group."""
    wanted = workload.spec.replicas
    if wanted == 0:
        return REMOVE if workload.status.replicas == 0 else NOTHING
    patch: JsonObject = {}
    changed = _changed_annotations(group, workload)
    if changed:
        patch["metadata"] = {"annotations": changed}
    pod_annotations = workload.spec.template.metadata.annotations
    size, was = gang_size(kind, workload, {}, pod_annotations), group.spec.min_member
    if size != was:
        spec: JsonObject = {"minMember": size}
        if was > 0 and group.spec.min_resources:
            spec["minResources"] = _scaled(dict(group.spec.min_resources), size, was)
        patch["spec"] = spec
    return Upkeep(action="change", patch=patch) if patch else NOTHING


def _changed_annotations(group: PodGroup, workload: Workload) -> dict[str, str | None]:
    """Annotations to set on the group, or to remove (None)."""
    theirs = {
        key: text
        for key, text in workload.metadata.annotations.items()
        if key.startswith(_INHERITED) and key not in FROM_PODS
    }
    ours = group.metadata.annotations
    gone = {
        key: None
        for key in ours
        if key.startswith(_INHERITED) and key not in theirs and key not in _OTHERS
    }
    return {key: text for key, text in theirs.items() if ours.get(key) != text} | gone


#: Annotations that the workload does not determine: they come from its pods or the planner.
_OTHERS: Final = frozenset({*FROM_PODS, "volcano.sh/job-allocated-hypernode"})


def _scaled(resources: dict[str, Any], size: int, was: int) -> dict[str, str]:
    """The resources scaled from `was` to `size` pods; unreadable quantities are left out."""
    scaled: dict[str, str] = {}
    for name, text in resources.items():
        plain = name.removeprefix("requests.").removeprefix("limits.")
        try:
            scaled[name] = format_quantity(plain, amount(plain, text) * size // was)
        except QuantityError:
            continue
    return scaled
