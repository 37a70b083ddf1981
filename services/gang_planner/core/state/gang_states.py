"""The states of a gang, and the events that may change them.

Only the table `core.transitions` changes a gang's state: it maps state and event to the next
state.
"""

import enum
from typing import Final


class GangState(enum.StrEnum):
    """The state of a gang.

    Waiting, BackingOff, Starting, Running, Degraded and Completed are as of the gang's last
    assessment; until the next one they may lag behind its members.
    """

    #: No member is decided or placed.
    WAITING = "Waiting"
    #: No member is decided or placed. The last attempt failed, and the backoff has not ended.
    BACKING_OFF = "BackingOff"
    #: Members are decided or placed, but its quorum has not been placed yet.
    STARTING = "Starting"
    #: Like Starting, and its missing members are placed before all other gangs.
    REPAIRING = "Repairing"
    #: Its bound members are being deleted; its quorum is not placed.
    RELEASING = "Releasing"
    #: Its quorum was placed, and every minimum holds.
    RUNNING = "Running"
    #: Its quorum was placed, but a minimum no longer holds.
    DEGRADED = "Degraded"
    #: It had started, and all members have ended, also if their pods are gone. It requests nothing,
    #: and only pods that have not ended lead out of this state.
    COMPLETED = "Completed"
    #: Its quorum was placed, and its bound members are being deleted.
    RELEASING_STARTED = "ReleasingStarted"
    #: Its quorum was placed, and no member is left, or only succeeded ones of a Job and too few
    #: (`gang_runs.is_interrupted`). New members are placed together, but members
    #: that return with their nodes do not count as a partial start.
    DORMANT = "Dormant"


class GangEvent(enum.StrEnum):
    """An event in the life of a gang, reported by the module that detects it."""

    # Reported by an assessment.
    #: No member of a gang that has not started is decided or placed.
    NOTHING_HELD = "nothing held"
    #: Like NOTHING_HELD, during a backoff.
    NOTHING_HELD_IN_BACKOFF = "nothing held, in backoff"
    #: Members of a gang that has not started are decided or placed.
    MEMBERS_HELD = "members held"
    #: Its quorum is placed for the first time, or members run without a decision of Tutti.
    QUORUM_PLACED = "quorum placed"
    #: Members of a dormant gang are placed again without a decision: their nodes returned.
    MEMBERS_RETURNED = "members returned"
    #: No member of a started gang is still decided or placed, or its run is interrupted.
    ALL_LOST = "all members lost"
    #: Every minimum of a started gang holds.
    QUORUM_HELD = "quorum held"
    #: A minimum of a started gang does not hold.
    QUORUM_LOST = "quorum lost"
    #: All members have succeeded or failed.
    ALL_ENDED = "all members ended"
    #: Members of a gang that has not started are bound by a decision that is not in the log, and
    #: its quorum was never placed.
    DECISION_MISSING = "decision not in the log"
    #: A pod has joined a gang that had ended, and ended pods that are left count with it.
    RUN_CONTINUED = "run continued"
    #: A pod has joined a gang that had ended, and no other pod counts with it.
    RUN_BEGUN = "run begun"

    # Reported when a decision is made.
    #: Members were decided.
    MEMBERS_DECIDED = "members decided"

    # Reported by repair, release, backoff and deadlines.
    #: A gang is partly bound, and a member was not bound or was lost, or a second has passed.
    REPAIR_NEEDED = "repair needed"
    #: No member of a gang under repair is still bound.
    NOTHING_BOUND = "nothing bound"
    #: A policy refused a member that the quorum needs, regardless of the node.
    MEMBER_REFUSED = "needed member refused"
    #: The deadline of the repair has passed.
    REPAIR_DEADLINE_PASSED = "repair deadline passed"
    #: Another gang under repair needs the same capacity and has precedence.
    REPAIRS_BLOCKED = "repairs block each other"
    #: A started gang did not run by its start deadline.
    START_DEADLINE_PASSED = "start deadline passed"
    #: A started gang was below its quorum for longer than its grace period.
    GRACE_PASSED = "degraded grace passed"
    #: A started gang ran for as long as its run limit allows, and had its notice.
    RUN_LIMIT_PASSED = "run limit passed"
    #: The quorum was placed before any deletion was decided.
    RELEASE_WITHDRAWN = "release withdrawn"
    #: No member is still bound, terminating or assumed.
    RELEASED = "released"
    #: Members of a decision were not bound.
    DECISION_FAILED = "decision failed"
    #: The backoff has ended.
    BACKOFF_ENDED = "backoff ended"


#: The quorum of the gang was placed, and it has members left, or all have ended.
STARTED: Final = frozenset(
    {
        GangState.RUNNING,
        GangState.DEGRADED,
        GangState.COMPLETED,
        GangState.RELEASING_STARTED,
    }
)
#: The bound members of the gang are being deleted.
IN_RELEASE: Final = frozenset({GangState.RELEASING, GangState.RELEASING_STARTED})
