"""PodGroups of pods that name none, as Volcano's podgroup controller creates them. Pure.

Their sizes are in `shared.dialects.workload_sizes`; `owner_groups` has those of operators' objects.
A group is created when the workload's first pod exists. Then it follows the workload's annotations
and size, and what its members declare on themselves (`_minimum`, `queue_patch`). It is deleted once
the workload was scaled to zero, or suspended, and no pod names the group any more. It is also
deleted when all its pods are members of other gangs, because the API of their own references is
served by now. Groups of users are never changed: ours are named after their controller's UID.
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec

from shared.contracts import annotations
from shared.contracts.identity import safe_token
from shared.contracts.verdicts import Verdict
from shared.dialects.numbers import natural
from shared.dialects.owned_gangs import PREFIX
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.workload_sizes import ALL, Workload, gang_size
from shared.kinds.metadata import OwnerReference
from shared.kinds.podgroup import PodGroup
from shared.kube.objects import OwnerReference as PodOwner
from shared.kube.objects import Pod
from shared.kube.pod_usage import Usage, add, usage_of, written
from shared.kube.quantities import QuantityError, amount, format_quantity
from shared.kube.resources import (
    DAEMON_SETS,
    JOBS_BATCH,
    PODGROUPS_VOLCANO,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)

JsonObject: TypeAlias = dict[str, Any]

_decode_verdict: Final = msgspec.json.Decoder(Verdict).decode
#: Kinds of workloads whose groups are updated; groups of other kinds are created once.
FOLLOWED: Final[dict[tuple[str, str], Resource]] = {
    (one.api_version, one.kind): one for one in (REPLICA_SETS, STATEFUL_SETS, JOBS_BATCH)
}
#: Prefix of the annotations that a group gets from its workload.
_INHERITED: Final = "volcano.sh/"
#: Annotations that a group gets from its pods.
FROM_PODS: Final = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)
#: Annotations that the workload does not determine: they come from its pods or the planner.
_OTHERS: Final = frozenset({*FROM_PODS, "volcano.sh/job-allocated-hypernode"})
#: Owners whose annotations are read: the same four as in Volcano.
OWNERS: Final[dict[tuple[str, str], Resource]] = {
    (one.api_version, one.kind): one
    for one in (REPLICA_SETS, DAEMON_SETS, STATEFUL_SETS, JOBS_BATCH)
}
_POD_LABELS: Final = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")
_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
_TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"


def owner_of(group: PodGroup) -> OwnerReference | None:
    """The workload for which the group was created; None for a user's group, or another kind."""
    owner = controller_of(group)
    followed = owner is not None and (owner.api_version, owner.kind) in FOLLOWED
    return owner if followed else None


def controller_of(group: PodGroup) -> OwnerReference | None:
    """The controller, of any kind, for whose pods the group was created; None: it is a user's."""
    for owner in group.metadata.owner_references:
        if owner.controller:
            return owner if group.metadata.name == f"{PREFIX}{safe_token(owner.uid)}" else None
    return None


def bare_pod_of(group: PodGroup) -> str:
    """The name of the bare pod for which the group was created; "": it was created for no pod."""
    for owner in group.metadata.owner_references:
        if (owner.api_version, owner.kind) == (PODS.api_version, PODS.kind):
            return owner.name if group.metadata.name == f"{PREFIX}{owner.uid}" else ""
    return ""


def is_empty(group: PodGroup) -> bool:
    """Whether the group waits, and had no members in the planner's last verdict."""
    verdict = _verdict_of(group)
    if verdict is None:
        return False
    return verdict.phase in ("Pending", "Inqueue") and verdict.members == 0


def _verdict_of(group: PodGroup) -> Verdict | None:
    """The planner's last verdict, as the group shows it."""
    text = group.metadata.annotations.get(annotations.VERDICT, "")
    try:
        verdict = _decode_verdict(text)
    except msgspec.DecodeError:  # none, or a user's text
        return None
    return verdict if verdict.uid == group.metadata.uid else None


def members_patch(group: PodGroup, kind: str, owner: Workload | None) -> JsonObject | None:
    """The merge patch by which a group follows the minimum that its members declare; None: it does.
    For a group of an owner whose template is not read; the arguments are those of `gang_size`.
    """
    verdict = _verdict_of(group)
    if verdict is None or not verdict.members_minimum:
        return None
    declared = {annotations.GROUP_MIN_MEMBER: str(verdict.members_minimum)}
    spec = _resized(group, gang_size(kind, owner, False, declared))
    return {"spec": spec} if spec else None


def queue_patch(group: PodGroup) -> JsonObject | None:
    """The merge patch by which a group follows its members into their queue; None: it is there."""
    verdict = _verdict_of(group)
    queue = verdict.members_queue if verdict is not None else ""
    return {"spec": {"queue": queue}} if queue and queue != group.spec.queue else None


