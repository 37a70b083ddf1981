"""PodGroups of pods that name none, as Volcano's podgroup controller creates them. Pure.

Their sizes are in `shared.dialects.workload_sizes`; `owner_groups` has those of operators' objects.
A group is created when the workload's first pod exists. Then it follows the workload's annotations,
size and template, and what its members declare on themselves (`_minimum`, `queue_patch`). The
planner takes priority and queue from the members that exist, and no `minResources` of such a group:
a template says only what the next pods will be. It is deleted once the workload was scaled to zero,
or suspended before a pod has succeeded, and no pod names the group any more. It is also deleted
when all its pods are members of other gangs, because the API of their own references is served by
now. Groups of users are never changed: ours are named after their controller's UID.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from shared.contracts import annotations
from shared.contracts.annotations import QUEUE_NAME
from shared.contracts.identity import safe_token
from shared.contracts.verdicts import Verdict
from shared.dialects.field_checks import natural
from shared.dialects.owned_gangs import PREFIX, Owned
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.protocol import JsonObject
from shared.dialects.run_limits import annotations_of_owner, stated_by_owner
from shared.dialects.settings import OF_GANGS, of_gang
from shared.dialects.workload_sizes import (
    ALL,
    WORKLOADS,
    Workload,
    gang_size,
    has_ended,
    is_workload,
)
from shared.kinds.metadata import controller_reference
from shared.kinds.podgroup import PodGroup
from shared.kinds.queue import DEFAULT_QUEUE
from shared.kube.objects import ObjectMeta, OwnerReference, Pod, PodSpec
from shared.kube.owner_objects import PodTemplate
from shared.kube.pod_usage import Usage, add, usage_of, written
from shared.kube.quantities import QuantityError, amount, format_quantity
from shared.kube.resources import PODGROUPS_VOLCANO, PODS, Resource

Annotations: TypeAlias = Mapping[str, str]

_decode_verdict: Final = msgspec.json.Decoder(Verdict).decode
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
#: Annotations that the workload alone does not determine: they come from its pods or the planner.
_OTHERS: Final = frozenset({*FROM_PODS, annotations.ALLOCATED_HYPERNODE})
#: Annotations whose change a webhook may refuse.
_LIMITS: Final = (annotations.RUN_LIMIT, annotations.OWNER_RUN_LIMIT)
_POD_LABELS: Final = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")
_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
_TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"
_TOPOLOGY: Final = (_TOPOLOGY_MODE, _TOPOLOGY_TIER)
#: What `annotations.INHERITED` may name. A user may write anything else into it.
_INHERITABLE: Final = frozenset({*OF_GANGS, *FROM_PODS, *_TOPOLOGY, QUEUE_NAME})


def owner_of(group: PodGroup) -> OwnerReference | None:
    """The workload for which the group was created; None for a user's group, or another kind."""
    owner = controller_of(group)
    followed = owner is not None and is_workload(owner.api_version, owner.kind)
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


def members_patch(group: PodGroup, kind: str, above: Sequence[Annotations]) -> JsonObject | None:
    """The merge patch by which a group follows the minimum that its members declare, and what the
    objects above them say of it; None: it does.

    Args:
        group: A group of an owner whose template is not read.
        kind: The owner's kind.
        above: Annotations of the owner and of the objects above it, if they can be read.
    """
    patch: JsonObject = {}
    verdict = _verdict_of(group)
    if verdict is not None and verdict.members_minimum:
        declared = {annotations.GROUP_MIN_MEMBER: str(verdict.members_minimum)}
        spec = _resized(group, gang_size(kind, None, False, declared))
        patch = {"spec": spec} if spec else {}
    inherited = of_gang(*above)
    # What its pods have said stays.
    wanted = inherited | origins_of(inherited.keys() | inherited_by(group))
    if changed := changes(group.metadata.annotations, wanted, ()):
        patch["metadata"] = {"annotations": changed}
    return patch or None


