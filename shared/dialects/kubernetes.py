"""Kubernetes' own gangs: PodGroup of scheduling.k8s.io, which pods name in `spec.schedulingGroup`.

Its versions have the same fields, apart from `disruptionMode` (a text in v1alpha2) and the name of
the first condition. The API server validates the objects. What the API prescribes to a scheduler:

* `gang.minCount` pods are placed together; with `basic` each pod is placed by itself.
* All pods have one scheduler name and, where the group has a priority, this priority and one
  preemption policy (`PodGroup.uniform`). Otherwise none of them is placed.
* The condition PodGroupInitiallyScheduled never leaves True. It is a statement about the first
  success only.

The API has no queue: the annotation of Volcano's pods names one on the group, or on the namespace
for all groups in it that name none. A group that is a part of a CompositePodGroup names it;
`kubernetes_composite` reads that one.
"""

from functools import partial
from typing import Final

import msgspec

from shared.contracts.annotations import QUEUE_NAME
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Verdict
from shared.dialects.conditions import condition_of, disruption_target, written_condition
from shared.dialects.group_metadata import group_kind
from shared.dialects.ignored_fields import ignored
from shared.dialects.protocol import (
    NAME_CHARACTERS_MAX,
    Dialect,
    GroupReference,
    JsonObject,
    Status,
)
from shared.kube.group_objects import (
    AnyDisruptionMode,
    DisruptionMode,
    KubernetesPodGroup,
    KubernetesPodGroupSpec,
    SchedulingConstraints,
)
from shared.kube.objects import Conditions, ObjectMeta
from shared.kube.resources import COMPOSITE_PODGROUPS, PODGROUPS_KUBERNETES
from shared.model import objects as model

NAME: Final = "kubernetes"
SCOPE: Final = PODGROUPS_KUBERNETES.title

#: The first condition, by its name in the oldest version and in all others.
_SCHEDULED_V1ALPHA2: Final = "PodGroupScheduled"
_SCHEDULED: Final = "PodGroupInitiallyScheduled"


def _read(group: KubernetesPodGroup, given: model.PodGroup, errors: list[str]) -> model.PodGroup:
    """The neutral group, from any version."""
    gang = group.spec.scheduling_policy.gang
    return msgspec.structs.replace(
        with_spec(given, group.metadata, group.spec, errors),
        min_member=max(0, gang.min_count) if gang is not None else 0,
        one_by_one=gang is None,
        scheduled_once=has_been(group.status, _SCHEDULED, _SCHEDULED_V1ALPHA2),
    )


def with_spec(
    given: model.PodGroup, metadata: ObjectMeta, spec: KubernetesPodGroupSpec, errors: list[str]
) -> model.PodGroup:
    """The group with the fields that PodGroup and CompositePodGroup specify alike; violations are
    appended to `errors`.
    """
    policy = spec.scheduling_policy
    if policy.gang is None and policy.basic is None:
        errors.append("spec.schedulingPolicy: neither basic nor gang, which are the known policies")
    parent = spec.parent_composite_pod_group_name[:NAME_CHARACTERS_MAX]
    return msgspec.structs.replace(
        given,
        queue=metadata.annotations.get(QUEUE_NAME, ""),
        queue_of_namespace=True,
        priority_class=spec.priority_class_name,
        priority=spec.priority,
        preempts=spec.preemption_policy != "Never",
        uniform=True,
        topology=_topology(spec.scheduling_constraints, errors),
        parent=parent,
        parent_scope=COMPOSITE_PODGROUPS.title if parent else "",
        disrupted_whole=_is_whole(spec.disruption_mode),
        made_from=spec.workload_ref.workload_name[:NAME_CHARACTERS_MAX],
    )


def has_been(status: Conditions, *kinds: str) -> bool:
    """Whether a condition of one of these types is True."""
    return any(
        condition.type in kinds and condition.status == "True" for condition in status.conditions
    )


def _topology(
    constraints: SchedulingConstraints, errors: list[str]
) -> model.NetworkTopology | None:
    keys = [level.key for level in constraints.topology]
    if len(keys) == 1:
        return model.NetworkTopology(mode="hard", label_key=keys[0][:NAME_CHARACTERS_MAX])
    if keys:
        errors.append(f"spec.schedulingConstraints.topology: {len(keys)} keys, 1 is supported")
    return None


def conditions_status(scheduled: str, invalid: str, verdict: Verdict) -> JsonObject:
    """The status with the conditions that the API prescribes.

    Args:
        scheduled: The type of the first condition.
        invalid: Its reason if the group, or a group of its tree, has errors.
        verdict: The verdict.
    """
    conditions = (_scheduled(verdict, scheduled, invalid), disruption_target(verdict))
    return {"conditions": [condition for condition in conditions if condition]}


def _scheduled(verdict: Verdict, kind: str, invalid: str) -> JsonObject | None:
    """The first condition; None: it stays as it is."""
    known = condition_of(verdict, "Scheduled")
    if known is not None:
        # Once False, it was True: the API's condition says so, and must not change.
        if known.status == "False":
            return None
        return written_condition(
            kind, "True", "Scheduled", "its scheduling policy is met", known.since_ms
        )
    why = verdict.why
    if why is None:
        return None
    reasons = {
        PendingReason.INVALID_GROUP.value: invalid,
        PendingReason.MEMBERS_DIFFER.value: "SchedulerError",
    }
    reason = reasons.get(why.reason, "Unschedulable")
    return written_condition(kind, "False", reason, why.sentence, why.since_ms)


def _is_whole(mode: AnyDisruptionMode) -> bool:
    """Whether the group's pods, or groups, may be disrupted only together."""
    return mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"


DIALECT: Final = Dialect(
    name=NAME,
    # The API server validates the field, and other marks of such pods belong to operators.
    precedence=-10,
    kinds=(
        group_kind(
            PODGROUPS_KUBERNETES,
            KubernetesPodGroup,
            _read,
            dialect=NAME,
            scope=SCOPE,
            status=Status(
                body=partial(conditions_status, _SCHEDULED, "SchedulerError"),
                versions={
                    "v1alpha2": partial(conditions_status, _SCHEDULED_V1ALPHA2, "SchedulerError")
                },
                patch_type="strategic",
            ),
        ),
    ),
    references=(
        GroupReference(
            place="field",
            key="spec.schedulingGroup",
            declared_by="Kubernetes",
            remedy="let the API server serve PodGroups of scheduling.k8s.io",
        ),
    ),
    scope=SCOPE,
    ignored=(
        *ignored(
            "PodGroup",
            "the pods' own entries count",
            "spec.resourceClaims",
        ),
        *ignored(
            "PodGroup",
            "the template is copied into the group, whose fields count",
            "spec.podGroupTemplateRef",
            "spec.workloadRef.templateName",
        ),
    ),
)
