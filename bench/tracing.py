"""``python -m bench.tracing``: what tracing costs on a drain, with a collector that takes every
span, and with one that is not there.

Runs take turns on one control plane, each round beginning with another of the three. Each run with
traces is compared with the one without of its round, and the figure is the median of the ratios.

CPU is the suite's own, and printed twice: from its start until it had nothing left to do, and
without the start (from the first binding on), which is what a suite that lasts pays. The collector
is the benchmark's process, which only keeps what it is sent until the run is over: what a Jaeger
costs on the same cores is its own.
"""

import argparse
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Final, Literal

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from bench.contenders import Tutti, running
from bench.drain import STALL_S
from bench.load import Load
from bench.session import commit
from bench.testbed import Bed, open_testbed
from bench.yardstick import rate
from tests.support.otlp_sink import OtlpSink, otlp_sink

Say = Callable[[str], None]
Figure = Literal["rate", "cpu_s", "lasting_cpu_s"]
_FIGURES: Final[tuple[Figure, ...]] = ("rate", "cpu_s", "lasting_cpu_s")

#: What of the rate may be lost, and how much more CPU may be used.
BAR: Final = 0.05
#: Of small gangs, because spans come by gang.
LOAD: Final = Load(gangs=250, size=20)
NODES: Final = 400
_QUIET_TIMEOUT_S: Final = 20.0


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One drain: pods per second from the first to the last binding, and the suite's CPU from its
    start until it had nothing left to do, and until the first binding.
    """

    name: str
    rate: float
    cpu_s: float
    start_cpu_s: float

    @property
    def lasting_cpu_s(self) -> float:
        """CPU without the start's."""
        return self.cpu_s - self.start_cpu_s


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A run without traces, and the runs after it with a collector and with a dead one."""

    without: Run
    traced: Run
    dead: Run
    #: Gangs whose root span arrived, and all spans that did.
    traced_gangs: int
    spans: int


async def alternate(bed: Bed, what: Load, rounds: int, say: Say) -> list[Pair]:
    """Run so many rounds; each starts and ends with an empty testbed."""
    pairs = []
    for number in range(rounds):
        runs: dict[str, Run] = {}
        async with otlp_sink() as sink, _dead_endpoint() as dead:
            endpoints = {"without": "", "traced": sink.endpoint, "dead": dead}
            first = number % len(endpoints)
            for name in (*list(endpoints)[first:], *list(endpoints)[:first]):
                runs[name] = await drain(bed, name, what, endpoints[name])
            pair = Pair(**runs, traced_gangs=_count_traced_gangs(sink), spans=len(sink.spans))
        pairs.append(pair)
        say(f"round {number + 1}: {_in_words(pair)}")
    return pairs


async def drain(bed: Bed, name: str, what: Load, endpoint: str = "") -> Run:
    """Fill the testbed, start the suite, follow it to its rest, stop it, empty the testbed."""
    contender = Tutti(name=name, extra_flags=(f"--otlp={endpoint}",) if endpoint else ())
    names = await bed.fill(what, contender.scheduler_name)
    try:
        async with running(contender, bed.kubeconfig) as suite:
            await bed.watch.wait_bound(1, stall_s=STALL_S)
            start_cpu_s = suite.meter.sample()
            await bed.watch.wait_bound(what.pods, stall_s=STALL_S)
            await suite.meter.wait_quiet(timeout_s=_QUIET_TIMEOUT_S)
            cpu_s = suite.meter.sample()
        speed = rate(bed.watch.bound_s(names))
        return Run(name=name, rate=speed, cpu_s=cpu_s, start_cpu_s=start_cpu_s)
    finally:
        await bed.empty()


def ratio(pairs: list[Pair], pick: Callable[[Pair], Run], figure: Figure) -> float:
    """Median of a figure over the same one without traces."""
    read: Callable[[Run], float] = attrgetter(figure)
    return median(read(pick(pair)) / read(pair.without) for pair in pairs)


def _count_traced_gangs(sink: OtlpSink) -> int:
    return len({span.trace_id for span in sink.named("gang")})


@asynccontextmanager
async def _dead_endpoint() -> AsyncIterator[str]:
    """An address on which no process listens during the run."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def _in_words(pair: Pair) -> str:
    runs = (pair.without, pair.traced, pair.dead)
    figures = ", ".join(
        f"{run.name} {run.rate:.0f}/s {run.cpu_s:.2f} s ({run.lasting_cpu_s:.2f})" for run in runs
    )
    return f"{figures}; {pair.spans} spans, {pair.traced_gangs} of the gangs"


def main() -> None:
    """Print the table; status 1 when a bar is missed, or a gang has no trace."""
    parser = argparse.ArgumentParser(prog="python -m bench.tracing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    console = Console()
    pairs = uvloop.run(_measure(given.nodes, given.rounds, console.print))
    table = Table(title=f"Drain of {LOAD.title} with traces over without ({commit()})")
    for title in ("collector", "rate", "CPU", "CPU without the start"):
        table.add_column(title)
    met = all(pair.traced_gangs == LOAD.gangs for pair in pairs)
    for name, pick in (("takes all", _traced), ("refuses connections", _dead)):
        rates, cpu, lasting = (ratio(pairs, pick, figure) for figure in _FIGURES)
        met = met and rates >= 1 - BAR and lasting <= 1 + BAR
        table.add_row(name, f"{rates:.3f}", f"{cpu:.3f}", f"{lasting:.3f}")
    console.print(table)
    if given.json:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(pairs), indent=1))
    sys.exit(0 if met else 1)


def _traced(pair: Pair) -> Run:
    return pair.traced


def _dead(pair: Pair) -> Run:
    return pair.dead


async def _measure(nodes: int, rounds: int, say: Say) -> list[Pair]:
    async with open_testbed(nodes, warm_up_pods=LOAD.pods) as bed:
        # The first suite on a new server pays for what all others find warm.
        await drain(bed, "warm-up", Load(gangs=20, size=20))
        return await alternate(bed, LOAD, rounds, say)


if __name__ == "__main__":
    main()
