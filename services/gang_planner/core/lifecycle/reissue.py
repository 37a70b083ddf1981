"""Decisions without an answer are issued again before they age out of the log.

A binder learns of a decision from the log alone. One that waited there for longer than the log
reaches back (no binder ran for days) would never be carried out, and its reservations would stay
for ever. So the same bindings are decided again, under this planner's epoch; the record names the
one that it repeats, whose reservations and place among the open decisions it takes.

Both may be carried out, by two binders side by side: same pods, same nodes, the UID as
precondition. Only an outcome no longer proves that no other POST is in flight (`state.in_flight`).
"""

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from services.gang_planner.core.cycle_context import CycleContext
    from shared.contracts.decisions import Act

#: A day before DECISIONS drops its records (`shared.bus.setup`).
REISSUE_AFTER_MS: Final = 6 * 86_400_000


def is_old(act: "Act", now_ms: int) -> bool:
    """Whether a record of DECISIONS nears its end."""
    return now_ms - act.cycle.now_ms >= REISSUE_AFTER_MS


def reissue(work: "CycleContext") -> None:
    """Decide again what is about to age out unanswered. Costs a look at the oldest decision."""
    state = work.state
    _touch_unanswered_releases(work)
    for seq, one in state.open.items():
        if not is_old(one.act, work.now_ms):
            return
        if one.outcome is None and seq not in state.early:
            again = msgspec.structs.replace(one.act, epoch=state.epoch, cycle=work.cycle, again=seq)
            work.decisions.append(again)


def _touch_unanswered_releases(work: "CycleContext") -> None:
    """Have gangs assessed whose release has no answer: it is decided again (`release`)."""
    state = work.state
    for one in state.evictions.values():
        if not is_old(one.act, work.now_ms):
            return
        gang = state.gangs.by_id.get(one.act.gang_id)
        if one.outcome is None and gang is not None:
            state.gangs.touch(gang)
