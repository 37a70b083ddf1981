"""Kubernetes' own gangs: PodGroup of scheduling.k8s.io, which pods name in `spec.schedulingGroup`.

Its versions have the same fields, apart from `disruptionMode` (a text in v1alpha2) and the name of
the first condition. The API server validates the objects. What the API prescribes to a scheduler:

* `gang.minCount` pods are placed together; with `basic` each pod is placed by itself.
* All pods have one scheduler name and, where the group has a priority, this priority and one
  preemption policy (`PodGroup.uniform`). Otherwise none of them is placed.
* The condition PodGroupInitiallyScheduled never leaves True. It is a statement about the first
  success only.

The API has no queue: the annotation of Volcano's pods names one on the group. A group that is a
part of a CompositePodGroup is not planned, because its other parts are not read.
"""

from typing import Final

from shared.contracts.annotations import QUEUE_NAME
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Condition, Verdict
from shared.dialects import requirements
from shared.dialects.kubebatch_fields import instant
from shared.dialects.pods import controller_owner, preemptable, traceparent
from shared.dialects.protocol import (
    Dialect,
    GroupReference,
    JsonObject,
    Kind,
    StatusPatch,
    by_object_alone,
    identity,
)
from shared.dialects.settings import read_settings, setting_errors
from shared.kube.decoding import Undecodable
from shared.kube.group_objects import AnyDisruptionMode, DisruptionMode, KubernetesPodGroup
from shared.kube.resources import PODGROUPS_KUBERNETES
from shared.model import objects as model

NAME: Final = "kubernetes"
SCOPE: Final = PODGROUPS_KUBERNETES.title

#: The first condition, by its name in the oldest version and in all others.
_SCHEDULED_V1ALPHA2: Final = "PodGroupScheduled"
_SCHEDULED: Final = "PodGroupInitiallyScheduled"
#: Pending reasons that are errors in the group or its pods.
_ERRORS: Final = frozenset({PendingReason.INVALID_GROUP.value, PendingReason.MEMBERS_DIFFER.value})
_TEXT_CHARACTERS_MAX: Final = 253
_MESSAGE_CHARACTERS_MAX: Final = 32_768


def read_pod_group(found: KubernetesPodGroup) -> model.PodGroup:
    """The neutral group, from any version."""
    metadata, spec = found.metadata, found.spec
    errors = list(setting_errors(metadata.annotations))
    errors += [one.text for one in requirements.objections(metadata.annotations)]
    policy = spec.scheduling_policy
    if policy.gang is None and policy.basic is None:
        errors.append("spec.schedulingPolicy: neither basic nor gang, which are the known policies")
    if spec.parent_composite_pod_group_name:
        errors.append("spec.parentCompositePodGroupName: CompositePodGroups are not read")
    topology = requirements.label_topology(metadata.annotations)
    keys = [one.key for one in spec.scheduling_constraints.topology]
    if len(keys) > 1:
        errors.append(f"spec.schedulingConstraints.topology: {len(keys)} keys, 1 is supported")
    elif keys:
        topology = model.NetworkTopology(mode="hard", label_key=keys[0][:_TEXT_CHARACTERS_MAX])
    return model.PodGroup(
        **identity(metadata),
        dialect=NAME,
        shared=True,
        scope=SCOPE,
        created_ms=metadata.created_ms,
        owner=controller_owner(metadata),
        min_member=max(0, policy.gang.min_count) if policy.gang is not None else 0,
        queue=metadata.annotations.get(QUEUE_NAME, "")[:_TEXT_CHARACTERS_MAX],
        priority_class=spec.priority_class_name[:_TEXT_CHARACTERS_MAX],
        priority=spec.priority,
        preempts=spec.preemption_policy != "Never",
        uniform=True,
        disrupted_whole=_is_whole(spec.disruption_mode),
        scheduled_once=any(
            one.type in {_SCHEDULED, _SCHEDULED_V1ALPHA2} and one.status == "True"
            for one in found.status.conditions
        ),
        deleting=metadata.deletion_timestamp is not None,
        settings=read_settings(metadata.annotations),
        traceparent=traceparent(metadata.annotations),
        topology=topology,
        sla_waiting_ms=requirements.sla_waiting_ms(metadata.annotations),
        preemptable=preemptable(metadata),
        notes=requirements.policy_annotations(metadata.annotations),
        errors=tuple(error[:_TEXT_CHARACTERS_MAX] for error in errors[:10]),
    )


