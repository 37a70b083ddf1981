"""The newest decisions, bounded, as objects; and what a user may see of each."""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from services.api.core.decision_events import instant, note_event, outcome_events
from services.api.core.tables import Column, age, columns
from shared.contracts.cluster import PodChanges
from shared.contracts.decisions import Act, GangDecision, Note, UseCharged
from shared.contracts.outcomes import Outcome
from shared.contracts.visibility import (
    API_VERSION,
    DecidedPod,
    Decision,
    DecisionEvent,
    DecisionStatus,
    ObjectMeta,
)
from shared.model.gang_keys import gang_title

#: Decisions that are kept; a busy cluster makes some thousands an hour.
DECISIONS_MAX: Final = 10_000
#: Pods and events in all of them, 50 to 100 MiB, and pods in one.
SIZE_MAX: Final = 200_000
_PODS_MAX: Final = 1_000
#: Events of one decision.
EVENTS_MAX: Final = 50
#: Outcomes, and gangs with notes, that were read before their decisions: each stream by itself.
EARLY_MAX: Final = 200
#: Phases in which a pod has ended.
_ENDS: Final = frozenset({"Succeeded", "Failed"})

DECISION_COLUMNS: tuple[Column, ...] = columns(
    ("Name", "string", "Sequence of the decision in the log, 12 digits.", 0),
    ("Action", "string", "Bind or Evict.", 0),
    ("Gang", "string", "The gang that it was made for.", 0),
    ("Pods", "integer", "Pods that it binds or evicts.", 0),
    ("Attempt", "integer", "Attempt of the gang.", 0),
    ("Reason", "string", "Why.", 0),
    ("Age", "string", "Time since it was made.", 0),
    ("Message", "string", "Why, in a sentence.", 1),
)


class _Kept(msgspec.Struct, eq=False, kw_only=True):
    """A decision, its events, and what it does not have yet: ends of its pods (when and how, by
    UID), and pods that could not be bound.
    """

    decision: Decision
    ends: dict[str, tuple[datetime, str]] = {}
    unbound: set[str] = set()
    events: list[DecisionEvent] = []
    has_outcome: bool = False
    #: Whether the decision lacks ends or events.
    is_behind: bool = False


class DecisionHistory:
    """The newest `DECISIONS_MAX` decisions, with `SIZE_MAX` pods and events in all, in the order of
    the log.
    """

    def __init__(self, decisions_max: int = DECISIONS_MAX, size_max: int = SIZE_MAX) -> None:
        #: Sequence of the newest one.
        self.seq = 0
        self._decisions_max, self._size_max = decisions_max, size_max
        self._kept: deque[_Kept] = deque()
        #: Number of their pods and events.
        self._size = 0
        #: The decision that bound each pod that has not ended, by UID.
        self._bound: dict[str, _Kept] = {}
        #: By sequence, and the last one of each gang, by its id.
        self._by_seq: dict[int, _Kept] = {}
        self._last: dict[str, _Kept] = {}
        self._early_outcomes: dict[int, Outcome] = {}
        self._early_notes: dict[str, list[DecisionEvent]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, seq: int, decision: Act, owner: str = "") -> None:
        """The next decision of the log; `owner`: the object that its gang's user created."""
        self.seq = seq
        made = _Kept(decision=build_decision(seq, decision, owner))
        self._kept.append(made)
        self._by_seq[seq] = self._last[decision.gang_id] = made
        status = made.decision.status
        self._size += len(status.pods)
        if status.action == "Bind":
            self._bound.update((pod.uid, made) for pod in status.pods)
        self._add(made, self._early_notes.pop(decision.gang_id, ()))
        outcome = self._early_outcomes.pop(seq, None)
        if outcome is not None:
            self.take_outcome(outcome)

    def take_changes(self, record: PodChanges) -> None:
        """The next changes of pods: those that end are marked in their decisions."""
        for pod in record.changed:
            if pod.phase in _ENDS:
                self._note_end(pod.uid, record.at_ms, pod.phase)
        for gone in record.removed:
            self._note_end(gone.uid, record.at_ms, "Deleted")

    def take_outcome(self, outcome: Outcome) -> None:
        """The outcome of a decision; the first one counts."""
        kept = self._by_seq.get(outcome.decision_seq)
        if kept is None:
            if outcome.decision_seq > self.seq:
                self._early_outcomes[outcome.decision_seq] = outcome
                _bound_early(self._early_outcomes)
            return
        status = kept.decision.status
        if kept.has_outcome or status.gang_id != outcome.gang_id:
            return
        kept.has_outcome = True
        self._add(kept, outcome_events(status, outcome))
        for member in outcome.members if status.action == "Bind" else ():
            # A request without an answer may still bind the pod.
            if member.result not in {"bound", "unknown"} and self._bound.get(member.uid) is kept:
                del self._bound[member.uid]
                kept.unbound.add(member.uid)

    def take_note(self, note: Note) -> None:
        """A note about a gang; notes about past use are about none."""
        if isinstance(note, UseCharged):
            return
        kept, event = self._last.get(note.gang_id), note_event(note)
        if event.type == "PreemptionEnded" and (
            kept is None or kept.decision.status.action == "Bind"
        ):
            # Its words are about pods of other gangs: their decision has their namespaces.
            event = msgspec.structs.replace(event, message="")
        if kept is None:
            self._early_notes.setdefault(note.gang_id, []).append(event)
            del self._early_notes[note.gang_id][:-EVENTS_MAX]
            _bound_early(self._early_notes)
        else:
            self._add(kept, (event,))

    def oldest_first(self) -> Iterator[Decision]:
        """All that are kept."""
        for kept in self._kept:
            if kept.is_behind:
                kept.decision = _completed(kept)
                kept.ends, kept.unbound, kept.is_behind = {}, set(), False
            yield kept.decision

    def _add(self, kept: _Kept, events: Iterable[DecisionEvent]) -> None:
        """Add events, and forget what is too much: of this decision, and the oldest decisions."""
        before = len(kept.events)
        kept.events = sorted([*kept.events, *events], key=lambda event: event.time)[-EVENTS_MAX:]
        kept.is_behind |= bool(kept.events)
        self._size += len(kept.events) - before
        while len(self._kept) > self._decisions_max or self._size > self._size_max:
            self._forget(self._kept.popleft())

    def _note_end(self, uid: str, at_ms: int, end: str) -> None:
        # The first end counts: a pod that has succeeded is deleted later.
        bound_by = self._bound.pop(uid, None)
        if bound_by is not None:
            bound_by.ends[uid] = instant(at_ms), end
            bound_by.is_behind = True

    def _forget(self, kept: _Kept) -> None:
        status = kept.decision.status
        pods = status.pods
        self._size -= len(pods) + len(kept.events)
        self._by_seq.pop(int(kept.decision.metadata.name), None)
        if self._last.get(status.gang_id) is kept:
            del self._last[status.gang_id]
        for pod in pods:
            if self._bound.get(pod.uid) is kept:
                del self._bound[pod.uid]


