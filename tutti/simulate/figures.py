"""The figures of one simulation: utilisation, waits, slowdown, preemptions and starvation.

A job waits from its submission to its first start, or to the end of the simulation if it never
starts. Utilisation is the part of the capacity that jobs use from the first to the last
submission: the window in which the trace offers load. Percentiles are values that occur: the
smallest that at least so many percent do not exceed.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from shared.contracts.simulation import JobRun, SimulationResult
from tutti.simulate.plan import Planned
from tutti.simulate.trace import TraceJob

#: Upper bounds of the size classes, in parts of the cluster.
CLASSES: Final = (("<1/64", 1 / 64), ("<1/16", 1 / 16), ("<1/4", 1 / 4), (">=1/4", float("inf")))
#: Runs shorter than this count as so long in slowdowns.
_SHORT_S: Final = 10.0
_TOP: Final = 10
_BINS: Final = 60
OTHERS: Final = "others"


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """The waits of some jobs, in seconds."""

    name: str
    jobs: int
    never_started: int
    mean_s: float
    p50_s: float
    p95_s: float
    max_s: float
    #: Mean of (time from submission to end) / (its last run), at least 1, a run counted as at least
    #: ten seconds.
    bounded_slowdown: float


class Starvation(msgspec.Struct, frozen=True, kw_only=True):
    """The job that waited longest, and how many jobs that came later started before it."""

    job: str
    user: str
    size: int
    wait_s: float
    started: bool
    passed_by: int


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """Means over equal intervals of the window: used parts of the capacity, in all, by user and by
    queue, and the number of jobs that wait.
    """

    interval_s: float
    used: tuple[float, ...]
    by_user: dict[str, tuple[float, ...]]
    by_queue: dict[str, tuple[float, ...]]
    waiting: tuple[float, ...]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The table of one configuration."""

    configuration: str
    jobs: int
    finished: int
    ended_at_limit: int
    never_started: int
    utilisation: float
    waits: Waits
    by_size: tuple[Waits, ...]
    by_queue: tuple[Waits, ...]
    by_user: tuple[Waits, ...]
    evicted_runs: int
    #: Unit-seconds of the runs that were evicted, and the part of all used ones.
    lost_unit_s: float
    lost_part: float
    starvation: Starvation | None
    course: Course
    warnings: tuple[str, ...] = ()
    problem: str = ""
    cycles: int = 0
    cpu_s: float = 0.0


class _Fate(NamedTuple):
    """What became of a job."""

    job: TraceJob
    queue: str
    wait_s: float
    end_s: float
    #: Of its last run, or as in the trace if it never started.
    run_s: float
    started: bool


def figures_of(title: str, planned: Planned, result: SimulationResult) -> Figures:
    """The figures of a simulation of a plan."""
    fates = _fates(planned, result)
    jobs, runs, window_s = planned.jobs, result.runs, _window_s(planned)
    lost = sum(_unit_s(jobs, run) for run in runs if run.end == "evicted")
    used = sum(_unit_s(jobs, run) for run in runs)
    return Figures(
        configuration=title,
        jobs=len(jobs),
        finished=sum(run.end == "finished" for run in runs),
        ended_at_limit=sum(run.end == "limit" for run in runs),
        never_started=sum(not fate.started for fate in fates),
        utilisation=_used(jobs, runs, 0.0, window_s) / (planned.capacity * window_s or 1.0),
        waits=_waits("all", fates),
        by_size=_classes(fates, planned.capacity),
        by_queue=_grouped(fates, lambda fate: fate.queue),
        by_user=_grouped(fates, lambda fate: fate.job.user),
        evicted_runs=sum(run.end == "evicted" for run in runs),
        lost_unit_s=lost,
        lost_part=lost / used if used else 0.0,
        starvation=_starvation(fates),
        course=_course(planned, fates, result),
        warnings=result.warnings,
        problem=result.problem,
        cycles=result.cycles,
        cpu_s=result.cpu_s,
    )


def _fates(planned: Planned, result: SimulationResult) -> list[_Fate]:
    starts: dict[int, int] = {}
    last: dict[int, JobRun] = {}
    for run in result.runs:
        starts[run.job] = min(run.start_ms, starts.get(run.job, run.start_ms))
        # In the order in which they ended.
        last[run.job] = run
    fates = []
    for place, job in enumerate(planned.jobs):
        started = place in starts
        start_s = starts.get(place, result.end_ms) / 1000
        wait_s = max(0.0, start_s - job.arrival_s)
        queue = planned.plan.jobs[place].queue
        end_s, run_s = result.end_ms / 1000, job.run_s
        if started:
            run = last[place]
            end_s, run_s = run.end_ms / 1000, (run.end_ms - run.start_ms) / 1000
        fates.append(_Fate(job, queue, wait_s, end_s, run_s, started))
    return fates


def _window_s(planned: Planned) -> float:
    return planned.jobs[-1].arrival_s - planned.jobs[0].arrival_s


