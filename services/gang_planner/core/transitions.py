"""A gang's lifecycle as one table: (state, event) -> (next state, effect).

`apply_event` changes a gang's state. `restore_state` derives it from the records in DECISIONS,
after a restart and in a standby. Modules that detect an event report it to the cycle, which carries
out the effect (`CycleContext.report`). Effects open and close notes, so that a gang has the note of
its state (`NOTES`): other modules ask for the state, and read a note only for its reason, message
and deadline.

A pair of a state and an event that is not in the table cannot happen, for the reason given in the
event's row, and raises `InvariantViolation`. `docs/pictures/life.svg` is drawn from the
table (`python -m tests.documents.life`), and `tests/.../lifecycle/test_transitions.py` has a
scenario for each of its pairs.
"""

import enum
from collections.abc import Mapping
from typing import Final, NamedTuple

from services.gang_planner.core.state.gang_history import History
from services.gang_planner.core.state.gang_states import GangEvent, GangState
from services.gang_planner.core.state.gangs import Gang
from shared.contracts.decisions import NoteKind
from shared.model.invariants import InvariantViolation


class Effect(enum.Enum):
    """The action that an event requires besides the next state. Notes are records of DECISIONS."""

    NOTHING = enum.auto()
    #: Record that the gang has started, end its repair, and begin its start deadline.
    RECORD_START = enum.auto()
    #: Count the missing decision as the gang's first one, so that its repair begins.
    COUNT_DECISION = enum.auto()
    #: Open a repair with a deadline.
    OPEN_REPAIR = enum.auto()
    #: Close the repair: no member is bound.
    CLOSE_REPAIR = enum.auto()
    #: Open a release and close repair and deadlines; members are deleted once it is in the log.
    OPEN_RELEASE = enum.auto()
    #: Close the release: the gang's quorum is placed.
    WITHDRAW_RELEASE = enum.auto()
    #: Close the release and open the backoff that follows it.
    FINISH_RELEASE = enum.auto()
    #: Open a backoff, or replace the open one.
    OPEN_BACKOFF = enum.auto()
    #: Close the backoff.
    CLOSE_BACKOFF = enum.auto()


#: The effects that only close a note: its kind, and the reason.
CLOSED: Final[Mapping[Effect, tuple[NoteKind, str]]] = {
    Effect.CLOSE_REPAIR: ("repair", "NothingBound"),
    Effect.WITHDRAW_RELEASE: ("release", "Started"),
}


class Transition(NamedTuple):
    """The result of an event in a state."""

    next_state: GangState
    effect: Effect = Effect.NOTHING


class Row(NamedTuple):
    """An event: its transitions by state, and why it cannot happen in all other states."""

    transitions: Mapping[GangState, Transition]
    otherwise: str


_WAITING: Final = GangState.WAITING
_BACKING_OFF: Final = GangState.BACKING_OFF
_STARTING: Final = GangState.STARTING
_REPAIRING: Final = GangState.REPAIRING
_RELEASING: Final = GangState.RELEASING
_RUNNING: Final = GangState.RUNNING
_DEGRADED: Final = GangState.DEGRADED
_COMPLETED: Final = GangState.COMPLETED
_RELEASING_STARTED: Final = GangState.RELEASING_STARTED
_DORMANT: Final = GangState.DORMANT

#: The note that a gang in one of these states has, with the state's reason and deadline. A release
#: precedes a repair, whose note may still be open if its planner ended in between. The other notes
#: do not determine the state: `backoff` beside any other state but Waiting, `start` and `degraded`
#: of a started gang.
NOTES: Final[Mapping[GangState, NoteKind]] = {
    _RELEASING: "release",
    _RELEASING_STARTED: "release",
    _REPAIRING: "repair",
    _BACKING_OFF: "backoff",
}

#: States that an assessment distinguishes before the start, and after it.
BEFORE_START: Final = (_WAITING, _BACKING_OFF, _STARTING)
AFTER_START: Final = (_RUNNING, _DEGRADED, _COMPLETED)


def _from(
    *states: GangState, to: GangState, effect: Effect = Effect.NOTHING
) -> dict[GangState, Transition]:
    return dict.fromkeys(states, Transition(to, effect))


