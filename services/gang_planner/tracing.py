"""The planner's spans: one root per attempt of a gang, with its wait and its decision below it, and
one per release.

They are built when the attempt ends, from the records of DECISIONS, OUTCOMES and VERDICTS alone,
which the active planner and its standby both read. So a takeover loses no span: the standby knows
the open attempts, and exports those that ended within the last seconds again, because the planner
before it may have died before its spans left. Exported twice, a span has the same id and content.

An attempt begins when the gang was first seen, or when the failed attempt before it ended; that of
members added to a started gang begins with its decision, or the loss that it replaces. It ends
* with success, when every member of the decision is bound and the gang's quorum was placed (a gang
  that had started before only needs its members bound),
* with an error, when an outcome did not bind all members, a later decision had to place the whole
  quorum again, or the gang is gone.

Repairs, evictions for the gang and holds are events of the root. An attempt has a link to the one
before it; a gang whose pods were seen before its group has a link to their trace.

All tables are bounded; without an endpoint no record is kept.
"""

from collections import OrderedDict, deque
from typing import Final

import msgspec

from services.gang_planner.inbox import (
    Arrival,
    CheckpointArrival,
    DecisionArrival,
    OutcomeArrival,
    VerdictArrival,
)
from services.gang_planner.trace_events import EVENTS_MAX, EventRecord, PendingEvents, event_of
from shared.contracts import codec
from shared.contracts.decisions import (
    DecisionRecord,
    EvictionDecision,
    GangDecision,
    GangStarted,
    NoteClosed,
    NoteOpened,
)
from shared.contracts.identity import gang_trace_id, nameless_gang_id, traceparent_of
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict
from shared.telemetry.tracing import GANG, Event, Tracer, gang_span

#: Open attempts; when there are more, the oldest is exported unfinished.
OPEN_MAX: Final = 16_384
#: Gangs whose last attempt's end is kept.
GANGS_MAX: Final = 16_384
#: Outcomes read before their decision: the logs are read concurrently.
EARLY_MAX: Final = 1_024
#: Attempts that ended while another planner was active, kept for a takeover.
RECENT_MAX: Final = 2_048
#: Attempts that ended within this time before a takeover are exported again: the lease's time and
#: the exporter's delay, a second each, more than doubled.
RECENT_MS: Final = 5_000

#: Open releases, and ended ones kept for a takeover.
RELEASES_MAX: Final = 4_096
RELEASE: Final = "release"

Values = dict[str, str | int]


class _Attempt(msgspec.Struct, eq=False):
    """One attempt that has not ended, from its decision on."""

    seq: int
    gang_id: str
    attempt: int
    quorum: int
    trace_id: str
    start_ms: int
    decided_ms: int
    stored_ms: int
    #: Attributes of its span.
    values: Values
    links: list[str]
    events: list[Event]
    waits_for_start: bool
    waits_for_outcome: bool = True
    started_ms: int = 0
    outcome_ms: int = 0
    error: str = ""


class _Ended(msgspec.Struct, eq=False):
    """A gang between its attempts."""

    end_ms: int
    started: bool
    #: Trace of the attempt that ended last; "": not known.
    trace_id: str = ""


class _Release(msgspec.Struct, eq=False):
    """One release, until it has ended."""

    note: NoteOpened
    #: Replaced by its decision's; a gang may have no pod left to release.
    trace_id: str
    gang: str = ""
    victims: set[str] = set()
    end_ms: int = 0


