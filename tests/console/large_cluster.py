"""A cluster of 1,000 nodes and 500 gangs, behind the API service's own server; and the same with
markup in every field that users control.

`python -m tests.console.large_cluster` serves it on 127.0.0.1 until Ctrl-C, with a change each
second, to look at the console. Its only user's token is `admin`.
"""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from services.api.core.start_estimates import StartEstimates
from services.api.service import TraceLinks
from shared.contracts import codec
from shared.contracts.decisions import Binding, Cycle, EvictionDecision, GangDecision, Victim
from shared.contracts.questions import (
    EstimatesAnswer,
    FitAnswer,
    FragmentationAnswer,
    LedgerAmount,
    LedgerAnswer,
    LedgerQueue,
    ServiceStatus,
    ShapeCapacity,
    StartEstimate,
    TierCapacity,
)
from shared.contracts.verdicts import Condition, Reason, ShapeReport, Verdict, Why
from shared.model.objects import Node, Pod, PodGroup, Shape, Taint
from tests.services.api.serving import Serving, a_server
from tests.support.snapshots import snapshot_of

NODES: Final = 1_000
GANGS: Final = 500
GPUS: Final = 8
RACK_NODES: Final = 32
GPU: Final = "nvidia.com/gpu"
#: Of a waiting gang; one that runs has four, of four GPUs each.
MEMBERS: Final = 16
_RUNNING_MEMBERS: Final = 4
#: Gangs from this one on wait.
WAITING_FROM: Final = 440
_NAMESPACES: Final = ("vision", "speech", "robotics", "search", "fraud", "genomics")
_QUEUES: Final = ("vision", "speech", "robotics", "search")
#: No machine has this name.
JAEGER_URL: Final = "https://jaeger.invalid/ui"
#: Text with which a page that shows markup would run a script.
MARKUP: Final = "<script>window.injected = 1</script><img src=x onerror='window.injected = 1'>"
_GIB: Final = 1 << 30
_TRAIN: Final = codec.encode(
    Shape(requests=((GPU, 4), ("cpu", 24_000), ("memory", 200 * _GIB), ("pods", 1)))
)


