"""What the streams hold, read as they are written: decisions, outcomes, notes, epochs, verdicts.

Fed by the simulated NATS with every stored append. It decodes with the real contracts and knows
nothing of what any service thinks.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from shared.contracts import codec, subjects
from shared.contracts.cluster import PodChanges, Synced
from shared.contracts.decisions import (
    Act,
    Checkpoint,
    DecisionRecord,
    EpochOpened,
    EvictionDecision,
    GangDecision,
    GangStarted,
    NoteClosed,
    NoteOpened,
)
from shared.contracts.outcomes import Outcome

if TYPE_CHECKING:
    from shared.contracts.verdicts import Verdict

#: Of a note: its gang, its kind, and (a hold) the pods it is about.
NoteKey = tuple[str, str, tuple[str, ...]]
ActKey = tuple[str, int]


class Stored(msgspec.Struct, frozen=True):
    """A decision as the stream holds it."""

    generation: str
    seq: int
    act: Act
    #: The newest epoch before it in the stream.
    epoch_in_force: int
    at_ms: int


class Truth:
    """The streams as they are."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.generations: dict[str, str] = {}
        #: Every decision ever stored, also of streams that were lost.
        self.acts: dict[ActKey, Stored] = {}
        #: Those without outcome, by sequence in the present DECISIONS.
        self.unanswered: dict[int, Stored] = {}
        self.outcomes: dict[ActKey, Outcome] = {}
        self.notes: dict[NoteKey, NoteOpened] = {}
        #: Open preemptions by their decision's sequence.
        self.preempting: dict[int, EvictionDecision] = {}
        self.started: set[str] = set()
        self.planner_epoch = 0
        self.cluster_epoch = 0
        self.verdicts: dict[str, Verdict] = {}
        #: Foreign pods by UID: the CLUSTER sequence that had their node first.
        self.seen_on_node: dict[str, int] = {}
        #: Pods that are being deleted, or are gone, by UID: the CLUSTER sequence that had it first.
        self.seen_deleted: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        #: Called after a record was taken in: (stream, sequence, record).
        self.listeners: list[Callable[[str, int, object], None]] = []
        #: Called before it is, with what would break a rule of the streams.
        self.on_violation: Callable[[str, str], None] = _ignore
        #: Whether a POST of a decision could still bind something.
        self.may_land: Callable[[GangDecision], bool] = _may

    # ---- fed by the simulated NATS

    def appended(
        self, stream: str, generation: str, seq: int, subject: str, payload: bytes
    ) -> None:
        """A message is stored."""
        self.generations.setdefault(stream, generation)
        record: object = None
        if stream == subjects.DECISIONS:
            record = decided = codec.decode_decision_record(payload)
            self._decision(generation, seq, decided)
        elif stream == subjects.OUTCOMES:
            record = codec.decode_outcome(payload)
            if isinstance(record, Outcome):
                self._outcome(record, subject)
        elif stream == subjects.CLUSTER:
            record = codec.decode_cluster(payload)
            self._cluster(seq, record)
        elif stream == subjects.VERDICTS and payload:
            record = verdict = codec.decode_verdict(payload)
            self.verdicts[verdict.gang_id] = verdict
        for listener in self.listeners:
            listener(stream, seq, record)

    def recreated(self, stream: str, generation: str) -> None:
        """The stream's storage is lost; it begins again."""
        self.generations[stream] = generation
        if stream == subjects.DECISIONS:
            self.unanswered.clear()
            self.notes.clear()
            self.preempting.clear()
            self.started.clear()
            self.planner_epoch = 0
        elif stream == subjects.OUTCOMES:
            # A binder that still holds a decision of the lost DECISIONS may answer it again.
            self.outcomes.clear()
        elif stream == subjects.CLUSTER:
            self.cluster_epoch = 0
            self.seen_on_node.clear()
            self.seen_deleted.clear()
        elif stream == subjects.VERDICTS:
            self.verdicts.clear()

    # ---- records

    def _decision(self, generation: str, seq: int, record: DecisionRecord) -> None:
        match record:
            case GangDecision() | EvictionDecision():
                self.counts["decisions" if isinstance(record, GangDecision) else "releases"] += 1
                if isinstance(record, GangDecision):
                    self.counts["volumes"] += len(record.volumes)
                    self.counts["devices"] += len(record.devices)
                stored = Stored(generation, seq, record, self.planner_epoch, self._now_ms())
                if record.epoch != self.planner_epoch:
                    self.on_violation(
                        record.gang_id,
                        f"decision {seq} of epoch {record.epoch} was written while "
                        f"{self.planner_epoch} is in force",
                    )
                self._check_open(stored)
                self.acts[generation, seq] = stored
                self.unanswered[seq] = stored
                self._preemption(seq, record)
            case EpochOpened():
                self.counts["planner epochs"] += 1
                self.planner_epoch = record.epoch
                if record.epoch != seq:
                    self.on_violation("", f"epoch {record.epoch} opened at sequence {seq}")
            case NoteOpened():
                self.counts[f"notes {record.kind}"] += 1
                self._check_note(seq, record)
                self.notes[_key(record)] = record
            case NoteClosed():
                self._close(record)
            case GangStarted():
                self.started.add(record.gang_id)
            case Checkpoint():
                self.counts["checkpoints"] += 1
            case _:
                pass

    def _preemption(self, seq: int, act: Act) -> None:
        """An eviction opens one, the gang's decision that names it ends it."""
        if isinstance(act, GangDecision):
            self.preempting.pop(act.preemption, None)
            return
        if act.via != "eviction":
            return
        self.counts["evictions"] += 1
        taken = pods_of(act)
        for before, other in self.preempting.items():
            answer = self.outcomes.get((self.generations[subjects.DECISIONS], before))
            if answer is not None and not answer.evicted:
                continue  # it came to nothing: the note that says so comes with this cycle
            if other.gang_id == act.gang_id:
                self.on_violation(act.gang_id, f"eviction {seq} beside {before} of the same gang")
            if both := taken & pods_of(other):
                self.on_violation(act.gang_id, f"eviction {seq} takes {min(both)} as {before} does")
        self.preempting[seq] = act

    def _check_open(self, stored: Stored) -> None:
        """One open decision per pod, and no release beside a binding that may still be sent.

        A decision is over, answered or not, once each of its pods is bound or gone: what is sent
        for it later finds a 409 or nothing.
        """
        own = pods_of(stored.act)
        if isinstance(stored.act, GangDecision) and stored.act.again:
            return  # it is the same decision, published again before the log drops it
        for other in self.unanswered.values():
            both = own & pods_of(other.act)
            if both and isinstance(other.act, GangDecision) and self.may_land(other.act):
                self.on_violation(
                    stored.act.gang_id,
                    f"decision {stored.seq} names {min(both)}, which decision {other.seq} "
                    "binds and has no outcome yet",
                )

    def _check_note(self, seq: int, note: NoteOpened) -> None:
        missing = [
            name for name, value in (("owner", note.gang_id), ("reason", note.reason)) if not value
        ]
        if note.kind != "release" and note.until_ms <= note.at_ms and note.kind != "hold":
            missing.append("deadline")
        if note.kind == "hold" and not (note.until_ms and note.pod_uids):
            missing.append("deadline or pod")
        if missing:
            self.on_violation(note.gang_id, f"note {seq} ({note.kind}) has no {missing[0]}")

    def _close(self, record: NoteClosed) -> None:
        if record.kind == "preemption":
            for seq in [s for s, one in self.preempting.items() if one.gang_id == record.gang_id]:
                del self.preempting[seq]
        if record.kind == "hold" and record.pod_uids:
            # A hold is its pods': their gang may have another id by now.
            wanted = set(record.pod_uids)
            found = [key for key in self.notes if key[1] == "hold" and wanted & set(key[2])]
        else:
            found = [key for key in self.notes if key[:2] == (record.gang_id, record.kind)]
        for key in found:
            del self.notes[key]

    def _outcome(self, outcome: Outcome, subject: str) -> None:
        # An outcome of a DECISIONS that is lost may be replaced by one of the stream as it is.
        generation = outcome.generation or self.generations.get(subjects.DECISIONS, "")
        key = generation, outcome.decision_seq
        self.counts["outcomes"] += 1
        if subject != subjects.outcome(outcome.gang_id, outcome.decision_seq):
            self.on_violation(outcome.gang_id, f"outcome on {subject}")
        stored = self.acts.get(key)
        if stored is None or stored.act.gang_id != outcome.gang_id:
            return  # of a DECISIONS that is lost
        if key in self.outcomes:
            self.on_violation(
                outcome.gang_id, f"decision {outcome.decision_seq} has a second outcome"
            )
        self.outcomes[key] = outcome
        if generation == self.generations.get(subjects.DECISIONS):
            self.unanswered.pop(outcome.decision_seq, None)

    def _cluster(self, seq: int, record: object) -> None:
        if isinstance(record, Synced) and record.epoch == seq:
            self.cluster_epoch = seq
            self.counts["watcher epochs"] += 1
        epoch = getattr(record, "epoch", None)
        if epoch is not None and epoch != self.cluster_epoch:
            self.on_violation("", f"CLUSTER {seq} is of epoch {epoch}, not {self.cluster_epoch}")
        if isinstance(record, PodChanges):
            for pod in record.changed:
                if pod.node and not pod.ours:
                    self.seen_on_node.setdefault(pod.uid, seq)
                if pod.deleting:
                    self.seen_deleted.setdefault(pod.uid, seq)
                else:
                    # A restore of etcd may bring it back.
                    self.seen_deleted.pop(pod.uid, None)
            for gone in record.removed:
                self.seen_deleted.setdefault(gone.uid, seq)

    # ---- questions

    def open_notes(self, gang_ids: set[str], kind: str) -> list[NoteOpened]:
        """Open notes of one kind of any of these gangs."""
        return [note for key, note in self.notes.items() if key[0] in gang_ids and key[1] == kind]

    def states(self) -> set[str]:
        """Return the states of the protocol that occur now."""
        found = {key[1] for key in self.notes}
        if self.preempting:
            found.add("preempting")
        for stored in self.unanswered.values():
            found.add("deciding" if isinstance(stored.act, GangDecision) else "evicting")
            if isinstance(stored.act, GangDecision) and (stored.act.volumes or stored.act.devices):
                found.add("preparing")
        return found


def pods_of(act: Act) -> frozenset[str]:
    """UIDs of the pods that a decision is about."""
    if isinstance(act, GangDecision):
        return frozenset(binding.uid for binding in act.bindings)
    return frozenset(victim.uid for victim in act.victims)


def _key(note: NoteOpened) -> NoteKey:
    return note.gang_id, note.kind, note.pod_uids if note.kind == "hold" else ()


def _may(act: GangDecision) -> bool:
    del act
    return True


def _ignore(gang: str, what: str) -> None:
    del gang, what


STATES: Final = ("deciding", "evicting", "repair", "release", "hold", "backoff")
"""What `Truth.states` may name and every fault must have met; "preempting" is in some runs only."""
