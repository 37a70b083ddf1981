"""`tutti job`: Jobs of batch.volcano.sh."""

import sys
from collections.abc import Callable

import click
import msgspec

from shared.kinds.durations import duration_ms
from shared.kube.resources import JOBS_VOLCANO
from tutti.api import flags
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, fail, run
from tutti.api.listing import Listing, list_kind, listing_flags
from tutti.api.objects import Object
from tutti.api.output import FORMATS, Format, echo, reference
from tutti.api.volcano_commands import Action, send_command
from tutti.job import columns
from tutti.job.columns import layout
from tutti.job.job_flags import JobFlags, job_flags
from tutti.job.logs import Reading, print_logs
from tutti.job.progress import Goal
from tutti.job.submission import Submission, run_job
from tutti.job.view import view_job

_names = flags.names_argument(JOBS_VOLCANO)
_name_flag = flags.name_flag("Job")
scheduler_filter = click.option(
    "--scheduler", "-S", default="", metavar="NAME", help="Only Jobs of this scheduler."
)


@click.group(cls=flags.PflagGroup)
def job() -> None:
    """Submit, list, view, suspend, resume and delete Jobs of batch.volcano.sh."""


@job.command("run")
@flags.namespace_flag()
@_name_flag
@job_flags()
@click.option(
    "--queue", "-q", default="", metavar="NAME", help="Queue; default: the queue `default`."
)
@click.option(
    "--filename",
    "-f",
    "files",
    multiple=True,
    metavar="FILE",
    help="Manifest, instead of the flags above; - for standard input.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Store nothing; report whether the Job would be accepted, and whether it would fit.",
)
@click.option("--wait", is_flag=True, help="Show the progress of the Job until it is finished.")
@click.option(
    "--until",
    "goal",
    type=click.Choice(["running", "finished"]),
    default="finished",
    show_default=True,
    help="State that --wait waits for.",
)
@click.option(
    "--timeout", default="", metavar="DURATION", help="Maximum time to wait, such as 10m."
)
@flags.output_flag()
@flags.access_flags
def run_(
    *,
    access: Access,
    namespace: str,
    name: str,
    options: JobFlags,
    queue: str,
    files: tuple[str, ...],
    wait: bool,
    goal: Goal,
    timeout: str,
    dry_run: bool,
    output: Format,
) -> None:
    """Submit a Job, from flags or from a manifest.

    With --wait, exits with status 1 when the Job fails or is aborted, or the timeout expires.
    """
    try:
        submission = Submission(
            access=access,
            namespace=namespace,
            files=files,
            name=name,
            options=options,
            queue=queue,
            goal=goal if wait else None,
            timeout_s=seconds("--timeout", timeout),
            dry_run=dry_run,
            output=output,
        )
    except Refusal as error:
        fail(str(error))
    sys.exit(0 if run(run_job(submission)) else 1)


def seconds(flag: str, given: str) -> float | None:
    """A duration in Go's syntax; None for "". Raises Refusal, which names the flag."""
    if not given:
        return None
    found = duration_ms(given)
    if found is None:
        raise Refusal(f"{flag} {given}: must be a duration, such as 90s, 10m or 1h30m")
    return found / 1000


@job.command("list")
@listing_flags(
    click.option("--queue", "-q", default="", metavar="NAME", help="Only Jobs of this queue."),
    scheduler_filter,
)
def list_(*, listing: Listing, queue: str, scheduler: str) -> None:
    """List Jobs with their pods by phase."""
    listing = msgspec.structs.replace(listing, keep=job_filter(queue, scheduler))
    run(list_kind(JOBS_VOLCANO, layout, listing))


def job_filter(queue_name: str, scheduler: str) -> Callable[[Object], bool]:
    """A filter of Jobs by queue and scheduler; "" for any."""

    def keep(found: Object) -> bool:
        in_queue = queue_name in {"", columns.queue(found)}
        return in_queue and scheduler in {"", columns.scheduler(found)}

    return keep


