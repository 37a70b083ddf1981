"""Backoff after preemptions that failed.

Everything that a gang remembers of a preemption follows from the record of its end, so that a
restart, or another planner, continues in the same way.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from services.gang_planner.core.state.gang_history import History
    from services.gang_planner.core.state.planner_state import State
    from services.gang_planner.core.state.preemptions import Preemption
    from shared.contracts.decisions import NoteClosed

#: Its gang is gone, or no longer waits for capacity.
GONE: Final = "Gone"
NOT_NEEDED: Final = "NotNeeded"
#: The API server refused a victim or a binding of the gang, for a budget or a policy.
REFUSED: Final = "EvictionRefused"
#: No binder has answered.
UNANSWERED: Final = "Unanswered"
#: Victims are still there.
STAYED: Final = "VictimsStayed"
#: All victims are gone, and the gang does not fit where they were any more.
LOST: Final = "PlacementLost"
#: Ends after which no pod is evicted for the gang for a while.
_FAILURES: Final = frozenset({REFUSED, UNANSWERED, STAYED, LOST})
#: First pause; each further failure in a row doubles it, up to five minutes.
_PAUSE_MS: Final = 2_000
_PAUSE_MS_MAX: Final = 300_000
#: A victim that was refused is no candidate for this long.
SPARED_MS: Final = 60_000


def note(history: "History", reason: str, at_ms: int, refused: tuple[str, ...], words: str) -> None:
    """Record the end of a preemption in its gang's history."""
    if reason not in _FAILURES:
        return
    history.preemptions_failed += 1
    lasts_ms = min(_PAUSE_MS << min(history.preemptions_failed - 1, 16), _PAUSE_MS_MAX)
    history.preempt_after_ms = at_ms + lasts_ms
    history.preemption_ended = f"{reason}: {words}" if words else reason
    history.spared = {uid: until for uid, until in history.spared.items() if until > at_ms}
    history.spared.update(dict.fromkeys(refused, at_ms + SPARED_MS))


def taken_over(state: "State", one: "Preemption") -> None:
    """End a preemption whose capacity a decision in the log takes over."""
    state.preemptions.end(state, one)
    gang = one.gang or state.gangs.by_id.get(one.act.gang_id)
    if gang is not None:
        succeeded(gang.history)


def succeeded(history: "History") -> None:
    """Reset the backoff of a gang that has been placed."""
    history.preemptions_failed = 0
    history.preempt_after_ms = 0
    history.preemption_ended = None
    history.spared = {}


def recall(state: "State", closed: "NoteClosed") -> None:
    """Apply a record of the log that ends a gang's preemption."""
    one = state.preemptions.find(closed.gang_id)
    if one is None:
        return
    state.preemptions.end(state, one)
    gang = one.gang or state.gangs.by_id.get(closed.gang_id)
    history = gang.history if gang is not None else state.gangs.history(closed.gang_id)
    note(history, closed.reason, closed.at_ms, closed.pod_uids, closed.message)