def declares_another_gang(pod: Pod, group: str) -> bool:
    """Whether a pod that names this group, which was made for it, has a reference of its own."""
    declared = pod_vocabulary().references.declarations(pod.metadata, pod.spec, None)
    return any(one.value != group for one in declared)


def upkeep(group: PodGroup, kind: str, workload: Workload) -> JsonObject | Literal["remove"] | None:
    """The write to a group, given its workload: a merge patch; "remove", if no pod names the group;
    or None.
    """
    if workload.spec.replicas == 0:
        return "remove" if workload.status.replicas == 0 else None
    if workload.spec.suspend:
        return "remove"
    size, superseded = _minimum(group, kind, workload)
    changed = _changed_annotations(group, workload)
    if group.metadata.annotations.get(annotations.SUPERSEDED_MINIMUM, "") != superseded:
        changed[annotations.SUPERSEDED_MINIMUM] = superseded or None
    patch: JsonObject = {}
    if changed:
        patch["metadata"] = {"annotations": changed}
    spec = _resized(group, size)
    if spec:
        patch["spec"] = spec
    return patch or None


def _minimum(group: PodGroup, kind: str, workload: Workload) -> tuple[int, str]:
    """The group's minimum, and the value for the annotation that names a superseded declaration.

    Of the minimum on the workload's template and the one in force among its members
    (`shared.model.minimums`), the one that was changed last counts: a user patches either, and a
    template does not change the pods that exist. The declaration that does not count is named on
    the group, and counts again once it changes.
    """
    # What its queue or namespace asked for when the group was created.
    asked = group.metadata.annotations.get(annotations.GANG) == ALL

    def size_of(minimum: int) -> int:
        declared = {annotations.GROUP_MIN_MEMBER: str(minimum)}
        return gang_size(kind, workload, asked, declared)

    verdict, was = _verdict_of(group), group.spec.min_member
    template_notes = workload.spec.template.metadata.annotations
    template = natural(template_notes.get(annotations.GROUP_MIN_MEMBER, "")) or 0
    members = (verdict.members_minimum if verdict is not None else 0) or template
    by_template, by_members = f"template={template}", f"members={members}"
    superseded = group.metadata.annotations.get(annotations.SUPERSEDED_MINIMUM, "")
    if members == template:
        superseded = ""
    elif superseded not in (by_template, by_members):
        # One of them has changed since the group got its minimum.
        is_template_new = size_of(members) == was != size_of(template)
        superseded = by_members if is_template_new else by_template
    minimum = template if superseded == by_members else members
    size = size_of(minimum)
    has_mode = annotations.GANG in workload.metadata.annotations
    if kind == "Job" and size == 1 and not minimum and not has_mode:
        size = was  # an older version did not record what the queue asked for
    return size, superseded


def _resized(group: PodGroup, size: int) -> JsonObject:
    """The fields of the group's spec that change with its minimum; {}: it has this minimum."""
    was = group.spec.min_member
    if size == was:
        return {}
    spec: JsonObject = {"minMember": size}
    if was > 0 and group.spec.min_resources:
        spec["minResources"] = _scaled(dict(group.spec.min_resources), size, was)
    return spec


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


def owner_resource(pod: Pod) -> tuple[Resource, PodOwner] | None:
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
    asked_by_default: bool = False,
) -> JsonObject:
    """The manifest of the PodGroup `name` for `pod` and its siblings. Their owner is given if its
    kind is one whose annotations are read. `asked_by_default`: as for `gang_size`.
    """
    metadata = pod.metadata
    controller = metadata.controller
    min_member = gang_size(
        controller.kind if controller is not None else "",
        owner,
        asked_by_default,
        metadata.annotations,
    )
    owner_annotations = owner.metadata.annotations if owner is not None else {}
    group_annotations = {
        key: text for key, text in owner_annotations.items() if key.startswith(_INHERITED)
    } | {key: metadata.annotations[key] for key in FROM_PODS if key in metadata.annotations}
    if asked_by_default:
        group_annotations[annotations.GANG] = ALL
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
    return pod.metadata.annotations.get(annotations.QUEUE_NAME, "") or "default"


def join_patch(uid: str, group: str) -> JsonObject:
    """The patch that names `group` on the pod with this UID."""
    return {"metadata": {"uid": uid, "annotations": {annotations.GROUP_NAME: group}}}


def _owner_reference(pod: Pod) -> JsonObject:
    """The pod's controller, so that the group outlives a replaced pod; without one, the pod."""
    owner = pod.metadata.controller
    if owner is None:
        owner = PodOwner(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid)
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
    mode, highest = notes.get(_TOPOLOGY_MODE, ""), natural(notes.get(_TOPOLOGY_TIER, ""))
    if mode in ("hard", "soft"):
        topology["mode"] = mode
    if highest is not None:
        topology["highestTierAllowed"] = highest
    return topology
