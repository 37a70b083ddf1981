"""What a PodGroup must be, in any dialect: what its dialect says, and a queue that takes it."""

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.suggestions import did_you_mean
from shared.dialects import incubator, sigs, volcano
from shared.dialects.field_checks import Findings, shown
from shared.dialects.protocol import FieldError


def validate_incubator(case: Case) -> list[FieldError]:
    """A PodGroup of scheduling.incubator.k8s.io."""
    return incubator.validate("PodGroup", case.candidate)


def validate_sigs(case: Case) -> list[FieldError]:
    """A PodGroup of scheduling.sigs.dev."""
    return sigs.validate("PodGroup", case.candidate)


def validate_volcano(case: Case) -> list[FieldError]:
    """A PodGroup of scheduling.volcano.sh."""
    findings = Findings()
    findings.errors += volcano.validate("PodGroup", case.candidate)
    queue = Findings().section(case.candidate, "spec").get("queue")
    if case.known.queues is not None and isinstance(queue, str) and queue:
        objection = ""
        if not case.known.queues.exists(queue):
            objection = missing(queue) + did_you_mean(queue, case.known.queues.names())
        objection = objection or case.known.queues.objection(queue, "PodGroup")
        if objection:
            findings.add("spec.queue", f"Invalid value: {shown(queue)}: {objection}")
    return findings.errors


def missing(queue: str) -> str:
    """What is said of a queue that does not exist."""
    return f'unable to find queue: queue.scheduling.volcano.sh "{queue[:100]}" not found'
