"""Kueue's three load generators against our queue code, in process: how many workloads a second of
CPU the planner can take from creation to their end.

Their tests (test/performance/scheduler of Kueue) make workloads at intervals, let the admitted ones
run for a while, and count admissions a second: 42.7 (15,000 workloads, 30 queues in 5 cohorts),
42.4 (50,000, 2,000 queues in 20 cohorts) and 37.4 (640 nodes in racks). Here a cohort is a parent
queue (`capacity` with `enableHierarchy`), a nominal quota is `deserved`, and a workload is a gang
whose pods are placed on nodes, which theirs are not. Time is virtual: every tick what was created,
bound or finished is one record per kind, then cycles run until nothing is left to decide. The CPU
of all of it counts: records, decisions, verdicts, and the end of each workload; not what the
collector of cycles would spend on workloads that have not been created yet.

    python -m bench.queues [baseline] [large] [racks] [--json FILE] [--strict]
"""

import argparse
import gc
import heapq
import pathlib
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bench.bars import Figure
from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from shared.contracts.cluster import (
    Gone,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    PriorityClassChanges,
    QueueChanges,
    Synced,
)
from shared.contracts.decisions import GangDecision
from shared.model.objects import NetworkTopology, Node, Pod, PodGroup, PriorityClass, Queue, Shape
from shared.runtime import collector
from tests.support.snapshots import snapshot_page

