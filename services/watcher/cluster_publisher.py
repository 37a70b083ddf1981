"""Appends to CLUSTER: changes as they come, and a renewal each second.

Group commit: while one append waits for its acknowledgement, changes collect in the cluster state;
the next flush takes them all. A change after a quiet time is appended at once; a lasting stream is
packed into at most a hundred flushes a second while it brings new objects, and into ten while only
known pods and groups change (docs/pacing.md). A snapshot is frozen between two flushes,
and corresponds to the last sequence of the first one.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final, NoReturn

from services.watcher.core.changes import fitting, kind_of
from services.watcher.core.snapshots import Boundary
from services.watcher.reporting import Reporting
from services.watcher.state import WatcherState
from shared.bus.connection import Bus
from shared.bus.errors import AppendRefused, BusUnavailable, Superseded
from shared.bus.fence import FencedLog
from shared.bus.stream_reads import last_of_foreign
from shared.contracts import codec, subjects
from shared.contracts.cluster import Synced
from shared.contracts.foreign_messages import is_foreign
from shared.model.invariants import InvariantViolation, required
from shared.pacing import Backoff, TokenBucket

#: How often `cluster.synced` is renewed; readers stop deciding when it is older than five seconds.
RENEWAL_S: Final = 1.0
#: Flushes after a quiet time that do not wait: a gang of eight is its group, its pods and their
#: bindings. Then one each 10 ms at most: every append costs the watcher, the server and each reader
#: a fixed amount of CPU, whatever its size.
_FLUSHES_BURST: Final = 24
_FLUSHES_PER_S: Final = 100
#: The same while there is no urgent change (`ClusterState.has_urgent`): in a drain, each message
#: less saves the server and two planners 1.7 ms of CPU.
_CALM_FLUSHES_BURST: Final = 12
_CALM_FLUSHES_PER_S: Final = 10
#: Messages stay well below the server's limit: at a quarter of it they are as cheap per change.
MESSAGE_BYTES: Final = subjects.MESSAGE_BYTES_MAX // 4
#: Longest pause between attempts while CLUSTER refuses: no leader, full, or being set up.
_PAUSE_S_MAX: Final = 2.0

_is_foreign: Final = partial(is_foreign, subjects.CLUSTER)

logger = logging.getLogger(__name__)


class ClusterPublisher:
    """Appends the state's changes under one epoch: `take_over`, `open`, then `run`; `poke` reports
    changes.
    """

    def __init__(
        self, state: WatcherState, *, watcher: str, now_ms: Callable[[], int], reporting: Reporting
    ) -> None:
        """Publish the changes of `state`; `watcher` is this instance's name, for `Synced`."""
        self._state = state
        self._watcher = watcher
        self._now_ms = now_ms
        self._reporting = reporting
        self._log: FencedLog | None = None
        self._bus: Bus | None = None
        self._generation = ""
        #: Why CLUSTER refuses appends now; "" while it takes them. No change is dropped.
        self.stuck = ""
        self._synced: Synced | None = None
        self._due = asyncio.Event()
        self._urgent = asyncio.Event()
        self._renewal_due = False
        self._waiting: list[asyncio.Future[Boundary]] = []

    def poke(self) -> None:
        """Have the pending changes flushed."""
        if self._state.cluster_state.has_urgent():
            self._urgent.set()
        self._due.set()

    async def take_over(self, bus: Bus) -> None:
        """Fence every other watcher behind the last record of CLUSTER. Call it before the lists.

        A consistent list made after it contains at least what any predecessor has published; made
        before, the new epoch could show pods unbound that readers have seen bound (ADR 0003). The
        record opens an epoch; readers request its snapshot until that of `open` exists.

        Raises:
            Superseded: Another watcher appended at this very moment.
        """
        self._bus = bus
        self._generation = (await bus.stream_info(subjects.CLUSTER)).generation
        last = await bus.get_last(subjects.CLUSTER, subjects.CLUSTER_SUBJECTS)
        # After an hour without a watcher all records have aged out; then the stream's own last
        # sequence serves as well.
        last_seq = last.seq if last else (await bus.stream_info(subjects.CLUSTER)).last_seq
        await self._open_epoch(last_seq)

    async def open(self) -> int:
        """Open a new epoch right behind the takeover; returns it.

        No change is sent for it: readers fetch the snapshot.

        Raises:
            Superseded: Another watcher has taken over since.
        """
        log = required(self._log, "CLUSTER's log", "must be taken over before it is opened")
        self._state.cluster_state.open_epoch()
        epoch = await self._open_epoch(log.last_applied)
        required(self._log, "CLUSTER's log").overlook(_is_foreign)
        return epoch

    async def _open_epoch(self, last_applied: int) -> int:
        """Append an epoch's first record behind `last_applied`, or behind foreign messages after
        it. The record contains its own sequence, so it is built again for each attempt.
        """
        bus = required(self._bus, "bus", "must be set by take_over")
        while True:
            self._log = FencedLog(
                bus, subjects.CLUSTER, last_applied=last_applied, generation=self._generation
            )
            epoch = last_applied + 1
            self._synced = self._renewed(epoch)
            try:
                (seq,) = await self._append([(subjects.CLUSTER_SYNCED, codec.encode(self._synced))])
            except Superseded:
                behind = await last_of_foreign(bus, subjects.CLUSTER, last_applied, _is_foreign)
                if behind == last_applied:
                    raise
                last_applied = behind
                continue
            if seq != epoch:
                raise InvariantViolation(f"epoch {epoch}", f"was opened by record {seq}")
            return epoch

    async def run(self, ill: Callable[[], str]) -> NoReturn:
        """Flush after every `poke` and renew each second, until cancelled.

        Args:
            ill: Why the cluster state is not current; "" when it is. Called before each renewal.

        Raises:
            Superseded: Another watcher has taken over.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick(), name="watcher-renewals")
            pace = TokenBucket(burst=_FLUSHES_BURST, per_s=_FLUSHES_PER_S)
            calm = TokenBucket(burst=_CALM_FLUSHES_BURST, per_s=_CALM_FLUSHES_PER_S)
            while True:
                await self._due.wait()
                if not self._urgent.is_set():
                    await self._until_urgent(calm)
                wait_s = pace.draw(time.monotonic())
                if wait_s:
                    await asyncio.sleep(wait_s)
                self._due.clear()
                self._urgent.clear()
                await self._flush(ill)

    async def boundary(self) -> Boundary:
        """The cluster state at the next flush boundary; at once when no append is in flight."""
        future: asyncio.Future[Boundary] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._urgent.set()
        self._due.set()
        return await future

    async def _until_urgent(self, calm: TokenBucket) -> None:
        """Wait for a token of `calm`, or until a change is urgent."""
        wait_s = calm.draw(time.monotonic())
        if not wait_s:
            return
        try:
            async with asyncio.timeout(wait_s):
                await self._urgent.wait()
        except TimeoutError:
            return
        calm.put_back()

    async def _tick(self) -> NoReturn:
        while True:
            await asyncio.sleep(RENEWAL_S)
            self._renewal_due = True
            self._due.set()

    async def _flush(self, ill: Callable[[], str]) -> None:
        """Append pending changes, then the renewal if one is due; return the boundary to readers
        that wait for it.

        All changes are taken at once, so the frozen copy equals the records up to the last one.
        """
        log = required(self._log, "CLUSTER's log", "must be open before a flush")
        synced = required(self._synced, "epoch", "must be open before a flush")
        at_ms = self._now_ms()
        messages: list[tuple[str, bytes]] = []
        for record in self._state.cluster_state.take(epoch=synced.epoch, at_ms=at_ms):
            subject = subjects.cluster(kind_of(record))
            for part, encoded in fitting(record, MESSAGE_BYTES):
                messages.append((subject, encoded))
                self._reporting.packed(part)
        if self._renewal_due:
            self._renewal_due = False
            if not ill():
                synced = self._synced = self._renewed(synced.epoch)
                messages.append((subjects.CLUSTER_SYNCED, codec.encode(synced)))
        waiting, self._waiting = self._waiting, []
        frozen = self._state.cluster_state.freeze() if waiting else None
        if messages:
            began_s = time.perf_counter()
            await self._append(messages)
            self._reporting.flushed(messages, time.perf_counter() - began_s)
        if frozen is not None:
            boundary = Boundary(frozen=frozen, cluster_seq=log.last_applied, synced=synced)
            for future in waiting:
                if not future.done():
                    future.set_result(boundary)

    async def _append(self, messages: list[tuple[str, bytes]]) -> list[int]:
        """Append all messages; retry until CLUSTER takes them."""
        log = required(self._log, "CLUSTER's log", "must be open before an append")
        backoff = Backoff(max_s=_PAUSE_S_MAX)
        while True:
            try:
                stored = await log.append_batch(messages)
            except BusUnavailable as error:
                # Whether it was stored is unknown: the same call again finds out, with its own
                # pauses.
                self._refused(f"CLUSTER cannot be written: {error}")
            except AppendRefused as error:
                self._refused(f"CLUSTER takes nothing: {error}")
                await asyncio.sleep(backoff.next_s())
            else:
                self.stuck = ""
                return stored

    def _refused(self, why: str) -> None:
        self.stuck = why
        logger.error("%s", why)

    def _renewed(self, epoch: int) -> Synced:
        return Synced(
            epoch=epoch,
            at_ms=self._now_ms(),
            watcher=self._watcher,
            resource_versions=self._state.cluster_state.resource_versions(),
            dialects=self._state.served_dialects(),
        )