def _unchanged(*states: GangState, effect: Effect = Effect.NOTHING) -> dict[GangState, Transition]:
    return {state: Transition(state, effect) for state in states}


TABLE: Final[Mapping[GangEvent, Row]] = {
    GangEvent.NOTHING_HELD: Row(
        _from(*BEFORE_START, to=_WAITING),
        "an assessment reports what is held only of gangs before their start",
    ),
    GangEvent.NOTHING_HELD_IN_BACKOFF: Row(
        _from(*BEFORE_START, to=_BACKING_OFF),
        "an assessment reports what is held only of gangs before their start",
    ),
    GangEvent.MEMBERS_HELD: Row(
        _from(*BEFORE_START, to=_STARTING),
        "an assessment reports what is held only of gangs before their start",
    ),
    GangEvent.QUORUM_PLACED: Row(
        {
            **_from(*BEFORE_START, _REPAIRING, to=_RUNNING, effect=Effect.RECORD_START),
            **_from(_RELEASING, to=_RELEASING_STARTED, effect=Effect.RECORD_START),
        },
        "a gang starts once",
    ),
    GangEvent.DECISION_MISSING: Row(
        {
            **_from(*BEFORE_START, to=_STARTING, effect=Effect.COUNT_DECISION),
            # It was found complete, has lost all placed members since, and one is there again.
            **_unchanged(_RELEASING, effect=Effect.COUNT_DECISION),
        },
        "a gang that has started was complete, and one under repair has a decision",
    ),
    GangEvent.MEMBERS_RETURNED: Row(
        _from(_DORMANT, to=_RUNNING), "only a dormant gang had started and has no members"
    ),
    GangEvent.ALL_LOST: Row(
        {
            **_from(_RUNNING, _DEGRADED, to=_DORMANT),
            # The gang has no placed members left, so pods placed later are a new start.
            **_from(_RELEASING_STARTED, to=_RELEASING),
        },
        "only a started gang that has not ended has members to lose",
    ),
    GangEvent.QUORUM_HELD: Row(
        _from(_RUNNING, _DEGRADED, to=_RUNNING),
        "an assessment compares the minima only of gangs that have started and not ended",
    ),
    GangEvent.QUORUM_LOST: Row(
        _from(_RUNNING, _DEGRADED, to=_DEGRADED),
        "an assessment compares the minima only of gangs that have started and not ended",
    ),
    GangEvent.ALL_ENDED: Row(
        _from(*AFTER_START, to=_COMPLETED),
        "a gang that has not started keeps its state when its members end; it is not released",
    ),
    GangEvent.RUN_CONTINUED: Row(
        _from(_COMPLETED, to=_RUNNING), "only a completed gang has no member that could run"
    ),
    GangEvent.RUN_BEGUN: Row(
        _from(_COMPLETED, to=_DORMANT), "only a completed gang has no member that could run"
    ),
    GangEvent.MEMBERS_DECIDED: Row(
        {
            **_from(_WAITING, _STARTING, _DORMANT, to=_STARTING),
            **_unchanged(_REPAIRING, _RUNNING, _DEGRADED),
        },
        "a gang that backs off, is released or has completed is not in the backlog",
    ),
    GangEvent.REPAIR_NEEDED: Row(
        _from(*BEFORE_START, to=_REPAIRING, effect=Effect.OPEN_REPAIR),
        "only a gang that has not started is bound in part, and it has one repair at a time",
    ),
    GangEvent.NOTHING_BOUND: Row(
        _from(_REPAIRING, to=_STARTING, effect=Effect.CLOSE_REPAIR),
        "it is reported only of gangs under repair",
    ),
    GangEvent.MEMBER_REFUSED: Row(
        {
            **_from(*BEFORE_START, _REPAIRING, to=_RELEASING, effect=Effect.OPEN_RELEASE),
            # Its members have come back, and the gang has not been assessed since.
            **_from(_DORMANT, to=_RELEASING_STARTED, effect=Effect.OPEN_RELEASE),
        },
        "a started gang runs without the member, and a release is not begun twice",
    ),
    GangEvent.REPAIR_DEADLINE_PASSED: Row(
        _from(_REPAIRING, to=_RELEASING, effect=Effect.OPEN_RELEASE),
        "only a gang under repair has a repair deadline",
    ),
    GangEvent.REPAIRS_BLOCKED: Row(
        _from(_REPAIRING, to=_RELEASING, effect=Effect.OPEN_RELEASE),
        "only gangs under repair block each other",
    ),
    GangEvent.START_DEADLINE_PASSED: Row(
        _from(_RUNNING, _DEGRADED, to=_RELEASING_STARTED, effect=Effect.OPEN_RELEASE),
        "a start deadline begins with the start, and ends with a release; a completed gang has no "
        "member to release",
    ),
    GangEvent.GRACE_PASSED: Row(
        _from(_RUNNING, _DEGRADED, to=_RELEASING_STARTED, effect=Effect.OPEN_RELEASE),
        "only a started gang that has not completed has a grace period, and a release ends it",
    ),
    GangEvent.RUN_LIMIT_PASSED: Row(
        _from(_RUNNING, _DEGRADED, to=_RELEASING_STARTED, effect=Effect.OPEN_RELEASE),
        "a run begins with the start, and ends with a release; a completed gang has no member left",
    ),
    GangEvent.RELEASE_WITHDRAWN: Row(
        _from(_RELEASING, to=_STARTING, effect=Effect.WITHDRAW_RELEASE),
        "only the release of a gang that has not started is withdrawn",
    ),
    GangEvent.RELEASED: Row(
        _from(_RELEASING, _RELEASING_STARTED, to=_BACKING_OFF, effect=Effect.FINISH_RELEASE),
        "only a release ends so",
    ),
    GangEvent.DECISION_FAILED: Row(
        {
            **_from(*BEFORE_START, to=_BACKING_OFF, effect=Effect.OPEN_BACKOFF),
            **_unchanged(_REPAIRING, *AFTER_START, _DORMANT, effect=Effect.OPEN_BACKOFF),
        },
        "a release ignores what became of earlier decisions",
    ),
    GangEvent.BACKOFF_ENDED: Row(
        {
            **_from(_BACKING_OFF, to=_WAITING, effect=Effect.CLOSE_BACKOFF),
            **_unchanged(
                _STARTING,
                _REPAIRING,
                _RELEASING,
                *AFTER_START,
                _RELEASING_STARTED,
                _DORMANT,
                effect=Effect.CLOSE_BACKOFF,
            ),
        },
        "a waiting gang that backs off is in the state for it",
    ),
}


