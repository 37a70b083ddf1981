"""kube-batch's API, which two API groups serve with the same fields: the dialects `incubator` and
`sigs`.

Its phases are Pending, Running and Unknown only. Its status is a subresource since kube-batch 0.5;
with an older CRD a patch of it answers 404, and the main resource takes the same body. There is no
minTaskMember and no admission gate: pods exist before their group is admitted.
"""

from functools import partial
from typing import Final

from shared.contracts.verdicts import GangPhase, Verdict
from shared.dialects import kubebatch_fields as fields
from shared.dialects.field_checks import Findings, amount_of
from shared.dialects.protocol import (
    Dialect,
    FieldError,
    JsonObject,
    Kind,
    ReadingContext,
    Scheduler,
    StatusPatch,
)
from shared.dialects.settings import check_settings
from shared.kube import objects as kube
from shared.kube.decoding import Undecodable
from shared.kube.resources import Resource
from shared.model import objects as model

_PHASES: Final[dict[GangPhase, str]] = {
    "Pending": "Pending",
    "Inqueue": "Pending",
    "Starting": "Pending",
    "Running": "Running",
    "Unknown": "Unknown",
    # kube-batch set a finished group to Pending, as if it waited again.
    "Completed": "Running",
}


def kube_batch_dialect(
    name: str, precedence: int, pod_groups: Resource, queues: Resource
) -> Dialect:
    """The dialect of one of the two API groups.

    Args:
        name: The dialect's name.
        precedence: As in `Dialect`.
        pod_groups: PodGroups of the API group.
        queues: Its Queues.
    """
    return Dialect(
        name=name,
        precedence=precedence,
        kinds=(
            Kind(
                resource=pod_groups,
                neutral="podgroup",
                decoded=kube.PodGroup,
                read=partial(_read_pod_group, name),
                read_undecodable=partial(_read_undecodable_pod_group, name),
                validated=True,
                status_at="status",
            ),
            Kind(
                resource=queues,
                neutral="queue",
                decoded=kube.Queue,
                read=partial(_read_queue, name),
                read_undecodable=partial(_read_undecodable_queue, name),
                validated=True,
            ),
        ),
        status=partial(_status, pod_groups),
        validate=validate,
        # kube-batch kept the groups of bare pods in memory: no controller creates objects for them.
        schedulers=(Scheduler(name="kube-batch", prefers_own_groups=True, implies_groups=False),),
    )


def validate(kind: str, candidate: JsonObject) -> list[FieldError]:
    """Violations that an object of kind `kind` itself shows.

    The CRDs of kube-batch validate nothing, so there are no other checks.
    """
    if kind == "PodGroup":
        findings, _ = fields.check_pod_group(candidate)
        return findings.errors
    findings = Findings()
    if kind == "Queue":
        spec = findings.section(candidate, "spec")
        findings.integer(spec, "spec.weight", minimum=0)
        findings.quantities(spec, "spec.capability", amount_of)
        check_settings(findings, candidate)
    return findings.errors


def _status(pod_groups: Resource, verdict: Verdict) -> StatusPatch | None:
    """Phase, counts and conditions in kube-batch's vocabulary; None once the group is gone."""
    phase = _PHASES.get(verdict.phase)
    if phase is None or not verdict.uid:
        return None
    return StatusPatch(
        resource=pod_groups,
        namespace=verdict.namespace,
        name=verdict.name,
        subresource="status",
        body=fields.status_body(verdict, phase),
    )


def _read_pod_group(dialect: str, found: kube.PodGroup, context: ReadingContext) -> model.PodGroup:
    del context
    return fields.read_pod_group(found, dialect=dialect, with_volcano_fields=False)


def _read_undecodable_pod_group(
    dialect: str, found: Undecodable, context: ReadingContext
) -> model.PodGroup:
    del context
    return fields.read_undecodable_pod_group(found, dialect=dialect, waits_for_inqueue=False)


def _read_queue(dialect: str, found: kube.Queue, context: ReadingContext) -> model.Queue:
    del context
    return fields.read_queue(found, dialect=dialect)


def _read_undecodable_queue(
    dialect: str, found: Undecodable, context: ReadingContext
) -> model.Queue:
    del context
    return fields.read_undecodable_queue(found, dialect=dialect)
