"""Gangs whose bound members the planner found, without a decision in its log.

Another scheduler bound them, or the log is lost. Such a gang counts as started, unless the cluster
itself shows that Tutti bound it in part and that it was never complete. Then it is completed or
released like any other partly bound gang: no record of its first attempt is needed for that.

A gang that counts as started by mistake may stay partly bound for ever. One that counts as partly
bound by mistake loses its pods after the repair deadline. So in doubt it has started.
"""

from typing import Final

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import PLACED, RUNNING

#: Phases of a group object that its gang reaches only by a start.
_STARTED: Final = frozenset({"Running", "Unknown", "Completed"})
_BOUND: Final = frozenset({PLACED, RUNNING})


def was_never_complete(gang: Gang) -> bool:
    """Whether Tutti bound all bound members of a gang, and its quorum was never placed.

    Members that exist since the gang's first binding and are not bound never were. If the remaining
    members are fewer than the minimum, it was never placed, because controllers create a pod only
    in place of one that is gone. Both times are those of the API server, in whole seconds.

    The mark of a release on any member proves more than a start: binders write it only when the
    release is in the log.

    Args:
        gang: A gang with bound members, whose quorum is not placed now.
    """
    members = gang.members.values()
    bound = [member.pod for member in members if member.state in _BOUND]
    if not bound or gang.lacks_object or not all(pod.decision_seq for pod in bound):
        return False
    if any(member.pod.released for member in members):
        return True
    if gang.group is not None and gang.group.phase in _STARTED:
        return False
    first_ms = min(pod.scheduled_ms for pod in bound)
    if not first_ms or len(members) < gang.min_member:
        # The time is unknown, or lost members have no successors yet.
        return False
    waiting = sum(not one.pod.node and one.pod.created_ms <= first_ms for one in members)
    return len(members) - waiting < gang.min_member