def _bound_early(early: dict[int, Outcome] | dict[str, list[DecisionEvent]]) -> None:
    """Forget the oldest if there are too many."""
    if len(early) > EARLY_MAX:
        del early[next(iter(early))]  # type: ignore[arg-type]  # a key of its own


def _completed(kept: _Kept) -> Decision:
    """The decision with all that is known of it."""

    def known(pod: DecidedPod) -> DecidedPod:
        at, end = kept.ends.get(pod.uid, (pod.ended, pod.end))
        unbound = pod.unbound or pod.uid in kept.unbound
        if at == pod.ended and unbound == pod.unbound:
            return pod
        return msgspec.structs.replace(pod, ended=at, end=end, unbound=unbound)

    status = kept.decision.status
    status = msgspec.structs.replace(
        status, pods=tuple(map(known, status.pods)), events=tuple(kept.events)
    )
    return msgspec.structs.replace(kept.decision, status=status)


def build_decision(seq: int, decision: Act, owner: str = "") -> Decision:
    """The object of a decision, with all that it contains; `owner` as in `Gang`."""
    if isinstance(decision, GangDecision):
        bound = decision.bindings
        pods = tuple(
            DecidedPod(
                namespace=binding.namespace, name=binding.name, uid=binding.uid, node=binding.node
            )
            for binding in bound[:_PODS_MAX]
        )
        action, count, reason, domain = "Bind", len(bound), "", decision.domain
    else:
        pods = tuple(
            DecidedPod(namespace=victim.namespace, name=victim.name, uid=victim.uid)
            for victim in decision.victims[:_PODS_MAX]
        )
        action, count, reason, domain = "Evict", len(decision.victims), decision.reason, ""
    at = instant(decision.cycle.now_ms)
    return Decision(
        api_version=API_VERSION,
        kind="Decision",
        metadata=ObjectMeta(
            name=f"{seq:012d}",
            namespace=decision.gang.partition("/")[0],
            resource_version=str(seq),
            creation_timestamp=at.replace(microsecond=0),
        ),
        status=DecisionStatus(
            action="Bind" if action == "Bind" else "Evict",
            gang=decision.gang,
            gang_id=decision.gang_id,
            title=gang_title(decision.gang.partition("/")[2], owner),
            time=at,
            first_seen=instant(decision.first_seen_ms) if decision.first_seen_ms else None,
            attempt=decision.attempt,
            reason=reason,
            message=decision.why,
            count=count,
            pods=pods,
            domain=domain,
            trace_id=decision.trace_id,
        ),
    )


def visible_part(decision: Decision, visible: frozenset[str]) -> Decision:
    """A decision for users that see these namespaces: pods of other namespaces are only counted,
    and without texts about them, events have no texts.
    """
    pods = decision.status.pods
    seen = tuple(pod for pod in pods if pod.namespace in visible)
    if len(seen) == len(pods):
        return decision
    events = tuple(
        msgspec.structs.replace(event, message="", failures=()) for event in decision.status.events
    )
    status = msgspec.structs.replace(decision.status, pods=seen, events=events)
    return msgspec.structs.replace(decision, status=status)


def decision_cells(decision: Decision, now_ms: int) -> tuple[str | int, ...]:
    """The cells of a decision's row."""
    status = decision.status
    return (
        decision.metadata.name,
        status.action,
        status.title,
        status.count,
        status.attempt,
        status.reason,
        age(status.time, now_ms),
        status.message,
    )
