"""Two schedulers on the same nodes: kube-scheduler with Kubernetes' own gangs, and Tutti with its
gangs of every API, while services of both are killed; then quiet, until every gang has finished.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from tests.chaos.audit import PARTIAL_ALLOWED_S
from tests.chaos.finishing import FinishingUsers
from tests.chaos.forms import KUBE_SCHEDULER, KUBERNETES_GROUPS, TUTTI
from tests.chaos.monkey import SERVICES, Monkey
from tests.chaos.report import is_whole
from tests.chaos.running import (
    MEAN_SIZE,
    PODS_PER_NODE,
    SEEN_S,
    START_DELAY_S,
    playing,
    prepared,
    storm,
)
from tests.chaos.shared_nodes import CONFLICT_ALLOWED_S, SCHEDULERS, SharedNodesJudge
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import SCHEDULER, ControlPlaneOptions
from tests.controlplane.kubelet import FakeKubelet
from tests.integration.suite import RunningSuite

FAULTS: Final = (
    *(f"{name} killed" for name in SERVICES),
    "binder frozen",
    "everything killed",
    "nats-server killed",
    "kube-scheduler killed",
)
#: Scheduler -> what writes the statuses of its PodGroups of Kubernetes: nothing else may.
WRITERS: Final = {TUTTI: "tutti-controller", KUBE_SCHEDULER: "kube-scheduler"}
#: What gangs alive at once ask for, in shares of what all nodes offer.
DEMAND: Final = 1.5
#: Once no gang comes any more, all must have finished within this.
DRAIN_S: Final = 90.0
_GATES: Final = "--feature-gates=GenericWorkload=true,GangScheduling=true"
OPTIONS: Final = ControlPlaneOptions(
    scheduler=True,
    apiserver_args=(_GATES, f"--runtime-config={KUBERNETES_GROUPS}=true"),
    scheduler_args=(_GATES,),
)


class OfScheduler(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found of one scheduler's gangs."""

    gangs: int
    finished: int
    #: Pods that a kubelet refused, and how many gangs they were of.
    refused: int
    refused_gangs: int
    #: The longest time of one below its minimum, and all seconds beyond what is allowed.
    below_longest_s: float
    below_beyond_s: float
    overcommitted_alone: tuple[str, ...]
    #: Of its PodGroups of Kubernetes: how many were reported as scheduled, and what wrote statuses.
    reported_scheduled: int
    status_writers: tuple[str, ...]


class SharedReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    seed: int
    minutes: float
    nodes: int
    faults: dict[str, int]
    #: By scheduler.
    schedulers: dict[str, OfScheduler]
    conflicts: int
    conflict_longest_s: float
    overcommitted_running: tuple[str, ...]
    double_bindings: tuple[str, ...]
    #: PodGroups of Kubernetes whose first success was reported and did not stay.
    success_lost: tuple[str, ...]
    unfinished: tuple[str, ...]
    #: From the last arrival until every gang had finished.
    drained_s: float

    def broken(self) -> Iterator[str]:
        """What is not as promised."""
        if self.conflict_longest_s > CONFLICT_ALLOWED_S:
            yield f"a node was over-filled for {self.conflict_longest_s:.1f} s"
        beyond_s = self.schedulers[TUTTI].below_beyond_s
        if beyond_s > 0:
            yield f"{beyond_s:.1f} s of Tutti's gangs below their minimum beyond what is allowed"
        of_schedulers = [
            (f"{title} {name}", found)
            for name, one in self.schedulers.items()
            for title, found in (
                ("over-committed by the pods alone of", one.overcommitted_alone),
                ("wrote the status of groups of", tuple({*one.status_writers} - {WRITERS[name]})),
            )
        ]
        for title, found in (
            *of_schedulers,
            ("over-committed by running pods", self.overcommitted_running),
            ("bound twice", self.double_bindings),
            ("the first success is no longer reported", self.success_lost),
            ("never finished", self.unfinished),
        ):
            if found:
                yield f"{title}: {', '.join(found[:5])}"

    def table(self) -> str:
        """Return the table of a report."""
        rows = [
            ("faults", str(sum(self.faults.values()))),
            ("conflicts on nodes", str(self.conflicts)),
            ("… the longest", f"{self.conflict_longest_s:.2f} s"),
            ("over-committed by running pods", str(len(self.overcommitted_running))),
            ("double bindings", str(len(self.double_bindings))),
            ("reports of success that were lost", str(len(self.success_lost))),
            ("gangs that never finished", str(len(self.unfinished))),
            ("drained after", f"{self.drained_s:.1f} s"),
        ]
        lines = [f"{name:<34}{value}" for name, value in rows]
        lines += ["", f"{'':<34}" + "".join(f"{name:>20}" for name in self.schedulers)]
        titles = (
            ("gangs", "gangs"),
            ("finished", "finished"),
            ("groups reported as scheduled", "reported_scheduled"),
            ("pods refused by kubelets", "refused"),
            ("… of so many gangs", "refused_gangs"),
            ("longest below the minimum, s", "below_longest_s"),
            (f"… beyond {PARTIAL_ALLOWED_S:.0f} s each, s", "below_beyond_s"),
        )
        for title, name in titles:
            values = (getattr(found, name) for found in self.schedulers.values())
            lines.append(f"{title:<34}" + "".join(f"{value:>20}" for value in values))
        return "\n".join(lines)


