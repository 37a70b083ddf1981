"""Planners as processes on a real nats-server, and a watcher made of memory that feeds them."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from shared.bus import questions
from shared.bus.connection import Bus
from shared.bus.errors import BusUnavailable, Superseded
from shared.bus.fence import FencedLog
from shared.bus.setup import SURVIVORS_WAIT_S, ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.cluster import (
    Gone,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    SnapshotPage,
    SnapshotRequest,
    Synced,
)
from shared.contracts.decisions import DecisionRecord, EpochOpened, GangDecision
from shared.contracts.foreign_messages import is_foreign
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.verdicts import Verdict
from shared.model.objects import Node, Pod, PodGroup, Shape
from tests.support.snapshots import snapshot_of
from tests.support.waiting import eventually
from tutti.lifeline import dying_with_parent

#: To become ready takes a planner about a second of CPU: much more on a busy machine.
_READY_S = 45.0
_GPU_SHAPE = codec.encode(Shape(requests=(("cpu", 1000), ("nvidia.com/gpu", 1), ("pods", 1))))


def now_ms() -> int:
    """The wall clock, as the services read it."""
    return time.time_ns() // 1_000_000


def make_node(name: str, *, gpus: int = 1) -> Node:
    """A node of 4 CPU."""
    return Node(
        uid=f"uid-{name}",
        name=name,
        resource_version=1,
        allocatable=(("cpu", 4000), ("memory", 1 << 34), ("nvidia.com/gpu", gpus), ("pods", 110)),
    )


def make_gang(name: str, size: int) -> tuple[PodGroup, list[Pod]]:
    """A kube-batch PodGroup and its pods, a GPU each."""
    group = PodGroup(
        uid=f"uid-{name}",
        dialect="incubator",
        namespace="default",
        name=name,
        resource_version=1,
        min_member=size,
    )
    pods = [
        Pod(
            uid=f"uid-{name}-{index}",
            namespace="default",
            name=f"{name}-{index}",
            resource_version=1,
            shape=_GPU_SHAPE,
            ours=True,
            scheduler_name="kube-batch",
            group_name=name,
        )
        for index in range(size)
    ]
    return group, pods


class MemoryWatcher:
    """The watcher's protocol over objects that a test gives it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.nodes: dict[str, Node] = {}
        self.groups: dict[str, PodGroup] = {}
        self.pods: dict[str, Pod] = {}
        self._log = FencedLog(bus, subjects.CLUSTER, last_applied=1)
        self._log.overlook(partial(is_foreign, subjects.CLUSTER))
        self.epoch = 2
        self._appending = asyncio.Lock()

    def _synced(self) -> Synced:
        return Synced(epoch=self.epoch, at_ms=now_ms(), watcher="memory")

    async def open(self) -> None:
        """Open the epoch and answer snapshots."""
        assert await self.append(subjects.CLUSTER_SYNCED, self._synced()) == self.epoch
        await questions.serve(
            self._bus, subjects.ASK_SNAPSHOT, codec.decode_snapshot_request, self._answer
        )

    async def begin_again(self) -> None:
        """Open an epoch in a CLUSTER that was made again, as the next watcher does."""
        async with self._appending:
            self._log = FencedLog(self._bus, subjects.CLUSTER, last_applied=1)
        assert await self.append(subjects.CLUSTER_SYNCED, self._synced()) == self.epoch

    async def renew_forever(self) -> None:
        """Say that the view is fresh, each half second."""
        while True:
            await asyncio.sleep(0.5)
            with contextlib.suppress(Superseded):  # the log was lost: its successor continues
                await self.append(subjects.CLUSTER_SYNCED, self._synced())

    async def submit(self, name: str, size: int) -> None:
        """Create a gang, group first."""
        group, pods = make_gang(name, size)
        self.groups[group.uid] = group
        self.pods |= {pod.uid: pod for pod in pods}
        await self.append(
            subjects.cluster("podgroup"),
            PodGroupChanges(epoch=self.epoch, at_ms=now_ms(), changed=(group,)),
        )
        await self.append(
            subjects.cluster("pod"),
            PodChanges(epoch=self.epoch, at_ms=now_ms(), changed=tuple(pods)),
        )

    async def submit_bare(self, name: str, size: int) -> None:
        """Create pods that name no group; the group they are read into does not exist."""
        pods = [replace(pod, group_implied=True) for pod in make_gang(name, size)[1]]
        self.pods |= {pod.uid: pod for pod in pods}
        await self.append(
            subjects.cluster("pod"),
            PodChanges(epoch=self.epoch, at_ms=now_ms(), changed=tuple(pods)),
        )

    async def delete_pods(self, name: str) -> None:
        """Delete a gang's pods."""
        gone = [pod for pod in self.pods.values() if pod.group_name == name]
        for pod in gone:
            del self.pods[pod.uid]
        removed = tuple(Gone(uid=pod.uid, resource_version=2) for pod in gone)
        await self.append(
            subjects.cluster("pod"),
            PodChanges(epoch=self.epoch, at_ms=now_ms(), removed=removed),
        )

    def forget(self, name: str) -> None:
        """A gang goes while no watcher follows the log: the next snapshot is without it."""
        del self.groups[f"uid-{name}"]
        self.pods = {uid: pod for uid, pod in self.pods.items() if pod.group_name != name}

    async def add_node(self, node: Node) -> None:
        """A node joins."""
        self.nodes[node.uid] = node
        await self.append(
            subjects.cluster("node"),
            NodeChanges(epoch=self.epoch, at_ms=now_ms(), changed=(node,)),
        )

    async def append(self, subject: str, record: object) -> int:
        """Append a record to CLUSTER; its sequence."""
        payload = codec.encode(record)
        async with self._appending:
            while True:
                try:
                    return await self._log.append(subject, payload)
                except BusUnavailable:
                    continue  # its fate is unknown still: the same again

    async def _answer(self, _request: SnapshotRequest) -> SnapshotPage:
        async with self._appending:
            objects = [*self.nodes.values(), *self.groups.values(), *self.pods.values()]
            return snapshot_of(
                objects, at_ms=now_ms(), epoch=self.epoch, cluster_seq=self._log.last_applied
            )


