"""``python -m bench.upgrade``: every service is stopped and started again under load, one by one.

As a rolling upgrade does it: SIGTERM, the process ends as it should, another takes its place, the
next one's turn. Gangs keep coming during the upgrade. Ends with status 1 when one was lost, or when
the gangs that came during the upgrade waited (p99) more than three times as long as those before
it, or those after it.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import uvloop

from bench.contenders import Tutti, running
from bench.suite_eyes import SuiteEyes, eyes_on, replaced
from bench.testbed import Bed, open_testbed
from bench.traffic import Traffic, p
from tests.controlplane.client import RawClient
from tests.controlplane.kubelet import FakeKubelet

_NODES: Final = 50
_SIZE: Final = 4
_PER_S: Final = 1.0
_LIFE_S: Final = 5.0
_NORMAL_S: Final = 60.0
#: A new process is ready by then.
_READY_S: Final = 60.0
#: Between two: what was set aside is done, and gangs have come by.
_REST_S: Final = 5.0
_TIMES_MAX: Final = 3.0
#: Two of each, as a cluster runs them; the order is that of the services' dependencies.
_REPLICAS: Final = {
    "watcher": 2,
    "gang-planner": 2,
    "binder": 2,
    "controller": 2,
    "admission-webhook": 2,
}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One process replaced."""

    instance: str
    was_active: bool
    #: Until another answered ready in its place.
    replaced_s: float
    #: Gangs that came from its SIGTERM until the next one's.
    gangs: int
    p50_ms: float
    max_ms: float


class Upgraded(msgspec.Struct, frozen=True, kw_only=True):
    """A run."""

    gangs: int
    lost: tuple[str, ...]
    #: Pods of gangs that were released, and made again.
    made_again: int
    normal_p50_ms: float
    normal_p99_ms: float
    upgrade_p50_ms: float
    upgrade_p99_ms: float
    steps: tuple[Step, ...]
    problems: tuple[str, ...]


def main() -> None:
    """Upgrade, report, judge."""
    parser = argparse.ArgumentParser(prog="python -m bench.upgrade", description=__doc__)
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the suite's logs and streams here"
    )
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="tutti-upgrade-") as scratch:
        found = uvloop.run(upgrade(arguments.keep or Path(scratch)))
    sys.stdout.write(f"{msgspec.json.format(msgspec.json.encode(found), indent=1).decode()}\n")
    sys.exit(1 if found.problems else 0)


async def upgrade(data_dir: Path) -> Upgraded:
    """Start everything, load it, replace everything."""
    flags = [f"--replicas={service}={count}" for service, count in _REPLICAS.items()]
    tutti = Tutti(extra_flags=(f"--data-dir={data_dir}", *flags))
    async with (
        open_testbed(_NODES, warm_up_pods=1000) as bed,
        running(tutti, bed.kubeconfig) as suite,
    ):
        await suite.wait_ready()
        async with kubelets(bed), eyes_on(data_dir) as eyes:
            traffic = Traffic(bed, "volcano", size=_SIZE, per_s=_PER_S, life_s=_LIFE_S)
            steps: list[tuple[str, bool, float, float]] = []
            await _until_done(traffic, eyes, steps)
            return _judged(traffic, steps)


@asynccontextmanager
async def kubelets(bed: Bed) -> AsyncIterator[None]:
    """Play the nodes' kubelets: without them no pod that is released ever goes."""
    async with RawClient(bed.kubeconfig) as client:
        running = asyncio.create_task(FakeKubelet(client).run(), name="kubelets")
        try:
            yield
        finally:
            running.cancel()
            await asyncio.wait([running])


async def _until_done(
    traffic: Traffic, eyes: SuiteEyes, steps: list[tuple[str, bool, float, float]]
) -> None:
    coming = asyncio.create_task(traffic.run(3600.0), name="traffic")
    try:
        await asyncio.sleep(_NORMAL_S)
        await _replace_all(eyes, steps)
        # As long again: what a shared machine did in that time is no fault of the upgrade.
        await asyncio.sleep(_NORMAL_S)
        traffic.finish()
        await coming
    finally:
        coming.cancel()


async def _replace_all(eyes: SuiteEyes, steps: list[tuple[str, bool, float, float]]) -> None:
    """Stop each process once; note which it was, when, and how long its place was empty."""
    count = sum(_REPLICAS.values())
    order = [*_REPLICAS]
    # The standby first, as an operator who upgrades by hand would: then there is one change of the
    # lead.
    found = sorted(
        await eyes.services(count),
        key=lambda one: (order.index(one.service), one.active, one.instance),
    )
    if len(found) != count:
        raise TimeoutError(f"{len(found)} of {count} services answer")
    for one in found:
        began_s = time.monotonic()
        os.kill(one.pid, signal.SIGTERM)
        took_s = await replaced(eyes, [one.pid], count, _READY_S)
        steps.append((one.instance, one.active, began_s, took_s))
        await asyncio.sleep(_REST_S)


def _judged(traffic: Traffic, steps: list[tuple[str, bool, float, float]]) -> Upgraded:
    begins_s = [began_s for _, _, began_s, _ in steps]
    ends_s = [*begins_s[1:], steps[-1][2] + steps[-1][3] + _REST_S]
    before, later = traffic.latencies_s(until_s=begins_s[0]), traffic.latencies_s(ends_s[-1])
    normal = max(before, later, key=lambda one: p(one, 99))
    during = traffic.latencies_s(since_s=begins_s[0], until_s=ends_s[-1])
    done: list[Step] = []
    for (instance, active, began_s, took_s), end_s in zip(steps, ends_s, strict=True):
        here = traffic.latencies_s(since_s=began_s, until_s=end_s)
        step = Step(
            instance=instance,
            was_active=active,
            replaced_s=round(took_s, 2),
            gangs=len(here),
            p50_ms=round(p(here, 50), 1),
            max_ms=round(p(here, 100), 1),
        )
        done.append(step)
    problems = [f"gang {name} was never whole" for name in traffic.lost()]
    if p(during, 99) > _TIMES_MAX * p(normal, 99):
        problems.append(
            f"p99 {p(during, 99):.0f} ms during the upgrade, {p(normal, 99):.0f} ms without it"
        )
    return Upgraded(
        gangs=len(traffic.gangs),
        lost=tuple(traffic.lost()),
        made_again=sum(gang.made_again for gang in traffic.gangs),
        normal_p50_ms=round(p(normal, 50), 1),
        normal_p99_ms=round(p(normal, 99), 1),
        upgrade_p50_ms=round(p(during, 50), 1),
        upgrade_p99_ms=round(p(during, 99), 1),
        steps=tuple(done),
        problems=tuple(problems),
    )


if __name__ == "__main__":
    main()
