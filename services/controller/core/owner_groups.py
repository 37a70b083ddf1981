"""PodGroups of operators' objects that ask for one gang of all their pods. Pure.

`shared.dialects.owned_gangs` reads the objects. A group belongs to the object at the top, so it
outlives the Jobs, StatefulSets and pods between the object and its pods, which are created again
with every restart. It follows the object, and is deleted once the object is suspended before a pod
of its Jobs has succeeded, or no longer has this gang, and no pod names the group.
"""

from collections.abc import Sequence
from typing import Literal

from services.controller.core.workloads import (
    Annotations,
    changes,
    end_patch,
    inherited_by,
    origins_of,
    pod_group_for,
)
from shared.contracts import annotations
from shared.dialects.owned_gangs import PREFIX, Owned, group_sizes, is_wanted
from shared.dialects.protocol import JsonObject
from shared.dialects.run_limits import annotations_of_owner
from shared.dialects.settings import OF_GANGS, of_gang
from shared.dialects.workload_sizes import ALL, Workload
from shared.kinds.metadata import controller_reference
from shared.kinds.podgroup import PodGroup
from shared.kube.objects import OwnerReference, Pod


def owner_group_for(
    pod: Pod, owned: Owned, name: str, *, queue: str, above: Sequence[Annotations] = ()
) -> JsonObject:
    """The manifest of the PodGroup `name` of an owner's pods, with the annotations, priority class
    and topology of one of them.

    Args:
        pod: One of them.
        owned: The owner.
        name: The group's name.
        queue: Its queue.
        above: Annotations of the other objects above the pods: first those above the owner, from
            the nearest one up.
    """
    metadata = owned.owner.metadata
    group = pod_group_for(pod, None, name, above=(owned.annotations, *above))
    group["metadata"]["annotations"][annotations.GANG] = ALL
    of = owned.kind.resource
    owner = controller_reference(of.api_version, of.kind, metadata.name, metadata.uid)
    group["metadata"]["ownerReferences"] = [owner.manifest]
    group["spec"] |= {"queue": queue, **group_sizes(owned)}
    return group


def owner_of(group: PodGroup) -> OwnerReference | None:
    """The object for which the group was created; None: it is a user's, or follows a workload."""
    if group.metadata.annotations.get(annotations.GANG) != ALL:
        return None
    for owner in group.metadata.owner_references:
        named = group.metadata.name.startswith(f"{PREFIX}{owner.uid}")
        if owner.controller and owner.uid and named:
            return owner
    return None


def upkeep(
    group: PodGroup,
    owned: Owned,
    above: Sequence[Annotations] = (),
    jobs: Sequence[Workload] = (),
) -> JsonObject | Literal["remove"] | None:
    """The write to a group: a merge patch; "remove", if no pod names the group; or None.

    Args:
        group: The group.
        owned: Its owner.
        above: Annotations of the objects above the owner, from the nearest one up.
        jobs: The Jobs between the owner and its pods.
    """
    if owned.kind.has_ended(owned.owner):
        return end_patch(group)
    if not is_wanted(owned, group.metadata.name):
        # The planner remembers which members have succeeded: Jobs make no pods in their place.
        return None if any(job.status.succeeded for job in jobs) else "remove"
    spec = group.spec
    present: JsonObject = {
        "minMember": spec.min_member,
        "minTaskMember": dict(spec.min_task_member or {}),
        "minResources": dict(spec.min_resources or {}),
    }
    wanted = group_sizes(owned)
    changed = {field: wanted[field] for field in wanted if present[field] != wanted[field]}
    for field in ("minTaskMember", "minResources"):
        given = changed.get(field)
        if given is not None:
            # A merge patch keeps the keys that it does not name.
            changed[field] = {**dict.fromkeys(present[field].keys() - given.keys()), **given}
    patch: JsonObject = {"spec": changed} if changed else {}
    notes = _changed_annotations(group, owned, above)
    if notes:
        patch["metadata"] = {"annotations": notes}
    return patch or None


def _changed_annotations(
    group: PodGroup, owned: Owned, above: Sequence[Annotations]
) -> dict[str, str | None]:
    """Annotations of the owner, of the objects above it and of its pods' templates."""
    parts = owned.kind.parts(owned.owner) if owned.kind.parts is not None else []
    of_jobs = [annotations_of_owner(part.job) for part in parts]
    of_pods = [part.template.metadata.annotations for part in parts]
    declared = of_gang(owned.annotations, *above, *of_jobs, *of_pods)
    before = inherited_by(group)
    # All else that it has from its first pod stays.
    wanted = declared | origins_of(declared.keys() | before.difference(OF_GANGS))
    removable = {*before.intersection(OF_GANGS), annotations.INHERITED}
    return changes(group.metadata.annotations, wanted, removable)
