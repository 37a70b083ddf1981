"""Arrivals that wait to be applied, in one bounded queue, so that one task changes the state."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from shared.contracts import codec
from shared.contracts.cluster import ClusterRecord, SnapshotPage
from shared.contracts.decisions import Checkpoint, DecisionRecord
from shared.contracts.outcomes import Outcome
from shared.contracts.questions import RequestRefused

#: Enough for a burst; beyond it the log readers wait, and NATS keeps the records.
ARRIVALS_MAX: Final = 4096


class ClusterArrival(NamedTuple):
    """A record of CLUSTER."""

    seq: int
    record: ClusterRecord
    payload: bytes
    #: When the stream stored it; likewise below.
    stored_ms: int = 0
    #: When it arrived, in seconds of this process's `steady_s`.
    arrived_s: float = 0.0


class DecisionArrival(NamedTuple):
    """A record of DECISIONS. It is decoded where it is needed: a writer reads mostly its own
    records, which it has applied.
    """

    seq: int
    payload: bytes
    stored_ms: int = 0
    #: How long before its arrival it was stored; 0 for one stored after reading began.
    age_ms: int = 0

    def decode(self) -> DecisionRecord:
        record: DecisionRecord = codec.decode_decision_record(self.payload)
        return record


class ForeignArrival(NamedTuple):
    """A message that no writer of the stream wrote; it is skipped."""

    stream: str
    seq: int
    subject: str
    payload: bytes


class OutcomeArrival(NamedTuple):
    """A record of OUTCOMES."""

    seq: int
    record: Outcome
    payload: bytes
    stored_ms: int = 0


class IrrelevantArrival(NamedTuple):
    """A record of OUTCOMES without effect on planners: the outcome of a decision in a DECISIONS
    that was lost, or a claim between binders.
    """

    seq: int


class VerdictArrival(NamedTuple):
    """The last verdict on one gang, as the active planner published it.

    It is not decoded: a standby keeps the newest one per gang, and reads them when it takes over.
    """

    seq: int
    gang_id: str
    #: The gang does not exist any more.
    gone: bool
    payload: bytes


class RefusalArrival(NamedTuple):
    """A report of the controller. It is in no log: the controller sends it again to a planner that
    does not know it.
    """

    report: RequestRefused


class EndsArrival(NamedTuple):
    """The last sequences of the streams when this planner read them: it is caught up once it has
    applied these.
    """

    ends: Mapping[str, int]


class SnapshotArrival(NamedTuple):
    """A whole snapshot: it replaces the cluster state."""

    pages: tuple[SnapshotPage, ...]
    #: As in `ClusterArrival`: when the newest `synced` in it would have arrived.
    arrived_s: float = 0.0


class CheckpointArrival(NamedTuple):
    """The last checkpoint: gangs and decisions that were open when it was written. Without pages
    there is none, and the log has every record.

    The goals are the last records of DECISIONS, OUTCOMES and VERDICTS when reading began: a planner
    has caught up once it has applied these.
    """

    pages: tuple[Checkpoint, ...]
    goals: Mapping[str, int]


Arrival: TypeAlias = (
    ClusterArrival
    | DecisionArrival
    | ForeignArrival
    | OutcomeArrival
    | IrrelevantArrival
    | VerdictArrival
    | RefusalArrival
    | EndsArrival
    | SnapshotArrival
    | CheckpointArrival
)


class Inbox:
    """A bounded queue that is emptied at once."""

    def __init__(self) -> None:
        self._arrivals: deque[Arrival] = deque()
        self._arrived = asyncio.Event()
        self._space = asyncio.Event()
        self._space.set()

    async def put(self, arrivals: list[Arrival]) -> None:
        """Add arrivals in their order; waits while the queue is full."""
        await self._space.wait()
        self._arrivals.extend(arrivals)
        self._arrived.set()
        if len(self._arrivals) >= ARRIVALS_MAX:
            self._space.clear()

    def wake(self) -> None:
        """Make `take` return without an arrival."""
        self._arrived.set()

    async def take(self, timeout_s: float | None) -> list[Arrival]:
        """Wait for an arrival, and return all that there are; none after `timeout_s` or `wake`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._arrived.wait()
        except TimeoutError:
            return []
        self._arrived.clear()
        taken = list(self._arrivals)
        self._arrivals.clear()
        self._space.set()
        return taken
