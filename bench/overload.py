"""``python -m bench.overload``: ten times more gangs than can be bound, and what holds even so.

The API server binds few of the suite's pods at a time, and slowly (`bench.scarce`), so that a rate
can be offered that is ten times the sustainable one. With `--reject` what finds no seat is answered
with 429 and Retry-After, else it waits there.

How slow bindings are made depends on how fast this machine creates pods: it has to create more than
ten times as many as are bound.

Ends with status 1 unless all gangs are whole in the end, none was partly bound for longer than is
promised, no rejected binding was sent again and again, memory of no process grew by more than what
the waiting gangs may take, and gangs of higher priority went ahead of those that waited: few of
these were bound before them, and the slowest of them took a fraction of what others took.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import uvloop

from bench import load
from bench.contenders import Tutti, running
from bench.load import Load
from bench.scarce import SMALL, USER, Scarcity, rejected, scarce_bindings
from bench.suite_eyes import SuiteEyes, blind_s, eyes_on, keep_looking
from bench.testbed import Bed, open_testbed
from bench.traffic import p

_MIB: Final = 1 << 20
_SIZE: Final = 4
_NODES: Final = 250
_TIMES: Final = 12.0
#: How fast the machine creates pods, and then the sustainable rate, is taken from so many gangs.
_FIRST_GANGS: Final = 10
#: Of what it creates, so much is to be offered: it creates slower while it binds.
_SPARE_TIMES: Final = 1.5
_OFFERED_S: Final = 12.0
#: Bounded by what the nodes hold and by a session's patience.
_GANGS_MAX: Final = 600
_URGENT_GANGS: Final = 10
_STALL_S: Final = 180.0
_LOOK_EVERY_S: Final = 2.0
_BLIND_MAX_S: Final = 30.0
_PRIORITIES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
#: Beside what a waiting gang may take (objects, verdicts, decisions in flight): caches that fill.
_PER_GANG_BYTES: Final = 64 << 10
_SPARE_BYTES: Final = 48 << 20
#: Of the gangs that waited when an urgent one came, so many may be bound before it: those that were
#: decided by then.
_AHEAD_MAX: Final = 0.3
#: The slowest of a hundred urgent gangs takes at most this part of what one of the crowd takes.
_URGENT_SHARE_MAX: Final = 1 / 3
#: Of fewer that wait no share is taken.
_WAITING_MIN: Final = 20
#: So many times what can be bound must be offered, or it was not the overload that was asked for.
_REAL_TIMES_MIN: Final = 10.0
#: Of each binding made, so many may have been rejected before: no binder may retry without end.
_REJECTIONS_MAX: Final = 1.0
#: What docs/reliability.md promises of gangs with a controller: the repair deadline, and what the
#: release takes.
_PARTLY_BOUND_MAX_S: Final = 50.0


class Overloaded(msgspec.Struct, frozen=True, kw_only=True):
    """A run."""

    sustainable_pods_per_s: float
    offered_pods_per_s: float
    gangs: int
    p50_s: float
    p99_s: float
    urgent_p50_s: float
    urgent_p99_s: float
    #: Of the gangs that waited when an urgent one came, the share that was bound before it; worst.
    urgent_behind: float
    #: The longest time between a gang's first binding and its last.
    partly_bound_max_s: float
    #: Bindings that the API server answered with 429.
    rejected: int
    grown_mib: dict[str, float]
    problems: tuple[str, ...]


def main() -> None:
    """Overload, report, judge."""
    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=__doc__)
    parser.add_argument("--reject", action="store_true", help="429 instead of a queue")
    found = uvloop.run(overload(reject=parser.parse_args().reject))
    sys.stdout.write(f"{msgspec.json.format(msgspec.json.encode(found), indent=1).decode()}\n")
    sys.exit(1 if found.problems else 0)


async def overload(*, reject: bool) -> Overloaded:
    """Start everything, find the sustainable rate, offer ten times of it."""
    with TemporaryDirectory(prefix="tutti-overload-") as name:
        async with open_testbed(_NODES, warm_up_pods=1000, options=SMALL) as bed:
            kubeconfig = bed.control_plane.kubeconfig_for(USER)
            tutti = Tutti(extra_flags=(f"--data-dir={name}", "--replicas=binder=1"))
            await bed.client.create(_PRIORITIES, {"metadata": {"name": "urgent"}, "value": 1000})
            async with (
                scarce_bindings(bed, reject=reject) as scarcity,
                running(tutti, kubeconfig) as suite,
            ):
                await suite.wait_ready()
                async with eyes_on(Path(name)) as eyes:
                    return await _measured(bed, eyes, scarcity)


async def _measured(bed: Bed, eyes: SuiteEyes, scarcity: Scarcity) -> Overloaded:
    began_s = time.monotonic()
    trial = await _offer(bed, _FIRST_GANGS, per_s=1e9)
    created_per_s = _FIRST_GANGS * _SIZE / (time.monotonic() - began_s)
    scarcity.leave(created_per_s / _TIMES / _SPARE_TIMES)
    await _bound_all(bed, [name for names in trial for name in names])
    first = await _offer(bed, _FIRST_GANGS, per_s=1e9)
    instants_s = await _bound_all(bed, [name for names in first for name in names])
    per_s = (len(instants_s) - 1) / max(instants_s[-1] - instants_s[0], 1e-3)
    wanted = min(_GANGS_MAX, int(_TIMES * per_s / _SIZE * _OFFERED_S))
    await eyes.look()
    looking = asyncio.create_task(keep_looking(eyes, _LOOK_EVERY_S), name="eyes")
    began_s = time.monotonic()
    # They take half of what can be bound: they need not wait for each other.
    urgent = asyncio.create_task(_urgent(bed, every_s=2 * _SIZE / per_s), name="urgent")
    crowd = await _offer(bed, wanted, per_s=_TIMES * per_s / _SIZE)
    offered_s = time.monotonic() - began_s
    hurried = await urgent
    try:
        await _bound_all(bed, [name for names in (*crowd, *hurried) for name in names])
    finally:
        looking.cancel()
        await asyncio.wait([looking])
    if not looking.cancelled():
        looking.result()
    blind = blind_s(eyes.looks, began_s, time.monotonic())
    refused = await rejected(bed)
    return _judged(bed, eyes, crowd, hurried, per_s, wanted * _SIZE / offered_s, refused, blind)


async def _offer(bed: Bed, gangs: int, *, per_s: float, urgent: bool = False) -> list[list[str]]:
    """Create gangs at a rate, or as fast as the API server takes them; names of their pods."""
    what = Load(gangs=1, size=_SIZE)
    made: list[list[str]] = []
    began_s = time.monotonic()
    batch = max(1, min(gangs, int(per_s)))
    for first in range(0, gangs, batch):
        await asyncio.sleep(max(0.0, began_s + first / per_s - time.monotonic()))
        requests: list[bytes] = []
        for _ in range(min(batch, gangs - first)):
            prefix = bed.fresh_prefix()
            made.append(load.pod_names(what, prefix))
            requests += _requests(bed, what, prefix, urgent=urgent)
        await bed.create(requests)
    return made


def _requests(bed: Bed, what: Load, prefix: str, *, urgent: bool) -> list[bytes]:
    group: dict[str, Any] = load.pod_group(what, prefix, 0)
    pods: list[dict[str, Any]] = [
        load.pod(what, prefix, 0, member, "volcano") for member in range(what.size)
    ]
    if urgent:
        for made in (group, *pods):
            made["spec"]["priorityClassName"] = "urgent"
    post = bed.burst.post
    return [post(load.PODGROUPS_PATH, group), *(post(load.PODS_PATH, pod) for pod in pods)]


async def _urgent(bed: Bed, *, every_s: float) -> list[list[str]]:
    """Gangs of a higher priority, while the crowd waits."""
    await asyncio.sleep(_OFFERED_S / 2)
    made: list[list[str]] = []
    for _ in range(_URGENT_GANGS):
        made += await _offer(bed, 1, per_s=1e9, urgent=True)
        await asyncio.sleep(every_s)
    return made


async def _bound_all(bed: Bed, names: list[str]) -> list[float]:
    """Wait until all are bound; when each was. Raises TimeoutError when nothing moves any more."""
    before, moved_s = -1, time.monotonic()
    while True:
        found = bed.watch.bound_s(names)
        if len(found) == len(names):
            return found
        if len(found) > before:
            before, moved_s = len(found), time.monotonic()
        if time.monotonic() - moved_s > _STALL_S:
            raise TimeoutError(f"{len(found)} of {len(names)} pods are bound, and no more")
        await asyncio.sleep(0.2)


def _judged(
    bed: Bed,
    eyes: SuiteEyes,
    crowd: list[list[str]],
    hurried: list[list[str]],
    per_s: float,
    offered: float,
    refused: int,
    blind: float,
) -> Overloaded:
    created_s = {names[0]: _created_s(bed, names) for names in (*crowd, *hurried)}
    bound_s = {names[0]: bed.watch.bound_s(names)[-1] for names in (*crowd, *hurried)}
    behind = [
        _share_ahead(created_s, bound_s, [other[0] for other in crowd], names[0])
        for names in hurried
    ]
    waits = [bound_s[names[0]] - created_s[names[0]] for names in crowd]
    grown: dict[str, float] = {}
    for one in eyes.looks:
        first = next(look for look in eyes.looks if look.instance == one.instance)
        more = (one.memory_bytes - first.memory_bytes) / _MIB
        grown[one.instance] = round(max(grown.get(one.instance, 0.0), more), 1)
    allowed_mib = (_SPARE_BYTES + _PER_GANG_BYTES * len(crowd)) / _MIB
    problems = [
        f"{name} grew by {mib} MiB, {allowed_mib:.0f} allowed"
        for name, mib in grown.items()
        if mib > allowed_mib
    ]
    if offered < _REAL_TIMES_MIN * per_s:
        problems.append(f"only {offered:.0f} pods a second were offered: no overload")
    if max(behind) > _AHEAD_MAX:
        problems.append(f"{max(behind):.0%} of those that waited went ahead of an urgent gang")
    if blind > _BLIND_MAX_S:
        problems.append(f"no sample for {blind:.0f} s: memory is not known")
    urgent_s = [bound_s[names[0]] - created_s[names[0]] for names in hurried]
    if p(urgent_s, 99) > _URGENT_SHARE_MAX * p(waits, 99):
        problems.append(
            f"p99 of urgent gangs is {p(urgent_s, 99) / 1e3:.0f} s, "
            f"that of the remaining gangs {p(waits, 99) / 1e3:.0f} s"
        )
    bindings = sum(len(names) for names in (*crowd, *hurried))
    if refused > _REJECTIONS_MAX * bindings:
        problems.append(f"{refused} bindings were rejected on the way to {bindings}")
    partly_s = max(_partly_s(bed, names) for names in (*crowd, *hurried))
    if partly_s > _PARTLY_BOUND_MAX_S:
        problems.append(f"a gang was partly bound for {partly_s:.0f} s")
    return Overloaded(
        sustainable_pods_per_s=round(per_s, 1),
        offered_pods_per_s=round(offered, 1),
        gangs=len(crowd),
        p50_s=round(p(waits, 50) / 1e3, 2),
        p99_s=round(p(waits, 99) / 1e3, 2),
        urgent_p50_s=round(p(urgent_s, 50) / 1e3, 2),
        urgent_p99_s=round(p(urgent_s, 99) / 1e3, 2),
        urgent_behind=round(max(behind), 2),
        partly_bound_max_s=round(partly_s, 2),
        rejected=refused,
        grown_mib=grown,
        problems=tuple(problems),
    )


def _partly_s(bed: Bed, names: list[str]) -> float:
    instants_s = bed.watch.bound_s(names)
    return instants_s[-1] - instants_s[0]


def _created_s(bed: Bed, names: list[str]) -> float:
    return max(bed.watch.pods[name].created_s for name in names)


def _share_ahead(
    created_s: dict[str, float], bound_s: dict[str, float], crowd: list[str], urgent: str
) -> float:
    """Of the crowd's gangs that waited when the urgent one came, the share bound before it."""
    came_s = created_s[urgent]
    waiting = [one for one in crowd if created_s[one] <= came_s < bound_s[one]]
    ahead = [one for one in waiting if bound_s[one] < bound_s[urgent]]
    return len(ahead) / len(waiting) if len(waiting) >= _WAITING_MIN else 0.0


if __name__ == "__main__":
    main()
