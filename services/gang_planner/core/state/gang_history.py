"""The history of a gang across decisions, and its failures and evictions."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from services.gang_planner.core.state.gang_states import IN_RELEASE, STARTED, GangState
from shared.contracts.decisions import NoteKind, NoteOpened
from shared.contracts.outcomes import MemberResult
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import PodRef
from shared.model.objects import GROUP_NAME_SCOPE, Owner

#: Instead of the sequence of a record: there is none. A log's sequences begin with 1.
NOT_IN_LOG: Final = 0
#: Instead of a node's name: a policy refused the pod, whatever the node.
ANY_NODE: Final = ""


class OpenNotes(msgspec.Struct):
    """The open notes of a gang in DECISIONS, at most one of each kind: the reason and deadline of
    the state that they belong to (`transitions.NOTES`). `HoldTable` has the notes of holds.
    """

    backoff: NoteOpened | None = None
    degraded: NoteOpened | None = None
    release: NoteOpened | None = None
    repair: NoteOpened | None = None
    reservation: NoteOpened | None = None
    run: NoteOpened | None = None
    start: NoteOpened | None = None
    #: Whether any is open: an attribute, because every change of a gang reads it.
    any_open: bool = False

    def __iter__(self) -> Iterator[NoteOpened]:
        """The notes, by kind."""
        notes = (
            *(self.backoff, self.degraded, self.release, self.repair),
            *(self.reservation, self.run, self.start),
        )
        return (note for note in notes if note is not None)

    def put(self, note: NoteOpened) -> None:
        """Add a note, or replace the open one of its kind."""
        setattr(self, note.kind, note)
        self.any_open = True

    def close(self, kind: NoteKind) -> bool:
        """Remove the note of this kind; whether it was open."""
        is_open = getattr(self, kind) is not None
        setattr(self, kind, None)
        self.any_open = any(True for _ in self)
        return is_open


class History(msgspec.Struct, eq=False):
    """The state that a gang keeps across decisions; a restart restores it from DECISIONS."""

    first_seen_ms: int = 0
    #: Number of decisions so far.
    attempt: int = 0
    #: Sequence in CLUSTER up to which another planner had read when it decided last.
    decided_cluster_seq: int = 0
    #: The gang's lifecycle state. `enter` sets it and the next two, which are attributes because
    #: every change of a gang reads them a dozen times.
    state: GangState = GangState.WAITING
    #: Whether its quorum was placed once, and it still has members.
    started: bool = False
    #: Whether its bound members are being deleted: it places no members and has no holds.
    releasing: bool = False
    #: Failed decisions in a row.
    failures: int = 0
    notes: OpenNotes = msgspec.field(default_factory=OpenNotes)
    #: Gang id in the log; None while the log has no record of the gang.
    known_as: str | None = None
    #: Sequence of its last record that does not only close a note.
    noted_at: int = NOT_IN_LOG
    #: Namespace and name of its gang as in decisions; None before the first one.
    full_name: str | None = None
    #: The scope of this name.
    scope: str = GROUP_NAME_SCOPE
    #: Failed (pod UID, node name or `ANY_NODE`) -> time until which the pair is avoided;
    #: `UNDATED`: the next cycle sets it.
    bad: dict[tuple[str, str], int] = {}
    #: The same for pods that failed on their node. It counts only before the gang has started:
    #: later, the pod's program may be the cause.
    failed_pods: dict[tuple[str, str], int] = {}
    #: The topology domain of its last placement.
    home: str | None = None
    #: Nodes on which a member failed since the gang started: holds get no reservation there.
    failed_on: dict[str, None] = {}
    #: Number of missing members for which a planner that takes over opens no hold: their holds
    #: have expired, or they were evicted for another gang. A decision replaces them.
    holds_forgone: int = 0
    #: Number of consecutive failed preemptions for it, and when it may preempt again.
    preemptions_failed: int = 0
    preempt_after_ms: int = 0
    #: How the last failed preemption for it ended, for messages; None: it was placed since.
    preemption_ended: str | None = None
    #: UIDs of victims that were refused -> time until which they are not chosen again.
    spared: dict[str, int] = {}

    def enter(self, state: GangState) -> None:
        """Change the gang's lifecycle state. Only `core.transitions` does it."""
        self.state = state
        self.started = state in STARTED
        self.releasing = state in IN_RELEASE

    def is_logged_as_other(self, gang_id: str) -> bool:
        """Whether the log has it, or an open note of it, under another id than this."""
        return self.known_as != gang_id or any(note.gang_id != gang_id for note in self.notes)

    def count_decided(self, members: int) -> None:
        """Count members that a decision has placed, first in place of those without a hold."""
        self.holds_forgone = max(0, self.holds_forgone - members)

    @property
    def dormant(self) -> bool:
        """Whether its quorum was placed once, and no member is left, or only too few of a Job."""
        return self.state is GangState.DORMANT

    @property
    def repairing(self) -> bool:
        """Whether it is starting and its missing members are placed before all other gangs."""
        return self.state is GangState.REPAIRING

    @property
    def has_started(self) -> bool:
        """Whether its quorum was placed once, and it was not released or decided again since."""
        return self.started or self.dormant


