"""The tables of `tutti simulate`."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from shared.contracts.simulation import SegmentReport
from tutti.simulate.figures import Figures, Waits
from tutti.terminal import plain_table

_HOUR_S = 3600


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was simulated, and the figures of each configuration."""

    trace: str
    jobs: int = 0
    left_out: dict[str, int] = {}
    #: Node, cpu, gpu or millicpu.
    unit: str = ""
    capacity: int = 0
    #: Whether all nodes were simulated as one.
    pooled: bool = False
    load: float = 0.0
    configurations: tuple[Figures, ...] = ()
    #: Of a recording: whether its decisions were reproduced.
    segments: tuple[SegmentReport, ...] = ()
    notes: tuple[str, ...] = ()


class Scale(NamedTuple):
    """A unit of time in which numbers are shown."""

    name: str
    seconds: float

    def shown(self, seconds: float) -> str:
        return f"{seconds / self.seconds:,.2f}"


_SCALES: Final = (Scale("s", 1.0), Scale("min", 60.0), Scale("h", 3600.0))


def scale_of(longest_s: float) -> Scale:
    """The unit for times up to this one: the largest of which it has some."""
    return next((each for each in reversed(_SCALES) if longest_s >= 3 * each.seconds), _SCALES[0])


def scale_of_waits(report: Report) -> Scale:
    """The unit for the waits of all configurations."""
    return scale_of(max((each.waits.max_s for each in report.configurations), default=0.0))


def show(report: Report, console: Console) -> None:
    """Print a report."""
    for text in _of_segments(report.segments):
        console.print(text)
    if not report.configurations:
        return
    console.print(
        Text(
            f"{report.trace}: {report.jobs:,} jobs, load {report.load:.3f} on {report.capacity:,} "
            f"{report.unit}s{', simulated as one node' if report.pooled else ''}"
        )
    )
    for line in (*left_out_of(report), *report.notes):
        console.print(Text(line))
    for figures in report.configurations:
        console.print()
        _show_one(figures, report.unit, scale_of_waits(report), console)


def left_out_of(report: Report) -> Iterator[str]:
    """How many jobs were left out, in sentences."""
    for rule, count in report.left_out.items():
        yield f"left out, {rule}: {count:,}"


def _of_segments(segments: Sequence[SegmentReport]) -> Iterator[Text]:
    """Whether recorded decisions were reproduced, and from where they were not."""
    if not segments:
        return
    equal = sum(segment.equal for segment in segments)
    all_of_them = equal + sum(segment.differing for segment in segments)
    yield Text(
        f"recorded decisions and notes: {equal:,} of {all_of_them:,} reproduced byte for byte "
        f"(segments: {len(segments):,})"
    )
    for segment in segments:
        if segment.cut_off:
            yield Text(
                f"{segment.name}: records at its end without their inputs: {segment.cut_off}"
            )
        if segment.differs_from_ms is not None:
            at = datetime.fromtimestamp(segment.differs_from_ms / 1000, UTC)
            yield Text(
                f"{segment.name}: {segment.differing:,} differ, from {at:%Y-%m-%d %H:%M:%S} UTC on",
                "yellow",
            )
            yield from (Text(f"  {line}") for line in segment.differences)


def _show_one(figures: Figures, unit: str, scale: Scale, console: Console) -> None:
    console.print(Text(figures.configuration, "bold"))
    for warning in figures.warnings:
        console.print(Text(f"Warning: without effect: {warning}", "yellow"))
    if figures.problem:
        console.print(Text(f"Warning: {figures.problem}", "yellow"))
    for fact in facts_of(figures, unit, scale):
        console.print(Text(f"  {fact}"))
    times = (f"{each} {scale.name}" for each in ("MEAN", "P50", "P95", "MAX"))
    right = ("JOBS", *times, "SLOWDOWN")
    table = plain_table("WAITS", *right, right=right)
    groups: tuple[tuple[str, tuple[Waits, ...]], ...] = (
        ("", (figures.waits,)),
        ("size ", figures.by_size),
        ("queue ", figures.by_queue if len(figures.by_queue) > 1 else ()),
        ("user ", figures.by_user),
    )
    for kind, rows in groups:
        for waits in rows:
            table.add_row(Text(f"{kind}{waits.name}"), *_cells(waits, scale))
    console.print(table)


def facts_of(figures: Figures, unit: str, scale: Scale) -> Iterator[str]:
    """What became of all jobs, and of the one that waited longest, in sentences."""
    lost_hours = f"{figures.lost_unit_s / _HOUR_S:,.0f} {unit}-hours"
    yield ", ".join(
        (
            f"utilisation {figures.utilisation:.1%}",
            f"finished {figures.finished:,}",
            *(
                [f"ended at their limit {figures.ended_at_limit:,}"]
                if figures.ended_at_limit
                else []
            ),
            *([f"never started {figures.never_started:,}"] if figures.never_started else []),
            f"preempted {figures.evicted_runs:,} runs",
            f"work lost {lost_hours} ({figures.lost_part:.1%})",
        )
    )
    longest = figures.starvation
    if longest is not None and longest.wait_s:
        ended = "" if longest.started else ", and never started"
        yield (
            f"largest starvation: job {longest.job} of user {longest.user} "
            f"({longest.size:,} {unit}s) waited {scale.shown(longest.wait_s)} "
            f"{scale.name}{ended}; later jobs that started before it: {longest.passed_by:,}"
        )


def _cells(waits: Waits, scale: Scale) -> list[str]:
    times = map(scale.shown, (waits.mean_s, waits.p50_s, waits.p95_s, waits.max_s))
    return [f"{waits.jobs:,}", *times, f"{waits.bounded_slowdown:,.1f}"]