def _unit_s(jobs: Sequence[TraceJob], run: JobRun) -> float:
    return jobs[run.job].size * (run.end_ms - run.start_ms) / 1000


def _used(jobs: Sequence[TraceJob], runs: Iterable[JobRun], from_s: float, to_s: float) -> float:
    """Unit-seconds of the runs within an interval."""
    return sum(
        jobs[run.job].size
        * max(0.0, min(run.end_ms / 1000, to_s) - max(run.start_ms / 1000, from_s))
        for run in runs
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that at least so many percent of the ordered ones do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0


def _waits(name: str, fates: Sequence[_Fate]) -> Waits:
    ordered = sorted(fate.wait_s for fate in fates)
    slowdowns = [
        max(1.0, (fate.end_s - fate.job.arrival_s) / max(fate.run_s, _SHORT_S)) for fate in fates
    ]
    return Waits(
        name=name,
        jobs=len(fates),
        never_started=sum(not fate.started for fate in fates),
        mean_s=sum(ordered) / len(ordered) if ordered else 0.0,
        p50_s=percentile(ordered, 50),
        p95_s=percentile(ordered, 95),
        max_s=ordered[-1] if ordered else 0.0,
        bounded_slowdown=sum(slowdowns) / len(slowdowns) if slowdowns else 0.0,
    )


def _classes(fates: Sequence[_Fate], capacity: int) -> tuple[Waits, ...]:
    bounds = (0.0, *(bound for _, bound in CLASSES))
    return tuple(
        _waits(name, [fate for fate in fates if low <= fate.job.size / capacity < high])
        for (name, _), (low, high) in zip(CLASSES, pairwise(bounds), strict=True)
    )


def _grouped(fates: Sequence[_Fate], name_of: Callable[[_Fate], str]) -> tuple[Waits, ...]:
    """The waits by a name, of the names with the most work."""
    groups: dict[str, list[_Fate]] = {}
    for fate in fates:
        groups.setdefault(name_of(fate), []).append(fate)
    return tuple(_waits(name, groups[name]) for name in _most(groups)[:_TOP])


def _most(groups: dict[str, list[_Fate]]) -> list[str]:
    work = {
        name: sum(fate.job.size * fate.job.run_s for fate in fates)
        for name, fates in groups.items()
    }
    return sorted(groups, key=lambda name: (-work[name], name))


def _starvation(fates: Sequence[_Fate]) -> Starvation | None:
    if not fates:
        return None
    longest = max(fates, key=lambda fate: fate.wait_s)
    start_s = longest.job.arrival_s + longest.wait_s
    return Starvation(
        job=longest.job.name,
        user=longest.job.user,
        size=longest.job.size,
        wait_s=longest.wait_s,
        started=longest.started,
        passed_by=sum(
            fate.started
            and fate.job.arrival_s > longest.job.arrival_s
            and fate.job.arrival_s + fate.wait_s < start_s
            for fate in fates
        ),
    )


def _course(planned: Planned, fates: Sequence[_Fate], result: SimulationResult) -> Course:
    jobs, interval_s = planned.jobs, _window_s(planned) / _BINS

    def of_runs(names: Sequence[str]) -> dict[str, tuple[float, ...]]:
        return _layers(
            interval_s,
            [
                _Span(
                    names[run.job],
                    run.start_ms / 1000,
                    run.end_ms / 1000,
                    jobs[run.job].size / planned.capacity,
                )
                for run in result.runs
            ],
        )

    by_user = of_runs([job.user for job in jobs])
    waits = [_Span("", fate.job.arrival_s, fate.job.arrival_s + fate.wait_s, 1.0) for fate in fates]
    return Course(
        interval_s=interval_s,
        used=tuple(map(sum, zip(*by_user.values(), strict=True))) if by_user else (),
        by_user=by_user,
        by_queue=of_runs([fate.queue for fate in fates]),
        waiting=_layers(interval_s, waits).get("", ()),
    )


class _Span(NamedTuple):
    """An amount from one instant to another."""

    name: str
    start_s: float
    end_s: float
    amount: float


def _layers(interval_s: float, spans: Sequence[_Span]) -> dict[str, tuple[float, ...]]:
    """The mean amount in each interval, by the names with the most."""
    most: dict[str, float] = {}
    for span in spans:
        most[span.name] = most.get(span.name, 0.0) + span.amount * (span.end_s - span.start_s)
    shown = sorted(most, key=lambda name: (-most[name], name))[:_TOP]
    names = [*shown, *([OTHERS] if len(most) > len(shown) else [])]
    bins = {name: [0.0] * _BINS for name in names}
    for name, start_s, end_s, amount in spans if interval_s else ():
        layer = bins[name if name in bins else OTHERS]
        for place in range(int(start_s / interval_s), min(_BINS, int(end_s / interval_s) + 1)):
            low, high = place * interval_s, (place + 1) * interval_s
            layer[place] += amount * max(0.0, min(end_s, high) - max(start_s, low)) / interval_s
    return {name: tuple(values) for name, values in bins.items()}
