"""A watcher as a process, and a reader of its records: for the integration tests."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from shared.bus import questions
from shared.bus.connection import Bus
from shared.contracts import codec, subjects
from shared.contracts.cluster import (
    ClusterRecord,
    SnapshotPage,
    SnapshotRequest,
    StreamOpened,
    Synced,
)
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.model.objects import ClusterObject
from tests.support.waiting import eventually
from tutti.lifeline import dying_with_parent


class WatcherProcess:
    """`python -m services.watcher`, as users of the suite run it."""

    def __init__(self, process: asyncio.subprocess.Process, instance: str, log: Path) -> None:
        self.process = process
        self.instance = instance
        self._log = log

    @classmethod
    async def start(cls, folder: Path, nats_url: str, kubeconfig: Path, instance: str) -> Self:
        """Start one; its log goes to the folder."""
        log = folder / f"{instance}.log"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "services.watcher",
                f"--nats-url={nats_url}",
                f"--kubeconfig={kubeconfig}",
                f"--instance={instance}",
                stdout=output,
                stderr=output,
                preexec_fn=dying_with_parent(),
            )
        return cls(process, instance, log)

    async def kill(self) -> None:
        """End it as a crash would."""
        self.signal(signal.SIGKILL)
        await self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal if it lives."""
        if self.process.returncode is None:
            self.process.send_signal(number)

    async def wait(self, timeout_s: float = 10.0) -> int:
        """Its exit status."""
        async with asyncio.timeout(timeout_s):
            return await self.process.wait()

    async def wait_logged(self, text: str, timeout_s: float = 20.0) -> None:
        """Wait until it has logged a text."""

        async def logged() -> bool:
            return text in self.log()

        await eventually(logged, timeout_s=timeout_s, because=f"{self.instance} logs {text!r}")

    def log(self) -> str:
        """What it has logged so far."""
        return self._log.read_text()


@asynccontextmanager
async def running_watcher(
    folder: Path, nats_url: str, kubeconfig: Path, instance: str
) -> AsyncIterator[WatcherProcess]:
    """A watcher that is gone afterwards, whatever the test did to it."""
    watcher = await WatcherProcess.start(folder, nats_url, kubeconfig, instance)
    try:
        yield watcher
    finally:
        await watcher.kill()


class Reader:
    """Reads CLUSTER and asks for snapshots, as a planner does, but from the stream's start."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._records: list[ClusterRecord] = []

    async def records(self) -> list[ClusterRecord]:
        """Every record of CLUSTER up to now, in order."""
        last = (await self._bus.stream_info(subjects.CLUSTER)).last_seq
        for seq in range(len(self._records) + 1, last + 1):
            stored = await self._bus.get_message(subjects.CLUSTER, seq)
            assert stored is not None
            record = codec.decode_cluster(stored.payload)
            assert isinstance(record, StreamOpened) == (seq == 1)
            self._records.append(record)
        return list(self._records)

    async def epochs(self) -> list[int]:
        """The epochs in CLUSTER, in order of their opening; a take-over's, of which nothing is
        known yet, is left out.
        """
        epochs = [
            one.epoch
            for one in await self.records()
            if isinstance(one, Synced) and one.resource_versions
        ]
        return list(dict.fromkeys(epochs))

    async def wait_epoch(self, number: int, timeout_s: float = 15.0) -> Synced:
        """The first `synced` of the number-th epoch, counted from 1."""

        async def opened() -> Synced | None:
            epochs = await self.epochs()
            if len(epochs) < number:
                return None
            records = await self.records()
            return next(
                one
                for one in records
                if isinstance(one, Synced) and one.epoch == epochs[number - 1]
            )

        found = await eventually(opened, timeout_s=timeout_s, because=f"epoch number {number}")
        assert found is not None
        return found

    async def sent(self, kind: str, name: str) -> list[ClusterObject]:
        """All versions of one object in the log, oldest first."""
        return [
            changed
            for one in await self.records()
            if not isinstance(one, Synced | StreamOpened)
            for changed in one.changed
            if type(changed).__name__.lower() == kind and changed.name == name
        ]

    async def snapshot(self) -> tuple[list[ClusterObject], SnapshotPage]:
        """All objects, and the snapshot's first page."""
        first = await self._page(SnapshotRequest())
        objects = [changed for record in first.records for changed in record.changed]
        for number in range(1, first.pages):
            page = await self._page(SnapshotRequest(snapshot=first.snapshot, page=number))
            objects += [changed for record in page.records for changed in record.changed]
        return objects, first

    async def statuses(self) -> dict[str, ServiceStatus]:
        """What every watcher says of itself."""
        answers = await questions.ask_all(
            self._bus, subjects.ASK_STATUS, StatusRequest(), codec.decode_status, wait_s=0.3
        )
        return {answer.instance: answer for answer in answers}

    async def _page(self, request: SnapshotRequest) -> SnapshotPage:
        answer = await questions.ask(
            self._bus,
            subjects.ASK_SNAPSHOT,
            request,
            codec.decode_snapshot_answer,
            timeout_s=5,
        )
        assert isinstance(answer, SnapshotPage), answer
        return answer