def queue_patch(group: PodGroup) -> JsonObject | None:
    """The merge patch by which a group follows its members into their queue; None: it is there."""
    verdict = _verdict_of(group)
    queue = verdict.members_queue if verdict is not None else ""
    return {"spec": {"queue": queue}} if queue and queue != group.spec.queue else None


def queue_patch_of_owner(group: PodGroup, named: str) -> JsonObject | None:
    """The same for a group of an operator's object, which names a queue for members that do not."""
    verdict = _verdict_of(group)
    moves = named and named != group.spec.queue
    if not moves or (verdict is not None and verdict.members_queue):
        return None
    return {"spec": {"queue": named}}


def leaves_queue(group: PodGroup, workload: Workload) -> bool:
    """Whether the group is in its queue because of its pods, and neither the workload's template
    nor a member names a queue any more.
    """
    if QUEUE_NAME not in inherited_by(group):
        return False
    verdict, template = _verdict_of(group), workload.spec.template
    named = template.metadata.annotations.get(QUEUE_NAME)
    return verdict is not None and not verdict.members_queue and not named


def declares_another_gang(pod: Pod, group: str) -> bool:
    """Whether a pod that names this group, which was made for it, has a reference of its own."""
    declared = pod_vocabulary().references.declarations(pod.metadata, pod.spec, None)
    return any(declaration.value != group for declaration in declared)


def upkeep(
    group: PodGroup, kind: str, workload: Workload, above: Sequence[Annotations] = ()
) -> JsonObject | Literal["remove"] | None:
    """The write to a group, given its workload: a merge patch; "remove", if no pod names the group;
    or None.

    `above`: annotations of the objects above the workload, from the nearest one up.
    """
    if workload.spec.replicas == 0:
        return "remove" if workload.status.replicas == 0 else None
    if has_ended(workload.status.conditions):
        return end_patch(group)
    if workload.spec.suspend:
        # The planner remembers which members have succeeded: the Job makes no pods in their place.
        return None if workload.status.succeeded else "remove"
    size, superseded = _minimum(group, kind, workload)
    changed = _changed_annotations(group, workload, above)
    if group.metadata.annotations.get(annotations.SUPERSEDED_MINIMUM, "") != superseded:
        changed[annotations.SUPERSEDED_MINIMUM] = superseded or None
    template = workload.spec.template
    labels = changes(group.metadata.labels, _labels_of(template.metadata), _POD_LABELS)
    metadata = {"annotations": changed, "labels": labels}
    spec = _changed_spec(group, size, template)
    patch: JsonObject = {}
    if metadata := {name: fields for name, fields in metadata.items() if fields}:
        patch["metadata"] = metadata
    if spec:
        patch["spec"] = spec
    return patch or None


def end_patch(group: PodGroup) -> JsonObject | None:
    """The merge patch by which the planner learns that the group's workload has ended; None: the
    group's pods show it, or it knows. A workload may end although too few of its pods have: by a
    deadline, a success policy, or with pods that were removed after they had failed.
    """
    verdict = _verdict_of(group)
    if verdict is None or verdict.phase not in ("Pending", "Inqueue", "Unknown"):
        return None
    if annotations.WORKLOAD_ENDED in group.metadata.annotations:
        return None
    return {"metadata": {"annotations": {annotations.WORKLOAD_ENDED: "true"}}}


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


