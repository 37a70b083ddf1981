"""The commands of `vcctl` for Jobs, JobFlows, JobTemplates, CronJobs, PodGroups and pods.

Those of `tutti job`, and those to list, show, create and delete objects, which `tutti` leaves to
kubectl.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

import click
import msgspec

from shared.kube.ages import since
from shared.kube.resources import (
    CRONJOBS_VOLCANO,
    JOBFLOWS,
    JOBS_VOLCANO,
    JOBTEMPLATES,
    PODGROUPS_VOLCANO,
    PODS,
)
from tutti.api import flags, pod_table
from tutti.api.failures import run
from tutti.api.flags import Selection
from tutti.api.objects import (
    Object,
    created,
    field,
    labels_of,
    name_of,
    namespace_of,
    number,
    text,
    why_unschedulable,
)
from tutti.api.output import Column, Layout, echo, reference
from tutti.job import view as job_view
from tutti.job.command import job as jobs
from tutti.vcctl.kind_commands import Listing, kind_group, list_kind, listing_flags

scheduler_filter = click.option(
    "--scheduler", "-S", default="", metavar="NAME", help="Only Jobs of this scheduler."
)

job: Final = flags.PflagGroup(
    "job",
    commands=dict(jobs.commands),
    help="Submit, list, view, suspend, resume and delete Jobs of batch.volcano.sh.",
)


@job.command("list")
@listing_flags(
    click.option("--queue", "-q", default="", metavar="NAME", help="Only Jobs of this queue."),
    scheduler_filter,
)
def list_jobs(*, listing: Listing, queue: str, scheduler: str) -> None:
    """List Jobs with their pods by phase."""
    listing = msgspec.structs.replace(listing, keep=job_filter(queue, scheduler))
    run(list_kind(JOBS_VOLCANO, job_view.layout, listing))


def job_filter(queue_name: str, scheduler: str) -> Callable[[Object], bool]:
    """A filter of Jobs by queue and scheduler; "" for any."""

    def keep(job: Object) -> bool:
        in_queue = queue_name in {"", job_view.queue(job)}
        return in_queue and scheduler in {"", job_view.scheduler(job)}

    return keep


@job.command("delete")
@flags.selection_flags(JOBS_VOLCANO)
def delete(*, selection: Selection) -> None:
    """Delete Jobs, with their pods and other dependents."""
    run(delete_jobs(selection))


async def delete_jobs(selection: Selection) -> None:
    """Delete each Job. Raises Refusal, KubeError at the first failure."""
    names = selection.required(JOBS_VOLCANO)
    async with selection.opened() as (client, place):
        for each in names:
            await client.delete(JOBS_VOLCANO, each, namespace=place, propagation="Background")
            echo(f"delete job {each} successfully")


_GAP: Final = 4


def _age(obj: Object) -> str:
    return since(created(obj), datetime.now(UTC))


def _last_schedule(cronjob: Object) -> str:
    last = text(cronjob, "status.lastScheduleTime")
    return since(last, datetime.now(UTC)) if last else "<none>"


_NAME: Final = Column(title="Name", value=name_of)
_NAMESPACE: Final = Column(title="Namespace", value=namespace_of)
_AGE: Final = Column(title="Age", value=_age)
#: The table always shows the namespace, as in Volcano's tools.
_JOBFLOW: Final = (
    _NAME,
    _NAMESPACE,
    Column(title="Phase", value=lambda flow: text(flow, "status.state.phase"), coloured=True),
    _AGE,
)
_JOBTEMPLATE: Final = (_NAME, _NAMESPACE)
#: The table shows the namespace in lists of all namespaces.
_CRONJOB: Final = (
    _NAME,
    Column(title="Schedule", value=lambda cronjob: text(cronjob, "spec.schedule")),
    Column(title="TimeZone", value=lambda cronjob: text(cronjob, "spec.timeZone") or "<none>"),
    Column(title="Suspend", value=lambda cronjob: field(cronjob, "spec.suspend", False)),
    Column(title="Active", value=lambda cronjob: len(field(cronjob, "status.active", []))),
    Column(title="LastSchedule", value=_last_schedule),
    _AGE,
)
_PODGROUP: Final = (
    _NAME,
    Column(title="Phase", value=lambda group: text(group, "status.phase"), coloured=True),
    Column(title="MinMember", value=lambda group: number(group, "spec.minMember")),
    Column(title="Running", value=lambda group: number(group, "status.running")),
    Column(title="Succeeded", value=lambda group: number(group, "status.succeeded")),
    Column(title="Failed", value=lambda group: number(group, "status.failed")),
    Column(title="Queue", value=lambda group: text(group, "spec.queue") or "default"),
    _AGE,
    Column(title="Why", wide=True, value=why_unschedulable),
)


def _layout(columns: tuple[Column, ...], everywhere: bool) -> Layout:
    namespace = (_NAMESPACE,) if everywhere and _NAMESPACE not in columns else ()
    return Layout(columns=(*namespace, *columns), gap=_GAP)


jobflow: Final = kind_group(JOBFLOWS, partial(_layout, _JOBFLOW))
jobtemplate: Final = kind_group(JOBTEMPLATES, partial(_layout, _JOBTEMPLATE))
podgroup: Final = kind_group(PODGROUPS_VOLCANO, partial(_layout, _PODGROUP))
cronjob: Final = kind_group(CRONJOBS_VOLCANO, partial(_layout, _CRONJOB))


@cronjob.command("suspend")
@flags.selection_flags(CRONJOBS_VOLCANO)
def suspend(*, selection: Selection) -> None:
    """Start no more Jobs; running ones continue."""
    run(_suspend(selection, "suspended", suspended=True))


@cronjob.command("resume")
@flags.selection_flags(CRONJOBS_VOLCANO)
def resume(*, selection: Selection) -> None:
    """Start Jobs on schedule again."""
    run(_suspend(selection, "resumed", suspended=False))


async def _suspend(selection: Selection, done: str, *, suspended: bool) -> None:
    names = selection.required(CRONJOBS_VOLCANO)
    async with selection.opened() as (client, place):
        for each in names:
            patch = {"spec": {"suspend": suspended}}
            await client.patch(CRONJOBS_VOLCANO, each, patch, namespace=place)
            echo(f"{reference(CRONJOBS_VOLCANO, each)} {done}")


_QUEUE_LABEL = "volcano.sh/queue-name"
_QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"


@click.group(cls=flags.PflagGroup)
def pod() -> None:
    """List the pods of Jobs and queues."""


@pod.command("list")
@listing_flags(
    click.option("--queue", "-q", default="", metavar="NAME", help="Only pods of this queue."),
    click.option("--job", "-j", default="", metavar="NAME", help="Only pods of this Job."),
)
def list_pods(*, listing: Listing, queue: str, job: str) -> None:
    """List pods of Jobs; with --queue, also pods of other workloads in that queue."""
    listing = msgspec.structs.replace(
        listing,
        labels=job_selector(job, queue),
        keep=lambda pod: not queue or queue_of(pod) == queue,
    )
    run(list_kind(PODS, pod_table.layout, listing))


def job_selector(job: str, queue: str) -> str:
    """The label selector: pods of one Job, of any Job, or any pods if a queue is given."""
    if job:
        return f"{job_view.JOB_NAME_LABEL}={job}"
    return "" if queue else job_view.JOB_NAME_LABEL


def queue_of(pod: Object) -> str:
    """The queue: a label on pods of Jobs, an annotation on pods of other workloads."""
    annotations: dict[str, str] = field(pod, "metadata.annotations", {})
    return labels_of(pod).get(_QUEUE_LABEL) or annotations.get(_QUEUE_ANNOTATION, "")
