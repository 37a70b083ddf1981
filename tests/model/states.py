"""What a state of the model is: plain tuples, so that two equal states are one.

One gang, or two of different tenants, and a few nodes with room for one pod each. Everything that
two parties could see differently is there twice: pods as the API server has them and as a planner
sees them, records in the stream and records still in flight.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

#: Decisions that bind; after them the gang waits in its pause, which the model does not leave.
ATTEMPTS_MAX: Final = 3

WAITS: Final = -1
ABSENT: Final = -2


class Pod(NamedTuple):
    """A pod's name stands for its place in the gang; `gen` is its UID under that name."""

    gen: int
    #: Node, WAITS, or ABSENT: deleted and not yet made again.
    node: int


class Bind(NamedTuple):
    """Record: bind (member, gen) to nodes."""

    id: str
    epoch: int
    members: tuple[tuple[int, int, int], ...]
    preflight: bool


class Remove(NamedTuple):
    """Record: delete (member, gen)."""

    id: str
    epoch: int
    victims: tuple[tuple[int, int], ...]


class Mark(NamedTuple):
    """Record: an epoch, or a note: `Epoch`, `Started`, `ReleaseOpened`, `ReleaseClosed`."""

    id: str
    kind: str
    #: The gang that a note is about; an epoch is about none.
    gang: int = 0


Record: TypeAlias = Bind | Remove | Mark


class Published(NamedTuple):
    """An outcome: a result per member, and whether a request of it may still be in flight."""

    delivered: int
    results: tuple[str, ...]
    late: tuple[bool, ...]
    #: The dry run failed: nothing was sent.
    unproved: bool = False


class Append(NamedTuple):
    """A record on its way to the stream; `planner` waits for the answer, -1: none does."""

    planner: int
    expected: int
    record: Record


class Request(NamedTuple):
    """A request on its way to the API server: `kind` is post, dry, delete or read."""

    kind: str
    at: int


class Planner(NamedTuple):
    """A planner process; everything else that it knows follows from the log that it has read."""

    #: standby, taking (its epoch is on its way) or leads.
    role: str
    life: int
    #: State of its `FenceMachine`.
    fence: int
    #: Records of the log that it has read.
    read: int
    epoch: int
    record: Record | None
    #: Decisions whose outcome it has read.
    heard: frozenset[int]
    view: tuple[Pod, ...]


class Binder(NamedTuple):
    """A binder process, with at most one decision in its hands."""

    #: idle, asks (look-up), works, publishes, acks.
    stage: str
    seq: int
    delivered: int
    #: State of its `Machine` or `Removal`.
    machine: int
    requests: frozenset[Request]
    published: Published | None
    #: Epochs that its `EpochsSeen` knows.
    epochs: frozenset[int]
    hung: bool
    #: Answers that came while it hung.
    mail: frozenset[tuple[Request, Any]]


class Delivery(NamedTuple):
    """What the consumer knows of a decision: how often given out, and ready, out or done."""

    times: int
    state: str
    #: The newest delivery that has claimed it; 0: none but the first.
    claimed: int = 0


class State(NamedTuple):
    """Everything."""

    pods: tuple[Pod, ...]
    log: tuple[Record, ...]
    #: Per record of the log; None for notes, and while a decision has none.
    outcomes: tuple[Published | None, ...]
    deliveries: tuple[Delivery | None, ...]
    appends: frozenset[Append]
    #: Requests of decision `seq` that no binder waits for: (seq, request).
    late: frozenset[tuple[int, Request]]
    planners: tuple[Planner, ...]
    binders: tuple[Binder, ...]
    #: Kinds of fault that have happened.
    faults: frozenset[str]


class Step(NamedTuple):
    """One thing that can happen."""

    label: str
    fault: bool
    state: State


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What may go wrong, and which rules of the protocol hold: a test may take one away."""

    #: Members of each gang.
    gangs: tuple[int, ...] = (3,)
    #: One more than members: there is a node to go to when one fails. With fewer the gangs compete.
    nodes: int = 4
    #: Kinds of fault; each happens at most once in a life, and at most so many in all.
    faults: frozenset[str] = frozenset()
    faults_max: int = 0
    #: Members whose binding a policy refuses always.
    poisoned: frozenset[int] = frozenset()

    #: The stream refuses an append behind another record than the last.
    fenced: bool = True
    #: The API server compares UIDs.
    uid_is_precondition: bool = True
    #: Room of a member whose request may still come is not given away.
    late_room_is_kept: bool = True
    #: A binder says of a refused member that an earlier request of it went unanswered.
    late_is_published: bool = True
    first_outcome_wins: bool = True
    #: Room is assumed from the decision on, not from its outcome.
    decision_assumes: bool = True
    #: A binder that wakes up when its decision may be another's sends nothing more.
    sleeper_abandons: bool = True
    #: A redelivery claims the decision, so that the outcome of the delivery before it comes too
    #: late: that one may be alive, and merely not heard.
    redelivery_claims: bool = True
    #: From the second attempt on all bindings are proved before one is sent.
    preflighted_again: bool = True
    #: Nodes are kept for lost members of a gang that has started.
    lost_are_held: bool = True
    #: A gang's record is about its own pods only, whatever another tenant's pods declare.
    gangs_are_apart: bool = True

    @property
    def members(self) -> int:
        """Pods of all gangs."""
        return sum(self.gangs)

    def of_gang(self, gang: int) -> range:
        """The places of a gang's members among all pods."""
        first = sum(self.gangs[:gang])
        return range(first, first + self.gangs[gang])

    def gang_of(self, member: int) -> int:
        """The gang of a member."""
        return next(gang for gang in range(len(self.gangs)) if member in self.of_gang(gang))


#: Stands for every set of faults that has reached the limit: what they were matters no more.
SPENT: Final = frozenset({"spent"})
NO_BINDER: Final = Binder(
    "idle", 0, 0, -1, frozenset(), None, frozenset(), hung=False, mail=frozenset()
)


def start(rules: Rules) -> State:
    """Pods and two planners and two binders are there; nothing has happened."""
    pods = (Pod(0, WAITS),) * rules.members
    standby = fresh_planner(0, rules.members)
    return State(
        pods=pods,
        log=(),
        outcomes=(),
        deliveries=(),
        appends=frozenset(),
        late=frozenset(),
        planners=(standby, standby),
        binders=(NO_BINDER, NO_BINDER),
        faults=frozenset(),
    )


def fresh_planner(life: int, members: int) -> Planner:
    """A planner that has just started: it knows nothing, and follows nothing until it leads."""
    pods = (Pod(0, WAITS),) * members
    return Planner("standby", life, -1, 0, 0, None, frozenset(), pods)


def may(state: State, rules: Rules, kind: str) -> bool:
    """Whether this kind of fault may happen now."""
    faults = state.faults
    spent = faults == SPENT or not rules.faults_max
    return not spent and kind in rules.faults and kind not in faults


def after(state: State, rules: Rules, kind: str) -> frozenset[str]:
    """The faults that have happened, with this one."""
    faults = state.faults | {kind}
    return SPENT if len(faults) >= rules.faults_max else faults


def put(row: tuple[object, ...], index: int, value: object) -> tuple:  # type: ignore[type-arg]  # of any kind
    """A tuple with one place changed."""
    return (*row[:index], value, *row[index + 1 :])