def _changed_spec(group: PodGroup, size: int, template: PodTemplate) -> JsonObject:
    """The fields of the group's spec that its size and its workload's template change."""
    wanted = _spec_of(template.metadata, template.spec, size)
    spec, changed = group.spec, dict[str, Any]()
    if size != spec.min_member:
        changed["minMember"] = size
    # Without a class in the template, that of its pods is the cluster's default.
    if wanted.get("priorityClassName", spec.priority_class_name) != spec.priority_class_name:
        changed["priorityClassName"] = wanted["priorityClassName"]
    amounts = {name: str(amount) for name, amount in (spec.min_resources or {}).items()}
    if resources := changes(amounts, wanted.get("minResources", {}), amounts):
        changed["minResources"] = resources
    topology = wanted.get("networkTopology")
    present = spec.network_topology
    stored: JsonObject = {} if present is None else msgspec.to_builtins(present)
    if topology is None:
        if stored and not inherited_by(group).isdisjoint(_TOPOLOGY):
            changed["networkTopology"] = None
    elif any(stored.get(key) != value for key, value in topology.items()):
        changed["networkTopology"] = dict.fromkeys(stored) | topology
    return changed


def _changed_annotations(
    group: PodGroup, workload: Workload, above: Sequence[Annotations]
) -> dict[str, str | None]:
    """Annotations to set on the group, or to remove (None)."""
    ours = group.metadata.annotations
    of_pods = workload.spec.template.metadata.annotations
    verdict = _verdict_of(group)
    if QUEUE_NAME in inherited_by(group) and verdict is not None and verdict.members_queue:
        of_pods = {QUEUE_NAME: verdict.members_queue, **of_pods}
    wanted = _annotations_of(workload, of_pods, above)
    removable = {key for key in ours if key.startswith(_INHERITED) and key not in _OTHERS}
    return changes(ours, wanted, {*removable, *inherited_by(group), annotations.INHERITED})


def changes(
    present: Mapping[str, str], wanted: Mapping[str, str], removable: Iterable[str]
) -> dict[str, str | None]:
    """The merge patch from `present` to `wanted`, which removes no other keys than `removable`."""
    gone = {key: None for key in sorted(removable) if key in present and key not in wanted}
    return {key: text for key, text in wanted.items() if present.get(key) != text} | gone


def apart_from_run_limit(
    patch: JsonObject | None,
) -> tuple[JsonObject | None, JsonObject | None]:
    """A patch without its change of run limits, and that change; None: there is none."""
    metadata: JsonObject = (patch or {}).get("metadata") or {}
    notes: JsonObject = dict(metadata.get("annotations") or {})
    limits = {key: notes.pop(key) for key in _LIMITS if key in notes}
    if patch is None or not limits:
        return patch, None
    rest: JsonObject = {**patch, "metadata": {**metadata, "annotations": notes}}
    is_all = rest == {"metadata": {"annotations": {}}}
    return None if is_all else rest, {"metadata": {"annotations": limits}}


def limit_of(group: PodGroup) -> str:
    """The run limit of the objects above its pods, as it is written on the group; "": none."""
    return group.metadata.annotations.get(annotations.OWNER_RUN_LIMIT, "")


def limit_patch(group: PodGroup, above: Iterable[Owned]) -> JsonObject | None:
    """The merge patch that gives an operator's group the smallest run limit of the objects above
    its pods; None: it has it.
    """
    limits = [limit.seconds for owned in above for limit in stated_by_owner(owned.owner)]
    wanted = {annotations.OWNER_RUN_LIMIT: str(min(limits))} if limits else {}
    changed = changes(group.metadata.annotations, wanted, [annotations.OWNER_RUN_LIMIT])
    return {"metadata": {"annotations": changed}} if changed else None


def inherited_by(group: PodGroup) -> frozenset[str]:
    """Keys of what a group has from its pods and the objects above them."""
    return _INHERITABLE.intersection(
        group.metadata.annotations.get(annotations.INHERITED, "").split(",")
    )


def origins_of(keys: Iterable[str]) -> dict[str, str]:
    """The annotation that names inherited ones; {} if there are none."""
    listed = ",".join(sorted(keys))
    return {annotations.INHERITED: listed} if listed else {}


