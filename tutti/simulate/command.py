"""`tutti simulate`: tries configurations on the jobs of a trace."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click
import msgspec
from rich.console import Console
from rich.progress import Progress, TaskID

from shared.kube.resources import NODES, PRIORITY_CLASSES, QUEUES_VOLCANO
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, run
from tutti.api.fetches import Wanted, fetch
from tutti.api.flags import Duration, access_flags, gathered, report_flag
from tutti.api.manifests import contents
from tutti.api.output import print_report
from tutti.simulate.figures import figures_of
from tutti.simulate.machine import (
    InvalidCluster,
    Machine,
    machine_of_file,
    machine_of_header,
    machine_of_objects,
)
from tutti.simulate.plan import Planned, make_plan
from tutti.simulate.plots import draw_page
from tutti.simulate.processes import simulate_all
from tutti.simulate.recording import is_recording, plan_of, read_recording
from tutti.simulate.report import Report, show
from tutti.simulate.trace import InvalidTrace, Trace, TraceOptions, read_trace
from tutti.terminal import report_console

_BUILT_IN = "built-in configuration"
_RECORDED = "recorded configuration"


@click.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--cluster",
    type=click.Path(exists=True, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Nodes with their number, or manifests; default: the machine in the trace's header.",
)
@click.option("--live", is_flag=True, help="Use the nodes and queues of the kubeconfig's cluster.")
@click.option(
    "--conf",
    "confs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Scheduler configuration to try; repeatable; default: the built-in one.",
)
@gathered(
    TraceOptions,
    "options",
    click.option(
        "--load",
        type=click.FloatRange(min=0.0, max=100.0, min_open=True),
        metavar="PART",
        help="Stretch arrivals until they offer this part of the capacity, such as 0.85.",
    ),
    click.option(
        "--jobs", type=click.IntRange(min=1), metavar="N", help="Read only the first N jobs."
    ),
    click.option(
        "--queue-by",
        type=click.Choice(["none", "user", "queue"]),
        default="none",
        show_default=True,
        help="What becomes a queue: all jobs together, each user, or each queue of the trace.",
    ),
    click.option(
        "--size-by",
        type=click.Choice(["auto", "node", "cpu", "gpu"]),
        default="auto",
        show_default=True,
        help="What the size of a job counts.",
    ),
    click.option(
        "--pool",
        type=click.Choice(["auto", "yes", "no"]),
        default="auto",
        show_default=True,
        help="Simulate all nodes as one; auto: where jobs take whole nodes.",
    ),
    click.option(
        "--gap-max",
        "gap_max_ms",
        type=Duration(),
        default="24h",
        show_default=True,
        help="The longest interval between two submissions of a table.",
    ),
    click.option("--gpu", default="", metavar="NAME", help="The resource that GPUs are."),
    click.option("--strict", is_flag=True, help="Refuse jobs that would be left out."),
)
@click.option(
    "--html",
    "page",
    type=click.File("w", encoding="utf-8", lazy=False, atomic=True),
    metavar="FILE",
    help="Also write a page with plots of the configurations beside each other.",
)
@access_flags
@report_flag
def simulate(
    *,
    trace: Path,
    cluster: str | None,
    live: bool,
    confs: tuple[Path, ...],
    options: TraceOptions,
    page: IO[str] | None,
    access: Access,
    output: str,
) -> None:
    """Run the jobs of a trace through the planner under a virtual clock, with each configuration.

    TRACE is in Standard Workload Format, or a CSV file with the columns `run_time`, `interval` or
    `submit_time`, and one of `node_num`, `gpu_num` and `cpu_num`.

    TRACE may also be an archive of `tutti bundle`, or one segment of a recording: then the planner
    decides again what was recorded, which must give the same. With --conf, the recorded gangs are
    simulated on the recorded nodes, with the recorded configuration and each other one.

    Exits with status 1 when recorded decisions differ, and with status 2 when the trace, the
    cluster or a configuration is invalid.
    """
    if live and cluster is not None:
        raise click.UsageError("--cluster and --live exclude each other")
    if not is_recording(trace):
        report = run(_simulate(trace, cluster, confs, options, access if live else None))
    elif live or cluster is not None or options != TraceOptions():
        raise click.UsageError("a recording has its own nodes and gangs: only --conf applies")
    else:
        report = run(_simulate_recording(trace, confs))
    if page is not None:
        page.write(draw_page(report))
    print_report(report, output, lambda: show(report, report_console()))
    if any(segment.differing for segment in report.segments):
        sys.exit(1)


async def _simulate_recording(path: Path, confs: Sequence[Path]) -> Report:
    _, texts = _configurations(confs)
    recording = await read_recording(path)
    if not confs:
        return Report(trace=path.name, segments=recording.segments)
    try:
        planned, unit = plan_of(recording)
    except InvalidTrace as error:
        raise Refusal(f"{path}: {error}") from None
    titles, texts = [_RECORDED, *map(str, confs)], [recording.configuration, *texts]
    report = await _report(path, unit, planned, titles, texts)
    unfinished = sum(gang.unfinished and gang.run_ms > 0 for gang in recording.gangs)
    notes = [
        f"{what}: {count:,}"
        for what, count in (
            ("gangs that still ran at its end, where their runs end", unfinished),
            ("pods of other schedulers, which keep their capacity", recording.other_pods),
        )
        if count
    ]
    return msgspec.structs.replace(report, segments=recording.segments, notes=tuple(notes))


async def _simulate(
    path: Path,
    cluster: str | None,
    confs: Sequence[Path],
    options: TraceOptions,
    access: Access | None,
) -> Report:
    titles, texts = _configurations(confs)
    trace = _trace(path, options)
    machine = await _machine(trace, cluster, access)
    try:
        planned = make_plan(trace, machine, options)
    except InvalidTrace as error:
        raise Refusal(f"{path}: {error}") from None
    except InvalidCluster as error:
        raise Refusal(f"{cluster or 'the cluster'}: {error}") from None
    return await _report(path, trace.unit, planned, titles, texts)


def _configurations(confs: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Titles and texts; one empty text if there are none."""
    try:
        texts = [path.read_text(encoding="utf-8") for path in confs]
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"a configuration cannot be read: {error}") from None
    return [str(path) for path in confs] or [_BUILT_IN], texts or [""]


