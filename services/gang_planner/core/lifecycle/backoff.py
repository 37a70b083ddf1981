"""Pauses after decisions that could not be carried out, and the pairs of pod and node that are
avoided meanwhile.

A pause is a note in DECISIONS, so that a restart neither forgets nor repeats it; it carries what
went wrong in the API server's words. Instants come from the cycle: outcomes carry clocks of other
machines. A gang that is bound in part cannot wait long: its pauses are short.

A release may leave nothing of a gang at all, and its pods come back as an unknown gang. So a pause
outlasts its gang's pods for a while: they find it, and with it the
attempts made, and are pre-flighted.
"""

from collections.abc import Sequence
from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle.effects import report
from services.gang_planner.core.state.gang_history import Failure
from services.gang_planner.core.state.gang_states import GangEvent
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.in_flight import BAD_PAIR_MS
from services.gang_planner.core.state.member_states import ASSUMED
from services.gang_planner.core.state.reservations import UNDATED
from shared.contracts.outcomes import MemberResult

#: First pause; each further failure in a row doubles it, up to a minute.
_PAUSE_MS: Final = 1_000
_PAUSE_MS_MAX: Final = 60_000
#: The same for a gang that is being repaired: its deadline is half a minute away.
_REPAIR_PAUSE_MS: Final = 500
_REPAIR_PAUSE_MS_MAX: Final = 5_000
#: How long a pause waits for pods to come back under their gang, beyond its end.
MEMORY_MS: Final = 600_000
REFUSED: Final = "BindingRefused"
FAILED: Final = "DecisionFailed"
#: What is named first.
_TELLING: Final[dict[MemberResult, int]] = {"refused": 0, "skipped": 2}
#: What a note keeps of the API server's words.
_WORDS_MAX: Final = 1_024


def date_failures(work: CycleContext, gang: Gang) -> None:
    """Date the pairs that failed: they are avoided from now on, for a while."""
    for pairs in (gang.history.bad, gang.history.failed_pods):
        for pair, until_ms in list(pairs.items()):
            if until_ms == UNDATED:
                pairs[pair] = work.now_ms + BAD_PAIR_MS
            # Also of pairs that came with a checkpoint.
            work.timers.set(pairs[pair], gang)


def pause_after(work: CycleContext, gang: Gang, failures: Sequence[Failure]) -> None:
    """Open the pause that follows failures just read.

    When that is what begins the repair of a gang bound in part, its members are planned again in
    this very cycle: no other gang takes the capacity that they had.
    """
    refused = next((one for one in failures if one.result == "refused"), None)
    if gang.history.started and all(one.result == "refused" for one in failures):
        # They are left out for a minute. Others of the gang need not wait, least of all those that
        # come in for lost ones.
        return
    first = first_cause(failures)
    repairing = bool(gang.bound or gang.counts[ASSUMED]) and not gang.history.started
    if repairing and refused is None and "repair" not in gang.history.notes:
        return
    report(
        work,
        gang,
        GangEvent.DECISION_FAILED,
        reason=REFUSED if refused is not None else FAILED,
        message=first.message[:_WORDS_MAX],
        until_ms=work.now_ms + (_repair_pause_ms(gang) if repairing else pause_ms(gang)),
    )


def first_cause(failures: Sequence[Failure]) -> Failure:
    """Which of several failures to name: a refusal first, a member that was only skipped last."""
    return min(failures, key=_telling)


def _telling(failure: Failure) -> int:
    return _TELLING.get(failure.result, 1)


def pause_ms(gang: Gang) -> int:
    """How long the gang pauses after one more failure."""
    return min(_PAUSE_MS << min(gang.history.failures, 16), _PAUSE_MS_MAX)


def _repair_pause_ms(gang: Gang) -> int:
    return min(_REPAIR_PAUSE_MS << min(gang.history.failures, 16), _REPAIR_PAUSE_MS_MAX)


def close_pause(work: CycleContext, gang: Gang) -> None:
    """End a pause whose instant has come."""
    note = gang.history.notes.get("backoff")
    if note is None or (gang.key, "backoff") in work.fresh:
        return
    # A pause that ends later than any pause can was opened before the clock was set back.
    if work.now_ms < note.until_ms <= work.now_ms + _PAUSE_MS_MAX:
        # Also after a restart, when another planner opened it.
        work.timers.set(note.until_ms, gang)
        return
    if gang.vacant and work.now_ms < note.until_ms + MEMORY_MS <= work.now_ms + MEMORY_MS:
        work.timers.set(note.until_ms + MEMORY_MS, gang)
        return
    report(work, gang, GangEvent.BACKOFF_ENDED)
