"""`tutti why`: the pending reason of a pod, a PodGroup or a job: the sentence, then one line per
detail.
"""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.text import Text

from shared.contracts.verdicts import Reason
from shared.kube.errors import KubeError
from shared.kube.quantities import format_quantity
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, explained, fail, run
from tutti.api.flags import access_flags, namespace_flag, report_flag, scheduler_names_flag
from tutti.api.output import print_report
from tutti.terminal import print_line, report_console
from tutti.why.expected_starts import expected_words
from tutti.why.explanation import Answer, GangAnswer, State
from tutti.why.kinds import complete_reference, read_reference
from tutti.why.planner_liveness import PlannerLiveness
from tutti.why.reader import explain_object
from tutti.why.suggested_changes import suggestion_lines, with_suggestions

_COLOURS: dict[State, str] = {
    "waiting": "yellow",
    "starting": "cyan",
    "stuck": "red",
    "releasing": "yellow",
    "growing": "cyan",
    "degraded": "red",
    "suspended": "yellow",
    "running": "green",
    "completed": "green",
    "not-ours": "magenta",
    "unknown": "yellow",
}
_NODES_MAX = 20


def show(answer: Answer, console: Console, now: datetime) -> None:
    if answer.warning:
        print_line(console, Text(answer.warning, style="bold red"))
    print_line(console, Text(answer.sentence, style=f"bold {_COLOURS[answer.state]}"))
    for gang in answer.gangs:
        if len(answer.gangs) > 1:
            print_line(console, Text(f"\n{gang.sentence}", style=_COLOURS[gang.state]))
        rows = list(_rows(gang, now))
        width = max(len(label) for label, _ in rows)
        for label, value in rows:
            print_line(console, Text.assemble("  ", (label.ljust(width), "dim"), "  ", value))
    print_line(
        console, Text.assemble("  ", ("as of".ljust(9), "dim"), "  ", _as_of(answer.planner))
    )
    for trouble in answer.troubles:
        print_line(console, Text.assemble("  ", ("warning", "dim"), "  ", trouble))
    for resource in answer.forbidden:
        words = f"  not read: {resource} (no right to list them in {answer.namespace})"
        print_line(console, Text(words, "dim"))


def _as_of(planner: PlannerLiveness) -> str:
    match planner.state:
        case "alive":
            return f"{planner.silent_s} s ago, when the planner reported last"
        case "silent":
            return f"{planner.silent_s} s ago, when a planner reported last"
        case "missing":
            return "an unknown time: no planner reports"
        case "unknown":
            return f"an unknown time: the planner's Lease cannot be read ({planner.detail})"


def _rows(gang: GangAnswer, now: datetime) -> Iterable[tuple[str, str]]:
    yield from _identity(gang)
    yield from _waits(gang, now)
    for stuck in gang.not_running:
        yield "not running", f"{stuck.pod} on {stuck.node}{f': {stuck.why}' if stuck.why else ''}"
    yield from _placements(gang)
    for condition in gang.conditions:
        # The message of a release begins with its reason.
        message = condition.message.removeprefix(f"{condition.reason}: ")
        text = f"{condition.type}={condition.status} {condition.reason}".rstrip()
        yield "condition", f"{text}: {message}" if message else text


def _identity(gang: GangAnswer) -> Iterable[tuple[str, str]]:
    if gang.group:
        yield "gang", f"{gang.group}/{gang.gang.partition('/')[2]}"
    counts = ", ".join(f"{count} {phase}" for phase, count in gang.phases.items())
    quorum = f", needs {gang.min_member}" if gang.min_member else ""
    yield "members", f"{gang.members}{quorum}{f': {counts}' if counts else ''}"
    if len(gang.roles) > 1 or gang.roles.keys() - {"other"}:
        for role, phases in gang.roles.items():
            counted = ", ".join(f"{count} {phase}" for phase, count in phases.items())
            yield f"  {role}", f"{sum(phases.values())}: {counted}"
    if gang.queue:
        yield "queue", gang.queue