class LateRoles(NamedTuple):
    """The roles whose pods are created only after the gang runs: see `lifecycle.assessment`."""

    #: How many members of each are left out.
    roles: Mapping[str, int]
    #: By how many members they lower the gang's minimum.
    excused: int


class Run(msgspec.Struct, eq=False):
    """The members of a gang's present run that have ended and whose pods are gone."""

    succeeded: int = 0
    by_role: dict[str, int] = {}
    #: By sub-gang.
    by_part: dict[str, int] = {}
    #: Role, sub-gang and Job of each by its pod's name: a pod of this name is its successor, and so
    #: are the pods of another Job of the same name. None: no Job made it.
    names: dict[str, tuple[str, str, Owner | None]] = {}
    #: Counted only once the run has ended: before, a failed pod gets a successor.
    failed: int = 0
    #: Whether a pod that had failed by itself was removed before the run has ended: its Job may
    #: make none in its place.
    has_lost_failed: bool = False
    #: All members had ended before the first of their pods was removed.
    ended: bool = False
    #: UIDs of the Kubernetes Jobs that had members.
    jobs: dict[str, None] = {}
    #: Sequence of the record of CLUSTER that removed the gang's last pod, or added the first one to
    #: an interrupted run; None: none has.
    emptied_seq: int | None = None
    #: Whether this planner has seen it from its beginning, and needs no verdict on it.
    is_seen_whole: bool = False


#: Pending reasons of gangs whose release or backoff is noted in the log, by the note's reason.
NOTED_REASONS: Final = {
    reason.value: reason
    for reason in (
        PendingReason.REPAIR_DEADLINE,
        PendingReason.REPAIRS_BLOCKED,
        PendingReason.BINDING_REFUSED,
        PendingReason.START_DEADLINE,
        PendingReason.DEGRADED_GRACE,
        PendingReason.RUN_LIMIT,
    )
}


def noted_reason(note: NoteOpened) -> PendingReason:
    """The pending reason of a gang with this note of a release or a backoff. `BACKOFF`: the note
    only says that a decision failed, or another version of the planner has written its reason.
    """
    return NOTED_REASONS.get(note.reason, PendingReason.BACKOFF)


class Kept(NamedTuple):
    """The values of a deleted group object that its gang keeps: members may still run, and a
    successor may take over the gang's holds.
    """

    queue: str
    priority: int
    settings: tuple[tuple[str, str], ...] = ()


class Failure(NamedTuple):
    """A member that a decision did not bind, with the result and message."""

    uid: str
    node: str
    result: MemberResult
    #: The pod's name and the API server's message.
    message: str
    #: Sequence of the outcome that reported it.
    outcome_seq: int


class Evicted(NamedTuple):
    """Members of a gang that were evicted for another gang, or for other members of its own."""

    #: The decision's reason: Preempted or Reclaimed.
    reason: str
    #: "namespace/name" of the preemptor; None: their own gang.
    preemptor: str | None
    #: Its gang id, by which its title is found while it exists.
    preemptor_id: str
    members: int
    #: The gang's attempt at that time.
    attempt: int
    #: At most 100 of the evicted pods.
    pods: tuple[PodRef, ...]
