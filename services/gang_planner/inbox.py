"""What has arrived and waits to be applied: one bounded queue, so that the state changes in one
place only.
"""

import asyncio
from collections import deque
from typing import Final, NamedTuple, TypeAlias

from shared.contracts import codec
from shared.contracts.cluster import ClusterRecord, SnapshotPage
from shared.contracts.decisions import Checkpoint, DecisionRecord
from shared.contracts.outcomes import Outcome

#: Enough for the backlog of a burst; beyond it the log readers wait, which is back-pressure on
#: NATS.
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
    """A record of DECISIONS, decoded only by a reader to which it is new: most are a writer's
    echo.
    """

    seq: int
    payload: bytes
    stored_ms: int = 0
    #: How long before its arrival it was stored, if it was there when reading began; else 0.
    age_ms: int = 0

    def decode(self) -> DecisionRecord:
        """The record."""
        record: DecisionRecord = codec.decode_decision_record(self.payload)
        return record


class ForeignArrival(NamedTuple):
    """A message in one of the streams that no writer of it wrote: it says nothing, and is stepped
    over.
    """

    stream: str
    seq: int
    subject: str
    payload: bytes
    stored_ms: int = 0


class OutcomeArrival(NamedTuple):
    """A record of OUTCOMES."""

    seq: int
    record: Outcome
    payload: bytes
    stored_ms: int = 0


class IrrelevantArrival(NamedTuple):
    """A record of OUTCOMES that means nothing here: it answers a decision of a DECISIONS that was
    lost, or is among binders only.
    """

    seq: int


class VerdictArrival(NamedTuple):
    """The last word on one gang, as some planner published it.

    Not decoded: a standby keeps the newest of each gang, and needs to read them only when it takes
    over.
    """

    seq: int
    gang_id: str
    #: The gang is no more.
    gone: bool
    payload: bytes


class EndsArrival(NamedTuple):
    """How far the streams reached when this planner asked: it is caught up once it has applied that
    much.
    """

    cluster: int
    decisions: int
    outcomes: int
    verdicts: int


class SnapshotArrival(NamedTuple):
    """A whole snapshot: it replaces what was known."""

    pages: tuple[SnapshotPage, ...]
    #: As in `ClusterArrival`: when the newest `synced` in it would have arrived.
    arrived_s: float = 0.0


class CheckpointArrival(NamedTuple):
    """What was open when the last checkpoint was written; no pages: there is none, the log contains
    all.

    The goals are the last records of DECISIONS, OUTCOMES and VERDICTS when reading began: caught up
    means applied up to there.
    """

    pages: tuple[Checkpoint, ...]
    decisions_goal: int
    outcomes_goal: int
    verdicts_goal: int


Arrival: TypeAlias = (
    ClusterArrival
    | DecisionArrival
    | ForeignArrival
    | OutcomeArrival
    | IrrelevantArrival
    | VerdictArrival
    | EndsArrival
    | SnapshotArrival
    | CheckpointArrival
)


class Inbox:
    """A bounded queue that is emptied in one go."""

    def __init__(self) -> None:
        self._arrivals: deque[Arrival] = deque()
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, arrivals: list[Arrival]) -> None:
        """Add what arrived together; waits while the queue is full."""
        await self._room.wait()
        self._arrivals.extend(arrivals)
        self._some.set()
        if len(self._arrivals) >= ARRIVALS_MAX:
            self._room.clear()

    def wake(self) -> None:
        """Make `take` return although nothing arrived."""
        self._some.set()

    async def take(self, timeout_s: float | None) -> list[Arrival]:
        """Everything that has arrived, as soon as something has; nothing after `timeout_s` or
        `wake`.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._some.wait()
        except TimeoutError:
            return []
        self._some.clear()
        taken = list(self._arrivals)
        self._arrivals.clear()
        self._room.set()
        return taken