@job.command("view")
@flags.namespace_flag()
@_name_flag
@flags.output_flag(*(each for each in FORMATS if each not in {"wide", "name"}))
@_names
@flags.access_flags
def view(
    *, access: Access, namespace: str, name: str, output: Format, names: tuple[str, ...]
) -> None:
    """Show a Job with its tasks, its state and its Events."""
    try:
        chosen = flags.required_name("job", name, names)
    except Refusal as error:
        fail(str(error))
    run(view_job(access, namespace, chosen, output))


@job.command("suspend")
@flags.namespace_flag()
@_name_flag
@_names
@flags.access_flags
def suspend(*, access: Access, namespace: str, name: str, names: tuple[str, ...]) -> None:
    """Abort Jobs: their pods are deleted; the Jobs stay and can be resumed."""
    run(order_jobs(access, namespace, name, names, "AbortJob"))


@job.command("resume")
@flags.namespace_flag()
@_name_flag
@_names
@flags.access_flags
def resume(*, access: Access, namespace: str, name: str, names: tuple[str, ...]) -> None:
    """Start suspended Jobs again."""
    run(order_jobs(access, namespace, name, names, "ResumeJob"))


async def order_jobs(
    access: Access, namespace: str, name: str, names: tuple[str, ...], action: Action
) -> None:
    """Create a Command for each Job. Raises Refusal, KubeError at the first failure."""
    chosen = flags.required_names("job", name, names)
    done = {"AbortJob": "abort", "ResumeJob": "resume"}[action]
    async with open_client(access) as client:
        place = flags.namespace_or_default(namespace, client.credentials.namespace)
        for each in chosen:
            await send_command(client, JOBS_VOLCANO, each, action, place)
            echo(f"{reference(JOBS_VOLCANO, each)}: {done} ordered")


@job.command("delete")
@flags.namespace_flag()
@_name_flag
@_names
@flags.access_flags
def delete(*, access: Access, namespace: str, name: str, names: tuple[str, ...]) -> None:
    """Delete Jobs, with their pods and other dependents."""
    run(delete_jobs(access, namespace, name, names))


async def delete_jobs(access: Access, namespace: str, name: str, names: tuple[str, ...]) -> None:
    """Delete each Job. Raises Refusal, KubeError at the first failure."""
    chosen = flags.required_names("job", name, names)
    async with open_client(access) as client:
        place = flags.namespace_or_default(namespace, client.credentials.namespace)
        for each in chosen:
            await client.delete(JOBS_VOLCANO, each, namespace=place, propagation="Background")
            echo(f"delete job {each} successfully")


@job.command("logs")
@flags.namespace_flag()
@_name_flag
@click.option("--task", "-t", default="", metavar="NAME", help="Only pods of this task.")
@click.option("--index", type=click.IntRange(0), metavar="N", help="Only pod N of each task.")
@click.option("--container", "-c", default="", metavar="NAME", help="Only this container.")
@click.option("--follow", "-f", is_flag=True, help="Continue with new lines.")
@click.option("--previous", "-p", is_flag=True, help="Logs of the containers' previous runs.")
@click.option("--timestamps", is_flag=True, help="Print the timestamp of each line.")
@click.option(
    "--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines of each log."
)
@click.option(
    "--since", default="", metavar="DURATION", help="Only lines newer than this, such as 5m."
)
@click.option(
    "--prefix/--no-prefix",
    default=None,
    help="Print the pod before each line; default: for several logs.",
)
@_names
@flags.access_flags
def logs(
    *,
    access: Access,
    namespace: str,
    name: str,
    task: str,
    index: int | None,
    container: str,
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail: int | None,
    since: str,
    prefix: bool | None,
    names: tuple[str, ...],
) -> None:
    """Print the logs of a Job's pods."""
    try:
        chosen = flags.required_name("job", name, names)
        since_s = seconds("--since", since)
    except Refusal as error:
        fail(str(error))
    reading = Reading(
        task=task,
        index=index,
        container=container,
        follow=follow,
        previous=previous,
        timestamps=timestamps,
        tail=tail,
        prefix=prefix,
        since_s=None if since_s is None else max(1, round(since_s)),
    )
    run(print_logs(access, namespace, chosen, reading))
