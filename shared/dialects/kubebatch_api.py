"""kube-batch's API, which two API groups serve with the same fields: the dialects `incubator` and
`sigs`.

Its phases are Pending, Running and Unknown only. Its status is a subresource since kube-batch 0.5;
with an older CRD a patch of it answers 404, and the main resource takes the same body. There is no
minTaskMember and no admission gate: pods exist before their group is admitted.
"""

from functools import partial
from typing import Final

from shared.contracts.verdicts import GangPhase
from shared.dialects import kubebatch_fields as fields
from shared.dialects.field_checks import Findings, amount_of
from shared.dialects.ignored_fields import ignored
from shared.dialects.protocol import Dialect, FieldError, JsonObject, Scheduler, Status
from shared.dialects.settings import check_settings
from shared.kube.resources import (
    PODGROUPS_INCUBATOR,
    PODGROUPS_SIGS,
    QUEUES_INCUBATOR,
    QUEUES_SIGS,
    Resource,
)

_PHASES: Final[dict[GangPhase, str]] = {
    "Pending": "Pending",
    "Inqueue": "Pending",
    "Starting": "Pending",
    "Running": "Running",
    "Unknown": "Unknown",
    # kube-batch set a finished group to Pending, as if it waited again.
    "Completed": "Running",
}


def _pod_group_errors(candidate: JsonObject) -> list[FieldError]:
    """The CRDs of kube-batch validate nothing, so there are no other checks."""
    findings, _ = fields.check_pod_group(candidate)
    return findings.errors


def _queue_errors(candidate: JsonObject) -> list[FieldError]:
    findings = Findings()
    spec = findings.section(candidate, "spec")
    findings.integer(spec, "spec.weight", minimum=0)
    findings.quantities(spec, "spec.capability", amount_of)
    check_settings(findings, candidate, on_queue=True)
    return findings.errors


def _dialect(name: str, precedence: int, pod_groups: Resource, queues: Resource) -> Dialect:
    """The dialect of one of the two API groups."""
    return Dialect(
        name=name,
        precedence=precedence,
        kinds=fields.kinds_of_groups(
            name,
            pod_groups,
            queues,
            with_volcano_fields=False,
            status=Status(body=partial(fields.group_status, _PHASES)),
        ),
        checks={"PodGroup": _pod_group_errors, "Queue": _queue_errors},
        # kube-batch kept the groups of bare pods in memory: no controller creates objects for them.
        schedulers=(Scheduler(name="kube-batch", prefers_own_groups=True, implies_groups=False),),
        ignored=(
            *ignored(
                "PodGroup",
                "only Volcano's PodGroups have it",
                "spec.minTaskMember",
                "spec.minResources",
                "spec.networkTopology",
                "spec.subGroupPolicy",
            ),
            *ignored("Queue", "only Volcano's Queues have it", "spec.extendClusters", "spec.type"),
        ),
    )


DIALECTS: Final = (
    # The API group of kube-batch, and of Kubeflow's operators of that time.
    _dialect("incubator", 20, PODGROUPS_INCUBATOR, QUEUES_INCUBATOR),
    # Its later name.
    _dialect("sigs", 30, PODGROUPS_SIGS, QUEUES_SIGS),
)
