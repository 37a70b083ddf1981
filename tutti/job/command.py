"""`tutti job`: Jobs of batch.volcano.sh."""

import sys

import click

from shared.kube.resources import JOBS_VOLCANO
from tutti.api import flags
from tutti.api.failures import run
from tutti.api.flags import Selection
from tutti.api.manifests import Action, send_command
from tutti.api.output import Format, echo, reference
from tutti.job.logs import Reading, print_logs
from tutti.job.submission import Submission, job_flags, run_job
from tutti.job.view import view_job


@click.group(cls=flags.PflagGroup)
def job() -> None:
    """Submit, view, suspend and resume Jobs of batch.volcano.sh, and read their logs.

    kubectl lists and deletes them, under the name vcjob.
    """


@job.command("run")
@flags.gathered(
    Submission,
    "submission",
    flags.namespace_flag(),
    flags.name_flag("Job"),
    job_flags(),
    click.option(
        "--queue", "-q", default="", metavar="NAME", help="Queue; default: the queue `default`."
    ),
    flags.files_flag(required=False),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Store nothing; report whether the Job would be accepted, and whether it would fit.",
    ),
    click.option("--wait", is_flag=True, help="Show the progress of the Job until it is finished."),
    click.option(
        "--until",
        "goal",
        type=click.Choice(["running", "finished"]),
        default="finished",
        show_default=True,
        help="State that --wait waits for.",
    ),
    click.option(
        "--timeout",
        "timeout_ms",
        type=flags.Duration(),
        metavar="DURATION",
        help="Maximum time to wait, such as 10m.",
    ),
    flags.output_flag(),
    flags.access_flags,
)
def run_(*, submission: Submission) -> None:
    """Submit a Job, from flags or from a manifest.

    With --wait, exits with status 1 when the Job fails or is aborted, or the timeout expires.
    """
    sys.exit(0 if run(run_job(submission)) else 1)


@job.command("view")
@flags.selection_flags(JOBS_VOLCANO, flags.output_flag("text", "json", "yaml"))
def view(*, selection: Selection, output: Format) -> None:
    """Show a Job with its tasks, its state and its Events."""
    run(view_job(selection, output))


@job.command("suspend")
@flags.selection_flags(JOBS_VOLCANO)
def suspend(*, selection: Selection) -> None:
    """Abort Jobs: their pods are deleted; the Jobs stay and can be resumed."""
    run(order_jobs(selection, "AbortJob"))


@job.command("resume")
@flags.selection_flags(JOBS_VOLCANO)
def resume(*, selection: Selection) -> None:
    """Start suspended Jobs again."""
    run(order_jobs(selection, "ResumeJob"))


async def order_jobs(selection: Selection, action: Action) -> None:
    """Create a Command for each Job. Raises Refusal, KubeError at the first failure."""
    names = selection.required(JOBS_VOLCANO)
    done = {"AbortJob": "abort", "ResumeJob": "resume"}[action]
    async with selection.opened() as (client, place):
        for each in names:
            await send_command(client, JOBS_VOLCANO, each, action, place)
            echo(f"{reference(JOBS_VOLCANO, each)}: {done} ordered")


@job.command("logs")
@flags.selection_flags(
    JOBS_VOLCANO,
    flags.gathered(
        Reading,
        "reading",
        click.option("--task", "-t", default="", metavar="NAME", help="Only pods of this task."),
        click.option(
            "--index", type=click.IntRange(0), metavar="N", help="Only pod N of each task."
        ),
        click.option("--container", "-c", default="", metavar="NAME", help="Only this container."),
        click.option("--follow", "-f", is_flag=True, help="Continue with new lines."),
        click.option(
            "--previous", "-p", is_flag=True, help="Logs of the containers' previous runs."
        ),
        click.option("--timestamps", is_flag=True, help="Print the timestamp of each line."),
        click.option(
            "--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines of each log."
        ),
        click.option(
            "--since",
            "since_ms",
            type=flags.Duration(),
            metavar="DURATION",
            help="Only lines newer than this, such as 5m.",
        ),
        click.option(
            "--prefix/--no-prefix",
            default=None,
            help="Print the pod before each line; default: for several logs.",
        ),
    ),
)
def logs(*, selection: Selection, reading: Reading) -> None:
    """Print the logs of a Job's pods."""
    run(print_logs(selection, reading))
