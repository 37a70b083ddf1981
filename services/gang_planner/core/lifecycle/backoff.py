"""Backoff of gangs whose decisions failed, and the pairs of pod and node that are avoided.

A pause is a note in DECISIONS, so that a restart neither loses nor repeats it. The note has the API
server's error message. Times are those of the cycle, because outcomes have the clocks of other
machines. A gang that is partly bound has short pauses.

A release may delete all pods of a gang, and the pods made again would look like a new gang. So a
pause outlasts its gang's pods for a while. The new pods inherit the pause and the number of
attempts, and are pre-flighted.
"""

from collections.abc import Sequence
from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.queueing.need import refused_members
from services.gang_planner.core.state.gang_history import Failure
from services.gang_planner.core.state.gang_states import GangEvent
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.in_flight import BAD_PAIR_MS
from services.gang_planner.core.state.member_states import ASSUMED
from services.gang_planner.core.state.reservations import UNDATED
from services.gang_planner.core.state.timers import Timers
from shared.contracts.outcomes import MemberResult
from shared.contracts.pending_reasons import PendingReason

#: First pause; each further failure in a row doubles it, up to a minute.
_PAUSE_MS: Final = 1_000
_PAUSE_MS_MAX: Final = 60_000
#: The same for a gang that is being repaired: its deadline is half a minute away.
_REPAIR_PAUSE_MS: Final = 500
_REPAIR_PAUSE_MS_MAX: Final = 5_000
#: How long the note of a pause is kept beyond its end while its gang has no pods.
MEMORY_MS: Final = 600_000
#: The note's reason if a decision failed and no policy refused it.
FAILED: Final = "DecisionFailed"
#: Rank of a result when one failure is reported; the lowest is reported.
_REPORT_RANK: Final[dict[MemberResult, int]] = {"refused": 0, "skipped": 2}
#: Characters of the API server's error message that a note keeps.
_WORDS_MAX: Final = 1_024


def date_failures(timers: Timers, gang: Gang, now_ms: int) -> None:
    """Set when the pairs that failed stop being avoided, and assess the gang again then."""
    for pairs in (gang.history.bad, gang.history.failed_pods):
        for pair, until_ms in list(pairs.items()):
            if until_ms == UNDATED:
                pairs[pair] = now_ms + BAD_PAIR_MS
            # Pairs restored from a checkpoint need a timer, too.
            timers.set(pairs[pair], gang)


def pause_after(work: CycleContext, gang: Gang, failures: Sequence[Failure]) -> None:
    """Open the pause that follows the failures of this cycle.

    If the failures start the repair of a partly bound gang, there is no pause: its members are
    planned again in this cycle, before another gang takes their capacity.
    """
    refused = next((failure for failure in failures if failure.result == "refused"), None)
    repairing = bool(gang.bound or gang.counts[ASSUMED]) and not gang.history.started
    if gang.history.started and all(failure.result == "refused" for failure in failures):
        # The refused members are left out for a minute. The gang's other members, such as
        # replacements of lost ones, need not wait, unless an earlier decision was refused as well:
        # then the next one probably is, too (the namespace is being deleted).
        if refused_members(gang) <= {failure.uid for failure in failures}:
            return
        repairing = True
    first = first_cause(failures)
    if repairing and refused is None and not gang.history.repairing:
        return
    work.report(
        gang,
        GangEvent.DECISION_FAILED,
        reason=FAILED if refused is None else PendingReason.BINDING_REFUSED.value,
        message=first.message[:_WORDS_MAX],
        until_ms=work.now_ms + pause_ms(gang, repairing=repairing),
    )


def first_cause(failures: Sequence[Failure]) -> Failure:
    """The failure to report: a refusal first, a member that was only skipped last."""
    return min(failures, key=lambda failure: _REPORT_RANK.get(failure.result, 1))


def pause_ms(gang: Gang, *, repairing: bool = False) -> int:
    """The pause after the gang's next failure, in milliseconds."""
    first_ms, most_ms = _PAUSE_MS, _PAUSE_MS_MAX
    if repairing:
        first_ms, most_ms = _REPAIR_PAUSE_MS, _REPAIR_PAUSE_MS_MAX
    return min(first_ms << min(gang.history.failures, 16), most_ms)


def close_pause(work: CycleContext, gang: Gang) -> None:
    """End a pause whose instant has come."""
    note = gang.history.notes.backoff
    if note is None or (gang.key, "backoff") in work.fresh:
        return
    # A pause that would last longer than the maximum was opened before the clock was set back.
    if work.now_ms < note.until_ms <= work.now_ms + _PAUSE_MS_MAX:
        # After a restart, a pause that another planner opened has no timer yet.
        work.timers.set(note.until_ms, gang)
        return
    if gang.vacant and work.now_ms < note.until_ms + MEMORY_MS <= work.now_ms + MEMORY_MS:
        work.timers.set(note.until_ms + MEMORY_MS, gang)
        return
    work.report(gang, GangEvent.BACKOFF_ENDED)
