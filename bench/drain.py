"""A drain: the gangs exist, then the scheduler starts. How soon and how fast does it bind?"""

import asyncio
from itertools import pairwise

import msgspec

from bench.api_metrics import since
from bench.contenders import Contender, running
from bench.load import Load
from bench.meters import ProcessCost
from bench.testbed import PODS_PER_NODE_MAX, TRAILING_S, Bed
from bench.yardstick import rate

#: The first binding may take its time with another scheduler; between two, so long a pause means
#: stuck.
STALL_S = 60.0
_QUIET_TIMEOUT_S = 20.0


class DrainRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one drain showed; times in seconds since the process was started."""

    contender: str
    load: str
    pods: int
    watches: int
    ready_s: float | None
    first_binding_s: float
    last_binding_s: float
    #: Pods per second from the first to the last binding.
    rate: float
    #: The longest time between two bindings, and how many were seen in each second since the first.
    longest_pause_s: float
    bound_by_second: tuple[int, ...]
    #: CPU of all its processes from their start until the last binding was seen,
    cpu_s_at_last_binding: float
    #: and until it had nothing left to do (statuses, Events, the echo of its bindings).
    cpu_s: float
    was_quiet: bool
    processes: tuple[ProcessCost, ...]
    #: Sum of the peaks of all its processes.
    peak_bytes: int
    #: Of one core, with the drained pods still there.
    idle_core_percent: float
    apiserver_ms_per_pod: float
    etcd_ms_per_pod: float
    writes: dict[str, int]
    #: Those of them that the API server had counted when the last binding was seen.
    writes_while_binding: dict[str, int] = {}
    pods_per_node_max: int
    #: Seen from outside, as all else: the time that gangs were bound in part, added up,
    partial_gang_s: float = 0.0
    #: and nodes with more on them than they offer.
    overcommitted_nodes: int = 0

    @property
    def cpu_s_per_10k_pods(self) -> float:
        """CPU of the whole suite, start included, scaled to 10,000 pods."""
        return self.cpu_s / self.pods * 10_000

    @property
    def writes_per_pod(self) -> float:
        """API writes of any kind per pod."""
        return sum(self.writes.values()) / self.pods

    @property
    def other_writes_while_binding(self) -> int:
        """API writes until the last binding, without the bindings: they share its rate."""
        return sum(self.writes_while_binding.values()) - self.pods

    def cpu_by_role(self) -> dict[str, float]:
        """CPU seconds by service, replicas added."""
        found: dict[str, float] = {}
        for process in self.processes:
            found[process.role] = found.get(process.role, 0.0) + process.cpu_s
        return found


async def measure(bed: Bed, contender: Contender, what: Load) -> DrainRun:
    """Fill the testbed, start the contender, follow it to its rest, stop it, empty the testbed.

    Raises:
        Stalled, WatchBroken, ContenderFailed: see there.
    """
    names = await bed.fill(what, contender.scheduler_name)
    writes_before = await bed.writes()
    server_before = bed.server_cpu()
    try:
        async with running(contender, bed.kubeconfig) as suite:
            await bed.watch.wait_bound(what.pods, stall_s=STALL_S)
            at_last_s = suite.meter.sample()
            writes_at_last = await bed.writes()
            await asyncio.sleep(TRAILING_S)
            server = bed.server_cpu().since(server_before)
            was_quiet = await suite.meter.wait_quiet(timeout_s=_QUIET_TIMEOUT_S)
            cpu_s = suite.meter.sample()
            processes = suite.meter.costs()
            ready_s = await suite.wait_ready()
            idle_percent = await suite.idle_core_percent()
            watches = await bed.pod_watches()
            writes_after = await bed.writes()
        instants_s = bed.watch.bound_s(names)
        crowd = bed.watch.per_node_max()
        partial_s = bed.watch.partial_gang_s(names, what.size)
        overfull = bed.watch.overfull(PODS_PER_NODE_MAX)
    finally:
        await bed.empty()
    return DrainRun(
        contender=contender.name,
        load=what.title,
        pods=what.pods,
        watches=watches,
        ready_s=ready_s,
        first_binding_s=instants_s[0] - suite.started_s,
        last_binding_s=instants_s[-1] - suite.started_s,
        rate=rate(instants_s),
        longest_pause_s=max(after - before for before, after in pairwise(instants_s)),
        bound_by_second=by_second(instants_s),
        cpu_s_at_last_binding=at_last_s,
        cpu_s=cpu_s,
        was_quiet=was_quiet,
        processes=processes,
        peak_bytes=sum(process.peak_bytes for process in processes),
        idle_core_percent=idle_percent,
        apiserver_ms_per_pod=server.apiserver_s / what.pods * 1e3,
        etcd_ms_per_pod=server.etcd_s / what.pods * 1e3,
        writes=since(writes_before, writes_after),
        writes_while_binding=since(writes_before, writes_at_last),
        pods_per_node_max=crowd,
        partial_gang_s=partial_s,
        overcommitted_nodes=overfull,
    )


def by_second(instants_s: list[float]) -> tuple[int, ...]:
    """Count instants, which are in order, by whole seconds since the first."""
    counts = [0] * (int(instants_s[-1] - instants_s[0]) + 1)
    for instant_s in instants_s:
        counts[int(instant_s - instants_s[0])] += 1
    return tuple(counts)
