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
from services.gang_planner.core.state.gang_history import Failure
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
    pause(
        work,
        gang,
        REFUSED if refused is not None else FAILED,
        first.message[:_WORDS_MAX],
        first_ms=_REPAIR_PAUSE_MS if repairing else _PAUSE_MS,
        most_ms=_REPAIR_PAUSE_MS_MAX if repairing else _PAUSE_MS_MAX,
    )


def first_cause(failures: Sequence[Failure]) -> Failure:
    """Which of several failures to name: a refusal first, a member that was only skipped last."""
    return min(failures, key=_telling)


def _telling(failure: Failure) -> int:
    return _TELLING.get(failure.result, 1)


def pause(
    work: CycleContext,
    gang: Gang,
    reason: str,
    message: str,
    *,
    first_ms: int = _PAUSE_MS,
    most_ms: int = _PAUSE_MS_MAX,
) -> None:
    """Count a failure and open the pause that follows it."""
    history = gang.history
    history.failures += 1
    lasts_ms = min(first_ms << min(history.failures - 1, 16), most_ms)
    work.open_note(gang, "backoff", until_ms=work.now_ms + lasts_ms, reason=reason, message=message)


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
    work.close_note(gang, "backoff", "Gone" if gang.vacant else "Elapsed")
