"""The PodGroup of pods that name none, as Volcano's podgroup controller creates it. Pure.

In: a stored pod and its owner. Out: the PodGroup's manifest, and the patch that names it on the
pods.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from services.controller.core.workloads.sizes import Workload, gang_size
from services.controller.core.workloads.upkeep import FROM_PODS
from shared.contracts import annotations
from shared.dialects.numbers import natural
from shared.kube.objects import OwnerReference, Pod
from shared.kube.pod_usage import Usage, add, usage_of, written
from shared.kube.quantities import QuantityError
from shared.kube.resources import (
    DAEMON_SETS,
    JOBS_BATCH,
    PODGROUPS_VOLCANO,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)

JsonObject: TypeAlias = dict[str, Any]

#: Owners whose annotations are read: the same four as in Volcano.
OWNERS: Final[dict[tuple[str, str], Resource]] = {
    (one.api_version, one.kind): one
    for one in (REPLICA_SETS, DAEMON_SETS, STATEFUL_SETS, JOBS_BATCH)
}
_OWNER_PREFIX: Final = "volcano.sh/"
_POD_LABELS: Final = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")
_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
_TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"


def owner_resource(pod: Pod) -> tuple[Resource, OwnerReference] | None:
    """The pod's owner, if its kind is one whose annotations are read."""
    owner = pod.metadata.controller
    if owner is None:
        return None
    resource = OWNERS.get((owner.api_version, owner.kind))
    return None if resource is None else (resource, owner)


def pod_group_for(
    pod: Pod,
    owner: Workload | None,
    name: str,
    *,
    queue_annotations: Mapping[str, str] | None = None,
) -> JsonObject:
    """The manifest of the PodGroup `name` for `pod` and its siblings.

    Args:
        pod: One of the pods.
        owner: Their owner, if its kind is one whose annotations are read.
        name: The group's name.
        queue_annotations: Annotations of its queue.
    """
    metadata = pod.metadata
    controller = metadata.controller
    min_member = gang_size(
        controller.kind if controller is not None else "",
        owner,
        queue_annotations or {},
        metadata.annotations,
    )
    owner_annotations = owner.metadata.annotations if owner is not None else {}
    group_annotations = {
        key: text for key, text in owner_annotations.items() if key.startswith(_OWNER_PREFIX)
    } | {key: metadata.annotations[key] for key in FROM_PODS if key in metadata.annotations}
    spec: JsonObject = {
        "minMember": min_member,
        "queue": queue_of(pod),
    }
    if pod.spec.priority_class_name:
        spec["priorityClassName"] = pod.spec.priority_class_name
    resources = _min_resources(pod, min_member)
    if resources:
        spec["minResources"] = resources
    topology = _topology(metadata.annotations)
    if topology:
        spec["networkTopology"] = topology
    return {
        "apiVersion": PODGROUPS_VOLCANO.api_version,
        "kind": PODGROUPS_VOLCANO.kind,
        "metadata": {
            "name": name,
            "namespace": metadata.namespace,
            "annotations": group_annotations,
            "labels": {key: metadata.labels[key] for key in _POD_LABELS if key in metadata.labels},
            "ownerReferences": [_owner_reference(pod)],
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def queue_of(pod: Pod) -> str:
    """The queue of the pod's group."""
    return pod.metadata.annotations.get(annotations.QUEUE_NAME, "") or "default"


def join_patch(uid: str, group: str) -> JsonObject:
    """The patch that names `group` on the pod with this UID."""
    return {"metadata": {"uid": uid, "annotations": {annotations.GROUP_NAME: group}}}


def _owner_reference(pod: Pod) -> JsonObject:
    """The pod's controller, so that the group outlives a replaced pod; without one, the pod."""
    owner = pod.metadata.controller
    if owner is None:
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid
        )
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _min_resources(pod: Pod, members: int) -> dict[str, str]:
    """The quota usage of one pod times the gang size; {} when its quantities cannot be read."""
    total: Usage = {}
    try:
        add(total, usage_of(pod.spec), members)
    except QuantityError:
        return {}
    return written(total)


def _topology(notes: dict[str, str]) -> JsonObject:
    topology: JsonObject = {}
    mode, tier = notes.get(_TOPOLOGY_MODE, ""), notes.get(_TOPOLOGY_TIER, "")
    if mode in ("hard", "soft"):
        topology["mode"] = mode
    highest = natural(tier)
    if highest is not None:
        topology["highestTierAllowed"] = highest
    return topology
