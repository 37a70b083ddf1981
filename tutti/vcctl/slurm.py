"""`vsub`, `vjobs`, `vcancel`, `vsuspend`, `vresume`, `vqueues`.

Here `-n` is the name and `-N` the namespace; in `vcctl` it is the reverse.
"""

from collections.abc import Callable
from typing import Any, Final

import click
import msgspec

from shared.kube.resources import JOBS_VOLCANO, QUEUES_VOLCANO
from tutti.api import flags
from tutti.api.conventions import VOLCANO
from tutti.api.failures import run
from tutti.api.flags import Selection
from tutti.api.output import Format
from tutti.job.command import order_jobs
from tutti.job.submission import Submission, job_flags, run_job
from tutti.job.view import layout, view_job
from tutti.vcctl.command import LikeCobra
from tutti.vcctl.kind_commands import Listing, list_kind, listing_flags
from tutti.vcctl.kinds import delete_jobs, job_filter, scheduler_filter
from tutti.vcctl.queues import show_queues

_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "obj": VOLCANO}
_job_name = flags.name_flag("Job", "-n")
_selection = flags.gathered(
    Selection,
    "selection",
    _job_name,
    flags.namespace_flag(letter="-N"),
    flags.names_argument(JOBS_VOLCANO),
    flags.access_flags,
)


def _program(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    return click.command(name, cls=LikeCobra, context_settings=_SETTINGS)


@_program("vsub")
@flags.gathered(
    Submission,
    "submission",
    _job_name,
    click.option(
        "--namespace",
        "-N",
        envvar="VOLCANO_DEFAULT_JOB_NAMESPACE",
        default="default",
        show_default=True,
        show_envvar=True,
        metavar="NAME",
    ),
    job_flags(from_environment=True),
    flags.access_flags,
)
def vsub(*, submission: Submission) -> None:
    """Submit a Job made from flags. (For manifests use `kubectl` or `vcctl job run -f`.)"""
    run(run_job(submission))


@_program("vjobs")
@_job_name
@listing_flags(scheduler_filter, namespace_letter="-N")
def vjobs(*, listing: Listing, name: str, scheduler: str) -> None:
    """List Jobs; with --name, show one in full."""
    if name:
        selection = Selection(access=listing.access, namespace=listing.namespace, name=name)
        run(view_job(selection, listing.output))
        return
    listing = msgspec.structs.replace(listing, keep=job_filter("", scheduler))
    run(list_kind(JOBS_VOLCANO, layout, listing))


@_program("vcancel")
@_selection
def vcancel(*, selection: Selection) -> None:
    """Delete Jobs."""
    run(delete_jobs(selection))


@_program("vsuspend")
@_selection
def vsuspend(*, selection: Selection) -> None:
    """Abort Jobs; they can be resumed."""
    run(order_jobs(selection, "AbortJob"))


@_program("vresume")
@_selection
def vresume(*, selection: Selection) -> None:
    """Start suspended Jobs again."""
    run(order_jobs(selection, "ResumeJob"))


@_program("vqueues")
@flags.selection_flags(QUEUES_VOLCANO, flags.output_flag(), letter="-n")
def vqueues(*, selection: Selection, output: Format) -> None:
    """List Queues, or the ones named, with their PodGroups by phase."""
    run(show_queues(selection.access, selection.all_names, output, slurm=True))
