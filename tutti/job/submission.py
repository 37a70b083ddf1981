"""`tutti job run`: a Job from flags or from a file, and what becomes of it with `--wait`."""

import msgspec

from shared.kube.client import KubeClient
from shared.kube.resources import JOBS_VOLCANO
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal
from tutti.api.flags import namespace_or_default
from tutti.api.manifests import create, read
from tutti.api.objects import Object, name_of, namespace_of
from tutti.api.output import Format, Printer, echo
from tutti.job.columns import layout
from tutti.job.job_flags import JobFlags, manifest
from tutti.job.progress import Goal, wait


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for.

    Attributes:
        access: The user.
        namespace: As given; "" for the default one. Also for manifests that name none.
        files: Manifests; when there is one, the three below do not count.
        name: Name of the Job.
        options: The rest of it.
        queue: Name of the queue; "" for the default one.
        goal: What to wait for; None to end once it is created.
        timeout_s: How long to wait; None for as long as it takes.
        dry_run: Have everything checked and answered, and nothing stored.
        output: How to print what was created; "table" for a sentence.
    """

    access: Access
    namespace: str = ""
    files: tuple[str, ...] = ()
    name: str = ""
    options: JobFlags
    queue: str = ""
    goal: Goal | None = None
    timeout_s: float | None = None
    dry_run: bool = False
    output: Format = "table"


async def run_job(submission: Submission) -> bool:
    """Create what was asked for, and wait for it if that was asked too.

    Returns:
        Whether all went well: False when a Job that was waited for did not get there.

    Raises:
        Refusal: Flags or files that make no Job.
        KubeError: The API server refuses, or does not answer.
    """
    if submission.dry_run and submission.goal is not None:
        raise Refusal("--dry-run and --wait: nothing is stored that could be waited for")
    manifests = read(submission.files, JOBS_VOLCANO) if submission.files else [_drawn(submission)]
    async with open_client(submission.access) as client:
        place = namespace_or_default(submission.namespace, client.credentials.namespace)
        made = [await _created(client, each, place, submission) for each in manifests]
        if submission.goal is None:
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


def _drawn(submission: Submission) -> Object:
    return manifest(submission.options, submission.name, submission.queue)
