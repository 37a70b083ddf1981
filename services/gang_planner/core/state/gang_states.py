"""The states in the life of a gang, and the events that may change them.

What an event does in a state is in one table, `lifecycle.transitions`; nothing else changes a
gang's state.
"""

import enum


class GangState(enum.StrEnum):
    """Where a gang is in its life.

    Waiting, BackingOff and Starting, as well as Running, Degraded and Completed, are as of the
    gang's last assessment: until the next one they may lag behind its members.
    """

    #: Its quorum was placed, and it has members left. Plain attributes, because they are read
    #: several times for every gang that changes.
    is_started: bool
    #: Its bound members are being deleted.
    is_releasing: bool

    #: No member is decided or placed.
    WAITING = "Waiting"
    #: The same, and no attempt is made until an instant, because the last one failed.
    BACKING_OFF = "BackingOff"
    #: Members are decided or placed, and its quorum has not been placed yet.
    STARTING = "Starting"
    #: The same, and the missing members are placed before all other gangs.
    REPAIRING = "Repairing"
    #: Its bound members are being deleted; its quorum is not placed.
    RELEASING = "Releasing"
    #: Its quorum was placed, and every minimum holds.
    RUNNING = "Running"
    #: Its quorum was placed, and a minimum does not hold any more.
    DEGRADED = "Degraded"
    #: Its quorum was placed, and all members have ended.
    COMPLETED = "Completed"
    #: Its quorum was placed, and its bound members are being deleted.
    RELEASING_STARTED = "ReleasingStarted"
    #: Its quorum was placed, and no member is left. New members are placed together, but members
    #: that come back with their nodes are no partial start.
    DORMANT = "Dormant"


class GangEvent(enum.StrEnum):
    """What happened to a gang, reported by the module that finds it."""

    # Found by an assessment.
    #: Of a gang that has not started, no member is decided or placed.
    NOTHING_HELD = "nothing held"
    #: The same while a backoff lasts.
    NOTHING_HELD_IN_BACKOFF = "nothing held, in backoff"
    #: Of a gang that has not started, members are decided or placed.
    MEMBERS_HELD = "members held"
    #: Its quorum is placed for the first time, or members run that no decision of Tutti bound.
    QUORUM_PLACED = "quorum placed"
    #: Members of a dormant gang are placed again without a decision: their nodes came back.
    MEMBERS_RETURNED = "members returned"
    #: No member of a started gang is decided or placed any more.
    ALL_LOST = "all members lost"
    #: Every minimum of a started gang holds.
    QUORUM_HELD = "quorum held"
    #: A minimum of a started gang does not hold.
    QUORUM_LOST = "quorum lost"
    #: All members of a started gang have succeeded or failed.
    ALL_ENDED = "all members ended"

    # Reported when a decision is made.
    #: Members were decided.
    MEMBERS_DECIDED = "members decided"

    # Reported by repair, release, backoff and deadlines.
    #: A gang is bound in part, and a member was not bound or was lost, or a second has passed.
    REPAIR_NEEDED = "repair needed"
    #: No member of a gang under repair is bound any more.
    NOTHING_BOUND = "nothing bound"
    #: A policy refused a member that the quorum needs, on whatever node.
    MEMBER_REFUSED = "needed member refused"
    #: The deadline of the repair has passed.
    REPAIR_DEADLINE_PASSED = "repair deadline passed"
    #: Another gang under repair needs the same capacity, and goes first.
    REPAIRS_BLOCKED = "repairs block each other"
    #: A started gang did not run by its start deadline.
    START_DEADLINE_PASSED = "start deadline passed"
    #: A started gang was below its quorum for longer than its grace period.
    GRACE_PASSED = "degraded grace passed"
    #: The quorum was placed after all, before any deletion was decided.
    RELEASE_WITHDRAWN = "release withdrawn"
    #: No member is bound, terminating or assumed any more.
    RELEASED = "released"
    #: Members of a decision were not bound.
    DECISION_FAILED = "decision failed"
    #: The end of the backoff has come.
    BACKOFF_ENDED = "backoff ended"


for _state in GangState:
    _state.is_started = _state in {
        GangState.RUNNING,
        GangState.DEGRADED,
        GangState.COMPLETED,
        GangState.RELEASING_STARTED,
    }
    _state.is_releasing = _state in {GangState.RELEASING, GangState.RELEASING_STARTED}
