"""scheduling.x-k8s.io/v1alpha1 PodGroup of the scheduler plugin coscheduling, named by a label.

The names of its groups are those of kube-batch's and Volcano's annotation: operators write either.
`scheduleTimeoutSeconds` is the time for which pods of a group may wait on nodes for its other pods.
Tutti places a gang at once, so it is the time after which a gang that was bound in part is
released. `minResources` must be free before the first pod is placed, as in Volcano.

The status has the phases and counters of the plugin's own controller. If that runs too, both write
the same, except that only Tutti writes Unknown, and neither writes again what the other one wrote.
`occupiedBy` is left to it. It sets the field as it leaves the phase Pending, so the field stays
empty if Tutti was faster; nothing reads it.
"""

from typing import Final

import msgspec

from shared.contracts.annotations import QUEUE_NAME, REPAIR_DEADLINE_SECONDS
from shared.contracts.verdicts import Verdict
from shared.dialects.conditions import instant
from shared.dialects.group_metadata import group_kind, not_negative
from shared.dialects.ignored_fields import ignored
from shared.dialects.koordinator import ignored_annotations
from shared.dialects.kubebatch_fields import read_min_resources
from shared.dialects.pod_declared import GROUPS, objection_to_list
from shared.dialects.protocol import Dialect, GroupReference, JsonObject, Status
from shared.kube.group_objects import CoschedulingPodGroup
from shared.kube.resources import PODGROUPS_COSCHEDULING
from shared.model import objects as model

NAME: Final = "coscheduling"


def _read(group: CoschedulingPodGroup, given: model.PodGroup, errors: list[str]) -> model.PodGroup:
    metadata, spec = group.metadata, group.spec
    together = objection_to_list(
        metadata.annotations.get(GROUPS, ""), metadata.namespace, metadata.name
    )
    if together:
        errors.append(f"metadata.annotations[{GROUPS}]: {together}")
    minimum = not_negative(spec.min_member, "spec.minMember", errors)
    min_resources, resource_errors = read_min_resources(spec.min_resources)
    errors += resource_errors
    settings = dict(given.settings)
    timeout_s = spec.schedule_timeout_seconds
    if timeout_s is not None and timeout_s > 0:
        settings.setdefault(REPAIR_DEADLINE_SECONDS, str(timeout_s))
    return msgspec.structs.replace(
        given,
        settings=tuple(sorted(settings.items())),
        min_member=minimum,
        min_resources=min_resources,
        queue=metadata.annotations.get(QUEUE_NAME, ""),
        queue_of_namespace=True,
    )


def _status(verdict: Verdict) -> JsonObject:
    """The merge patch of the status; counts of 0 are left out, as Go does."""
    began = verdict.members > 0 or verdict.phase in {"Running", "Unknown", "Completed"}
    return {
        "phase": _phase(verdict),
        "running": verdict.running or None,
        "succeeded": verdict.succeeded or None,
        "failed": verdict.failed or None,
        "scheduleStartTime": instant(verdict.first_seen_ms) if began else None,
    }


def _phase(verdict: Verdict) -> str:
    """The phase by the rules of the plugin's controller."""
    least = max(verdict.min_member, 1)
    ended = verdict.succeeded + verdict.failed
    match verdict.phase:
        case "Completed":
            return "Finished" if verdict.succeeded >= least else "Failed"
        case "Running":
            return "Failed" if verdict.failed and verdict.running + ended >= least else "Running"
        case "Unknown":
            return "Failed" if verdict.failed and verdict.running + ended >= least else "Unknown"
        case "Starting":
            return "Scheduling"
        case _:
            return "Scheduling" if verdict.members >= least else "Pending"


DIALECT: Final = Dialect(
    name=NAME,
    precedence=35,
    kinds=(
        group_kind(
            PODGROUPS_COSCHEDULING,
            CoschedulingPodGroup,
            _read,
            dialect=NAME,
            status=Status(body=_status),
        ),
    ),
    references=(
        GroupReference(
            place="label",
            key="scheduling.x-k8s.io/pod-group",
            declared_by="coscheduling",
            remedy="install the CRD of scheduling.x-k8s.io, or start the operator with "
            "--gang-scheduler-name=volcano",
        ),
    ),
    # Koordinator's users write them on the group.
    ignored=(
        *ignored_annotations("PodGroup"),
        *ignored(
            "PodGroup",
            "spec.scheduleTimeoutSeconds counts",
            "metadata.annotations[gang.scheduling.koordinator.sh/waiting-time]",
        ),
    ),
)
