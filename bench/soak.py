"""``python -m bench.soak --minutes N``: the whole suite under steady load, and what grows.

A real kube-apiserver and etcd, `tutti up` with everything, gangs that come and go at a steady rate,
each with a queue, a priority class, a role and labels of names that no gang had before.
Ends with status 1 when a gang was lost, when memory of a process surely grows, when descriptors or
tasks do, or when a stream holds more than it may.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import psutil
import uvloop

from bench.contenders import Tutti, running
from bench.slopes import after, highest, slope, svg
from bench.suite_eyes import Look, SuiteEyes, blind_s, eyes_on, keep_looking
from bench.testbed import Bed, open_testbed
from bench.traffic import Traffic, p

_MIB: Final = 1 << 20
#: Gangs come that fast, live that long: some forty pods a second are made, bound and deleted.
_PER_S: Final = 2.0
_SIZE: Final = 8
_LIFE_S: Final = 10.0
_NODES: Final = 100
_LOOK_EVERY_S: Final = 5.0
#: NATS may be late on a busy machine; what is not looked at for longer cannot be judged.
_BLIND_MAX_S: Final = 120.0
#: What comes before is caches that fill: the API server's lists, a planner's pools, the streams'
#: first blocks.
_WARM_UP: Final = 0.4
#: Memory may surely grow by so much: 0.25 MiB a minute would be 15 MiB in an hour, and a service's
#: limit is a multiple of that. NATS fills blocks and caches of its streams until their limits.
_GROWTH_MIB_PER_MINUTE: Final = 0.25
_NATS_MIB_PER_MINUTE: Final = 4.0
#: Descriptors and tasks at the end, beyond their highest in the middle.
_SPARE: Final = 8
#: VERDICTS keeps a gang that is gone for an hour, and no longer; the other streams have limits of
#: their own (shared/bus/setup.py). Pods and groups are watched apart: where the end of a group is
#: seen before that of its pods, they are a gang of their owner for a moment, with a verdict.
_GONE_KEPT_S: Final = 3600
_VERDICTS_OF_A_GANG: Final = 2
_VERDICTS_SPARE: Final = 200
_NATS: Final = "nats-server"


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How one process got on."""

    instance: str
    first_mib: float
    last_mib: float
    mib_per_minute: float
    surely_mib_per_minute: float
    descriptors: tuple[int, int]
    tasks: tuple[int, int]


class Soaked(msgspec.Struct, frozen=True, kw_only=True):
    """A run."""

    minutes: float
    gangs: int
    lost: tuple[str, ...]
    p50_ms: tuple[float, float]
    p99_ms: tuple[float, float]
    processes: tuple[Growth, ...]
    streams: dict[str, tuple[int, int]]
    problems: tuple[str, ...]


