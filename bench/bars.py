"""The bars of issue 4 and how a session's runs are held to them: pure arithmetic.

A figure is the median over a session's runs; a ratio is taken in each run with the yardsticks
before and after it, and then the median of the ratios, so that a machine that slows down slows
both sides.
"""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

import msgspec

from bench.drain import DrainRun
from bench.live import LiveRun
from bench.webhook import CreationRun, WebhookRun
from bench.yardstick import Yardstick, bind_limit

MIB = 2**20
#: CPU is start-up for the most part when there are few pods; the bar is for 10,000.
CPU_BAR_PODS = 10_000
#: With as many nodes only rate and latency are held to bars: the remaining bars are for 1,000.
LARGE_NODES = 5_000
#: As many drains each have to reach the rate's bar, where so many are run.
EACH_OF_RUNS = 5
_LARGE = frozenset({"rate / bind limit", "nodes over-committed"})


class DrainCase(msgspec.Struct, frozen=True, kw_only=True):
    """One drain between its two yardsticks."""

    before: Yardstick
    run: DrainRun
    after: Yardstick

    @property
    def ratio(self) -> float:
        """Rate over the bind limit."""
        return self.run.rate / bind_limit(self.before, self.after)

    @property
    def apiserver_ratio(self) -> float:
        """API server's CPU per pod over that of the bare bindings."""
        bare_ms = fmean((self.before.apiserver_ms_per_pod, self.after.apiserver_ms_per_pod))
        return self.run.apiserver_ms_per_pod / bare_ms


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the result: what was measured, and what it is held to."""

    group: str
    name: str
    value: float
    unit: str
    #: None: printed, not held to anything.
    bar: float | None = None
    #: Whether more is better.
    at_least: bool = False
    runs: int = 1

    @property
    def passed(self) -> bool | None:
        """Whether the bar is reached; None without one."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def drain_figures(cases: Sequence[DrainCase], *, owned: bool, large: bool = False) -> list[Figure]:
    """The figures of one load's drains by one contender; bars are for tutti only, and of a `large`
    cluster only that of the rate.
    """
    first = cases[0].run
    group = f"drain {first.load}" + ("" if first.contender == "tutti" else f" ({first.contender})")
    ours = first.contender == "tutti"

    def figure(
        name: str,
        of: Callable[[DrainCase], float],
        unit: str,
        bar: float | None = None,
        *,
        at_least: bool = False,
    ) -> Figure:
        return Figure(
            group=group,
            name=name,
            value=median(of(case) for case in cases),
            unit=unit,
            bar=bar if ours and (not large or name in _LARGE) else None,
            at_least=at_least,
            runs=len(cases),
        )

    figures = [
        figure("rate", lambda case: case.run.rate, "pods/s"),
        figure("bind limit", lambda case: bind_limit(case.before, case.after), "pods/s"),
        figure(
            "rate / bind limit", lambda case: case.ratio, "", 0.7 if owned else 0.4, at_least=True
        ),
        figure("first binding after start", lambda case: case.run.first_binding_s, "s", 4.0),
        figure("longest pause", lambda case: case.run.longest_pause_s, "s"),
        # Bare pods are sent twice, as a dry run first: that alone is twice the yardstick's work.
        figure(
            "API server's CPU per pod / bare bindings'",
            lambda case: case.apiserver_ratio,
            "",
            1.3 if owned else None,
        ),
        figure("partial-gang seconds, added up", lambda case: case.run.partial_gang_s, "s"),
        figure("nodes over-committed", lambda case: case.run.overcommitted_nodes, "", 0.0),
        figure("API writes per pod", lambda case: case.run.writes_per_pod, ""),
        figure("memory, peaks added", lambda case: case.run.peak_bytes / MIB, "MiB", 700.0),
        figure("idle afterwards", lambda case: case.run.idle_core_percent, "% of a core", 2.0),
    ]
    if len(cases) >= EACH_OF_RUNS:
        slowest = Figure(
            group=group,
            name="rate / bind limit, slowest run",
            value=min(case.ratio for case in cases),
            unit="",
            bar=0.7 if ours and owned and not large else None,
            at_least=True,
            runs=len(cases),
        )
        figures.append(slowest)
    if first.pods >= CPU_BAR_PODS:
        per_10k = figure(
            "suite's CPU per 10,000 pods",
            lambda case: case.run.cpu_s_per_10k_pods,
            "s",
            9.0 if owned else None,
        )
        figures.append(per_10k)
    if all(case.run.ready_s is not None for case in cases):
        figures.append(figure("ready after start", lambda case: case.run.ready_s or 0.0, "s"))
    return figures