def apply_event(history: History, event: GangEvent, gang: Gang | str) -> Effect:
    """Change the state of a gang by the table.

    Args:
        history: The gang's history.
        event: What happened to the gang.
        gang: The gang or its full name, for errors.

    Returns:
        The effect that the caller has to carry out.

    Raises:
        InvariantViolation: The event cannot happen in this state.
    """
    row = TABLE[event]
    state = history.state
    transition = row.transitions.get(state)
    if transition is None:
        name = gang if isinstance(gang, str) else gang.full_name
        raise InvariantViolation(
            f"gang {name}", f"event '{event}' cannot happen while it is {state}: {row.otherwise}"
        )
    if transition.next_state is not state:
        history.enter(transition.next_state)
    return transition.effect


def follow_run(gang: Gang) -> None:
    """Report that a gang in the state Completed has pods again which have not ended. Called before
    all else that depends on the gang's state.
    """
    if not gang.completed:
        counts = gang.placed() > gang.run.succeeded
        event = GangEvent.RUN_CONTINUED if counts else GangEvent.RUN_BEGUN
        apply_event(gang.history, event, gang)


def restore_state(history: History, *, started: bool) -> None:
    """Derive the state of a gang from its open notes in DECISIONS and whether it has `started`. A
    dormant gang stays dormant until it is started, repaired or released.
    """
    notes = history.notes
    if notes.release is not None:
        history.enter(_RELEASING_STARTED if started else _RELEASING)
    elif notes.repair is not None:
        # A repair ends before the gang starts.
        history.enter(_REPAIRING)
    elif started:
        history.enter(_RUNNING)
    elif not history.dormant:
        history.enter(_WAITING if notes.backoff is None else _BACKING_OFF)
