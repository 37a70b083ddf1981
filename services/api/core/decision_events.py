"""What followed a decision: its outcome, and the notes about its gang. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from shared.contracts.decisions import GangNote, GangStarted, NoteOpened
from shared.contracts.outcomes import Member, Outcome
from shared.contracts.visibility import DecidedPod, DecisionEvent, DecisionFailure, DecisionStatus

_FAILURES_MAX: Final = 3
#: Characters of the API server's words about one pod.
_WORDS_MAX: Final = 512
#: Notes that begin with a failure.
_BAD: Final = frozenset({"repair", "release", "degraded"})


def instant(at_ms: int) -> datetime:
    """An instant of a log."""
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def outcome_events(decision: DecisionStatus, outcome: Outcome) -> Iterator[DecisionEvent]:
    """The events of a decision's outcome."""
    pods = {pod.uid: pod for pod in decision.pods}
    failed = [member for member in outcome.members if member.result not in {"bound", "skipped"}]
    evicts = decision.action == "Evict"
    done = outcome.evicted if evicts else outcome.bound
    begun_ms = outcome.received_ms
    if outcome.preflight_ms and not evicts:
        proved = outcome.reason != "PreflightFailed"
        yield DecisionEvent(
            time=instant(outcome.preflight_ms),
            type="Proved" if proved else "ProofFailed",
            message="all bindings, by a dry run" if proved else "",
            failures=() if proved else _failures(failed, pods),
            failures_count=0 if proved else len(failed),
            took_ms=outcome.preflight_ms - outcome.received_ms,
            failed=not proved,
        )
        if not proved:
            return
        begun_ms = outcome.preflight_ms
    end_ms = outcome.last_bound_ms or begun_ms
    number = f"{decision.count} pod{'' if decision.count == 1 else 's'}"
    yield DecisionEvent(
        time=instant(end_ms),
        type="Removed" if evicts else "Bound" if done else "NotBound",
        message=_joined(f"{done} of {number} by {outcome.binder}", outcome.reason),
        failures=_failures(failed, pods),
        failures_count=len(failed),
        took_ms=0 if evicts else end_ms - begun_ms,
        failed=bool(outcome.reason or outcome.members),
    )


def note_event(note: GangNote) -> DecisionEvent:
    """The event of a note."""
    if isinstance(note, GangStarted):
        return DecisionEvent(
            time=instant(note.at_ms), type="Started", message="its quorum is placed"
        )
    opened = isinstance(note, NoteOpened)
    on = f"on {note.node}" if isinstance(note, NoteOpened) and note.node else ""
    words = ": ".join(filter(None, (note.reason, note.message[:_WORDS_MAX])))
    return DecisionEvent(
        time=instant(note.at_ms),
        type=f"{note.kind.capitalize()}{'Begun' if opened else 'Ended'}",
        message=_joined(on, words),
        failed=opened and note.kind in _BAD,
    )


def _failures(
    failed: Sequence[Member], pods: Mapping[str, DecidedPod]
) -> tuple[DecisionFailure, ...]:
    named = [(pods[member.uid], member) for member in failed if member.uid in pods]
    return tuple(
        DecisionFailure(namespace=pod.namespace, name=pod.name, message=_words(member))
        for pod, member in named[:_FAILURES_MAX]
    )


def _words(failed: Member) -> str:
    words = f"{failed.result} {failed.code or ''} {failed.message or failed.reason}"
    return " ".join(words[:_WORDS_MAX].split())


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))