class LargeCluster:
    """What the API serves. `now_ms` is when everything was last reported."""

    def __init__(self, now_ms: int, *, mark: str = "") -> None:
        """`mark` is added to each text that users control."""
        self._now_ms = now_ms
        self._mark = mark
        self.serving = Serving(TraceLinks(jaeger_url=JAEGER_URL).url_of)
        self.serving.watches_max = 100
        self._seq = 0
        #: GPUs that each queue uses beyond its initial number.
        self._more_gpus = 0
        self._fill()

    def change(self, n: int, *, phase: str) -> str:
        """Publish another verdict of a gang; returns its name."""
        verdict = self._verdict(n, phase=phase)
        self._seq += 1
        self.serving.watching.changed(self.serving.state.take_verdict(self._seq, verdict))
        return verdict.name

    def change_use(self, more_gpus: int) -> None:
        """Let each queue use this many GPUs more than at the beginning; each parent uses twice as
        many more.
        """
        self._more_gpus = more_gpus
        self.serving.planner.queues = self._ledger()

    def _fill(self) -> None:
        serving = self.serving
        pods = [pod for n in range(GANGS) for pod in self._pods(n)]
        groups = [self._group(n) for n in range(GANGS)]
        page = snapshot_of([*self._nodes(), *groups, *pods], at_ms=self._now_ms)
        serving.state.replace_cluster([page])
        for n in range(GANGS):
            self._seq += 1
            phase = "Running" if n < WAITING_FROM else "Inqueue"
            serving.state.take_verdict(self._seq, self._verdict(n, phase=phase))
        for seq, decision in enumerate(self._decisions(), start=1):
            serving.state.decisions.take(seq, decision)
        serving.planner.queues = self._ledger()
        serving.planner.shapes = self._shapes()
        serving.planner.starts = StartEstimates(self._estimates())
        serving.planner.fit = FitAnswer(
            fits=False,
            ever=True,
            sentence=f"needs 16 x 4 {GPU}, and 12 of 16 members fit{self._mark}",
            displaces=(("vision/train-3", 4),),
            displaces_by="reclaim",
        )
        serving.instances.answers = [
            ServiceStatus(
                service=service,
                instance=f"{service}-1",
                pid=1,
                version="0.0",
                http_port=1,
                ready=service != "binder",
                not_ready=(f"waits for the API server{self._mark}",) if service == "binder" else (),
                started_ms=self._now_ms - 86_400_000,
            )
            for service in ("watcher", "gang_planner", "binder", "controller", "webhook", "api")
        ]

    def _nodes(self) -> Iterator[Node]:
        for n in range(NODES):
            yield Node(
                uid=f"node-{n}",
                name=f"node-{n:04}",
                resource_version=1,
                labels=(("topology.example.com/rack", f"rack-{n // RACK_NODES:02}{self._mark}"),),
                allocatable=(
                    ("cpu", 96_000),
                    ("memory", 1024 * _GIB),
                    (GPU, GPUS),
                    ("pods", 110),
                ),
                taints=(Taint(key="repair", value=self._mark, effect="NoSchedule"),)
                if n % 97 == 5
                else (),
                unschedulable=n % 97 == 5,
                ready=n % 211 != 7,
            )

    def _name(self, n: int) -> tuple[str, str]:
        return _NAMESPACES[n % len(_NAMESPACES)], f"train-{n}{self._mark}"

    def _group(self, n: int) -> PodGroup:
        namespace, name = self._name(n)
        return PodGroup(
            uid=f"gang-{n}",
            dialect="volcano",
            namespace=namespace,
            name=name,
            resource_version=1,
            min_member=MEMBERS,
        )

    def _node_of(self, n: int, member: int) -> str:
        """Two members have one node: neighbours share one, and every eighth gang leaves a hole."""
        return f"node-{(4 * n + member + 1) // 2 + n // 8:04}"

    def _members(self, n: int) -> int:
        return _RUNNING_MEMBERS if n < WAITING_FROM else MEMBERS

    def _pods(self, n: int) -> Iterator[Pod]:
        namespace, name = self._name(n)
        running = n < WAITING_FROM
        for member in range(self._members(n)):
            yield Pod(
                uid=f"pod-{n}-{member}",
                namespace=namespace,
                name=f"{name}-{member}",
                resource_version=1,
                shape=_TRAIN,
                ours=True,
                group_name=name,
                role=f"{'launcher' if member == 0 else 'worker'}{self._mark}",
                node=self._node_of(n, member) if running else "",
                phase="Running" if running else "Pending",
            )

    def _queue_of(self, n: int) -> str:
        return f"{_QUEUES[n % len(_QUEUES)]}-{'batch' if n % 3 else 'urgent'}{self._mark}"

    def _verdict(self, n: int, *, phase: str) -> Verdict:
        namespace, name = self._name(n)
        members = self._members(n)
        running = members if phase == "Running" else 0
        created_ms = self._now_ms - 60_000 * _minutes_ago(n)
        return Verdict(
            gang_id=f"gang-{n}",
            epoch=2,
            at_ms=self._now_ms,
            dialect="volcano",
            namespace=namespace,
            name=name,
            uid=f"gang-{n}",
            queue=self._queue_of(n),
            phase=phase,  # type: ignore[arg-type]  # one of the phases
            min_member=members,
            members=members,
            running=running,
            pending=members - running,
            conditions=(
                Condition(
                    type="Scheduled" if running else "Unschedulable",
                    status="True",
                    reason="Placed" if running else "NotEnoughResources",
                    message=f"its minimum is placed{self._mark}" if running else self._sentence(n),
                    since_ms=created_ms + 5_000,
                ),
            ),
            why=None if phase != "Inqueue" else self._why(n, created_ms),
            attempt=1,
            trace_id=f"{n:032x}",
            first_seen_ms=created_ms,
            domain=f"rack-{n * 2 // RACK_NODES:02}" if running else "",
        )

    def _sentence(self, n: int) -> str:
        return (
            f"needs {MEMBERS} x 4 {GPU}: {n % MEMBERS} of {MEMBERS} members fit, and its queue "
            f"{self._queue_of(n)} has used its deserved share{self._mark}"
        )

    def _estimates(self) -> EstimatesAnswer:
        """Of each third waiting gang the planner does not know when it starts."""
        return EstimatesAnswer(
            as_of_ms=self._now_ms - 20_000,
            estimates=tuple(
                StartEstimate(
                    gang_id=f"gang-{n}",
                    position=n - WAITING_FROM + 1,
                    earliest_ms=self._now_ms + 60_000 * (n - 430) if n % 3 else 0,
                    latest_ms=self._now_ms + 90_000 * (n - 430) if n % 3 else 0,
                    basis=f"{n % 7 + 1} gangs have no run limit{self._mark}",
                )
                for n in range(WAITING_FROM, GANGS)
            ),
        )

    def _why(self, n: int, since_ms: int) -> Why:
        return Why(
            reason=("NotEnoughResources", "NotEnoughQuota", "BehindInQueue")[n % 3],
            sentence=self._sentence(n),
            since_ms=since_ms,
            shapes=(
                ShapeReport(
                    role=f"worker{self._mark}",
                    wanted=MEMBERS - 1,
                    fit=n % MEMBERS,
                    nodes=NODES,
                    reasons=(
                        Reason(reason=f"Insufficient {GPU}", count=900, resource=GPU, short=24),
                        Reason(reason=f"untolerated taint {{repair}}{self._mark}", count=11),
                    ),
                ),
            ),
            ahead=tuple("/".join(self._name(other)) for other in range(WAITING_FROM, n)[:3]),
            ahead_count=min(n - WAITING_FROM, 9),
            holders=tuple("/".join(self._name(n * 5 % 40 + other)) for other in range(3)),
            holders_count=14,
        )

    def _decisions(self) -> Iterator[GangDecision | EvictionDecision]:
        """Those of the gangs that run, after those of 100 gangs that have ended."""
        for n in (*range(GANGS, GANGS + 100), *sorted(range(WAITING_FROM), key=_minutes_ago)[::-1]):
            namespace, name = self._name(n)
            at_ms = self._now_ms - 60_000 * _minutes_ago(n) + 4_000
            cycle = Cycle(cluster_seq=1, outcomes_seq=1, now_ms=at_ms, configuration="x")
            if n % 50 == 49:
                yield self._eviction(n, cycle)
            yield GangDecision(
                gang_id=f"gang-{n}",
                gang=f"{namespace}/{name}",
                dialect="volcano",
                epoch=2,
                attempt=1,
                bindings=tuple(
                    Binding(
                        uid=f"pod-{n}-{member}",
                        namespace=namespace,
                        name=f"{name}-{member}",
                        node=self._node_of(n % WAITING_FROM, member),
                    )
                    for member in range(_RUNNING_MEMBERS)
                ),
                quorum=_RUNNING_MEMBERS,
                why=f"fits{self._mark}",
                trace_id=f"{n:032x}",
                first_seen_ms=at_ms - 4_000,
                cycle=cycle,
            )

    def _eviction(self, n: int, cycle: Cycle) -> EvictionDecision:
        namespace, name = self._name(n)
        victim_namespace, victim = self._name(n - 1)
        return EvictionDecision(
            gang_id=f"gang-{n}",
            gang=f"{namespace}/{name}",
            epoch=2,
            attempt=1,
            victims=(Victim(uid=f"pod-{n - 1}-0", namespace=victim_namespace, name=f"{victim}-0"),),
            via="eviction",
            reason="Reclaimed",
            why=f"its queue holds more than it deserves{self._mark}",
            trace_id=f"{n:032x}",
            cycle=cycle,
        )

    def _ledger(self) -> LedgerAnswer:
        leaves = {self._queue_of(n): n for n in range(GANGS)}
        queues = [LedgerQueue(name="root", exists=True, running=440, waiting=60)]
        for at, team in enumerate(_QUEUES):
            queues.append(
                LedgerQueue(
                    name=f"{team}{self._mark}",
                    exists=True,
                    parent="root",
                    state="Open",
                    weight=at + 1,
                    running=110,
                    waiting=15,
                    amounts=self._amounts(2, at),
                )
            )
        for name in sorted(leaves):
            at = _QUEUES.index(name.partition("-")[0])
            queues.append(
                LedgerQueue(
                    name=name,
                    exists=True,
                    parent=f"{name.partition('-')[0]}{self._mark}",
                    state="Open",
                    strict="urgent" in name,
                    running=55,
                    waiting=7,
                    amounts=self._amounts(1, at),
                    holders=tuple("/".join(self._name(at + 4 * other)) for other in range(3)),
                    why=f"holds more than it deserves while another queue waits{self._mark}",
                )
            )
        return LedgerAnswer(queues=tuple(queues))

    def _amounts(self, size: int, at: int) -> tuple[LedgerAmount, ...]:
        return (
            LedgerAmount(
                resource=GPU,
                used=size * (700 + 150 * at + self._more_gpus),
                wanted=size * 240,
                promised=size * 16,
                owed=size * 4,
                deserved=size * 900,
                guarantee=size * 200,
                ceiling=size * 1_600,
            ),
            LedgerAmount(
                resource="cpu",
                used=size * 4_300_000,
                wanted=size * 1_400_000,
                deserved=size * 12_000_000,
            ),
        )

    def _shapes(self) -> FragmentationAnswer:
        return FragmentationAnswer(
            shapes=tuple(
                ShapeCapacity(
                    id=f"{at:012x}",
                    requests=((GPU, gpus), ("cpu", gpus * 6_000), ("memory", gpus * 50 * _GIB)),
                    node_selector=(("pool", f"a100{self._mark}"),) if at else (),
                    members=900 - at * 100,
                    waiting=60 + at,
                    total=310 // gpus,
                    unfragmented=800 // gpus,
                    node=f"node-{at:04}",
                    on_node=GPUS // gpus,
                    tiers=(
                        TierCapacity(tier="1", domain=f"rack-0{at}{self._mark}", pods=40 // gpus),
                    ),
                )
                for at, gpus in enumerate((4, 8, 1))
            )
        )


def _minutes_ago(n: int) -> int:
    """When a gang was submitted: those that have ended two to four hours ago, and the rest since
    five hours ago.
    """
    return 240 - (n - GANGS) if n >= GANGS else 1 + n * 7 % 300


async def _serve(mark: str) -> None:
    from time import time_ns

    cluster = LargeCluster(time_ns() // 1_000_000, mark=mark)
    with tempfile.TemporaryDirectory() as folder:
        async with a_server(cluster.serving, Path(folder)) as client:
            sys.stdout.write(f"{client.url.partition('/apis')[0]}/console/#token=admin\n")
            sys.stdout.flush()
            for n in range(1_000_000):
                await asyncio.sleep(1)
                cluster.change_use(n * 37 % 200 - 100)
                cluster.change(n * 7 % WAITING_FROM, phase=("Starting", "Running")[n % 2])


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(MARKUP if "--markup" in sys.argv else ""))
