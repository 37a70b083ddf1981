"""Live: the scheduler runs and gangs arrive, at full creation speed or one into an idle cluster.

A gang's latency is from its last pod created to its last pod seen bound. Created means: the API
server's answer or the watch's event, whichever came first, so that a busy client cannot flatter.
"""

import asyncio
from statistics import median
from typing import NamedTuple

import msgspec

from bench import load
from bench.contenders import Contender, Running, running
from bench.load import Load
from bench.testbed import Bed

CROWD = Load(gangs=200, size=8)
ONE = Load(gangs=1, size=8)
TRIES = 20
_STALL_S = 60.0
#: Between a group and its pods, as long as an operator needs at least; and between two tries.
_PAUSE_S = 0.4
_REST_S = 3.0


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of gangs in milliseconds."""

    contender: str
    ready_s: float | None
    #: Title of the load that arrives at full creation speed.
    crowd: str = CROWD.title
    #: How fast the crowd's pods were created.
    created_per_s: float
    crowd_p50_ms: float
    crowd_p99_ms: float
    #: One gang of 8 into an idle cluster, several tries.
    one_p50_ms: float
    one_max_ms: float
    one_all_ms: tuple[float, ...]
    #: CPU in percent of a core while nothing happens, no pods in the cluster.
    idle_core_percent: float
    watches: int
    #: What one creation took while all of them came: the API server's part of any latency then.
    #: Sessions from before issue 15 do not have these three.
    creation_p50_ms: float = 0.0
    creation_p99_ms: float = 0.0
    #: Watches that the API server ended during the run; each costs a new list before it continues.
    broken_watches: int = 0


class _Creations(NamedTuple):
    """How the pods of a crowd came."""

    per_s: float
    took_s: list[float]


async def measure(bed: Bed, contender: Contender, crowd: Load = CROWD) -> LiveRun:
    """Start the contender on the empty testbed, let gangs arrive, stop it, empty the testbed.

    Raises:
        Stalled, WatchBroken, ContenderFailed: see there.
    """
    try:
        async with running(contender, bed.kubeconfig) as suite:
            ready_s = await suite.wait_ready()
            await asyncio.sleep(_REST_S)
            idle_percent = await suite.idle_core_percent()
            watches = await bed.pod_watches()
            singles = [await _one(bed, contender) for _ in range(TRIES)]
            await asyncio.sleep(_REST_S)
            broken_before = await bed.broken_watches()
            latencies, creations = await _crowd(bed, contender, suite, crowd)
            broken_watches = await bed.broken_watches() - broken_before
    finally:
        await bed.empty()
    return LiveRun(
        contender=contender.name,
        ready_s=ready_s,
        crowd=crowd.title,
        created_per_s=creations.per_s,
        creation_p50_ms=percentile(creations.took_s, 50) * 1e3,
        creation_p99_ms=percentile(creations.took_s, 99) * 1e3,
        broken_watches=broken_watches,
        crowd_p50_ms=percentile(latencies, 50) * 1e3,
        crowd_p99_ms=percentile(latencies, 99) * 1e3,
        one_p50_ms=median(singles) * 1e3,
        one_max_ms=max(singles) * 1e3,
        one_all_ms=tuple(round(each * 1e3, 2) for each in singles),
        idle_core_percent=idle_percent,
        watches=watches,
    )


def percentile(values: list[float], percent: int) -> float:
    """The smallest value that at least so many percent of all do not exceed (nearest rank)."""
    if not values:
        raise ValueError("a percentile of nothing")
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(rank, 1) - 1]


async def _one(bed: Bed, contender: Contender) -> float:
    """One gang of 8, its group some time before its pods; seconds from last created to last bound.

    The earlier tries' pods stay: a cluster is idle, not empty.
    """
    prefix = bed.fresh_prefix()
    post = bed.burst.post
    await bed.create([post(load.PODGROUPS_PATH, load.pod_group(ONE, prefix, 0))])
    await asyncio.sleep(_PAUSE_S)
    requests = [
        post(load.PODS_PATH, load.pod(ONE, prefix, 0, member, contender.scheduler_name))
        for member in range(ONE.size)
    ]
    before = sum(1 for pod in bed.watch.pods.values() if pod.bound_s)
    answered = [0.0] * ONE.size

    def note(index: int, _sent_s: float, at_s: float) -> None:
        answered[index] = at_s

    await bed.create(requests, note, connections=ONE.size)
    await bed.watch.wait_bound(before + ONE.size, stall_s=_STALL_S)
    latency_s = _latency_s(bed, load.pod_names(ONE, prefix), answered)
    await asyncio.sleep(_PAUSE_S)
    return latency_s


async def _crowd(
    bed: Bed, contender: Contender, suite: Running, crowd: Load
) -> tuple[list[float], _Creations]:
    """All gangs, each its group and then its pods, as fast as the API server takes them."""
    prefix = bed.fresh_prefix()
    post = bed.burst.post
    requests: list[bytes] = []
    pods: list[int] = []
    for gang in range(crowd.gangs):
        requests.append(post(load.PODGROUPS_PATH, load.pod_group(crowd, prefix, gang)))
        for member in range(crowd.size):
            pods.append(len(requests))
            body = load.pod(crowd, prefix, gang, member, contender.scheduler_name)
            requests.append(post(load.PODS_PATH, body))
    before = sum(1 for pod in bed.watch.pods.values() if pod.bound_s)
    answered = [0.0] * len(requests)

    took = [0.0] * len(requests)

    def note(index: int, sent_s: float, at_s: float) -> None:
        answered[index] = at_s
        took[index] = at_s - sent_s

    await bed.create(requests, note)
    await bed.watch.wait_bound(before + crowd.pods, stall_s=_STALL_S)
    suite.check()
    names = load.pod_names(crowd, prefix)
    latencies = []
    for gang in range(crowd.gangs):
        members = slice(gang * crowd.size, (gang + 1) * crowd.size)
        at_s = [answered[index] for index in pods[members]]
        latencies.append(_latency_s(bed, names[members], at_s))
    created = sorted(answered[index] for index in pods)
    return latencies, _Creations(
        per_s=(len(created) - 1) / max(created[-1] - created[0], 1e-9),
        took_s=[took[index] for index in pods],
    )


def _latency_s(bed: Bed, names: list[str], answered_s: list[float]) -> float:
    created_s = max(
        min(bed.watch.pods[name].created_s, at_s)
        for name, at_s in zip(names, answered_s, strict=True)
    )
    return bed.watch.bound_s(names)[-1] - created_s
