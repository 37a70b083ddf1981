"""Applies arrivals to the core, and knows how far each log has been applied.

A reader delivers each record once and in order, and the core ignores records that a snapshot or
checkpoint contains. So the only records skipped here are the ones that this planner wrote.
"""

from collections.abc import Callable, Mapping
from typing import assert_never

from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.tables import FRESH_MS
from services.gang_planner.inbox import (
    Arrival,
    CheckpointArrival,
    ClusterArrival,
    DecisionArrival,
    EndsArrival,
    ForeignArrival,
    IrrelevantArrival,
    OutcomeArrival,
    RefusalArrival,
    SnapshotArrival,
    VerdictArrival,
)
from shared.contracts import codec, subjects
from shared.contracts.cluster import Synced
from shared.contracts.decisions import Checkpoint, DecisionRecord, EpochOpened, cycle_of
from shared.contracts.foreign_messages import OnForeign
from shared.contracts.subjects import CLUSTER, DECISIONS, OUTCOMES, VERDICTS
from shared.contracts.verdicts import Verdict
from shared.runtime.steady_clock import SteadyClock, steady_s


class Applier:
    """The only place where records enter the planner's state."""

    def __init__(self, planner: Planner, on_foreign: OnForeign, clock: SteadyClock) -> None:
        """Apply to `planner`; `on_foreign` is called with foreign messages, and `clock` continues
        the time of DECISIONS.
        """
        self._planner = planner
        self._on_foreign = on_foreign
        self._clock = clock
        #: When the newest `cluster.synced` arrived, in seconds of `steady_s`; None: none has.
        self._synced_s: float | None = None
        self._has_cluster_state = False
        #: The newest verdict of each gang that is not gone, encoded; decoded at a takeover.
        self._verdicts: dict[str, bytes] = {}
        #: Sequence of the last record applied, by stream.
        streams = CLUSTER, DECISIONS, OUTCOMES, VERDICTS
        self.applied: dict[str, int] = dict.fromkeys(streams, 0)
        #: The sequences that must be applied before this planner may answer or decide, by stream;
        #: None: neither the ends of the logs nor a checkpoint has been read.
        self._goals: Mapping[str, int] | None = None

    @property
    def caught_up(self) -> bool:
        """Whether there is a cluster state, and every log is applied up to its goal."""
        return (
            self._has_cluster_state
            and self._goals is not None
            and all(self.applied[stream] >= seq for stream, seq in self._goals.items())
        )

    def apply(self, arrivals: list[Arrival]) -> None:
        """Apply in order; skip records that this planner appended itself."""
        for arrival in arrivals:
            match arrival:
                case ClusterArrival():
                    self._apply_cluster(arrival)
                case DecisionArrival():
                    self._apply_decision(arrival)
                case ForeignArrival():
                    self._skip_foreign(arrival)
                case OutcomeArrival() | IrrelevantArrival():
                    self._apply_outcome(arrival)
                case VerdictArrival():
                    self._keep_verdict(arrival)
                case RefusalArrival(report):
                    self._planner.apply_refusal(report)
                case EndsArrival() | SnapshotArrival() | CheckpointArrival():
                    self._apply_base(arrival)
                case _:
                    assert_never(arrival)

    @property
    def view_age_ms(self) -> int | None:
        """How long ago the newest `cluster.synced` arrived; None: none has, or a newer epoch's
        snapshot is missing.
        """
        if self._synced_s is None or not self._planner.view.is_newest:
            return None
        return max(0, int((steady_s() - self._synced_s) * 1000))

    @property
    def view_is_fresh(self) -> bool:
        """Whether the cluster state is new enough for decisions."""
        age_ms = self.view_age_ms
        return age_ms is not None and age_ms <= FRESH_MS

    def decided(self, seq: int) -> None:
        """Record that this process appended record `seq`, and the core has applied it."""
        self.applied[DECISIONS] = seq

    def recall_verdicts(self, on_verdict: Callable[[Verdict], None]) -> set[str]:
        """Give the core the last published verdict of every gang, because this process takes over:
        verdicts that arrive later are its own. `on_verdict` is called for each, too.

        Returns:
            The subjects of their requests to controllers.
        """
        requests: set[str] = set()
        for payload in self._verdicts.values():
            verdict = codec.decode_verdict(payload)
            self._planner.apply_verdict(verdict)
            on_verdict(verdict)
            requests |= verdict.request_subjects
        self._verdicts.clear()
        return requests

    def _apply_base(self, arrival: EndsArrival | SnapshotArrival | CheckpointArrival) -> None:
        """Apply what a reader has read before the records of a log, or to know where they end."""
        match arrival:
            case EndsArrival(ends):
                # Not CLUSTER's: a takeover does not depend on a living watcher.
                self._goals = {stream: seq for stream, seq in ends.items() if stream != CLUSTER}
            case SnapshotArrival(pages, arrived_s):
                self._planner.load_snapshot(pages)
                self._synced_s = arrived_s
                self.applied[CLUSTER] = pages[0].cluster_seq
                self._has_cluster_state = True
            case CheckpointArrival(pages, goals):
                if pages:
                    self._planner.restore(pages)
                    self.applied[DECISIONS] = pages[0].up_to
                    self.applied[OUTCOMES] = pages[0].outcomes_seq
                self._goals = goals

    def _skip_foreign(self, message: ForeignArrival) -> None:
        """Count the message as applied. On a verdict's subject it has overwritten the verdict,
        which the next leader publishes again.
        """
        self._on_foreign(message.stream, message.seq, message.subject, message.payload)
        self.applied[message.stream] = max(self.applied[message.stream], message.seq)
        if message.stream == VERDICTS:
            self._verdicts.pop(message.subject.removeprefix(subjects.verdict("")), None)

    def _keep_verdict(self, arrival: VerdictArrival) -> None:
        self.applied[VERDICTS] = arrival.seq
        if arrival.gone:
            self._verdicts.pop(arrival.gang_id, None)
        else:
            self._verdicts[arrival.gang_id] = arrival.payload

    def _apply_cluster(self, arrival: ClusterArrival) -> None:
        self._planner.apply_cluster(arrival.seq, arrival.record)
        if isinstance(arrival.record, Synced):
            self._synced_s = arrival.arrived_s
        self.applied[CLUSTER] = arrival.seq

    def _apply_outcome(self, arrival: OutcomeArrival | IrrelevantArrival) -> None:
        if isinstance(arrival, OutcomeArrival):
            self._planner.apply_outcome(arrival.seq, arrival.record)
        self.applied[OUTCOMES] = arrival.seq

    def _apply_decision(self, arrival: DecisionArrival) -> None:
        if arrival.seq <= self.applied[DECISIONS]:
            return  # this planner appended it
        record = arrival.decode()
        self._planner.apply_decision(arrival.seq, record)
        instant_ms = instant_of(record)
        if instant_ms is not None:
            self._clock.adopt(instant_ms, arrival.age_ms)
        self.applied[DECISIONS] = arrival.seq


def instant_of(record: DecisionRecord) -> int | None:
    """When a record was written, on the log's time; None: it has no instant."""
    if isinstance(record, EpochOpened | Checkpoint):
        return record.at_ms
    cycle = cycle_of(record)
    return cycle.now_ms if cycle is not None else None