class Hall:
    """Everything a test of planners needs: the bus, the watcher, the processes, the logs."""

    def __init__(self, bus: Bus, watcher: MemoryWatcher, url: str, folder: Path) -> None:
        self.bus = bus
        self.watcher = watcher
        self.url = url
        self.folder = folder
        self.processes: dict[int, asyncio.subprocess.Process] = {}

    async def start_again(self) -> None:
        """Set up a server that has lost streams, and follow a new CLUSTER as a watcher does."""
        await self.bus.wait_connected()
        await ensure_streams(self.bus, survivors_wait_s=SURVIVORS_WAIT_S)
        if (await self.bus.stream_info(subjects.CLUSTER)).last_seq == 1:
            await self.watcher.begin_again()

    async def start(self, ordinal: int, *flags: str) -> asyncio.subprocess.Process:
        """Start a planner process; its log goes to the folder."""
        with (self.folder / f"planner-{ordinal}.log").open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "services.gang_planner",
                f"--nats-url={self.url}",
                f"--ordinal={ordinal}",
                *flags,
                stdout=output,
                stderr=output,
                preexec_fn=dying_with_parent(),
            )
        self.processes[ordinal] = process
        return process

    async def kill(self, ordinal: int) -> None:
        """End it as a crash would."""
        process = self.processes.pop(ordinal)
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()

    async def wait_logged(self, ordinal: int, text: str) -> None:
        """Wait until a planner has logged a text."""
        log = self.folder / f"planner-{ordinal}.log"

        async def logged() -> bool:
            return text in log.read_text()

        await eventually(logged, timeout_s=20.0, because=f"planner {ordinal} logs {text!r}")

    async def statuses(self) -> list[ServiceStatus]:
        """What every planner says of itself."""
        answers = await questions.ask_all(
            self.bus, subjects.ASK_STATUS, StatusRequest(), codec.decode_status, wait_s=0.2
        )
        return [answer for answer in answers if answer.service == "gang-planner"]

    async def wait_active(self, timeout_s: float = _READY_S) -> int:
        """The ordinal of the one active planner."""

        async def active() -> list[ServiceStatus]:
            return [one for one in await self.statuses() if one.active and one.ready]

        found = await eventually(active, timeout_s=timeout_s, because="one planner is active")
        assert len(found) == 1, found
        return int(found[0].instance.rsplit("-", 1)[1])

    async def wait_ready(self, count: int) -> None:
        """Wait until so many planners are ready."""

        async def ready() -> bool:
            return sum(one.ready for one in await self.statuses()) == count

        await eventually(ready, timeout_s=_READY_S, because=f"{count} planners are ready")

    async def records(self) -> list[DecisionRecord]:
        """Every record of DECISIONS so far, without foreign messages."""
        last = (await self.bus.stream_info(subjects.DECISIONS)).last_seq
        records = []
        for seq in range(1, last + 1):
            stored = await self.bus.get_message(subjects.DECISIONS, seq)
            assert stored is not None
            if not is_foreign(subjects.DECISIONS, stored.payload):
                records.append(codec.decode_decision_record(stored.payload))
        return records

    async def decisions(self) -> list[GangDecision]:
        """The gang decisions so far."""
        return [one for one in await self.records() if isinstance(one, GangDecision)]

    async def wait_decided(self, gang: str, timeout_s: float = 30.0) -> GangDecision:
        """The first decision on a gang."""

        async def decided() -> GangDecision | None:
            return next((d for d in await self.decisions() if d.gang == f"default/{gang}"), None)

        found = await eventually(decided, timeout_s=timeout_s, because=f"{gang} is decided")
        assert found is not None
        return found

    async def epochs(self) -> list[EpochOpened]:
        """The planners' epochs so far."""
        return [one for one in await self.records() if isinstance(one, EpochOpened)]

    async def requests(self) -> list[Verdict]:
        """The newest verdict that wants, or wanted last, a PodGroup."""
        stored = await self.bus.get_last(subjects.VERDICTS, subjects.WANTED_SUBJECTS)
        return [codec.decode_verdict(stored.payload)] if stored else []

    async def verdict(self, gang: str) -> Verdict | None:
        """The last word on a gang."""
        stored = await self.bus.get_last(subjects.VERDICTS, subjects.verdict(f"uid-{gang}"))
        return codec.decode_verdict(stored.payload) if stored else None


@asynccontextmanager
async def a_hall(
    url: str,
    folder: Path,
    *,
    nodes: int = 4,
    replicas: int = 1,
    user: str = "",
    credentials: str = "",
) -> AsyncIterator[Hall]:
    """Streams, an open watcher's epoch with `nodes` GPU nodes, and no planner yet.

    A `user` of the server must be one that may do everything.
    """
    bus = await Bus.connect(url, name="hall", user=user, credentials=credentials)
    await ensure_streams(bus, replicas=replicas)
    watcher = MemoryWatcher(bus)
    watcher.nodes = {f"uid-n{i}": make_node(f"n{i}") for i in range(nodes)}
    hall = Hall(bus, watcher, url, folder)
    await watcher.open()
    renewing = asyncio.create_task(watcher.renew_forever(), name="renewing")
    try:
        yield hall
    finally:
        renewing.cancel()
        for ordinal in list(hall.processes):
            await hall.kill(ordinal)
        await bus.close()
