"""Reports gang events: changes the gang's state by the table and writes the effect's notes."""

from typing import assert_never

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.state import in_flight
from services.gang_planner.core.state.gang_settings import start_deadline_ms
from services.gang_planner.core.state.gang_states import GangEvent
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.transitions import Effect, apply_event


def report(
    work: CycleContext,
    gang: Gang,
    event: GangEvent,
    *,
    reason: str = "",
    message: str = "",
    until_ms: int = 0,
) -> None:
    """Apply an event to a gang and carry out its effect.

    `reason` (in CamelCase) and `message` are those of the note that the effect opens; at `until_ms`
    the repair's deadline passes or the backoff ends.

    Raises:
        InvariantViolation: The event cannot happen in the gang's state.
    """
    history = gang.history
    effect = apply_event(history, event, gang)
    match effect:
        case Effect.NOTHING:
            pass
        case Effect.RECORD_START:
            work.close_note(gang, "repair", "Started")
            _record_start(work, gang)
        case Effect.OPEN_REPAIR:
            work.open_note(gang, "repair", until_ms=until_ms, reason=reason, message=message)
        case Effect.CLOSE_REPAIR:
            work.close_note(gang, "repair", "NothingBound")
        case Effect.OPEN_RELEASE:
            _open_release(work, gang, reason, message)
        case Effect.WITHDRAW_RELEASE:
            work.close_note(gang, "release", "Started")
        case Effect.FINISH_RELEASE:
            in_flight.forget_evictions(work.state, gang.gang_id)
            work.close_note(gang, "release", "Released")
            _open_backoff(work, gang, reason, message, until_ms)
        case Effect.OPEN_BACKOFF:
            _open_backoff(work, gang, reason, message, until_ms)
        case Effect.CLOSE_BACKOFF:
            work.close_note(gang, "backoff", "Gone" if gang.vacant else "Elapsed")
        case _:
            assert_never(effect)


def _open_release(work: CycleContext, gang: Gang, reason: str, message: str) -> None:
    work.open_note(gang, "release", until_ms=0, reason=reason, message=message)
    for kind in ("repair", "start", "degraded"):
        work.close_note(gang, kind, "Released")


def _record_start(work: CycleContext, gang: Gang) -> None:
    gang.history.failures = 0
    gang.history.known_as = gang.gang_id
    work.record_start(gang)
    lasts_ms = start_deadline_ms(gang)
    if lasts_ms and not gang.quorum_runs:
        work.open_note(gang, "start", until_ms=work.now_ms + lasts_ms, reason="QuorumPlaced")


def _open_backoff(work: CycleContext, gang: Gang, reason: str, message: str, until_ms: int) -> None:
    gang.history.failures += 1
    work.open_note(gang, "backoff", until_ms=until_ms, reason=reason, message=message)
