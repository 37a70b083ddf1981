"""`tutti why`: the pending reason of a pod, a PodGroup or a job."""

import sys
from datetime import UTC, datetime

import click

from tutti.api.access import Access, open_client
from tutti.api.failures import run
from tutti.api.flags import access_flags, namespace_flag, report_flag, scheduler_names_flag
from tutti.api.output import print_report
from tutti.terminal import report_console
from tutti.why.explanation import Answer
from tutti.why.kinds import complete_reference
from tutti.why.reader import explain_object
from tutti.why.view import show

#: Exit status of an answer that may be out of date, because no planner reports.
_NO_PLANNER = 3


@click.command()
@click.argument(
    "reference",
    nargs=-1,
    required=True,
    metavar="[KIND/]NAME",
    shell_complete=complete_reference,
)
@namespace_flag()
@access_flags
@scheduler_names_flag("Scheduler names that Tutti serves in this cluster; repeatable.")
@report_flag
def why(
    *,
    reference: tuple[str, ...],
    access: Access,
    namespace: str,
    scheduler_names: tuple[str, ...],
    output: str,
) -> None:
    """Explain why a pod, a PodGroup or a job waits.

    KIND is any kind that the API server serves: pod, podgroup, tfjob, vcjob, deployment. A gang
    that only its pods declare is gang/NAME. Without a kind, NAME is searched among all kinds of
    workloads, and then among such gangs. The rights to get and list objects in the namespace are
    enough.

    Exits with status 0 when it found an answer, 1 when it did not, 2 for wrong usage, and 3 when no
    planner reports, so that the answer may be out of date.
    """
    answer = run(_explain(access, namespace, reference, scheduler_names))
    now = answer.planner.now or datetime.now(UTC)
    print_report(answer, output, lambda: show(answer, report_console(), now))
    if answer.planner.lives is False:
        sys.exit(_NO_PLANNER)


async def _explain(
    access: Access, namespace: str, reference: tuple[str, ...], scheduler_names: tuple[str, ...]
) -> Answer:
    async with open_client(access) as client:
        place = namespace or client.credentials.namespace
        return await explain_object(client, place, reference, scheduler_names)
