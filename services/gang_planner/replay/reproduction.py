"""Runs the cycles of a recording again: the same inputs and instants must give the same bytes.

Every decision and note names its cycle: the applied sequences of CLUSTER and OUTCOMES, and the
instant. The replay applies exactly these records, steps, and compares the records with those in the
log. Cycles that wrote no record are not run again; they change nothing that a decision depends on,
but from when three waits count: the deadline of a late reservation, the minute in which a node is
avoided on which a pod has failed, and the waits of ProvisioningRequests, whose end gives their
quota to the next gang.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from services.gang_planner.recorder import Frame
from shared.contracts import codec
from shared.contracts.cluster import SnapshotPage
from shared.contracts.decisions import (
    Act,
    Checkpoint,
    Cycle,
    DecisionRecord,
    EpochOpened,
    Note,
    cycle_of,
)
from shared.contracts.outcomes import Outcome
from shared.model.invariants import InvariantViolation


class Report(NamedTuple):
    """How many records are equal byte for byte, and one line per record that is not."""

    equal: int
    differences: list[str]
    #: Records at the end whose inputs are not in the segment, because the recorder was killed.
    cut_off: int = 0
    #: The instant of the cycle that first differs.
    differs_from_ms: int | None = None


class Inputs:
    """The records of a segment, by stream."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        self.cluster: deque[Frame] = deque()
        self.outcomes: deque[Frame] = deque()
        self.decisions: list[tuple[int, DecisionRecord, bytes]] = []
        self.pages: list[SnapshotPage] = []
        self.checkpoint: list[Checkpoint] = []
        self.policy = ""
        for frame in frames:
            match frame.kind:
                case "configuration":
                    self.policy = frame.payload.decode()
                case "snapshot":
                    page = codec.decode_snapshot_answer(frame.payload)
                    if isinstance(page, SnapshotPage):
                        self.pages.append(page)
                case "checkpoint":
                    record = codec.decode_decision_record(frame.payload)
                    if isinstance(record, Checkpoint):
                        self.checkpoint.append(record)
                case "cluster":
                    self.cluster.append(frame)
                case "outcome":
                    self.outcomes.append(frame)
                case "decision":
                    record = codec.decode_decision_record(frame.payload)
                    self.decisions.append((frame.seq, record, frame.payload))
        self.cluster = deque(sorted(self.cluster, key=lambda frame: frame.seq))
        applied = max((page.cluster_seq for page in self.pages), default=0)
        self._cluster_end = self.cluster[-1].seq if self.cluster else applied
        answered = max((page.outcomes_seq for page in self.checkpoint), default=0)
        self._outcomes_end = self.outcomes[-1].seq if self.outcomes else answered

    def reach(self, cycle: Cycle) -> bool:
        """Whether the segment has every record that the cycle had applied."""
        return cycle.cluster_seq <= self._cluster_end and cycle.outcomes_seq <= self._outcomes_end


def reproduce(frames: Iterable[Frame]) -> Report:
    """Replay one segment, from its base to its end."""
    inputs = Inputs(frames)
    planner = Planner(parse_configuration(inputs.policy))
    planner.restore(inputs.checkpoint)
    planner.load_snapshot(inputs.pages)
    expected: deque[Act | Note] = deque()
    equal = 0
    differences: list[str] = []
    differs_from_ms: int | None = None
    for number, (seq, record, payload) in enumerate(inputs.decisions):
        cycle = cycle_of(record)
        if cycle is None:
            apply_without_cycle(planner, inputs, seq, record)
            continue
        if not inputs.reach(cycle):
            return Report(equal, differences, len(inputs.decisions) - number, differs_from_ms)
        if not expected:
            apply_up_to(planner, inputs, cycle)
            step = planner.step(cycle.now_ms, cycle.in_flight_max, cycle.synced_ms)
            expected.extend([*step.decisions, *step.notes])
        if not expected:
            differs_from_ms = differs_from_ms or cycle.now_ms
            differences.append(
                f"record {seq}: nothing was decided where the log has {_name(record)}"
            )
            planner.apply_decision(seq, record)
            continue
        again = expected.popleft()
        planner.decided(seq, again)
        if codec.encode(again) == payload:
            equal += 1
        else:
            differs_from_ms = differs_from_ms or cycle.now_ms
            differences.append(f"record {seq}: {_name(again)} instead of {_name(record)}")
    return Report(equal, differences, differs_from_ms=differs_from_ms)


def apply_up_to(planner: Planner, inputs: Inputs, cycle: Cycle) -> None:
    """Apply the records that the cycle had applied, and no more."""
    _apply_cluster_up_to(planner, inputs, cycle.cluster_seq)
    while inputs.outcomes and inputs.outcomes[0].seq <= cycle.outcomes_seq:
        frame = inputs.outcomes.popleft()
        outcome = codec.decode_outcome(frame.payload)
        if not isinstance(outcome, Outcome):
            raise InvariantViolation(f"outcome {frame.seq}", "is a claim, and was recorded")
        planner.apply_outcome(frame.seq, outcome)


def apply_without_cycle(planner: Planner, inputs: Inputs, seq: int, record: DecisionRecord) -> None:
    """Apply a record of DECISIONS that no cycle wrote. The planner leads from a takeover on, in the
    cluster state of that takeover.
    """
    if isinstance(record, EpochOpened):
        _apply_cluster_up_to(planner, inputs, record.cluster_seq)
    planner.apply_decision(seq, record)
    if isinstance(record, EpochOpened):
        planner.lead(record.epoch)


def _apply_cluster_up_to(planner: Planner, inputs: Inputs, cluster_seq: int) -> None:
    """Apply the records of CLUSTER up to this sequence number."""
    while inputs.cluster and inputs.cluster[0].seq <= cluster_seq:
        frame = inputs.cluster.popleft()
        planner.apply_cluster(frame.seq, codec.decode_cluster(frame.payload))


def _name(record: DecisionRecord) -> str:
    gang = getattr(record, "gang_id", "")
    return f"{type(record).__name__} {gang}".rstrip()