_TICK_MS: Final = 100
#: Ours must be at least so many times theirs.
_TIMES: Final = 100
_CONFIGURATION: Final = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
"""
_RACK: Final = "rack"


@dataclass(frozen=True)
class Kind:
    """Equal workloads of every queue: how many, how often, how long, and what they ask for."""

    count: int
    every_ms: int
    runtime_ms: int
    priority: int
    cpu: int
    pods: int = 1
    topology: NetworkTopology | None = None


@dataclass(frozen=True)
class Load:
    """One generator."""

    name: str
    theirs: float
    cohorts: int
    queues: int
    quota: int
    borrow: int
    kinds: tuple[Kind, ...]
    nodes: int
    node_cpu: int
    racks: int = 1


_HARD: Final = NetworkTopology(mode="hard", label_key=_RACK)
_SOFT: Final = NetworkTopology(mode="soft", label_key=_RACK)
LOADS: Final = {
    load.name: load
    for load in (
        Load(
            "baseline",
            42.7,
            cohorts=5,
            queues=6,
            quota=20,
            borrow=100,
            kinds=(
                Kind(350, 100, 200, 50, 1),
                Kind(100, 500, 500, 100, 5),
                Kind(50, 1200, 1000, 200, 20),
            ),
            nodes=10,
            node_cpu=60,
        ),
        Load(
            "large",
            42.4,
            cohorts=20,
            queues=100,
            quota=20,
            borrow=100,
            kinds=(
                Kind(17, 20, 50, 50, 1),
                Kind(5, 50, 100, 100, 5),
                Kind(3, 200, 200, 200, 20),
            ),
            nodes=640,
            node_cpu=64,
        ),
        Load(
            "racks",
            37.4,
            cohorts=2,
            queues=3,
            quota=8_500,
            borrow=17_000,
            kinds=(
                Kind(50, 200, 10_000, 50, 2, 4, _HARD),
                Kind(30, 500, 15_000, 100, 4, 8, _HARD),
                Kind(20, 1000, 20_000, 200, 8, 16, _HARD),
                Kind(30, 300, 12_000, 100, 2, 4, _SOFT),
                Kind(20, 400, 16_000, 150, 4, 8),
                Kind(15, 600, 18_000, 200, 4, 16, _SOFT),
                Kind(10, 800, 25_000, 250, 8, 32, _SOFT),
            ),
            nodes=640,
            node_cpu=96,
            racks=10,
        ),
    )
}


class Run:
    """One planner under one load."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._planner = Planner(parse_configuration(_CONFIGURATION))
        self._now_ms = 10_000
        self._cluster_seq = self._decision_seq = 10
        self._pods: dict[str, Pod] = {}
        self._groups: dict[str, tuple[PodGroup, Kind]] = {}
        #: (when, uid of the group).
        self._ends: list[tuple[int, str]] = []
        self.cpu_s = 0.0
        self.virtual_ms = 0
        self.finished = 0
        self._begin()

    @property
    def left(self) -> int:
        """Workloads that have not ended."""
        return len(self._groups)

    def run(self) -> None:
        """From the first workload to the end of the last."""
        created = sorted(self._created(), key=lambda one: one[0])
        # A planner does not have the workloads of the next hours in its memory.
        gc.freeze()
        start_ms, at = self._now_ms, 0
        while at < len(created) or self._groups:
            self._now_ms += _TICK_MS
            until = at
            while until < len(created) and start_ms + created[until][0] <= self._now_ms:
                until += 1
            self._tick([one for _, one in created[at:until]])
            at = until
            self.virtual_ms = self._now_ms - start_ms

    def _begin(self) -> None:
        load = self._load
        stamp: dict[str, Any] = {"epoch": 1, "at_ms": self._now_ms}
        page = snapshot_page(
            NodeChanges(**stamp, changed=tuple(_nodes(load))),
            QueueChanges(**stamp, changed=tuple(_queues(load))),
            PriorityClassChanges(**stamp, changed=tuple(_classes(load))),
            at_ms=self._now_ms,
        )
        self._planner.load_snapshot([page])
        self._planner.lead(1)

    def _created(self) -> Iterator[tuple[int, tuple[PodGroup, list[Pod], Kind]]]:
        load = self._load
        for cohort in range(load.cohorts):
            for number in range(load.queues):
                queue = f"cq-{cohort}-{number}"
                for which, kind in enumerate(load.kinds):
                    for serial in range(kind.count):
                        name = f"{queue}-{which}-{serial}"
                        yield kind.every_ms * serial, _workload(name, queue, kind, serial)

    def _tick(self, created: list[tuple[PodGroup, list[Pod], Kind]]) -> None:
        stamp: dict[str, Any] = {"epoch": 1, "at_ms": self._now_ms}
        ended: list[str] = []
        while self._ends and self._ends[0][0] <= self._now_ms:
            ended.append(heapq.heappop(self._ends)[1])
        gone_groups = [Gone(uid=uid, resource_version=9) for uid in ended]
        gone_pods: list[Gone] = []
        for uid in ended:
            _, kind = self._groups.pop(uid)
            gone_pods += [
                Gone(uid=f"{uid}-{index}", resource_version=9) for index in range(kind.pods)
            ]
        self.finished += len(ended)
        for one in gone_pods:
            del self._pods[one.uid]
        for group, pods, kind in created:
            self._groups[group.uid] = group, kind
            self._pods.update((pod.uid, pod) for pod in pods)
        before = time.process_time()
        self._apply(PodGroupChanges(**stamp, removed=tuple(gone_groups)))
        self._apply(PodChanges(**stamp, removed=tuple(gone_pods)))
        self._apply(PodGroupChanges(**stamp, changed=tuple(group for group, _, _ in created)))
        self._apply(PodChanges(**stamp, changed=tuple(p for _, pods, _ in created for p in pods)))
        decisions = self._decide()
        self.cpu_s += time.process_time() - before
        running = tuple(self._bound(decisions))
        before = time.process_time()
        self._apply(PodChanges(**stamp, changed=running))
        self._decide()
        self.cpu_s += time.process_time() - before

    def _bound(self, decisions: Iterable[GangDecision]) -> Iterator[Pod]:
        """The pods of these decisions, running; each gang's end is put down."""
        for decision in decisions:
            _, kind = self._groups[decision.gang_id]
            heapq.heappush(self._ends, (self._now_ms + kind.runtime_ms, decision.gang_id))
            for binding in decision.bindings:
                pod = msgspec.structs.replace(
                    self._pods[binding.uid], node=binding.node, phase="Running", resource_version=2
                )
                self._pods[binding.uid] = pod
                yield pod

    def _decide(self) -> list[GangDecision]:
        """Cycles until nothing is left to decide."""
        self._apply(Synced(epoch=1, at_ms=self._now_ms, watcher="bench"))
        decisions: list[GangDecision] = []
        while True:
            step = self._planner.step(self._now_ms)
            for record in (*step.decisions, *step.notes):
                self._decision_seq += 1
                self._planner.decided(self._decision_seq, record)
            found = [one for one in step.decisions if isinstance(one, GangDecision)]
            decisions += found
            wakeup = step.next_wakeup_ms
            if not found and (wakeup is None or wakeup > self._now_ms):
                return decisions

    def _apply(self, record: Any) -> None:
        self._cluster_seq += 1
        self._planner.apply_cluster(self._cluster_seq, record)