def live_figures(runs: Sequence[LiveRun], *, large: bool = False) -> list[Figure]:
    """The figures of live runs by one contender; bars are for tutti only, and of a `large` cluster
    only that of the slowest gangs of the crowd.
    """
    contender = runs[0].contender
    ours = contender == "tutti"

    def figure(
        name: str,
        of: Callable[[LiveRun], float],
        unit: str,
        bar: float | None,
        pick: Callable[[list[float]], float] = median,
    ) -> Figure:
        return Figure(
            group="live" if ours else f"live ({contender})",
            name=name,
            value=pick([of(run) for run in runs]),
            unit=unit,
            bar=bar if ours and (name == slowest or not large) else None,
            runs=len(runs),
        )

    crowd = runs[0].crowd
    slowest = f"{crowd}: last created to last bound, p99"
    figures = [
        figure(f"{crowd}: last created to last bound, p50", lambda r: r.crowd_p50_ms, "ms", 250.0),
        figure(slowest, lambda r: r.crowd_p99_ms, "ms", 1000.0),
        figure(f"{crowd}: pods created", lambda r: r.created_per_s, "pods/s", None),
        figure(f"{crowd}: one creation, p50", lambda r: r.creation_p50_ms, "ms", None),
        figure(f"{crowd}: one creation, p99", lambda r: r.creation_p99_ms, "ms", None),
        figure(f"{crowd}: watches that the API server ended", lambda r: r.broken_watches, "", None),
        figure("one gang of 8 into an idle cluster, p50", lambda r: r.one_p50_ms, "ms", 25.0),
        figure("one gang of 8 into an idle cluster, max", lambda r: r.one_max_ms, "ms", None),
        figure("idle", lambda r: r.idle_core_percent, "% of a core", 2.0),
    ]
    if len(runs) >= EACH_OF_RUNS:
        figures += [
            figure(f"{crowd}: p50, slowest run", lambda r: r.crowd_p50_ms, "ms", None, max),
            figure(f"{crowd}: p99, slowest run", lambda r: r.crowd_p99_ms, "ms", None, max),
        ]
    if all(run.ready_s is not None for run in runs):
        figures.append(figure("ready after start", lambda r: r.ready_s or 0.0, "s", 3.0))
    return figures


def webhook_figures(runs: Sequence[WebhookRun], creations: Sequence[CreationRun]) -> list[Figure]:
    """The figures of the webhook's runs, called directly and by the API server."""
    found = [
        Figure(group="webhook", name=name, value=value, unit=unit, bar=bar, runs=len(runs))
        for name, value, unit, bar in (
            ("32 connections, p99", median(run.p99_ms for run in runs), "ms", 20.0),
            ("32 connections, p50", median(run.p50_ms for run in runs), "ms", None),
            ("a bare server's p99", median(run.bare_p99_ms for run in runs), "ms", None),
            ("reviews", median(run.per_s for run in runs), "1/s", None),
            (
                "reviews / a bare server's",
                median(run.per_s / run.bare_per_s for run in runs),
                "",
                None,
            ),
            ("failed, of all reviews", float(sum(run.failed for run in runs)), "", 0.0),
        )
    ]
    if creations:
        created = sum(run.pods for run in creations)
        failed_open = Figure(
            group="webhook",
            name=f"admitted without an answer, of {created:,} creations",
            value=float(sum(run.failed_open for run in creations)),
            unit="",
            bar=0.0,
            runs=len(creations),
        )
        found.append(failed_open)
    return found


def cpu_by_role(runs: Iterable[DrainRun]) -> dict[str, float]:
    """CPU seconds per 10,000 pods by service: the median over runs of each."""
    scaled: dict[str, list[float]] = {}
    for run in runs:
        for role, cpu_s in run.cpu_by_role().items():
            scaled.setdefault(role, []).append(cpu_s / run.pods * 10_000)
    found = {role: median(values) for role, values in scaled.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1]))
