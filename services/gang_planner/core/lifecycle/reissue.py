"""Reissues unanswered decisions before the log drops them.

A binder reads decisions only from the log. If no binder ran for days, the log would drop a decision
that was never carried out, and its reservations would never end. So the planner decides the same
bindings again, under its own epoch. The new record names the record that it repeats, and takes over
that record's reservations and position among the open decisions.

Two binders may carry out both records: same pods, same nodes, with the UID as precondition. After
that, an outcome no longer proves that no other POST is in flight (`state.in_flight`).
"""

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from services.gang_planner.core.cycle_context import CycleContext
    from shared.contracts.decisions import Act

#: A day before DECISIONS drops its records (`shared.bus.setup`).
REISSUE_AFTER_MS: Final = 6 * 86_400_000


def is_old(act: "Act", now_ms: int) -> bool:
    """Whether DECISIONS will soon drop the record."""
    return now_ms - act.cycle.now_ms >= REISSUE_AFTER_MS


def reissue(work: "CycleContext") -> None:
    """Reissue unanswered decisions that the log will soon drop. Usually reads only the oldest."""
    state = work.state
    _touch_unanswered_releases(work)
    for seq, one in state.open.items():
        if not is_old(one.act, work.now_ms):
            return
        if one.outcome is None and seq not in state.early:
            again = msgspec.structs.replace(one.act, epoch=state.epoch, cycle=work.cycle, again=seq)
            work.decisions.append(again)


def _touch_unanswered_releases(work: "CycleContext") -> None:
    """Mark gangs with old unanswered releases as changed: `release` decides those again."""
    state = work.state
    for one in state.evictions.values():
        if not is_old(one.act, work.now_ms):
            return
        gang = state.gangs.find(one.act.gang_id)
        if one.outcome is None and gang is not None:
            state.gangs.touch(gang)