def _workload(name: str, queue: str, kind: Kind, serial: int) -> tuple[PodGroup, list[Pod], Kind]:
    group = PodGroup(
        uid=name,
        dialect="volcano",
        namespace="team",
        name=name,
        resource_version=1,
        created_ms=kind.every_ms * serial,
        min_member=kind.pods,
        queue=queue,
        priority_class=f"p{kind.priority}",
        topology=kind.topology,
    )
    shape = msgspec.msgpack.encode(
        Shape(requests=(("cpu", 1000 * kind.cpu), ("memory", 1 << 20), ("pods", 1)))
    )
    pods = [
        Pod(
            uid=f"{name}-{index}",
            namespace="team",
            name=f"{name}-{index}",
            resource_version=1,
            shape=shape,
            ours=True,
            scheduler_name="volcano",
            group_name=name,
            role="main",
            index=index,
            priority=kind.priority,
        )
        for index in range(kind.pods)
    ]
    return group, pods, kind


def _queues(load: Load) -> Iterator[Queue]:
    def queue(name: str, **fields: Any) -> Queue:
        return Queue(uid=f"q-{name}", dialect="volcano", name=name, resource_version=1, **fields)

    for cohort in range(load.cohorts):
        whole = 1000 * load.quota * load.queues
        yield queue(f"cohort-{cohort}", capability=(("cpu", whole),), deserved=(("cpu", whole),))
        for number in range(load.queues):
            yield queue(
                f"cq-{cohort}-{number}",
                parent=f"cohort-{cohort}",
                deserved=(("cpu", 1000 * load.quota),),
                capability=(("cpu", 1000 * (load.quota + load.borrow)),),
            )


def _nodes(load: Load) -> Iterator[Node]:
    for index in range(load.nodes):
        yield Node(
            uid=f"node-{index}",
            name=f"node-{index:04d}",
            resource_version=1,
            labels=((_RACK, f"r{index * load.racks // load.nodes}"),),
            allocatable=(("cpu", 1000 * load.node_cpu), ("memory", 256 << 30), ("pods", 500)),
        )


def _classes(load: Load) -> Iterator[PriorityClass]:
    for value in sorted({kind.priority for kind in load.kinds}):
        yield PriorityClass(uid=f"pc-{value}", name=f"p{value}", resource_version=1, value=value)


def figures(load: Load) -> Iterator[Figure]:
    """Run a load and compare with theirs."""
    run = Run(load)
    run.run()
    per_s = run.finished / run.cpu_s
    name = f"{load.name}: {run.finished} workloads in {run.virtual_ms / 1000:.0f} s of its time"
    yield Figure(
        group="queues", name=name, value=per_s, unit="w/s", bar=_TIMES * load.theirs, at_least=True
    )
    yield Figure(
        group="queues", name=f"{load.name}, over Kueue", value=per_s / load.theirs, unit="x"
    )


def main() -> None:
    """Run the loads named, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench.queues")
    parser.add_argument("loads", nargs="*", choices=[*LOADS, []], help="all when none is named")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--strict", action="store_true", help="exit status 1 when a bar is missed")
    options = parser.parse_args()
    # As the service does.
    collector.relax()
    found = [one for name in options.loads or LOADS for one in figures(LOADS[name])]
    for one in found:
        bar = "" if one.bar is None else f"{one.bar:,.0f} {'ok' if one.passed else 'MISSED'}"
        print(f"{one.name:<60} {one.value:>12,.1f} {one.unit:<5} {bar}")
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    if options.strict and any(one.passed is False for one in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