def _trace(path: Path, options: TraceOptions) -> Trace:
    try:
        return read_trace(path, options)
    except InvalidTrace as error:
        raise Refusal(f"{path}: {error}") from None
    except OSError as error:
        raise Refusal(f"{path}: cannot be read: {error.strerror or error}") from None


async def _machine(trace: Trace, cluster: str | None, access: Access | None) -> Machine:
    try:
        if access is not None:
            async with open_client(access) as client:
                kinds = (NODES, QUEUES_VOLCANO, PRIORITY_CLASSES)
                objects = {kind: await fetch(client, Wanted(resource=kind)) for kind in kinds}
            return machine_of_objects(objects)
        if cluster is not None:
            (content,) = contents(cluster)
            return machine_of_file(content.text)
        if trace.processors:
            return machine_of_header(trace.processors, trace.machine_nodes)
    except InvalidCluster as error:
        raise Refusal(f"{cluster or 'the cluster'}: {error}") from None
    raise Refusal("the trace's header has no MaxProcs: --cluster FILE or --live has the nodes")


async def _report(
    path: Path, unit: str, planned: Planned, titles: Sequence[str], texts: Sequence[str]
) -> Report:
    plans = [msgspec.structs.replace(planned.plan, configuration=text) for text in texts]
    console = Console(stderr=True)
    with Progress(console=console, disable=not sys.stderr.isatty(), transient=True) as progress:
        tasks: list[TaskID] = [
            progress.add_task(title, total=len(planned.jobs)) for title in titles
        ]
        results = await simulate_all(
            plans, lambda place, ended: progress.update(tasks[place], completed=ended)
        )
    for title, result in zip(titles, results, strict=True):
        if result.problem and not result.runs:
            raise Refusal(f"{title}: {result.problem}")
    return Report(
        trace=path.name,
        jobs=len(planned.jobs),
        left_out=planned.left_out,
        unit=unit,
        capacity=planned.capacity,
        pooled=planned.pooled,
        load=planned.load,
        configurations=tuple(
            figures_of(title, planned, result)
            for title, result in zip(titles, results, strict=True)
        ),
    )