def main() -> None:
    """Soak, write summary and plot, judge."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--per-s", type=float, default=_PER_S, metavar="N", help="gangs a second")
    parser.add_argument("--out", type=Path, default=Path("build/soak"))
    arguments = parser.parse_args()
    looks, found = uvloop.run(soak(arguments.minutes, arguments.per_s))
    arguments.out.mkdir(parents=True, exist_ok=True)
    plot = svg(
        "Memory of each process (MiB)",
        {name: _of(looks, name, lambda one: one.memory_bytes / _MIB) for name in _names(looks)},
    )
    (arguments.out / "soak.svg").write_text(plot)
    summary = msgspec.json.format(msgspec.json.encode(found), indent=1)
    (arguments.out / "soak.json").write_bytes(summary + b"\n")
    sys.stdout.write(f"{summary.decode()}\n")
    sys.exit(1 if found.problems else 0)


async def soak(minutes: float, per_s: float) -> tuple[Sequence[Look], Soaked]:
    """Run the suite under load for so long."""
    with TemporaryDirectory(prefix="tutti-soak-") as name:
        async with open_testbed(_NODES, warm_up_pods=1000) as bed:
            tutti = Tutti(extra_flags=(f"--data-dir={name}",))
            async with running(tutti, bed.kubeconfig) as suite:
                await suite.wait_ready()
                async with eyes_on(Path(name)) as eyes:
                    return await _under_load(bed, eyes, minutes, per_s)


async def _under_load(
    bed: Bed, eyes: SuiteEyes, minutes: float, per_s: float
) -> tuple[Sequence[Look], Soaked]:
    traffic = Traffic(bed, "volcano", size=_SIZE, per_s=per_s, life_s=_LIFE_S, new_names=True)
    began_s = time.monotonic()
    looking = asyncio.create_task(
        keep_looking(eyes, _LOOK_EVERY_S, lambda: _note_nats(eyes)), name="eyes"
    )
    try:
        await traffic.run(minutes * 60)
    finally:
        looking.cancel()
        await asyncio.wait([looking])
    if not looking.cancelled():
        looking.result()
    return eyes.looks, judged(eyes, traffic, minutes, began_s)


def _note_nats(eyes: SuiteEyes) -> None:
    for process in psutil.process_iter(["name", "ppid"]):
        if process.info["name"] == _NATS and _is_ours(process):
            eyes.note(_NATS, process.pid)


def _is_ours(process: psutil.Process) -> bool:
    """Whether we, through the suite, started it."""
    try:
        return psutil.Process() in process.parents()
    except psutil.NoSuchProcess:
        return False


def judged(eyes: SuiteEyes, traffic: Traffic, minutes: float, began_s: float) -> Soaked:
    """What a run showed, and what is wrong with it."""
    processes = tuple(growth(eyes.looks, name) for name in _names(eyes.looks))
    half_s = began_s + minutes * 30
    early, late = traffic.latencies_s(until_s=half_s), traffic.latencies_s(since_s=half_s)
    streams: dict[str, tuple[int, int]] = {}
    for one in eyes.streams:
        streams[one.name] = (one.messages, one.bytes)
    problems = [why for one in processes for why in objections(one)]
    problems += [f"gang {name} was never whole" for name in traffic.lost()]
    blind = blind_s(eyes.looks, began_s, began_s + minutes * 60)
    if blind > _BLIND_MAX_S:
        problems.append(f"no sample for {blind:.0f} s: nothing is known of that time")
    kept = _VERDICTS_OF_A_GANG * traffic.came_within(_GONE_KEPT_S) + _VERDICTS_SPARE
    if streams["VERDICTS"][0] > kept:
        problems.append(f"VERDICTS holds {streams['VERDICTS'][0]} messages")
    return Soaked(
        minutes=minutes,
        gangs=len(traffic.gangs),
        lost=tuple(traffic.lost()),
        p50_ms=(p(early, 50), p(late, 50)),
        p99_ms=(p(early, 99), p(late, 99)),
        processes=processes,
        streams=streams,
        problems=tuple(problems),
    )


def growth(looks: Sequence[Look], name: str) -> Growth:
    """How one process got on."""
    memory = _of(looks, name, lambda one: one.memory_bytes / _MIB)
    descriptors = _of(looks, name, lambda one: float(one.descriptors))
    tasks = _of(looks, name, lambda one: float(one.tasks))
    found = slope(after(memory, _WARM_UP))
    return Growth(
        instance=name,
        first_mib=round(memory[0][1], 1),
        last_mib=round(memory[-1][1], 1),
        mib_per_minute=round(found.per_s * 60, 3),
        surely_mib_per_minute=round(found.surely_per_s * 60, 3),
        descriptors=(int(highest(descriptors, 0.2, 0.6)), int(highest(descriptors, 0.8, 1.0))),
        tasks=(int(highest(tasks, 0.2, 0.6)), int(highest(tasks, 0.8, 1.0))),
    )


def objections(one: Growth) -> list[str]:
    """What grows that must not."""
    found: list[str] = []
    allowed = _NATS_MIB_PER_MINUTE if one.instance == _NATS else _GROWTH_MIB_PER_MINUTE
    if one.surely_mib_per_minute > allowed:
        found.append(f"{one.instance} grows by {one.mib_per_minute} MiB a minute")
    for what, (middle, end) in (("descriptors", one.descriptors), ("tasks", one.tasks)):
        if end > middle + _SPARE:
            found.append(f"{one.instance} has {end} {what} at the end, {middle} before")
    return found


def _names(looks: Sequence[Look]) -> list[str]:
    """Those that lived from begin to end under one name."""
    return sorted({one.instance for one in looks})


def _of(
    looks: Sequence[Look], name: str, value: Callable[[Look], float]
) -> list[tuple[float, float]]:
    return [(one.at_s, value(one)) for one in looks if one.instance == name]


if __name__ == "__main__":
    main()
