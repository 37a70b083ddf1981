"""Follow the streams that the API shows, and pass changes to the watches.

Each writes a part of one `ApiState`. Foreign messages are skipped.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from services.api.core.cluster_state import KINDS
from services.api.core.decision_history import DECISIONS_MAX
from services.api.core.gang_book import Place
from services.api.state import ApiState
from shared.bus.cluster_log import follow_cluster
from shared.bus.connection import Bus
from shared.bus.errors import LogGap, StreamReplaced
from shared.bus.log_reader import LogReader
from shared.bus.pull import Delivery
from shared.bus.stream_reads import wait_for_stream
from shared.contracts import codec, subjects
from shared.contracts.cluster import ClusterRecord, SnapshotPage
from shared.contracts.foreign_messages import OnForeign, is_foreign, unless_foreign

_decode_verdict: Final = unless_foreign(subjects.VERDICTS, codec.decode_verdict)

#: How long notes and outcomes wait for the decisions.
_DECISIONS_S: Final = 5.0

OnPlaces = Callable[[set[Place]], None]
"""Called with the places of gangs that may have changed; an empty set: only a version has."""


class ClusterFollower:
    """Follows CLUSTER (`shared.bus.cluster_log`)."""

    def __init__(
        self, bus: Bus, ordinal: int, state: ApiState, on_places: OnPlaces, on_foreign: OnForeign
    ) -> None:
        self._bus = bus
        self._consumer = subjects.api_consumer(subjects.CLUSTER, ordinal)
        self._state = state
        self._on_places = on_places
        self._on_foreign = on_foreign
        self._touched: set[Place] = set()
        self._heard_s: float | None = None

    @property
    def silent_s(self) -> float:
        """Seconds since the watcher was last heard; infinite before."""
        if self._heard_s is None:
            return float("inf")
        return asyncio.get_running_loop().time() - self._heard_s

    async def run(self) -> None:
        """Follow until cancelled."""
        await follow_cluster(
            self._bus, self._consumer, self, kinds=KINDS, on_foreign=self._on_foreign
        )

    def replace(self, pages: Sequence[SnapshotPage]) -> None:
        """As `ClusterReader`."""
        self._touched = self._state.replace_cluster(pages)
        self.applied()

    def apply(self, seq: int, record: ClusterRecord) -> None:
        """As `ClusterReader`."""
        self._touched |= self._state.apply_cluster(seq, record)

    def applied(self) -> None:
        """As `ClusterReader`."""
        self._heard_s = asyncio.get_running_loop().time()
        touched, self._touched = self._touched, set()
        self._on_places(touched)


class VerdictFollower:
    """Follows VERDICTS: the newest verdict of each gang, and then every one."""

    def __init__(
        self,
        bus: Bus,
        ordinal: int,
        state: ApiState,
        on_places: OnPlaces,
        on_replaced: Callable[[], None],
        on_foreign: OnForeign,
    ) -> None:
        """`on_replaced` is called when the stream is another one, after the state was cleared."""
        self._bus = bus
        self._consumer = subjects.api_consumer(subjects.VERDICTS, ordinal)
        self._state = state
        self._on_places = on_places
        self._on_replaced = on_replaced
        self._on_foreign = on_foreign
        #: Set when the verdicts that the stream had at the beginning have been read; cleared when
        #: the stream is another one.
        self.complete = asyncio.Event()
        self._until = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            info = await wait_for_stream(self._bus, subjects.VERDICTS)
            newest = await self._bus.get_last(subjects.VERDICTS, subjects.VERDICTS_SUBJECTS)
            self._until = newest.seq if newest is not None else 0
            self._note_complete(0)
            try:
                await self._follow(max(info.first_seq, 1))
            except StreamReplaced:
                self.complete.clear()
                self._state.forget_verdicts()
                self._on_replaced()

    async def _follow(self, first: int) -> None:
        reader = LogReader(self._bus, subjects.VERDICTS, self._consumer, filtered=True)
        while True:
            try:
                await reader.run(first, self._take)
            except LogGap as gap:
                # Newer verdicts have replaced these: the stream keeps one for each gang.
                first = gap.available

    def _note_complete(self, seq: int) -> None:
        if seq >= self._until:
            self.complete.set()

    async def _take(self, deliveries: list[Delivery]) -> None:
        touched: set[Place] = set()
        for delivery in deliveries:
            verdict = _decode_verdict(delivery.payload)
            if verdict is None:
                self._on_foreign(
                    subjects.VERDICTS, delivery.seq, delivery.subject, delivery.payload
                )
                continue
            touched |= self._state.take_verdict(delivery.seq, verdict)
        self._on_places(touched)
        self._note_complete(deliveries[-1].seq)


class HistoryFollower:
    """Follows the decisions or the notes in DECISIONS, or OUTCOMES, beginning with the newest
    `DECISIONS_MAX` records.
    """

    def __init__(
        self,
        bus: Bus,
        ordinal: int,
        state: ApiState,
        on_foreign: OnForeign,
        stream: str,
        records: str,
        *,
        after: "HistoryFollower | None" = None,
    ) -> None:
        """`records`: as in `subjects.api_consumer`. `after`: the follower of the decisions to which
        they belong, which reads what there is first; None: this is that one.
        """
        self._bus = bus
        self._stream = stream
        self._state = state
        self._on_foreign = on_foreign
        self._after = after
        self.consumer = subjects.api_consumer(records, ordinal)
        #: Set once the records that the stream had at the beginning have been read.
        self.complete = asyncio.Event()

    async def run(self) -> None:
        """Follow until cancelled."""
        if self._after is not None:
            # A stream may have no decisions, of which nothing would report the last.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._after.complete.wait(), _DECISIONS_S)
        while True:
            info = await wait_for_stream(self._bus, self._stream)
            first = max(info.first_seq, info.last_seq - DECISIONS_MAX, 1)
            reader = LogReader(self._bus, self._stream, self.consumer, filtered=True)
            try:
                await reader.run(first, self._take)
            except (LogGap, StreamReplaced):
                # Without later notes and outcomes, only these lack in their decisions.
                if self._after is None:
                    self._state.forget_decisions()

    async def _take(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            if is_foreign(self._stream, delivery.payload):
                self._on_foreign(self._stream, delivery.seq, delivery.subject, delivery.payload)
            elif self._stream == subjects.OUTCOMES:
                self._state.take_record(delivery.seq, codec.decode_outcome(delivery.payload))
            else:
                self._state.take_record(delivery.seq, codec.decode_act_or_note(delivery.payload))
        if not deliveries[-1].pending:
            self.complete.set()