class _ReleaseSpans:
    """Follows releases through DECISIONS: a span each, in the trace of the attempt that it undoes,
    from the note that begins it to the one that ends it.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._leading = False
        self._open: OrderedDict[str, _Release] = OrderedDict()
        self._recent: deque[_Release] = deque(maxlen=RELEASES_MAX)

    def lead(self, since_ms: int) -> None:
        """Export releases from now on, and those that ended since `since_ms`."""
        self._leading = True
        for release in self._recent:
            if release.end_ms >= since_ms:
                self._export(release)
        self._recent.clear()

    def take(self, record: DecisionRecord) -> None:
        """Follow one record of the log."""
        match record:
            case NoteOpened(kind="release"):
                self.open(record)
            case EvictionDecision(via="delete"):
                release = self._open.get(record.gang_id)
                if release is not None:
                    release.gang = record.gang
                    release.trace_id = record.trace_id
                    release.victims.update(victim.uid for victim in record.victims)
            case NoteClosed(kind="release"):
                release = self._open.pop(record.gang_id, None)
                if release is not None:
                    release.end_ms = record.at_ms
                    if self._leading:
                        self._export(release)
                    else:
                        self._recent.append(release)
            case _:
                pass

    def open(self, note: NoteOpened) -> None:
        """Open a release that the log or a checkpoint contains."""
        trace_id = gang_trace_id(note.gang_id, max(note.attempt, 1))
        self._open[note.gang_id] = _Release(note, trace_id)
        if len(self._open) > RELEASES_MAX:
            self._open.popitem(last=False)

    def _export(self, release: _Release) -> None:
        note = release.note
        self._tracer.span(
            RELEASE,
            trace_id=release.trace_id,
            start_ms=note.at_ms,
            end_ms=release.end_ms,
            parent=gang_span(release.trace_id),
            attributes={
                "gang": release.gang,
                "gang.id": note.gang_id,
                "reason": note.reason,
                "message": note.message,
                "victims": len(release.victims),
            },
            error=note.reason,
        )


class GangTraces:
    """Follows attempts through the logs; exports them while this planner leads."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._leading = False
        #: By sequence of the decision, oldest first.
        self._open: dict[int, _Attempt] = {}
        self._by_gang: dict[str, list[_Attempt]] = {}
        self._ended: OrderedDict[str, _Ended] = OrderedDict()
        self._early: OrderedDict[int, OutcomeArrival] = OrderedDict()
        self._recent: deque[tuple[_Attempt, int]] = deque(maxlen=RECENT_MAX)
        self._releases = _ReleaseSpans(tracer)
        self._pending = PendingEvents()
        #: Gang id of pods before their group was seen -> the trace under it.
        self._nameless: OrderedDict[str, str] = OrderedDict()

    def lead(self, now_ms: int) -> None:
        """Export attempts from now on, and those that ended a moment ago."""
        self._leading = True
        self._releases.lead(now_ms - RECENT_MS)
        for attempt, end_ms in self._recent:
            if end_ms >= now_ms - RECENT_MS:
                self._export(attempt, end_ms)
        self._recent.clear()

    def take(self, arrivals: list[Arrival]) -> None:
        """Follow arrivals, each record once."""
        if not self._tracer.enabled:
            return
        for arrival in arrivals:
            match arrival:
                case DecisionArrival(seq, _, stored_ms):
                    self._take_record(seq, arrival.decode(), stored_ms)
                case OutcomeArrival():
                    self._take_outcome(arrival)
                case VerdictArrival(gone=True, payload=payload):
                    self.take_gone(codec.decode_verdict(payload))
                case CheckpointArrival():
                    self._restore(arrival)
                case _:
                    pass

    # ----------------------------------------------------------------- records

    def _take_record(self, seq: int, record: DecisionRecord, stored_ms: int) -> None:
        match record:
            case GangDecision() if seq not in self._open:
                attempt = self._begin(seq, record)
                attempt.stored_ms = max(stored_ms, attempt.decided_ms)
                early = self._early.pop(seq, None)
                if early is not None:
                    self._take_outcome(early)
            case GangStarted():
                self._take_start(record)
            case NoteOpened() | NoteClosed() | EvictionDecision():
                self._add_event(record)
                self._releases.take(record)
            case _:
                pass

    def _add_event(self, record: EventRecord) -> None:
        event = event_of(record)
        if event is None:
            return
        open_attempts = self._by_gang.get(record.gang_id)
        if not open_attempts:
            self._pending.add(record.gang_id, event)
        elif len(open_attempts[-1].events) < EVENTS_MAX:
            open_attempts[-1].events.append(event)

    def _begin(self, seq: int, decision: GangDecision) -> _Attempt:
        decided_ms = decision.cycle.now_ms
        siblings = list(self._by_gang.get(decision.gang_id, ()))
        before = siblings[-1].trace_id if siblings else ""
        for older in siblings:
            if older.waits_for_start and decision.quorum >= older.quorum:
                older.waits_for_start = False
                older.error = "QuorumNotPlaced"
                self._end_if_done(older, decided_ms)
        ended = self._ended.get(decision.gang_id)
        started = ended is not None and ended.started
        start_ms = decided_ms
        if decision.attempt == 1:
            start_ms = decision.first_seen_ms or start_ms
        elif ended is not None and ended.end_ms and not started:
            start_ms = ended.end_ms
        events = self._pending.take(decision.gang_id, with_holds=bool(decision.fills))
        before = before or (ended.trace_id if ended is not None else "")
        nameless = self._nameless.get(
            nameless_gang_id(decision.scope, *decision.gang.split("/", 1)), ""
        )
        others = [other for other in (before, nameless) if other not in ("", decision.trace_id)]
        attempt = self._open[seq] = _Attempt(
            seq,
            decision.gang_id,
            decision.attempt,
            decision.quorum,
            decision.trace_id,
            start_ms=min(start_ms, decided_ms, *(event.at_ms for event in events)),
            decided_ms=decided_ms,
            stored_ms=decided_ms,
            values=_values_of(seq, decision),
            links=[*filter(None, [decision.traceparent]), *map(traceparent_of, others)],
            events=events,
            waits_for_start=decision.quorum > 0 and not started,
        )
        self._by_gang.setdefault(decision.gang_id, []).append(attempt)
        if len(self._open) > OPEN_MAX:
            oldest = next(iter(self._open.values()))
            self._end(oldest, max(oldest.stored_ms, oldest.outcome_ms), "Unfinished")
        return attempt

    def _take_start(self, note: GangStarted) -> None:
        open_attempts = self._by_gang.get(note.gang_id, [])
        for attempt in list(open_attempts):
            if attempt.attempt <= note.attempt:
                attempt.started_ms = note.at_ms
                attempt.waits_for_start = False
                self._end_if_done(attempt, note.at_ms)
        self._remember(note.gang_id, 0, started=True)

    def _take_outcome(self, arrival: OutcomeArrival) -> None:
        outcome = arrival.record
        attempt = self._open.get(outcome.decision_seq)
        if attempt is None:
            self._early[outcome.decision_seq] = arrival
            if len(self._early) > EARLY_MAX:
                self._early.popitem(last=False)
            return
        attempt.waits_for_outcome = False
        attempt.values["bound"] = outcome.bound
        attempt.values["binder"] = outcome.binder
        error = _error_of(outcome)
        if error:
            self._end(attempt, arrival.stored_ms, error)
            return
        attempt.outcome_ms = outcome.last_bound_ms
        self._end_if_done(attempt, outcome.last_bound_ms)

    def take_gone(self, verdict: Verdict) -> None:
        """End the attempts of a gang whose verdict Gone was read or published."""
        if not self._tracer.enabled:
            return
        for attempt in list(self._by_gang.get(verdict.gang_id, ())):
            self._end(attempt, verdict.at_ms, "Gone")
        self._ended.pop(verdict.gang_id, None)
        self._pending.forget(verdict.gang_id)
        if not verdict.uid and verdict.trace_id:
            self._nameless[verdict.gang_id] = verdict.trace_id
            if len(self._nameless) > GANGS_MAX:
                self._nameless.popitem(last=False)
        if verdict.attempt == 0 and verdict.trace_id and self._leading:
            # It was never decided: only its wait is exported.
            self._tracer.span(
                GANG,
                trace_id=verdict.trace_id,
                start_ms=verdict.first_seen_ms or verdict.at_ms,
                end_ms=verdict.at_ms,
                attributes={
                    "gang": f"{verdict.namespace}/{verdict.name}",
                    "gang.id": verdict.gang_id,
                    "dialect": verdict.dialect,
                    "result": "Gone",
                },
            )

    def _restore(self, arrival: CheckpointArrival) -> None:
        for page in arrival.pages:
            for gang in page.gangs:
                for note in gang.notes:
                    if note.kind == "release":
                        self._releases.open(note)
                failed_ms = max((note.at_ms for note in gang.notes), default=0)
                self._remember(gang.gang_id, failed_ms, started=gang.started)
            for open_decision in page.decisions:
                if isinstance(open_decision.decision, GangDecision):
                    # Its outcome may have been read before the checkpoint was written.
                    self._begin(open_decision.seq, open_decision.decision).waits_for_outcome = False

    # ------------------------------------------------------------------ ending

    def _end_if_done(self, attempt: _Attempt, at_ms: int) -> None:
        if attempt.waits_for_start or attempt.waits_for_outcome:
            return
        self._end(attempt, max(at_ms, attempt.started_ms, attempt.outcome_ms), attempt.error)

    def _end(self, attempt: _Attempt, end_ms: int, error: str) -> None:
        del self._open[attempt.seq]
        siblings = self._by_gang[attempt.gang_id]
        siblings.remove(attempt)
        if not siblings:
            del self._by_gang[attempt.gang_id]
        attempt.error = error
        ended = self._remember(attempt.gang_id, end_ms, started=bool(attempt.started_ms))
        ended.trace_id = attempt.trace_id
        if self._leading:
            self._export(attempt, end_ms)
        else:
            self._recent.append((attempt, end_ms))

    def _remember(self, gang_id: str, end_ms: int, *, started: bool) -> _Ended:
        ended = self._ended.pop(gang_id, None) or _Ended(0, started=False)
        ended.end_ms = max(ended.end_ms, end_ms)
        ended.started = ended.started or started
        self._ended[gang_id] = ended
        if len(self._ended) > GANGS_MAX:
            self._ended.popitem(last=False)
        return ended

    def _export(self, attempt: _Attempt, end_ms: int) -> None:
        if not self._tracer.keeps(attempt.trace_id):
            return
        values: Values = attempt.values | {
            "result": attempt.error or ("Started" if attempt.started_ms else "Bound")
        }
        trace_id, root = attempt.trace_id, gang_span(attempt.trace_id)
        self._tracer.span(
            GANG,
            trace_id=trace_id,
            start_ms=attempt.start_ms,
            end_ms=end_ms,
            attributes=values,
            links=tuple(attempt.links),
            events=tuple(attempt.events),
            error=attempt.error,
        )
        self._tracer.span(
            "queue",
            trace_id=trace_id,
            start_ms=attempt.start_ms,
            end_ms=attempt.decided_ms,
            parent=root,
            attributes={"gang": attempt.values["gang"]},
        )
        self._tracer.span(
            "decide",
            trace_id=trace_id,
            start_ms=attempt.decided_ms,
            end_ms=attempt.stored_ms,
            parent=root,
            attributes={
                key: attempt.values[key]
                for key in ("gang", "decision.seq", "members", "planner.epoch", "cluster.seq")
            },
        )


def _values_of(seq: int, decision: GangDecision) -> Values:
    return {
        "gang": decision.gang,
        "gang.id": decision.gang_id,
        "dialect": decision.dialect,
        "members": len(decision.bindings),
        "quorum": decision.quorum,
        "decision.seq": seq,
        "decision.attempt": decision.attempt,
        "decision.why": decision.why,
        "planner.epoch": decision.epoch,
        "cluster.seq": decision.cycle.cluster_seq,
    }


def _error_of(outcome: Outcome) -> str:
    """Why members were not bound; "": all were."""
    if outcome.reason:
        return outcome.reason
    unbound = [member.result for member in outcome.members if member.result != "bound"]
    if not unbound:
        return ""
    kinds = ", ".join(sorted(set(unbound)))
    return f"{len(unbound)} of {outcome.bound + len(unbound)} members not bound: {kinds}"
