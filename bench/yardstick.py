"""The bind limit: how fast this API server takes Bindings from a client that does nothing else.

The pods are those of the measured run and as many, created in the same way and digested as long; as
many watches on all pods are open; the same eyes take the time, from the first pod seen bound to the
last. That is done once at each concurrency, and the best one is the limit: a scheduler may
choose its concurrency too. (Dealt out to the concurrencies in quarters, as this once was, bursts of
two seconds wandered between 1,050 and 1,670 a second with the API server's garbage collector, and
the best of them said more about that than about the limit.)
"""

import asyncio
from statistics import fmean

import msgspec

from bench import load
from bench.load import Load
from bench.testbed import TRAILING_S, Bed

#: 8 and 32 were never better than both of these.
CONCURRENCIES = (16, 64)
_STALL_S = 30.0


class Yardstick(msgspec.Struct, frozen=True, kw_only=True):
    """One burst of bare bindings."""

    load: str
    pods: int
    watches: int
    #: Pods per second by concurrency, all of the pods at each.
    rates: dict[int, float]
    #: Of the API server and etcd per pod, over all concurrencies.
    apiserver_ms_per_pod: float
    etcd_ms_per_pod: float

    @property
    def limit(self) -> float:
        """The best rate."""
        return max(self.rates.values())


async def measure(bed: Bed, what: Load, *, watches: int) -> Yardstick:
    """Create the load's pods, bind them by a bare client, delete them.

    Args:
        bed: Where.
        what: The load of the measured run.
        watches: How many watches on pods are to be open, the testbed's own included.
    """
    rates: dict[int, float] = {}
    apiserver_s, etcd_s, open_watches = 0.0, 0.0, 0
    for concurrency in CONCURRENCIES:
        # No scheduler answers to this name, should one run.
        names = await bed.fill(what, "nobody", groups=False)
        async with bed.as_many_watches(watches):
            open_watches = await bed.pod_watches()
            before = bed.server_cpu()
            rates[concurrency] = await _bind(bed, names, concurrency)
            await asyncio.sleep(TRAILING_S)
            cost = bed.server_cpu().since(before)
        apiserver_s += cost.apiserver_s
        etcd_s += cost.etcd_s
        await bed.empty()
    bound = what.pods * len(CONCURRENCIES)
    return Yardstick(
        load=what.title,
        pods=what.pods,
        watches=open_watches,
        rates=rates,
        apiserver_ms_per_pod=apiserver_s / bound * 1e3,
        etcd_ms_per_pod=etcd_s / bound * 1e3,
    )


async def _bind(bed: Bed, names: list[str], concurrency: int) -> float:
    """Bind these pods, round robin over the nodes; returns the rate that the watch saw."""
    bound = sum(1 for pod in bed.watch.pods.values() if pod.bound_s)
    requests = []
    for index, name in enumerate(names):
        node = bed.nodes[(bound + index) % len(bed.nodes)]
        body = load.binding(name, bed.watch.pods[name].uid, node)
        requests.append(bed.burst.post(f"{load.PODS_PATH}/{name}/binding", body))
    await bed.burst.send(requests, connections=concurrency)
    await bed.watch.wait_bound(bound + len(names), stall_s=_STALL_S)
    return rate(bed.watch.bound_s(names))


def rate(instants_s: list[float]) -> float:
    """Events per second from the first to the last of these instants, in order."""
    if len(instants_s) < 2:
        raise ValueError("a rate needs two instants")
    return (len(instants_s) - 1) / max(instants_s[-1] - instants_s[0], 1e-9)


def bind_limit(before: Yardstick, after: Yardstick) -> float:
    """The limit for a run between two yardsticks: the best concurrency's mean of both."""
    return max(fmean((before.rates[each], after.rates[each])) for each in CONCURRENCIES)