async def run(
    control_plane: ControlPlane,
    suite: RunningSuite,
    *,
    seed: int,
    minutes: float,
    nodes: int,
    only: Sequence[str] = (),
    say: Callable[[str], None],
) -> SharedReport:
    """Play `minutes` of chaos, let all gangs finish, and judge."""
    rng = random.Random(seed)
    async with prepared(control_plane, nodes) as (client, hands, eyes):
        room = nodes * PODS_PER_NODE
        kubelet = FakeKubelet(hands, start_delay_s=START_DELAY_S)
        users = FinishingUsers(
            client,
            random.Random(rng.random()),
            alive_max=round(room * DEMAND / MEAN_SIZE),
            room=room,
            finish=kubelet.finish,
        )
        judge = SharedNodesJudge(eyes)
        monkey = Monkey(
            suite,
            control_plane,
            client,
            users,
            random.Random(rng.random()),
            only=only or FAULTS,
            whole=lambda name: is_whole(judge, name),
            say=say,
            alone=0.0,
        )
        async with playing(judge, kubelet, users) as background:
            await judge.watching()
            await storm(monkey, background, minutes)
            say("quiet: every gang must finish now")
            users.coming = False
            began_s = asyncio.get_running_loop().time()
            await _drain(users, background, control_plane, say)
            drained_s = asyncio.get_running_loop().time() - began_s
            # Nothing is left of the earlier gangs: each scheduler can use the whole cluster.
            for scheduler in SCHEDULERS:
                say(f"all nodes for one gang of {scheduler}")
                users.request(scheduler, room)
                await _drain(users, background, control_plane, say)
            await judge.catch_up(SEEN_S)
            return _report(users, judge, monkey, (seed, minutes, nodes), drained_s)


async def _drain(
    users: FinishingUsers,
    background: list[asyncio.Task[None]],
    control_plane: ControlPlane,
    say: Callable[[str], None],
) -> None:
    """Wait until every gang has finished and is deleted, or for long enough."""
    deadline_s = asyncio.get_running_loop().time() + DRAIN_S
    left = ""
    while users.alive() and asyncio.get_running_loop().time() < deadline_s:
        alive = Counter(one.scheduler for one in users.alive())
        counts = ", ".join(f"{alive[name]} of {name}" for name in SCHEDULERS)
        if counts != left:
            say(f"left: {counts}")
            left = counts
        for task in background:
            if task.done():
                task.result()
        if not control_plane.runs(SCHEDULER):  # it ends itself when its cache is corrupted
            await asyncio.to_thread(control_plane.restart, SCHEDULER)
        await asyncio.sleep(0.5)


def _report(
    users: FinishingUsers,
    judge: SharedNodesJudge,
    monkey: Monkey,
    drawn: tuple[int, float, int],
    drained_s: float,
) -> SharedReport:
    seed, minutes, nodes = drawn
    faults = [fault.kind for fault in monkey.faults]
    return SharedReport(
        seed=seed,
        minutes=minutes,
        nodes=nodes,
        faults={kind: faults.count(kind) for kind in sorted(set(faults))},
        schedulers={name: _of_scheduler(name, users, judge) for name in SCHEDULERS},
        conflicts=judge.conflict_count(),
        conflict_longest_s=round(judge.longest_conflict_s(), 3),
        overcommitted_running=tuple(judge.overcommitted_running),
        double_bindings=tuple(judge.double_bindings()),
        success_lost=tuple(judge.success_lost),
        unfinished=tuple(users.unfinished()),
        drained_s=round(drained_s, 1),
    )


def _of_scheduler(name: str, users: FinishingUsers, judge: SharedNodesJudge) -> OfScheduler:
    gangs = {one.name for one in users.gangs.values() if one.scheduler == name}
    refused = judge.refused_gangs[name]
    longest_s, beyond_s = judge.below_minimum_s(name)
    writers = {one for gang in gangs for one in judge.status_writers.get(gang, ())}
    return OfScheduler(
        gangs=len(gangs),
        finished=len(gangs & users.finished),
        refused=len(refused),
        refused_gangs=len(set(refused)),
        below_longest_s=round(longest_s, 3),
        below_beyond_s=round(beyond_s, 3),
        overcommitted_alone=tuple(judge.overcommitted_alone[name]),
        reported_scheduled=len(gangs & judge.reported_scheduled),
        status_writers=tuple(sorted(writers)),
    )
