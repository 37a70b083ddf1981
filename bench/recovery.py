"""``python -m bench.recovery``: how soon new gangs are bound after something died.

1,000 nodes, 10,000 pods bound. Something is killed, a gang of 8 is created at that instant, and the
time from the kill to its last binding is taken by the eyes that time all else. So a figure holds
the death's detection, the takeover or new start, the first new decision and its bindings; in a
calm cluster the same gang takes some 25 ms, which stands in the first row.
"""

import argparse
import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from bench import load
from bench.load import Load
from bench.session import commit
from bench.testbed import Bed, open_testbed
from shared.contracts.questions import ServiceStatus
from tests.integration.suite import RunningSuite, running_suite
from tests.support.waiting import eventually

RUNNING: Final = Load(gangs=20, size=500)
PROBE: Final = Load(gangs=1, size=8)
_STALL_S: Final = 60.0
#: After each try, until everything that died is back and nothing is left to catch up.
_REST_S: Final = 4.0
#: Bars, in seconds from the kill, by fault: issue 5's.
BARS_S: Final = {"gang-planner killed": 2.0, "nats-server killed": 3.0}


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """Times of one fault, in seconds from the kill to the last binding of a gang created then."""

    fault: str
    bound_s: tuple[float, ...]


async def measure(
    nodes: int,
    tries: int,
    say: Callable[[str], None],
    *,
    background: Load = RUNNING,
    only: Collection[str] = (),
) -> list[Recovery]:
    """Run everything on one testbed; `only` these faults, or all."""
    found: list[Recovery] = []
    async with open_testbed(nodes, warm_up_pods=background.pods) as bed:
        await bed.fill(background, "volcano")
        with TemporaryDirectory(prefix="tutti-bench-") as name:
            suite = await asyncio.to_thread(_Suite, bed.kubeconfig, Path(name))
            try:
                await bed.watch.wait_bound(background.pods, stall_s=_STALL_S)
                for fault, strike in suite.faults().items():
                    if only and fault not in only:
                        continue
                    times = []
                    for _ in range(tries):
                        await asyncio.sleep(_REST_S)
                        await suite.running.pids()
                        times.append(await _one(bed, strike))
                    found.append(Recovery(fault=fault, bound_s=tuple(times)))
                    listed = ", ".join(f"{each:.2f}" for each in times)
                    say(f"{fault}: {listed} s")
            finally:
                await asyncio.to_thread(suite.stop)
        await bed.empty()
    return found


async def _one(bed: Bed, strike: Callable[[], Awaitable[None]]) -> float:
    """Strike, create a gang, wait until it is bound."""
    prefix = bed.fresh_prefix()
    post = bed.burst.post
    before = sum(1 for pod in bed.watch.pods.values() if pod.bound_s)
    await strike()
    struck_s = time.monotonic()
    await bed.create([post(load.PODGROUPS_PATH, load.pod_group(PROBE, prefix, 0))])
    await bed.create(
        [
            post(load.PODS_PATH, load.pod(PROBE, prefix, 0, member, "volcano"))
            for member in range(PROBE.size)
        ]
    )
    await bed.watch.wait_bound(before + PROBE.size, stall_s=_STALL_S)
    return bed.watch.bound_s(load.pod_names(PROBE, prefix))[-1] - struck_s


class _Suite:
    """`tutti up`, and what can happen to it."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._context = running_suite(kubeconfig, folder)
        self.running: RunningSuite = self._context.__enter__()

    def stop(self) -> None:
        """Stop it; nothing of it is left."""
        self._context.__exit__(None, None, None)

    def faults(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What is done, by name, in this order."""
        return {
            "nothing": self._nothing,
            "gang-planner killed": self._signal("gang-planner", signal.SIGKILL),
            "gang-planner terminated": self._signal("gang-planner", signal.SIGTERM),
            "watcher killed": self._signal("watcher", signal.SIGKILL),
            "binder killed": self._signal("binder", signal.SIGKILL),
            "nats-server killed": self._kill_nats,
        }

    async def _nothing(self) -> None:
        pass

    def _signal(self, service: str, number: signal.Signals) -> Callable[[], Awaitable[None]]:
        """To the one that is at work."""

        async def strike() -> None:
            async def at_work() -> ServiceStatus:
                rows = [
                    one
                    for one in (await self.running.answers()).values()
                    if one.service == service and one.active is not False
                ]
                assert rows, f"no {service} is at work"
                return rows[0]

            os.kill((await eventually(at_work)).pid, number)

        return strike

    async def _kill_nats(self) -> None:
        self.running.kill_nats()


def main() -> None:
    """Print the table; write JSON where asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench.recovery", description=__doc__)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    console = Console()
    found = uvloop.run(measure(given.nodes, given.tries, console.print))
    table = Table(title=f"From the kill to the last binding of a new gang of 8 ({commit()})")
    for title in ("fault", "median", "worst", "bar", "tries"):
        table.add_column(title)
    for one in found:
        bar = BARS_S.get(one.fault)
        table.add_row(
            one.fault,
            f"{median(one.bound_s):.2f} s",
            f"{max(one.bound_s):.2f} s",
            "" if bar is None else f"{bar:.0f} s",
            str(len(one.bound_s)),
        )
    console.print(table)
    if given.json:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))


if __name__ == "__main__":
    main()
