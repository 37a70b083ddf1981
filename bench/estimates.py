"""How good estimates of starts are: the jobs of traces, simulated with reservations, and estimates
of a sample of the jobs that wait, made when they arrive.

Estimates are made as the standby planner makes them, in a copy of the simulated planner. Theta's
users gave limits. Helios has none, so its queue has a usual limit that is used for planning only.
Bars are those of issue 40. Everything but the time of an estimate is deterministic.

    python -m bench.estimates [--traces FOLDER] [--trace theta]... [--load 0.85]... [--every 40]
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from bench.bars import Figure
from bench.reservations import CONFIGURATION
from services.gang_planner.core.planner import Planner
from services.gang_planner.estimator import estimates_now
from services.gang_planner.simulation.engine import BEGIN_MS, Engine
from shared.contracts.questions import StartEstimate
from shared.contracts.simulation import SimulationPlan
from shared.model.objects import Queue, RunLimits
from tutti.simulate.machine import Machine, machine_of_file, machine_of_header
from tutti.simulate.plan import make_plan
from tutti.simulate.trace import TraceOptions, read_trace

_LOADS: Final[Mapping[str, tuple[float, ...]]] = {"theta": (0.8, 0.85, 0.9), "helios": (1.0,)}
_INSIDE_BAR: Final = 0.8
_WIDTH_BAR: Final = 1.5
_HELIOS: Final = b"nodes: [{name: n, count: 110, allocatable: {nvidia.com/gpu: 8}}]"
#: Longer than any of its jobs.
_HELIOS_LIMIT_S: Final = 30 * 86_400


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waited: its estimate when it arrived, and when it started."""

    at_ms: int
    start_ms: int
    estimate: StartEstimate
    #: Gangs that waited, and what all their estimates took.
    waiting: int
    took_s: float

    @property
    def inside(self) -> bool:
        """Whether it started within its range."""
        return self.estimate.earliest_ms <= self.start_ms <= self.estimate.latest_ms

    @property
    def width(self) -> float:
        """The width of the range as a part of the wait, of a second at least."""
        width_ms = self.estimate.latest_ms - self.estimate.earliest_ms
        return width_ms / max(self.start_ms - self.at_ms, 1_000)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One simulation."""

    trace: str
    load: float
    waited: int
    samples: tuple[Sample, ...]


def measure(traces: Path, trace: str, load: float, jobs: int | None, every: int) -> Case:
    """Simulate a trace, with estimates of every so many jobs that wait."""
    plan = plan_of(traces / f"{trace}.csv", trace, load, jobs)
    estimated: dict[int, tuple[int, StartEstimate, int, float]] = {}
    waited = 0

    def on_wait(job: int, planner: Planner, now_ms: int) -> None:
        nonlocal waited
        waited += 1
        if waited % every:
            return
        begun_s = time.monotonic()
        estimates = estimates_now(planner, now_ms)
        took_s = time.monotonic() - begun_s
        for estimate in estimates:
            if estimate.gang_id == f"group-{job}.1":
                estimated[job] = now_ms, estimate, len(estimates), took_s

    result = Engine(plan, on_wait=on_wait).run()
    starts = {run.job: BEGIN_MS + run.start_ms for run in reversed(result.runs)}
    samples = tuple(
        Sample(
            at_ms=at_ms,
            start_ms=starts[job],
            estimate=estimate,
            waiting=waiting,
            took_s=took_s,
        )
        for job, (at_ms, estimate, waiting, took_s) in estimated.items()
        if job in starts
    )
    return Case(trace=trace, load=load, waited=waited, samples=samples)


def plan_of(path: Path, trace: str, load: float, jobs: int | None) -> SimulationPlan:
    """The simulation of a trace with one reservation. Each user has a namespace of their own, as
    past runs are kept by namespace.
    """
    has_limits = trace == "theta"
    options = TraceOptions(load=load, jobs=jobs, size_by="node" if has_limits else "gpu")
    planned = make_plan(read_trace(path, options), _machine(has_limits=has_limits), options)
    queue = Queue(
        uid="queue",
        dialect="volcano",
        name="default",
        resource_version=1,
        state="Open",
        run_limits=RunLimits()
        if has_limits
        else RunLimits(usual_s=_HELIOS_LIMIT_S, enforced=False),
    )
    return msgspec.structs.replace(
        planned.plan,
        configuration=CONFIGURATION % 1,
        queues=(queue,),
        jobs=tuple(
            msgspec.structs.replace(job, namespace=f"user-{traced.user}")
            for job, traced in zip(planned.plan.jobs, planned.jobs, strict=True)
        ),
    )


def _machine(*, has_limits: bool) -> Machine:
    return machine_of_header(4_392, 4_392) if has_limits else machine_of_file(_HELIOS)


def figures(case: Case) -> Iterator[Figure]:
    """The figures of one simulation, held to the bars."""
    group = f"{case.trace}, load {case.load:g}"
    ranges = [sample for sample in case.samples if sample.estimate.earliest_ms]
    yield Figure(group=group, name="estimates", value=len(case.samples), unit="")
    if not ranges:
        return
    yield Figure(
        group=group,
        name="true start inside the range",
        value=sum(sample.inside for sample in ranges) / len(ranges),
        unit="",
        bar=_INSIDE_BAR,
        at_least=True,
    )
    yield Figure(
        group=group,
        name="median width / wait",
        value=median(sample.width for sample in ranges),
        unit="",
        bar=_WIDTH_BAR,
    )
    early = sum(sample.start_ms < sample.estimate.earliest_ms for sample in ranges)
    yield Figure(group=group, name="started earlier", value=early / len(ranges), unit="")
    without = len(case.samples) - len(ranges)
    yield Figure(group=group, name="without a range", value=without / len(case.samples), unit="")
    most = max(ranges, key=lambda sample: sample.waiting)
    yield Figure(group=group, name="gangs that waited at most", value=most.waiting, unit="")
    yield Figure(group=group, name="all their estimates", value=most.took_s, unit="s")


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.estimates", description=__doc__)
    root = Path(__file__).parents[1]
    parser.add_argument("--traces", type=Path, default=root.parent / "shared" / "traces")
    parser.add_argument("--trace", action="append", choices=list(_LOADS), help="default: all")
    parser.add_argument("--load", type=float, action="append", help="default: by trace")
    parser.add_argument("--jobs", type=int, help="only the first jobs of the trace")
    parser.add_argument("--every", type=int, default=40, help="of the jobs that wait")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--strict", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    cases = [
        (options.traces, trace, load, options.jobs, options.every)
        for trace in options.trace or _LOADS
        for load in options.load or _LOADS[trace]
    ]
    for folder, trace, *_ in cases:
        if not (folder / f"{trace}.csv").is_file():
            sys.exit(f"{folder / f'{trace}.csv'} is absent: --traces names its folder")
    with ProcessPoolExecutor() as pool:
        measured = list(pool.map(measure, *zip(*cases, strict=True)))
    if options.json:
        options.json.write_bytes(msgspec.json.encode(measured))
    all_figures = [figure for case in measured for figure in figures(case)]
    if show("estimates", all_figures) and options.strict:
        sys.exit(1)


def show(name: str, all_figures: Sequence[Figure]) -> bool:
    """Print the figures of the benchmark with this name; whether a bar is missed."""
    for figure in all_figures:
        least = "at least" if figure.at_least else "at most"
        bar = "" if figure.bar is None else f", {least} {figure.bar:g}"
        missed = " MISSED" if figure.passed is False else ""
        value = f"{figure.value:.3g} {figure.unit}".rstrip()
        print(f"bench.{name}: {figure.group}: {figure.name}: {value}{bar}{missed}")
    return any(figure.passed is False for figure in all_figures)


if __name__ == "__main__":
    main()
