"""`tutti pod`: the pods of Jobs and queues."""

import click
import msgspec

from shared.kube.resources import PODS
from tutti.api import flags
from tutti.api.failures import run
from tutti.api.kind_commands import Listing, list_kind, listing_flags
from tutti.api.objects import Object, field, labels_of
from tutti.job.columns import JOB_NAME_LABEL
from tutti.pod.columns import layout

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
