"""Whether the policy `past-use` gives equal users equal shares, from any past and with any sizes of
gangs.

Two users, or two queues, always have more gangs waiting than fit. The simulation's engine plays
them for ten half-lives. The program prints which part of what was held in each half-life was the
second one's. The bar is that of issue 40: five half-lives after both are there, each holds half,
within 5 %. Simulations are deterministic.

    python -m bench.past_use [--json FILE] [--strict]
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.bars import Figure
from services.gang_planner.simulation.engine import Engine
from shared.contracts.simulation import JobRun, SimulatedJob, SimulationPlan
from shared.model.objects import Node, Queue, Shape

_CONFIGURATION: Final = """
actions: "enqueue, allocate, backfill, reserve"
tiers:
- plugins: [{name: priority}, {name: past-use, arguments: {half-life: 1h}}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
configurations: [{name: reserve, arguments: {reservations: %d}}]
"""
_HALF_LIFE_MS: Final = 3_600_000
_HALF_LIVES: Final = 10
#: Half-lives after which the shares are held to the bar.
_SETTLED: Final = 5
_BAR: Final = 5.0
_CPUS: Final = 16
#: Jobs of both users offer so many times the cluster.
_OFFERED: Final = 2.2
_SHAPE: Final = msgspec.msgpack.encode(Shape(requests=(("cpu", 1_000), ("pods", 1))))


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The gangs of one user."""

    pods: int = 1
    run_ms: int = 720_000
    #: Begins and ends to submit, in half-lives.
    begins: float = 0.0


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Two users, or queues, and their loads."""

    name: str
    loads: tuple[Load, Load]
    #: A short gang at the beginning, so that the second user is no newcomer later.
    known: bool = False
    queues: bool = False
    limits: bool = False
    fifo: bool = False
    #: Without reservations.
    alone: bool = False


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a case."""

    name: str
    #: The second one's part of what was held, by half-life, from when both are there.
    parts: tuple[float, ...]
    #: Its part after the half-lives in which shares settle.
    settled: float
    utilisation: float
    cpu_s: float


_LATE: Final = Load(begins=5)
CASES: Final = (
    Case(name="equal users", loads=(Load(), Load())),
    Case(name="one had the whole cluster, the other is new", loads=(Load(), _LATE)),
    Case(name="one had the whole cluster, the other is known", loads=(Load(), _LATE), known=True),
    Case(
        name="many small gangs, few large ones, with run limits",
        loads=(Load(), Load(pods=4, run_ms=1_440_000)),
        limits=True,
    ),
    Case(
        name="many small gangs, few large ones, without limits",
        loads=(Load(), Load(pods=4, run_ms=1_440_000)),
    ),
    Case(
        name="the same, and the first had the whole cluster",
        loads=(Load(), Load(pods=4, run_ms=1_440_000, begins=5)),
        known=True,
    ),
    Case(
        name="many small gangs, few large ones, in a fifo queue",
        loads=(Load(), Load(pods=4, run_ms=1_440_000)),
        fifo=True,
    ),
    Case(
        name="the same in a fifo queue, the first had it all",
        loads=(Load(), Load(pods=4, run_ms=1_440_000, begins=5)),
        known=True,
        fifo=True,
    ),
    Case(name="equal queues", loads=(Load(), Load()), queues=True, alone=True),
    Case(
        name="queues, the first had the whole cluster",
        loads=(Load(), _LATE),
        queues=True,
        known=True,
        alone=True,
    ),
    Case(
        name="queues, many small gangs and few large ones",
        loads=(Load(), Load(pods=4, run_ms=1_440_000)),
        queues=True,
        alone=True,
    ),
)


def plan_of(case: Case) -> SimulationPlan:
    """The cluster and the jobs of a case."""
    strategy = "fifo" if case.fifo else ""
    names = ("first", "second") if case.queues else ("all",)
    return SimulationPlan(
        configuration=_CONFIGURATION.replace("%d", "0" if case.alone else "1"),
        nodes=tuple(
            Node(
                uid=f"node-{place}",
                name=f"node-{place}",
                allocatable=(("cpu", 8_000), ("pods", 110)),
                resource_version=1,
            )
            for place in range(_CPUS // 8)
        ),
        queues=tuple(
            Queue(
                uid=name,
                dialect="volcano",
                name=name,
                resource_version=1,
                weight=1,
                dequeue_strategy=strategy,
            )
            for name in names
        ),
        jobs=tuple(sorted(_jobs(case), key=lambda job: job.arrival_ms)),
    )


def _jobs(case: Case) -> Iterator[SimulatedJob]:
    end_ms = int((max(load.begins for load in case.loads) + _HALF_LIVES) * _HALF_LIFE_MS)
    for user, load in zip(("first", "second"), case.loads, strict=True):
        begins_ms = int(load.begins * _HALF_LIFE_MS)
        every_ms = 2 * load.pods * load.run_ms / (_OFFERED * _CPUS)
        count = int((end_ms - begins_ms) / every_ms)
        arrivals = [int(begins_ms + place * every_ms) for place in range(count)]
        if begins_ms and case.known:
            arrivals.insert(0, 0)
        for place, arrival_ms in enumerate(arrivals):
            yield SimulatedJob(
                name=f"{user}-{place}",
                arrival_ms=arrival_ms,
                run_ms=load.run_ms,
                limit_s=load.run_ms // 1_000 + 1 if case.limits else 0,
                queue=user if case.queues else "all",
                namespace=user,
                members=((load.pods, _SHAPE),),
            )


def measure(case: Case) -> Result:
    """Simulate a case."""
    plan = plan_of(case)
    result = Engine(plan).run()
    from_ms = int(max(load.begins for load in case.loads) * _HALF_LIFE_MS)
    lives = [
        _held(plan, result.runs, from_ms + life * _HALF_LIFE_MS) for life in range(_HALF_LIVES)
    ]
    late = [sum(held) for held in zip(*lives[_SETTLED:], strict=True)]
    whole = _CPUS * _HALF_LIFE_MS
    return Result(
        name=case.name,
        parts=tuple(second / (first + second or 1) for first, second in lives),
        settled=late[1] / (sum(late) or 1),
        utilisation=sum(late) / whole / (_HALF_LIVES - _SETTLED),
        cpu_s=result.cpu_s,
    )


def _held(plan: SimulationPlan, runs: Sequence[JobRun], begin_ms: int) -> tuple[int, int]:
    """What the first and the second one held in the half-life from an instant on."""
    held = {"first": 0, "second": 0}
    for run in runs:
        job = plan.jobs[run.job]
        within = min(run.end_ms, begin_ms + _HALF_LIFE_MS) - max(run.start_ms, begin_ms)
        held[job.namespace] += max(within, 0) * sum(count for count, _ in job.members)
    return held["first"], held["second"]


def figures(results: Sequence[Result]) -> list[Figure]:
    """The figures, held to the bar."""
    return [
        Figure(
            group=result.name,
            name="farther from half than",
            value=abs(result.settled - 0.5) * 200,
            unit="%",
            bar=_BAR,
        )
        for result in results
    ]


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.past_use", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--strict", action="store_true", help="fail when the bar is missed")
    options = parser.parse_args()
    results: list[Result] = []
    for case in CASES:
        results.append(result := measure(case))
        parts = " ".join(f"{part:4.0%}" for part in result.parts)
        print(
            f"{result.name:50} {parts}  settled {result.settled:.1%}, "
            f"used {result.utilisation:.0%}, CPU {result.cpu_s:.0f} s",
            flush=True,
        )
    if options.json:
        options.json.write_bytes(msgspec.json.encode(results))
    missed = [figure for figure in figures(results) if figure.passed is False]
    for figure in missed:
        print(f"bench.past_use: {figure.group}: {figure.value:.1f} % from half, at most {_BAR:g} %")
    if options.strict and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
