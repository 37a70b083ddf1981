"""`tutti cronjob`, `jobflow`, `jobtemplate`, `podgroup` and `pod`, which have mostly common
commands.
"""

from datetime import UTC, datetime
from functools import partial
from typing import Final

import click
import msgspec

from shared.kube.ages import since
from shared.kube.resources import CRONJOBS_VOLCANO, JOBFLOWS, JOBTEMPLATES, PODGROUPS_VOLCANO, PODS
from tutti.api import flags
from tutti.api.failures import run
from tutti.api.flags import Selection
from tutti.api.kind_commands import Listing, add_kind_commands, list_kind, listing_flags
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
from tutti.api.pod_table import layout
from tutti.job.view import JOB_NAME_LABEL

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
    Column(title="Schedule", value=lambda one: text(one, "spec.schedule")),
    Column(title="TimeZone", value=lambda one: text(one, "spec.timeZone") or "<none>"),
    Column(title="Suspend", value=lambda one: field(one, "spec.suspend", False)),
    Column(title="Active", value=lambda one: len(field(one, "status.active", []))),
    Column(title="LastSchedule", value=_last_schedule),
    _AGE,
)
_PODGROUP: Final = (
    _NAME,
    Column(title="Phase", value=lambda one: text(one, "status.phase"), coloured=True),
    Column(title="MinMember", value=lambda one: number(one, "spec.minMember")),
    Column(title="Running", value=lambda one: number(one, "status.running")),
    Column(title="Succeeded", value=lambda one: number(one, "status.succeeded")),
    Column(title="Failed", value=lambda one: number(one, "status.failed")),
    Column(title="Queue", value=lambda one: text(one, "spec.queue") or "default"),
    _AGE,
    Column(title="Why", wide=True, value=why_unschedulable),
)


def _fixed(columns: tuple[Column, ...], _: bool) -> Layout:
    return Layout(columns=columns, gap=_GAP)


def _with_namespace(columns: tuple[Column, ...], everywhere: bool) -> Layout:
    return Layout(columns=(*((_NAMESPACE,) if everywhere else ()), *columns), gap=_GAP)


@click.group(cls=flags.PflagGroup)
def jobflow() -> None:
    """Create, list and delete JobFlows of flow.volcano.sh."""


@click.group(cls=flags.PflagGroup)
def jobtemplate() -> None:
    """Create, list and delete JobTemplates of flow.volcano.sh."""


@click.group(cls=flags.PflagGroup)
def podgroup() -> None:
    """Create, list and delete PodGroups of scheduling.volcano.sh."""


@click.group(cls=flags.PflagGroup)
def cronjob() -> None:
    """Create, list, suspend, resume and delete CronJobs of batch.volcano.sh."""


add_kind_commands(jobflow, JOBFLOWS, partial(_fixed, _JOBFLOW))
add_kind_commands(jobtemplate, JOBTEMPLATES, partial(_fixed, _JOBTEMPLATE))
add_kind_commands(podgroup, PODGROUPS_VOLCANO, partial(_with_namespace, _PODGROUP))
add_kind_commands(cronjob, CRONJOBS_VOLCANO, partial(_with_namespace, _CRONJOB))


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
def list_(*, listing: Listing, queue: str, job: str) -> None:
    """List pods of Jobs; with --queue, also pods of other workloads in that queue."""
    listing = msgspec.structs.replace(
        listing,
        labels=job_selector(job, queue),
        keep=lambda found: not queue or queue_of(found) == queue,
    )
    run(list_kind(PODS, layout, listing))


def job_selector(job: str, queue: str) -> str:
    """The label selector: pods of one Job, of any Job, or any pods if a queue is given."""
    if job:
        return f"{JOB_NAME_LABEL}={job}"
    return "" if queue else JOB_NAME_LABEL


def queue_of(pod: Object) -> str:
    """The queue: a label on pods of Jobs, an annotation on pods of other workloads."""
    annotations: dict[str, str] = field(pod, "metadata.annotations", {})
    return labels_of(pod).get(_QUEUE_LABEL) or annotations.get(_QUEUE_ANNOTATION, "")
