"""A gang's records as lines of a timeline. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, assert_never

import msgspec

from shared.contracts.decisions import (
    DecisionRecord,
    EvictionDecision,
    GangDecision,
    GangStarted,
    NoteClosed,
    NoteOpened,
)
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict
from shared.model.gang_keys import gang_title
from tutti.terminal import count

#: Members that a line names; further ones are counted.
_MEMBERS_NAMED: Final = 3


class GangRecords(NamedTuple):
    verdict: Verdict
    #: Records of DECISIONS with their sequences, in order.
    records: Sequence[tuple[int, DecisionRecord]]
    #: Outcomes by the sequence of their decision.
    outcomes: Mapping[int, Outcome]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An event, or the end of an action."""

    at_ms: int
    what: str
    detail: str = ""
    #: Duration of the action; 0 for an event.
    took_ms: int = 0
    failed: bool = False


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    gang: str
    gang_id: str
    phase: str
    lines: tuple[Line, ...]
    #: Trace ids, one per attempt.
    traces: tuple[str, ...]


def timeline(records: GangRecords) -> Timeline:
    """The gang's timeline; `with_lines` orders it by time."""
    verdict = records.verdict
    lines = [*_first(records), *_last(verdict)]
    for seq, record in records.records:
        lines += _of_record(record)
        outcome = records.outcomes.get(seq)
        if isinstance(record, GangDecision | EvictionDecision) and outcome is not None:
            lines += _of_outcome(record, outcome)
    return Timeline(
        gang=f"{verdict.namespace}/{gang_title(verdict.name)}",
        gang_id=verdict.gang_id,
        phase=verdict.phase,
        lines=tuple(lines),
        traces=traces(records),
    )


def with_lines(found: Timeline, exported: Iterable[Line]) -> Timeline:
    """A timeline with lines from other sources, ordered by time."""
    lines = sorted([*exported, *found.lines], key=lambda line: line.at_ms)
    return msgspec.structs.replace(found, lines=tuple(lines))


def traces(records: GangRecords) -> tuple[str, ...]:
    """Ids of the gang's traces, oldest first."""
    decided = [
        record.trace_id
        for _, record in records.records
        if isinstance(record, GangDecision | EvictionDecision)
    ]
    ids = dict.fromkeys(decided or [records.verdict.trace_id])
    return tuple(trace_id for trace_id in ids if trace_id)


def _first(records: GangRecords) -> Iterator[Line]:
    decided = (record for _, record in records.records if isinstance(record, GangDecision))
    seen_ms = records.verdict.first_seen_ms or min(
        (each.first_seen_ms for each in decided if each.first_seen_ms), default=0
    )
    if seen_ms:
        yield Line(at_ms=seen_ms, what="queued", detail="first seen by the planner")


def _last(verdict: Verdict) -> Iterator[Line]:
    why = verdict.why
    if verdict.phase == "Gone":
        yield Line(at_ms=verdict.at_ms, what="gone", detail="group and pods are deleted")
    elif why is not None:
        yield Line(at_ms=verdict.at_ms, what="waits", detail=f"{why.reason}: {why.sentence}")


def _of_record(record: DecisionRecord) -> Iterator[Line]:
    match record:
        case GangDecision():
            words = [f"attempt {record.attempt}: {count(len(record.bindings), 'binding')}"]
            words += [record.why] if record.why else []
            words += [f"in {record.domain}"] if record.domain else []
            yield Line(at_ms=record.cycle.now_ms, what="decided", detail=", ".join(words))
        case EvictionDecision():
            what = "evicting" if record.via == "eviction" else "releasing"
            yield Line(
                at_ms=record.cycle.now_ms,
                what=what,
                detail=_detail(count(len(record.victims), "pod"), record.reason, record.why),
                failed=record.via == "delete",
            )
        case GangStarted():
            yield Line(at_ms=record.at_ms, what="started", detail="its quorum is placed")
        case NoteOpened():
            on = f"on {record.node}" if record.node else ""
            yield Line(
                at_ms=record.at_ms,
                what=f"{record.kind} begun",
                detail=_detail(on, record.reason, record.message),
                failed=record.kind in {"repair", "release", "degraded"},
            )
        case NoteClosed():
            yield Line(
                at_ms=record.at_ms,
                what=f"{record.kind} ended",
                detail=_detail("", record.reason, record.message),
            )
        case _:
            # Not a record of a single gang.
            pass


def _of_outcome(record: GangDecision | EvictionDecision, outcome: Outcome) -> Iterator[Line]:
    match record:
        case GangDecision():
            names = {one.uid: one.name for one in record.bindings}
            if outcome.preflight_ms:
                proved = outcome.reason != "PreflightFailed"
                yield Line(
                    at_ms=outcome.preflight_ms,
                    what="proved" if proved else "proof failed",
                    detail="all bindings, by a dry run" if proved else _members(outcome, names),
                    took_ms=outcome.preflight_ms - outcome.received_ms,
                    failed=not proved,
                )
                if not proved:
                    return
            yield _wave(len(record.bindings), outcome, names)
        case EvictionDecision():
            names = {one.uid: one.name for one in record.victims}
            yield Line(
                at_ms=outcome.last_bound_ms or outcome.received_ms,
                what="removed",
                detail=_detail(
                    f"{outcome.evicted} of {count(len(names), 'pod')} by {outcome.binder}",
                    outcome.reason,
                    _members(outcome, names),
                ),
                failed=bool(outcome.reason or outcome.members),
            )
        case _:
            assert_never(record)


def _wave(bindings: int, outcome: Outcome, names: Mapping[str, str]) -> Line:
    begun_ms = outcome.preflight_ms or outcome.received_ms
    end_ms = outcome.last_bound_ms or begun_ms
    done = f"{outcome.bound} of {count(bindings, 'pod')} by {outcome.binder}"
    return Line(
        at_ms=end_ms,
        what="bound" if outcome.bound else "not bound",
        detail=_detail(done, outcome.reason, _members(outcome, names)),
        took_ms=end_ms - begun_ms,
        failed=bool(outcome.reason or outcome.members),
    )


def _members(outcome: Outcome, names: Mapping[str, str]) -> str:
    """The failed members with their errors, the first ones by name."""
    failed = [one for one in outcome.members if one.result != "skipped"]
    named = []
    for one in failed[:_MEMBERS_NAMED]:
        error = f"{one.result} {one.code or ''} {one.message or one.reason}"
        named.append(f"{names.get(one.uid, one.uid)}: {' '.join(error.split())}")
    if len(failed) > _MEMBERS_NAMED:
        named.append(f"and {len(failed) - _MEMBERS_NAMED} more")
    return "; ".join(named)


def _detail(first: str, reason: str, words: str) -> str:
    """`first, reason: words`, without the empty parts."""
    return ", ".join(part for part in (first, ": ".join(x for x in (reason, words) if x)) if part)
