"""KAI's gangs: PodGroup of scheduling.run.ai, which pods name in the annotation `pod-group-name`.

KAI's pod-grouper makes a PodGroup for the top owner of each pod that names its scheduler, and then
writes the annotation and the label of the sub-group into the pod. So a pod of this scheduler waits
until it has the annotation; users may also write both themselves. Pods in a PodGang of Grove have
such a group, too: a copy of the PodGang, which counts itself.

Sub-groups are sets and sub-gangs (`sub_group_tree`). Levels of a topology are keys of node labels;
the object `Topology` has those between a preferred and a required one. The queue is a queue of
Tutti (`tutti migrate queues` makes them of KAI's). Without `preemptibility`, priorities from 100 on
are not preempted. A pod with an annotation for a part of a GPU is not bound: KAI's binder would
have to choose the GPU.

The label `kai.scheduler/node-pool` of a group names a pool: the nodes with the same label. A group
without it uses the nodes without it, as with KAI's default names.

The status has the condition UnschedulableOnNodePool, which KAI's users read, the phase, and counts.
Its `resourcesStatus` is left to KAI's podgroup-controller.
"""

from typing import Final

import msgspec

from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Verdict
from shared.dialects import requirements
from shared.dialects.conditions import conditions_of, instant
from shared.dialects.group_metadata import group_kind, not_negative
from shared.dialects.ignored_fields import ignored, ignored_marks
from shared.dialects.pod_declared import declared_by
from shared.dialects.protocol import (
    Dialect,
    GroupReference,
    JsonObject,
    Membership,
    PodKeys,
    Scheduler,
    Status,
)
from shared.dialects.sub_group_tree import Part, Tree, sub_group_tree
from shared.kube.group_objects import KaiPodGroup, KaiPodGroupSpec, KaiTopologyConstraint
from shared.kube.objects import ObjectMeta
from shared.kube.resources import PODGROUPS_KAI
from shared.model import objects as model

NAME: Final = "kai"
SCOPE: Final = PODGROUPS_KAI.title

_GROUP: Final = "pod-group-name"
_SUB_GROUP: Final = "kai.scheduler/subgroup-name"
_QUEUE: Final = "kai.scheduler/queue"
_TOPOLOGY: Final = "kai.scheduler/topology"
#: The label by which pods name Grove's PodGang.
_POD_GANG: Final = "grove.io/podgang"
_PREEMPTIBILITY: Final = {"preemptible": "true", "non-preemptible": "false"}
#: KAI's lowest priority that is not preempted by default.
_PROTECTED_FROM: Final = 100
_DEFAULT_POOL: Final = "default"


def membership(metadata: ObjectMeta) -> Membership | None:
    """The pod's group; None where the group is a copy of a PodGang."""
    if metadata.labels.get(_POD_GANG):
        return None
    name = metadata.annotations.get(_GROUP)
    if name:
        return Membership(group_name=name, scope=SCOPE)
    missing = (
        f"metadata.annotations[{_GROUP}]: missing, and the label {_SUB_GROUP} names a sub-group",
    )
    return declared_by(metadata, metadata.name, dialect=NAME, min_member=1, errors=missing)


def _read(group: KaiPodGroup, given: model.PodGroup, errors: list[str]) -> model.PodGroup:
    metadata, spec = group.metadata, group.spec
    minimum = not_negative(spec.min_member or 0, "spec.minMember", errors)
    if spec.preemptibility and spec.preemptibility not in _PREEMPTIBILITY:
        errors.append(
            f'spec.preemptibility: "{spec.preemptibility[:50]}" is none of '
            f"{', '.join(_PREEMPTIBILITY)}"
        )
    tree = _tree(metadata.name, spec, errors)
    return msgspec.structs.replace(
        given,
        min_member=max(1, minimum, tree.minimum),
        queue=spec.queue or metadata.labels.get(_QUEUE, ""),
        priority_class=spec.priority_class_name,
        preemptable=_PREEMPTIBILITY.get(spec.preemptibility, given.preemptable),
        protected_from=_PROTECTED_FROM,
        nodes=requirements.node_pool(metadata.labels),
        topology=_levels(spec.topology_constraint)
        or requirements.packed(
            metadata.annotations.get(f"{_TOPOLOGY}-required-placement", ""),
            metadata.annotations.get(f"{_TOPOLOGY}-preferred-placement", ""),
            metadata.annotations.get(_TOPOLOGY, ""),
        ),
        sets=tree.sets,
        sub_groups=tree.sub_groups,
    )


