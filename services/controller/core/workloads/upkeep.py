"""What becomes of a workload's PodGroup when the workload changes.

A group was made from the workload as it was at its first pod. It follows the workload's
annotations and size, and goes once the workload was scaled to nothing and no pod names it any more:
the ReplicaSets of old revisions leave nothing behind. What belongs to a user's group is never
touched: ours are those named after their controller's UID.
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec

from services.controller.core.workloads.sizes import Workload, gang_size
from shared.kinds.metadata import OwnerReference
from shared.kinds.podgroup import PodGroup
from shared.kube.quantities import QuantityError, amount, format_quantity

JsonObject: TypeAlias = dict[str, Any]

#: How our groups are called: this, and the UID of the pods' controller.
PREFIX: Final = "podgroup-"
#: Kinds of workloads whose groups are looked after; others are made once and go with their owner.
FOLLOWED: Final = ("ReplicaSet", "StatefulSet")
_INHERITED: Final = "volcano.sh/"
#: Annotations that a group has from its pods.
FROM_PODS: Final = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)


class Upkeep(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about one group."""

    action: Literal["nothing", "change", "remove"] = "nothing"
    #: Merge patch, for `change`.
    patch: JsonObject = {}


NOTHING: Final = Upkeep()
REMOVE: Final = Upkeep(action="remove")


def owner_of(group: PodGroup) -> OwnerReference | None:
    """The workload that the group was made for; None when it is no group of ours, or of a kind
    that is not looked after.
    """
    for owner in group.metadata.owner_references:
        if owner.controller and owner.kind in FOLLOWED and owner.api_version == "apps/v1":
            return owner if group.metadata.name == f"{PREFIX}{owner.uid}" else None
    return None


def upkeep(group: PodGroup, kind: str, workload: Workload) -> Upkeep:
    """What to do, given the workload that the group was made for. `remove` only holds if no pod
    names the group.
    """
    wanted = workload.spec.replicas
    if wanted == 0:
        return REMOVE if workload.status.replicas == 0 else NOTHING
    patch: JsonObject = {}
    notes = _notes(group, workload)
    if notes:
        patch["metadata"] = {"annotations": notes}
    pod_notes = workload.spec.template.metadata.annotations
    size, was = gang_size(kind, workload, {}, pod_notes), group.spec.min_member
    if size != was:
        spec: JsonObject = {"minMember": size}
        if was > 0 and group.spec.min_resources:
            spec["minResources"] = _scaled(dict(group.spec.min_resources), size, was)
        patch["spec"] = spec
    return Upkeep(action="change", patch=patch) if patch else NOTHING


def _notes(group: PodGroup, workload: Workload) -> dict[str, str | None]:
    """Annotations to set (None: to remove) so that the group has the workload's."""
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


#: Not from the workload: from its pods, or the planner's.
_OTHERS: Final = frozenset({*FROM_PODS, "volcano.sh/job-allocated-hypernode"})


def _scaled(resources: dict[str, Any], size: int, was: int) -> dict[str, str]:
    """The resources of so many pods instead; what cannot be read is left out."""
    scaled: dict[str, str] = {}
    for name, text in resources.items():
        plain = name.removeprefix("requests.").removeprefix("limits.")
        try:
            scaled[name] = format_quantity(plain, amount(plain, text) * size // was)
        except QuantityError:
            continue
    return scaled