def read_undecodable_pod_group(found: Undecodable) -> model.PodGroup:
    """A group that does not fit its type: never planned, and its verdict names the field."""
    metadata = found.metadata
    return model.PodGroup(
        **identity(metadata),
        dialect=NAME,
        shared=True,
        scope=SCOPE,
        created_ms=metadata.created_ms,
        owner=controller_owner(metadata),
        deleting=metadata.deletion_timestamp is not None,
        errors=(found.error[:_TEXT_CHARACTERS_MAX],),
    )


def status(verdict: Verdict) -> StatusPatch | None:
    """The conditions that the API prescribes; None once the group is gone."""
    if verdict.phase == "Gone" or not verdict.uid:
        return None
    return StatusPatch(
        resource=PODGROUPS_KUBERNETES,
        namespace=verdict.namespace,
        name=verdict.name,
        subresource="status",
        body=_body(verdict, _SCHEDULED),
        bodies={"v1alpha2": _body(verdict, _SCHEDULED_V1ALPHA2)},
        patch_type="strategic",
    )


def _body(verdict: Verdict, scheduled: str) -> JsonObject:
    found = [one for one in (_scheduled(verdict, scheduled), _disruption(verdict)) if one]
    return {"metadata": {"uid": verdict.uid}, "status": {"conditions": found}}


def _scheduled(verdict: Verdict, kind: str) -> JsonObject | None:
    """The first condition; None: it stays as it is."""
    known = _condition(verdict, "Scheduled")
    if known is not None:
        # Once False, it was True: the API's condition says so, and must not change.
        if known.status == "False":
            return None
        return _written(kind, "True", "Scheduled", "its scheduling policy is met", known.since_ms)
    why = verdict.why
    if why is None:
        return None
    reason = "SchedulerError" if why.reason in _ERRORS else "Unschedulable"
    return _written(kind, "False", reason, why.sentence, why.since_ms)


def _disruption(verdict: Verdict) -> JsonObject | None:
    """Whether the group is disrupted: so many of its pods were evicted that it does not run."""
    evicted = _condition(verdict, "Evicted")
    if evicted is None:
        return None
    ends = evicted.status == "True" and verdict.phase not in {"Running", "Completed"}
    return _written(
        "DisruptionTarget",
        "True" if ends else "False",
        "PreemptionByScheduler",
        evicted.message,
        evicted.since_ms,
    )


def _condition(verdict: Verdict, kind: str) -> Condition | None:
    return next((one for one in verdict.conditions if one.type == kind), None)


def _written(kind: str, status: str, reason: str, message: str, since_ms: int) -> JsonObject:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message[:_MESSAGE_CHARACTERS_MAX],
        "lastTransitionTime": instant(since_ms),
    }


def _is_whole(mode: AnyDisruptionMode) -> bool:
    """Whether the group's pods may be disrupted only together."""
    return mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"


DIALECT: Final = Dialect(
    name=NAME,
    # The API server validates the field, and other marks of such pods belong to operators.
    precedence=-10,
    kinds=(
        Kind(
            resource=PODGROUPS_KUBERNETES,
            neutral="podgroup",
            decoded=KubernetesPodGroup,
            read=by_object_alone(read_pod_group),
            read_undecodable=by_object_alone(read_undecodable_pod_group),
            status_at="status",
            shared=True,
        ),
    ),
    status=status,
    references=(
        GroupReference(
            place="field",
            key="spec.schedulingGroup",
            declared_by="Kubernetes",
            remedy="let the API server serve PodGroups of scheduling.k8s.io",
        ),
    ),
    scope=SCOPE,
)