def _annotations_of(
    owner: Workload | None, of_pods: Annotations, above: Sequence[Annotations]
) -> dict[str, str]:
    """The annotations that a group has from its owner, its pods and the objects above."""
    given: Annotations = annotations_of_owner(owner) if owner is not None else {}
    from_pods = {key: of_pods[key] for key in FROM_PODS if key in of_pods}
    inherited = of_gang(given, *above, of_pods)
    in_spec = (key for key in (*_TOPOLOGY, QUEUE_NAME) if of_pods.get(key))
    origins = origins_of({*inherited, *from_pods, *in_spec})
    of_owner = {key: text for key, text in given.items() if key.startswith(_INHERITED)}
    return of_owner | from_pods | inherited | origins


def _labels_of(pod: ObjectMeta) -> dict[str, str]:
    return {key: pod.labels[key] for key in _POD_LABELS if key in pod.labels}


def _spec_of(metadata: ObjectMeta, spec: PodSpec, size: int) -> JsonObject:
    """The fields of a group's spec that its pods determine, by one pod or their template."""
    fields: JsonObject = {"minMember": size}
    if spec.priority_class_name:
        fields["priorityClassName"] = spec.priority_class_name
    resources = _min_resources(spec, size)
    if resources:
        fields["minResources"] = resources
    topology = _topology(metadata.annotations)
    if topology:
        fields["networkTopology"] = topology
    return fields


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


def owner_resource(pod: Pod) -> tuple[Resource, OwnerReference] | None:
    """The pod's owner, if its kind is one whose annotations are read."""
    owner = pod.metadata.controller
    if owner is None:
        return None
    resource = WORKLOADS.get((owner.api_version, owner.kind))
    return None if resource is None else (resource, owner)


def pod_group_for(
    pod: Pod,
    owner: Workload | None,
    name: str,
    *,
    queue: str = DEFAULT_QUEUE,
    above: Sequence[Annotations] = (),
    asked_by_default: bool = False,
) -> JsonObject:
    """The manifest of the PodGroup `name` for `pod` and its siblings.

    Args:
        pod: One of them.
        owner: Their owner, if its kind is one whose template is read.
        name: The group's name.
        queue: The queue that they, or the objects above them, name.
        above: Annotations of the other objects above them, from the nearest one up.
        asked_by_default: As for `gang_size`.
    """
    metadata = pod.metadata
    controller = metadata.controller
    min_member = gang_size(
        controller.kind if controller is not None else "",
        owner,
        asked_by_default,
        metadata.annotations,
    )
    group_annotations = _annotations_of(owner, metadata.annotations, above)
    if asked_by_default:
        group_annotations[annotations.GANG] = ALL
    return {
        "apiVersion": PODGROUPS_VOLCANO.api_version,
        "kind": PODGROUPS_VOLCANO.kind,
        "metadata": {
            "name": name,
            "namespace": metadata.namespace,
            "annotations": group_annotations,
            "labels": _labels_of(metadata),
            "ownerReferences": [_owner_reference(pod, name)],
        },
        "spec": {**_spec_of(metadata, pod.spec, min_member), "queue": queue},
        "status": {"phase": "Pending"},
    }


def join_patch(uid: str, group: str) -> JsonObject:
    """The patch that names `group` on the pod with this UID."""
    return {"metadata": {"uid": uid, "annotations": {annotations.GROUP_NAME: group}}}


def _owner_reference(pod: Pod, group: str) -> JsonObject:
    """The pod's controller, so that the group outlives a replaced pod. The pod, if it has none, or
    the group is its own.
    """
    owner = pod.metadata.controller
    if owner is None or group == f"{PREFIX}{safe_token(pod.metadata.uid)}":
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid
        )
    return controller_reference(owner.api_version, owner.kind, owner.name, owner.uid).manifest


def _min_resources(spec: PodSpec, members: int) -> dict[str, str]:
    """The quota usage of one pod times the gang size; {} when its quantities cannot be read."""
    total: Usage = {}
    try:
        add(total, usage_of(spec), members)
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
