"""Deadlines of started gangs. Both are off unless a group or its queue sets them.

The planner releases a gang whose quorum does not run by its start deadline, and one that stays
below its quorum for longer than its grace period. The deadlines are notes in DECISIONS. A start
deadline counts from the gang's start; one that is set later applies from the next start.
"""

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle import release
from services.gang_planner.core.lifecycle.assessment import enough, growing
from services.gang_planner.core.state.gang_settings import degraded_grace_ms, start_deadline_ms
from services.gang_planner.core.state.gang_states import GangEvent
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import HoldTable
from services.gang_planner.core.state.member_states import LEAVING, PLACED
from shared.contracts.decisions import NoteOpened
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.reasons import NotRunning, in_words


def watch(work: CycleContext, gang: Gang) -> None:
    """Open, check or close the gang's deadlines."""
    history = gang.history
    if not history.started or history.releasing:
        if history.notes.any_open:
            for kind in ("start", "degraded"):
                work.close_note(gang, kind, "Gone")
        return
    notes = history.notes
    if notes.start is not None and _watch_start(work, gang, notes.start):
        # The release has closed the other deadline.
        return
    below = not gang.completed and not enough(gang) and not growing(gang)
    if below and not _owed(work.state.holds, gang) and not _terminating(work, gang):
        _watch_degraded(work, gang)
    elif notes.degraded is not None:
        work.close_note(gang, "degraded", "Restored")


def _owed(holds: HoldTable, gang: Gang) -> bool:
    """Whether the gang has a hold for a lost member, or a loss that awaits one."""
    return bool(holds.of(gang)) or any(loss.key == gang.key for loss in holds.pending.values())


def _terminating(work: CycleContext, gang: Gang) -> bool:
    """Whether a member still terminates on a ready node. Whether it gets a hold is decided when its
    pod is gone. A pod on a dead node may never go.
    """
    nodes = work.state.nodes
    terminates = gang.counts[LEAVING] > 0 and any(
        member.state == LEAVING and member.slot is not None and bool(nodes.ready[member.slot])
        for member in gang.members.values()
    )
    if terminates and (grace_ms := degraded_grace_ms(gang)):
        # The node's failure would not mark the gang as changed.
        work.timers.set(work.now_ms + grace_ms, gang)
    return terminates


def not_running_words(gang: Gang) -> str:
    """A message with the first placed member that does not run, preferably one for which the
    kubelet gives a reason.
    """
    placed = [member.pod for member in gang.members.values() if member.state == PLACED]
    pod = min(placed, key=lambda pod: (not pod.waiting, pod.name), default=None)
    if pod is None:
        return "its quorum does not run"
    return in_words(NotRunning(pod=pod.name, why=pod.waiting))


def _watch_start(work: CycleContext, gang: Gang, note: NoteOpened) -> bool:
    """Check or close the start deadline; whether the gang is released."""
    lasts_ms = start_deadline_ms(gang)
    if gang.quorum_runs:
        work.close_note(gang, "start", "Running")
    elif not lasts_ms:
        work.close_note(gang, "start", "Off")
    elif work.has_passed(gang, note, lasts_ms):
        words = f"placed for {lasts_ms // 1000} s, and {not_running_words(gang)}"
        reason = PendingReason.START_DEADLINE
        return release.begin(work, gang, GangEvent.START_DEADLINE_PASSED, reason, words)
    return False


def _watch_degraded(work: CycleContext, gang: Gang) -> None:
    lasts_ms = degraded_grace_ms(gang)
    note = gang.history.notes.degraded
    if note is None:
        if lasts_ms:
            until_ms = work.now_ms + lasts_ms
            work.open_note(gang, "degraded", until_ms=until_ms, reason="BelowQuorum")
    elif not lasts_ms:
        work.close_note(gang, "degraded", "Off")
    elif work.has_passed(gang, note, lasts_ms):
        words = (
            f"{gang.have()} of {max(gang.min_member, 1)} members have been "
            f"left for {lasts_ms // 1000} s, and no replacement is expected"
        )
        reason = PendingReason.DEGRADED_GRACE
        release.begin(work, gang, GangEvent.GRACE_PASSED, reason, words)
