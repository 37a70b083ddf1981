"""What a gang carries from decision to decision, and what outcomes and evictions did to it."""

from typing import TYPE_CHECKING, NamedTuple

from services.gang_planner.core.state.gang_states import GangState
from shared.contracts.outcomes import MemberResult
from shared.contracts.verdicts import PodRef

if TYPE_CHECKING:
    from shared.contracts.decisions import NoteKind, NoteOpened


class History:
    """What a gang carries from decision to decision; DECISIONS remembers it through a restart."""

    __slots__ = (
        "_state",
        "attempt",
        "bad",
        "failed_on",
        "failed_pods",
        "failures",
        "first_seen_ms",
        "full_name",
        "home",
        "known_as",
        "noted_at",
        "notes",
        "preempt_after_ms",
        "preemption_ended",
        "preemptions_failed",
        "spared",
        "started",
    )

    def __init__(self, first_seen_ms: int = 0) -> None:
        #: Decisions made so far.
        self.attempt = 0
        #: Whether its quorum was placed once, and members are left. It follows `state`, and is an
        #: attribute because every change of a gang reads it a dozen times.
        self.started = False
        self._state = GangState.WAITING
        self.first_seen_ms = first_seen_ms
        #: Failed decisions in a row.
        self.failures = 0
        #: Open notes by kind; those of holds are kept with the holds they stand for.
        self.notes: dict[NoteKind, NoteOpened] = {}
        #: Gang id under which the log knows it; "" while it says nothing of it.
        self.known_as = ""
        #: Sequence of the last record about it that is more than an end; 0: there is none.
        self.noted_at = 0
        #: Namespace and name of its gang as in decisions; "" while there is none.
        self.full_name = ""
        #: (pod UID, node name) that failed -> instant until which the pair is avoided; 0: from the
        #: next cycle on. Node "": the pod was refused itself, on whatever node.
        self.bad: dict[tuple[str, str], int] = {}
        #: The same of pods that failed on their node. Only while the gang has not started does that
        #: speak against the node: programs fail, too.
        self.failed_pods: dict[tuple[str, str], int] = {}
        #: The topology domain that it was placed in last; "": none.
        self.home = ""
        #: Nodes on which a member failed since the gang started: room is not held there again.
        self.failed_on: dict[str, None] = {}
        #: Evictions for it that came to nothing, in a row, and until when it asks for none.
        self.preemptions_failed = 0
        self.preempt_after_ms = 0
        #: How the last preemption for it ended that came to nothing, for people.
        self.preemption_ended = ""
        #: Victims that were refused, with the instant until which they are left alone.
        self.spared: dict[str, int] = {}

    @property
    def state(self) -> GangState:
        """Where it is in its life. Only `lifecycle.transitions` changes it."""
        return self._state

    @state.setter
    def state(self, state: GangState) -> None:
        self._state = state
        self.started = state.is_started

    @property
    def dormant(self) -> bool:
        """Whether its quorum was placed once, and no member is left."""
        return self._state is GangState.DORMANT

    @property
    def has_started(self) -> bool:
        """Whether its quorum was placed once, and it has neither been released nor decided again
        after it lost all members.
        """
        return self.started or self._state is GangState.DORMANT

    @property
    def releasing(self) -> bool:
        """Whether its bound members are being deleted: none is planned, and nothing is held."""
        return self._state.is_releasing


class Kept(NamedTuple):
    """What a gang keeps of its object when that is deleted: members may run on without it, and a
    successor may take over what is held.
    """

    queue: str
    priority: int
    settings: tuple[tuple[str, str], ...] = ()


class Failure(NamedTuple):
    """A member that a decision did not bind, and why."""

    uid: str
    node: str
    result: MemberResult
    #: For people: the pod's name and the API server's words.
    message: str
    #: Sequence of the outcome that says so.
    outcome_seq: int


class Evicted(NamedTuple):
    """Members of a gang that were evicted for another gang, or for other members of its own."""

    #: As the decision says: Preempted or Reclaimed.
    reason: str
    #: "namespace/name" of the gang that they made room for; None: their own.
    preemptor: str | None
    members: int
    #: The gang's attempt at that time.
    attempt: int
    #: At most 100 of them.
    pods: tuple[PodRef, ...]
