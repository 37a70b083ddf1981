"""The table of Jobs, Volcano's columns."""

from typing import Final

from tutti.api.objects import (
    Object,
    created,
    field,
    labels_of,
    name_of,
    namespace_of,
    number,
    text,
)
from tutti.api.output import Column, Layout

JOB_NAME_LABEL: Final = "volcano.sh/job-name"
_JOB_TYPE_LABEL: Final = "volcano.sh/job-type"

#: Phases that a Job does not leave by itself.
FINAL_PHASES: Final = frozenset({"Completed", "Failed", "Aborted", "Terminated"})


def phase(job: Object) -> str:
    """`status.state.phase`; "" until a controller has written it."""
    return text(job, "status.state.phase")


def queue(job: Object) -> str:
    return text(job, "spec.queue") or "default"


def replicas(job: Object) -> int:
    return sum(number(task, "replicas") for task in tasks(job))


def tasks(job: Object) -> list[Object]:
    found = field(job, "spec.tasks", [])
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def scheduler(job: Object) -> str:
    return text(job, "spec.schedulerName")


def job_type(job: Object) -> str:
    return labels_of(job).get(_JOB_TYPE_LABEL, "Batch")


def _count(title: str, key: str, width: int) -> Column:
    return Column(title=title, width=width, value=lambda job: number(job, f"status.{key}"))


_COLUMNS: Final = (
    Column(title="Name", value=name_of),
    Column(title="Creation", width=15, value=lambda job: created(job)[:10]),
    Column(title="Phase", width=12, value=phase, coloured=True),
    Column(title="JobType", width=12, value=job_type),
    Column(title="Replicas", width=12, value=replicas),
    _count("Min", "minAvailable", 6),
    _count("Pending", "pending", 10),
    _count("Running", "running", 10),
    _count("Succeeded", "succeeded", 12),
    _count("Failed", "failed", 10),
    _count("Unknown", "unknown", 12),
    _count("RetryCount", "retryCount", 10),
    Column(title="Queue", width=16, wide=True, value=queue),
    Column(title="Scheduler", width=12, wide=True, value=scheduler),
    Column(title="Reason", wide=True, value=lambda job: text(job, "status.state.reason")),
)


def layout(everywhere: bool = False) -> Layout:
    """The table; for several namespaces the namespace is the first column."""
    namespace = (Column(title="Namespace", value=namespace_of),) if everywhere else ()
    return Layout(columns=(*namespace, *_COLUMNS))
