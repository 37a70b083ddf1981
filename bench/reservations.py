"""What reservations change for large and small gangs: the jobs of a trace, simulated without and
with them (`tutti simulate`), at several loads.

Waits of the two simulations are put in proportion, so that the load cancels out. Bars are those of
issue 40 and apply to each load. Simulations are deterministic; only the planner's CPU time varies.

    python -m bench.reservations [--traces FOLDER] [--load 0.85]... [--json FILE] [--strict]
"""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.progress import Progress

from bench.bars import Figure
from services.gang_planner.core.configuration.configuration import DEFAULT_TEXT
from tutti.simulate.figures import Figures, Waits, figures_of
from tutti.simulate.machine import machine_of_header
from tutti.simulate.plan import make_plan
from tutti.simulate.processes import simulate_all
from tutti.simulate.trace import TraceOptions, read_trace

_TRACE: Final = "theta.csv"
_NODES: Final = 4_392
_LOADS: Final = (0.8, 0.85, 0.9)
_WAIT_BAR: Final = 0.25
_LOST_POINTS_BAR: Final = 0.5
_SMALL_BAR: Final = 3.0
#: With a number of reservations for each root.
CONFIGURATION: Final = (
    DEFAULT_TEXT + "configurations: [{name: reserve, arguments: {reservations: %d}}]\n"
)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One simulation."""

    load: float
    reservations: int
    figures: Figures

    @property
    def large(self) -> Waits:
        """Of gangs from a quarter of the machine on."""
        return self.figures.by_size[-1]

    @property
    def small_mean_s(self) -> float:
        """The mean wait of smaller gangs."""
        smaller = self.figures.by_size[:-1]
        jobs = sum(waits.jobs for waits in smaller)
        return sum(waits.mean_s * waits.jobs for waits in smaller) / (jobs or 1)


def measure(traces: Path, loads: Sequence[float], jobs: int | None, each: int) -> list[Case]:
    """Simulate without and with reservations at each load; two processes at a time."""
    trace = read_trace(traces / _TRACE, TraceOptions(jobs=jobs))
    machine = machine_of_header(_NODES, _NODES)
    asked = [(load, reservations) for load in loads for reservations in (0, each)]
    planned = [make_plan(trace, machine, TraceOptions(load=load)) for load, _ in asked]
    plans = [
        msgspec.structs.replace(plan.plan, configuration=CONFIGURATION % reservations)
        for plan, (_, reservations) in zip(planned, asked, strict=True)
    ]
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        tasks = [
            progress.add_task(f"load {load:g}, {kept} reservations", total=len(trace.jobs))
            for load, kept in asked
        ]
        results = asyncio.run(
            simulate_all(plans, lambda place, ended: progress.update(tasks[place], completed=ended))
        )
    return [
        Case(
            load=load,
            reservations=kept,
            figures=figures_of(f"{kept} reservations", plan, result),
        )
        for (load, kept), plan, result in zip(asked, planned, results, strict=True)
    ]


def figures(cases: Sequence[Case]) -> list[Figure]:
    """The figures of each pair of simulations, held to the bars."""
    found: list[Figure] = []
    for without, beside in zip(cases[::2], cases[1::2], strict=True):
        lost = 100 * (without.figures.utilisation - beside.figures.utilisation)
        large = beside.large.p95_s / (without.large.p95_s or 1.0)
        small = beside.small_mean_s / (without.small_mean_s or 1.0)
        rows: Iterable[tuple[str, float, str, float | None]] = (
            ("p95 of large gangs' wait / without", large, "", _WAIT_BAR),
            ("utilisation lost", lost, "points", _LOST_POINTS_BAR),
            ("mean of small gangs' wait / without", small, "", _SMALL_BAR),
            ("planner's CPU", beside.figures.cpu_s, "s", None),
            ("planner's CPU without", without.figures.cpu_s, "s", None),
        )
        found += [
            Figure(group=f"load {without.load:g}", name=name, value=value, unit=unit, bar=bar)
            for name, value, unit, bar in rows
        ]
    return found


def show(cases: Sequence[Case]) -> None:
    """Print a line for each simulation."""
    print(
        "load  reservations  utilisation  large: mean, p95, max h  small: mean h  at limit  CPU s"
    )
    for case in cases:
        of, large = case.figures, case.large
        hours = "  ".join(
            f"{seconds / 3600:.2f}" for seconds in (large.mean_s, large.p95_s, large.max_s)
        )
        print(
            f"{case.load:4.2f}  {case.reservations:12}  {of.utilisation:6.2%}  {hours:>23}  "
            f"{case.small_mean_s / 3600:13.2f}  {of.ended_at_limit:8,}  {of.cpu_s:5.1f}  "
            f"{of.problem}"
        )


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.reservations", description=__doc__)
    root = Path(__file__).parents[1]
    parser.add_argument("--traces", type=Path, default=root.parent / "shared" / "traces")
    parser.add_argument("--load", type=float, action="append", help=f"default: each of {_LOADS}")
    parser.add_argument("--jobs", type=int, help="only the first jobs of the trace")
    parser.add_argument("--reservations", type=int, default=1, help="for each root")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--strict", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    if not (options.traces / _TRACE).is_file():
        sys.exit(f"{options.traces / _TRACE} is absent: --traces names its folder")
    cases = measure(options.traces, options.load or _LOADS, options.jobs, options.reservations)
    show(cases)
    if options.json:
        options.json.write_bytes(msgspec.json.encode(cases))
    found = figures(cases)
    for figure in found:
        bar = "" if figure.bar is None else f", at most {figure.bar:g}"
        missed = " MISSED" if figure.passed is False else ""
        value = f"{figure.value:.3g} {figure.unit}".rstrip()
        print(f"bench.reservations: {figure.group}: {figure.name}: {value}{bar}{missed}")
    if options.strict and any(figure.passed is False for figure in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