def _tree(name: str, spec: KaiPodGroupSpec, errors: list[str]) -> Tree:
    parts: list[Part] = []
    for index, sub_group in enumerate(spec.sub_groups):
        path = f"spec.subGroups[{index}]"
        not_negative(sub_group.min_member or 0, f"{path}.minMember", errors)
        parts.append(
            Part(
                path=path,
                name=sub_group.name,
                parent=sub_group.parent or "",
                size=sub_group.min_member,
                parts_needed=sub_group.min_sub_group,
                topology=_levels(sub_group.topology_constraint),
                label=_SUB_GROUP,
            )
        )
    return sub_group_tree(
        f"PodGroup {name}",
        parts,
        errors,
        path="spec.subGroups",
        parts_needed=spec.min_sub_group,
    )


def _levels(constraint: KaiTopologyConstraint) -> model.NetworkTopology | None:
    return requirements.packed(
        constraint.required_topology_level, constraint.preferred_topology_level, constraint.topology
    )


def _status(verdict: Verdict) -> JsonObject:
    """Phase, counts and conditions; counts of 0 are left out, as Go does."""
    return {
        "phase": _phase(verdict),
        "pending": verdict.pending or None,
        "running": verdict.running or None,
        "succeeded": verdict.succeeded or None,
        "failed": verdict.failed or None,
        "conditions": conditions_of(verdict),
        "schedulingConditions": _scheduling_conditions(verdict),
    }


def _phase(verdict: Verdict) -> str:
    """The phase by the words in the API's description of `completions` and `backoffLimit`."""
    match verdict.phase:
        case "Running" | "Unknown":
            return verdict.phase
        case "Completed":
            enough = verdict.succeeded >= max(verdict.min_member, 1)
            return "Successful" if enough else "Failed"
        case _:
            return "Pending"


def _scheduling_conditions(verdict: Verdict) -> list[JsonObject] | None:
    """UnschedulableOnNodePool; None (the field is left out) while the gang does not wait."""
    why = verdict.why
    if why is None or verdict.phase not in {"Pending", "Inqueue"}:
        return None
    over_limit = verdict.waits_for(PendingReason.NOT_ENOUGH_QUOTA)
    return [
        {
            "type": "UnschedulableOnNodePool",
            "status": "True",
            "nodePool": verdict.node_pool or _DEFAULT_POOL,
            "reason": "Unschedulable",
            "message": why.sentence,
            "reasons": [
                {"reason": "OverLimit" if over_limit else why.reason, "message": why.sentence}
            ],
            # KAI compares it as a number, which grows with each condition.
            "transitionID": str(why.since_ms),
            "lastTransitionTime": instant(why.since_ms),
        }
    ]


DIALECT: Final = Dialect(
    name=NAME,
    # Before Kueue, whose group is one of quota, if a pod has both.
    precedence=92,
    kinds=(
        group_kind(
            PODGROUPS_KAI,
            KaiPodGroup,
            _read,
            dialect=NAME,
            scope=SCOPE,
            status=Status(body=_status),
        ),
    ),
    schedulers=(
        Scheduler(
            name="kai-scheduler",
            implies_groups=False,
            by_default=False,
            grouped_later=f"the pod has no annotation {_GROUP} yet, which KAI's pod-grouper writes "
            "into each pod of kai-scheduler",
        ),
    ),
    references=(
        GroupReference(
            place="annotation",
            key=_GROUP,
            declared_by="KAI",
            remedy="install the CRD of scheduling.run.ai",
        ),
        GroupReference(
            place="label",
            key=_SUB_GROUP,
            declared_by="KAI",
            names_group=False,
            remedy="install the CRD of scheduling.run.ai",
        ),
    ),
    membership=membership,
    kube_scheduler_ignores=True,
    scope=SCOPE,
    role=PodKeys(labels=(_SUB_GROUP,)),
    queue=PodKeys(labels=(_QUEUE,)),
    device_parts=("gpu-fraction", "gpu-memory"),
    ignored=(
        *ignored(
            "PodGroup",
            "the phase follows minMember",
            "spec.parallelism",
            "spec.completions",
            "spec.backoffLimit",
        ),
        *ignored(
            "PodGroup", "the pods' conditions always say why they wait", "spec.markUnschedulable"
        ),
        *ignored(
            "PodGroup",
            "a gang is tried again whenever capacity may suffice, and never given up",
            "spec.schedulingBackoff",
        ),
        *ignored_marks(
            "annotations",
            "a pod that requests parts of GPUs is not bound",
            "gpu-fraction-num-devices",
        ),
        *ignored_marks(
            "labels",
            "KAI's pod-grouper copies it into the group, where it counts",
            "kai.scheduler/preemptibility",
        ),
    ),
)
