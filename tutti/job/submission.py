"""`tutti job run`: creates a Job from flags or from a file, and waits for it with `--wait`."""

import msgspec

from shared.kube.client import KubeClient
from shared.kube.resources import JOBS_VOLCANO
from tutti.api.access import Access, open_namespace
from tutti.api.failures import Refusal
from tutti.api.manifests import create, read
from tutti.api.objects import Object, name_of, namespace_of
from tutti.api.output import Format, Printer, echo
from tutti.job.columns import layout
from tutti.job.job_flags import JobFlags, manifest
from tutti.job.progress import Goal, wait


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `tutti job run`.

    Attributes:
        access: The user.
        namespace: As given; "" for the default one. Also for manifests without one.
        files: Manifests; with at least one, the next three attributes are ignored.
        name: Name of the Job.
        options: The other flags that describe the Job.
        queue: Name of the queue; "" for the default one.
        wait: Whether to wait until the Job has reached the goal, or return once it is created.
        goal: State to wait for.
        timeout_s: Maximum time to wait; None for no limit.
        dry_run: Have the API server validate the Job without storing it.
        output: Format of the created Job; "table" for a sentence.
    """

    access: Access
    namespace: str = ""
    files: tuple[str, ...] = ()
    name: str = ""
    options: JobFlags
    queue: str = ""
    wait: bool = False
    goal: Goal = "finished"
    timeout_s: float | None = None
    dry_run: bool = False
    output: Format = "table"


async def run_job(submission: Submission) -> bool:
    """Create the Jobs, and wait for them if requested.

    Returns:
        Whether all succeeded: False when a Job did not reach the requested state.

    Raises:
        Refusal: The flags or files do not make a Job.
        KubeError: The API server refuses, or does not answer.
    """
    if submission.dry_run and submission.wait:
        raise Refusal("--dry-run stores nothing, so --wait has nothing to wait for")
    manifests = (
        read(submission.files, JOBS_VOLCANO)
        if submission.files
        else [manifest(submission.options, submission.name, submission.queue)]
    )
    async with open_namespace(submission.access, submission.namespace) as (client, place):
        made = [await _created(client, each, place, submission) for each in manifests]
        if not submission.wait:
            return True
        return await wait(client, made, submission.goal, submission.timeout_s)


async def _created(client: KubeClient, job: Object, place: str, submission: Submission) -> Object:
    if submission.namespace and namespace_of(job) not in {"", submission.namespace}:
        raise Refusal(
            f"Job {name_of(job)} names the namespace {namespace_of(job)!r}, and --namespace "
            f"{submission.namespace!r}: leave one of them out"
        )
    made = await create(client, JOBS_VOLCANO, job, place, dry_run=submission.dry_run)
    if submission.output == "table":
        dry = " (server dry run)" if submission.dry_run else ""
        echo(f"run job {name_of(made)} successfully{dry}")
    else:
        Printer(JOBS_VOLCANO, layout(), submission.output).one(made)
    return made
