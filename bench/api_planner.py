"""What users of the API cost the planner: `python -m bench.api_planner [--rounds N]`.

A planner, an API service and a nats-server, each a process as in production, with 5,000 nodes and
10,000 gangs that run. The benchmark writes what a watcher would: in each round 2,000 gangs of four
arrive at once and are deleted after their decisions, `--waves` times. Rounds have by turns no
users; 1,000 users that poll beside 200 watches of all gangs (`bench.api_clients`); and no users
beside a process that has nothing to do with Tutti and is always busy (`bench.other_load`).

It prints ratios to rounds without users: of decisions a second, and of the planner's CPU for each
decision. The API service and the planner share nothing but NATS. So with few cores the rate shows
how they compete for CPU; `--pin` gives planner and NATS the first core, and the API service and its
clients, or the other load, the second. What then differs is what cores share (caches, memory, the
host's time): the rounds beside the other load show how much that is.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import psutil
import uvloop

from bench.api_clients import POLL_S, polling_users, users_of, watches_of
from bench.api_reviews import ADMINS, reviews
from bench.api_server import GANGS, cluster_objects
from bench.child_process import child_process
from shared.contracts import subjects
from shared.contracts.cluster import Gone, PodChanges, PodGroupChanges
from shared.model.objects import Pod, PodGroup
from tests.services.gang_planner.running import Hall, a_hall, now_ms
from tests.support.free_ports import free_port
from tests.support.service_process import a_service
from tests.support.snapshots import CHANGES
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer, NatsServerSettings

_GANGS_PER_WAVE: Final = 2_000
#: Objects of one record, as a watcher's batches have them at most.
_BATCH: Final = 500
_DECIDED_MAX_S: Final = 120.0
_SETTLE_S: Final = 2.0
_POLL_S: Final = 0.005


class Round(msgspec.Struct, frozen=True):
    """One round."""

    decisions_per_s: float
    planner_ms_per_decision: float


class Scene:
    """Planner, API service and cluster."""

    def __init__(self, hall: Hall, port: int) -> None:
        self._hall = hall
        self._planner = psutil.Process(hall.processes[0].pid)
        self._port = port
        self._waves = 0

    async def fill(self) -> None:
        """Write the cluster, and wait until the planner has reported all its gangs."""
        await self._write(cluster_objects(running=range(GANGS)))
        newest = subjects.verdict(f"train-{GANGS - 1}")

        async def reported() -> object:
            return await self._hall.bus.get_last(subjects.VERDICTS, newest)

        await eventually(reported, timeout_s=_DECIDED_MAX_S, because="the planner reports gangs")
        await asyncio.sleep(_SETTLE_S)

    async def play(self, waves: int) -> Round:
        """In each wave gangs arrive, are decided, and are deleted."""
        took_s = used_s = 0.0
        for _ in range(waves):
            self._waves += 1
            groups, pods = _gangs(f"wave{self._waves}")
            first = await self._decisions()
            cpu_s, began_s = self._cpu_s(), time.monotonic()
            await self._write([*groups, *pods])
            async with asyncio.timeout(_DECIDED_MAX_S):
                while await self._decisions() < first + _GANGS_PER_WAVE:  # noqa: ASYNC110 - NATS
                    await asyncio.sleep(_POLL_S)
            took_s += time.monotonic() - began_s
            await asyncio.sleep(_SETTLE_S)
            used_s += self._cpu_s() - cpu_s
            await self._delete(groups, pods)
            await asyncio.sleep(_SETTLE_S)
        decided = waves * _GANGS_PER_WAVE
        return Round(
            decisions_per_s=decided / took_s, planner_ms_per_decision=used_s * 1000 / decided
        )

    @asynccontextmanager
    async def users(self, users: int, watches: int, core: int | None) -> AsyncIterator[None]:
        """Clients of the API service, for the length of the block."""
        async with users_of(self._port) as few:
            version = await few.version(ADMINS[0])
        async with (
            polling_users(self._port, users) as polling,
            watches_of(self._port, watches, ADMINS, version) as watching,
        ):
            for process in (polling, watching):
                _pin(process.pid, core)
            await asyncio.sleep(POLL_S)
            await polling.count()
            yield
            lists, events = await polling.count(), await watching.count()
            sys.stdout.write(f"  users: {lists}, watches: {events}\n")

    def _cpu_s(self) -> float:
        return sum(self._planner.cpu_times()[:2])

    async def _decisions(self) -> int:
        return (await self._hall.bus.stream_info(subjects.DECISIONS)).last_seq

    async def _write(self, objects: Sequence[Any]) -> None:
        by_kind: dict[type, list[Any]] = {}
        for one in objects:
            by_kind.setdefault(type(one), []).append(one)
        for kind, found in by_kind.items():
            for part in _batches(found):
                record = CHANGES[kind](epoch=self._hall.watcher.epoch, at_ms=now_ms(), changed=part)
                await self._hall.watcher.append(subjects.cluster(kind.__name__.lower()), record)

    async def _delete(self, groups: Sequence[PodGroup], pods: Sequence[Pod]) -> None:
        for kind, record, found in (
            ("pod", PodChanges, pods),
            ("podgroup", PodGroupChanges, groups),
        ):
            for part in _batches(found):
                removed = tuple(Gone(uid=one.uid, resource_version=2) for one in part)
                made = record(epoch=self._hall.watcher.epoch, at_ms=now_ms(), removed=removed)
                await self._hall.watcher.append(subjects.cluster(kind), made)


def _batches(objects: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    for first in range(0, len(objects), _BATCH):
        yield tuple(objects[first : first + _BATCH])


def _gangs(name: str) -> tuple[list[PodGroup], list[Pod]]:
    """The gangs of a wave, as those of the cluster."""
    found = cluster_objects(running=range(0), gangs=_GANGS_PER_WAVE, name=name)
    return (
        [one for one in found if isinstance(one, PodGroup)],
        [one for one in found if isinstance(one, Pod)],
    )


def _pin(pid: int, core: int | None) -> None:
    if core is not None:
        psutil.Process(pid).cpu_affinity([core])


async def run(arguments: argparse.Namespace) -> None:
    """Rounds without and with users by turns, and their ratios."""
    cores = (0, 1) if arguments.pin else (None, None)
    with TemporaryDirectory(prefix="tutti-bench-") as name:
        folder = Path(name)
        server = NatsServer(NatsServerSettings(data_dir=folder / "nats"))
        await server.start()
        _pin(server.pid, cores[0])
        try:
            async with (
                reviews(folder) as kubeconfig,
                a_hall(server.url, folder, nodes=0) as hall,
            ):
                planner = await hall.start(0, "--ahead-ms=0")
                _pin(planner.pid, cores[0])
                await hall.wait_active()
                port = free_port()
                flags = (f"--kubeconfig={kubeconfig}", f"--port={port}", "--no-register")
                log = folder / "api.log"
                async with a_service("api", hall.bus, server.url, log, *flags) as api:
                    _pin(api.pid, cores[1])
                    scene = Scene(hall, port)
                    await scene.fill()
                    await _compare(scene, arguments, cores[1])
        finally:
            await server.stop()


async def _compare(scene: Scene, arguments: argparse.Namespace, core: int | None) -> None:
    # The first round warms caches up.
    await scene.play(1)
    rounds: list[dict[str, Round]] = []
    for _ in range(arguments.rounds):
        found = {"without users": await scene.play(arguments.waves)}
        async with scene.users(arguments.users, arguments.watches, core):
            found["with users"] = await scene.play(arguments.waves)
        async with child_process("bench.other_load") as other:
            _pin(other.pid, core)
            found["beside another load"] = await scene.play(arguments.waves)
        rounds.append(found)
        sys.stdout.writelines(f"{name:>20}: {one}\n" for name, one in found.items())
        sys.stdout.flush()
    for beside in ("with users", "beside another load"):
        pairs = [(found["without users"], found[beside]) for found in rounds]
        rates = sorted(b.decisions_per_s / a.decisions_per_s for a, b in pairs)
        cpus = sorted(b.planner_ms_per_decision / a.planner_ms_per_decision for a, b in pairs)
        for what, ratios in (("decisions a second", rates), ("CPU for a decision", cpus)):
            each = ", ".join(f"{one:.2f}" for one in ratios)
            median = statistics.median(ratios)
            sys.stdout.write(f"{what}, {beside} / without: {median:.2f} ({each})\n")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.api_planner", description=__doc__)
    parser.add_argument("--users", type=int, default=1_000, help="users that poll")
    parser.add_argument("--watches", type=int, default=200, help="watches of all gangs")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each kind")
    parser.add_argument("--waves", type=int, default=5, help="arrivals of 2,000 gangs in a round")
    parser.add_argument("--pin", action="store_true", help="planner and API on cores of their own")
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