def _waits(gang: GangAnswer, now: datetime) -> Iterable[tuple[str, str]]:
    if gang.reason:
        yield "reason", gang.reason
    if gang.since:
        yield "since", f"{gang.since}{_ago(gang.since, now)}"
    if gang.expected_start is not None:
        yield "start", expected_words(gang.expected_start, gang.position, gang.queue)
    for shape in gang.shapes:
        fit = f"{shape.fit} of {shape.wanted} would fit alone, {_nodes(shape.nodes)}"
        yield shape.role or "pods", fit
        for reason in shape.reasons:
            yield "", f"  {_reason(reason, _nodes(reason.count))}"
    if gang.shapes_count > len(gang.shapes):
        yield "", f"… and {gang.shapes_count - len(gang.shapes):,} more roles and shapes"
    for reason in gang.quota:
        yield "quota", _reason(reason, str(reason.count))
    if gang.ahead_count or gang.ahead:
        yield "ahead", _counted(gang.ahead_count, gang.ahead, gang.gang)
    if gang.holders_count or gang.holders:
        yield "held by", _counted(gang.holders_count, gang.holders, gang.gang)


def _counted(count: int, gangs: Sequence[str], own: str) -> str:
    """The number of gangs, and the names of those in the namespace of `own`."""
    place = f"{own.partition('/')[0]}/"
    named = f": {', '.join(gang.removeprefix(place) for gang in gangs)}" if gangs else ""
    return f"{max(count, len(gangs))}{named}"


def _placements(gang: GangAnswer) -> Iterable[tuple[str, str]]:
    for node, pods in list(gang.nodes.items())[:_NODES_MAX]:
        yield f"on {node}", ", ".join(pods)
    if len(gang.nodes) > _NODES_MAX:
        more = _nodes(len(gang.nodes) - _NODES_MAX)
        yield "", f"and {more} more (-o json lists all)"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _reason(reason: Reason, counted: str) -> str:
    count = f"{counted}: " if reason.count else ""
    short = ""
    if reason.short:
        short = f" ({reason.resource} short by {format_quantity(reason.resource, reason.short)})"
    return f"{count}{reason.reason}{short}"


def _ago(instant: str, now: datetime) -> str:
    try:
        then = datetime.fromisoformat(instant)
    except ValueError:
        return ""
    seconds = int((now - then.astimezone(UTC)).total_seconds())
    if seconds < 0:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f" ({seconds // length} {unit} ago)"
    return f" ({seconds} s ago)"


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
@click.option(
    "--what-would-help",
    is_flag=True,
    help="Also the changes with which a waiting gang would start at once, of at most 5 gangs; they "
    "are planned on a copy, which takes some seconds. Needs Tutti's API.",
)
@report_flag
def why(
    *,
    reference: tuple[str, ...],
    access: Access,
    namespace: str,
    scheduler_names: tuple[str, ...],
    what_would_help: bool,
    output: str,
) -> None:
    """Explain why a pod, a PodGroup or a job waits.

    KIND is any kind that the API server serves: pod, podgroup, tfjob, vcjob, deployment. A gang
    that only its pods declare is gang/NAME. Without a kind, NAME is searched among all kinds of
    workloads, and then among such gangs. The rights to get and list objects in the namespace are
    enough.

    Exits with status 0 when it found an answer, 2 when it did not, or not to --what-would-help, and
    3 when no planner reports, so that the answer may be out of date.
    """
    try:
        read_reference(reference)
    except Refusal as refused:
        raise click.UsageError(str(refused)) from None
    explaining = _explain(access, namespace, reference, scheduler_names, with_help=what_would_help)
    answer, failure = run(explaining)
    now = answer.planner.now or datetime.now(UTC)

    def print_text() -> None:
        console = report_console()
        show(answer, console, now)
        if what_would_help:
            for line in suggestion_lines(answer):
                print_line(console, Text(line))

    print_report(answer, output, print_text)
    if failure is not None:
        fail(f"what would help is not known: {explained(failure)}")
    if answer.planner.lives is False:
        sys.exit(_NO_PLANNER)


async def _explain(
    access: Access,
    namespace: str,
    reference: tuple[str, ...],
    scheduler_names: tuple[str, ...],
    *,
    with_help: bool,
) -> tuple[Answer, KubeError | None]:
    """The answer, `with_help` also with what would help; and why that is not known."""
    async with open_client(access) as client:
        place = namespace or client.credentials.namespace
        answer = await explain_object(client, place, reference, scheduler_names)
        return await with_suggestions(client, answer) if with_help else (answer, None)
