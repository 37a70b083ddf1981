"""The need of a waiting gang, and the results shared by gangs with the same need."""

import enum
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

import msgspec

from services.gang_planner.core.state.columns import add_amounts
from services.gang_planner.core.state.pod_shapes import ShapeTable
from shared.contracts.pod_reasons import NewNodes
from shared.contracts.verdicts import Reason, ShapeReport
from shared.model.gang_keys import GangKey
from shared.model.objects import NetworkTopology, PodGroup, Requirement

_TASK_TOPOLOGY: Final = "volcano.sh/task-topology-"


class Tasks(NamedTuple):
    """The task-topology annotations of a gang: roles to place on the same nodes, roles to place on
    different nodes, and the order of placement.

    Semicolons separate groups of roles, commas separate roles. A group with one role concerns the
    members of that role. If a group names a role twice, all annotations of the gang are ignored.
    """

    together: tuple[tuple[str, ...], ...] = ()
    apart: tuple[tuple[str, ...], ...] = ()
    order: tuple[str, ...] = ()

    def beside(self, role: str) -> frozenset[str]:
        """Roles to place on the same nodes as this role; may include the role itself."""
        return _others(self.together, role)

    def away_from(self, role: str) -> frozenset[str]:
        """Roles to place on different nodes than this role; may include the role itself."""
        return _others(self.apart, role)

    def turn(self, role: str) -> int:
        """Position of the role in the order of placement; unnamed roles come last."""
        return self.order.index(role) if role in self.order else len(self.order)


def tasks_of(group: PodGroup | None) -> Tasks | None:
    """The annotations of a group; None if there are none, or if they are invalid."""
    if group is None or not group.notes:
        return None
    notes = dict(group.notes)
    together = _groups(notes.get(f"{_TASK_TOPOLOGY}affinity", ""))
    apart = _groups(notes.get(f"{_TASK_TOPOLOGY}anti-affinity", ""))
    order = _names(notes.get(f"{_TASK_TOPOLOGY}task-order", ""))
    if not (together or apart):
        return None
    if any(len(set(names)) < len(names) for names in (*together, *apart, order)):
        return None
    return Tasks(together, apart, order)


def _groups(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(names for part in text.split(";") if (names := _names(part)))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _others(groups: tuple[tuple[str, ...], ...], role: str) -> frozenset[str]:
    others: set[str] = set()
    for names in groups:
        if names == (role,):
            others.add(role)
        elif role in names:
            others.update(name for name in names if name != role)
    return frozenset(others)


Wanted: TypeAlias = tuple[str, int, int]
"""(role, shape id, number of members to place)."""


class ProvisioningStage(enum.Enum):
    """How far the capacity of a gang is provisioned that waits for a ProvisioningRequest."""

    #: Its request is not open: it is opened when the gang's turn comes and its quota suffices.
    UNREQUESTED = enum.auto()
    #: Its request is provisioned: the gang may be placed.
    PROVISIONED = enum.auto()


Claimant: TypeAlias = tuple[str, int, tuple[int, ...]]
"""(claiming queue, resource row, ids of its waiting shapes)."""


class SubNeed(NamedTuple):
    """The need of one sub-gang, whose quorum is placed as a whole or not at all."""

    #: Name of its sub-group policy, and its name among that policy's sub-gangs.
    policy: str
    part: str
    quorum: int
    wanted: tuple[Wanted, ...]
    topology: NetworkTopology | None = None
    #: Nodes that hold members of it.
    near: tuple[str, ...] = ()
    #: The set that it is in; "": its gang has no sets.
    set_name: str = ""


class SetNeed(NamedTuple):
    """The need of a set of sub-gangs: enough of them are placed, or none."""

    name: str
    #: The set that it is in; "": it is the outermost one.
    set_name: str
    #: How many more of its sub-gangs and sets must be placed; 0: it is complete, and takes more.
    missing: int
    #: The smallest number of members with which it is complete.
    quorum: int
    topology: NetworkTopology | None = None
    #: Nodes that hold members of it.
    near: tuple[str, ...] = ()


class Structure(NamedTuple):
    """Requirements on the nodes of a gang's members in relation to each other."""

    topology: NetworkTopology | None = None
    #: Requirements on the labels of all nodes (`PodGroup.nodes`).
    nodes: tuple[Requirement, ...] = ()
    #: Nodes with members of it; its domains must contain them.
    near: tuple[str, ...] = ()
    #: The domain of its last placed members, which is tried first; None: there are none.
    home: str | None = None
    sub_gangs: tuple[SubNeed, ...] = ()
    #: How many more sub-gangs of each policy must be placed.
    sub_minima: tuple[tuple[str, int], ...] = ()
    #: Sets of sub-gangs, each before those in it.
    sets: tuple[SetNeed, ...] = ()
    #: The task-topology annotations; None: none.
    tasks: Tasks | None = None


NOTHING_SAID: Final = Structure()
#: Instead of the name of a sub-gang: the members are in none.
NO_SUB_GANG: Final = ""
#: Role of the reserved units of `minResources`; not a valid role of pods.
RESERVED: Final = "*minResources"
#: This number of members without claims always fits into one decision.
ALWAYS_FIT: Final = 1_000


class Need(msgspec.Struct, kw_only=True, eq=False):
    """The need of a gang's waiting members. Gangs of one queue with equal needs are alike."""

    queue: str
    #: How many must be placed together, reserved units included; 0: any number.
    quorum: int
    #: (role, minimum number of members of the role to place).
    minima: tuple[tuple[str, int], ...]
    wanted: tuple[Wanted, ...]
    #: All pods are best-effort: the backfill action places them.
    best_effort: bool
    #: Some of its pods have claims.
    attached: bool
    #: Nodes that recently refused one of its members.
    avoid: tuple[str, ...] = ()
    #: None: no requirements.
    structure: Structure | None = None
    #: Task priorities of the entries of `wanted`, if they differ: higher ones are placed first if
    #: not all members fit.
    ranks: tuple[int, ...] = ()
    #: Members that a started gang lacks of its minima. It has no quorum to place.
    lacking: int = 0
    #: A started gang without a declared minimum: each member preempts by itself.
    one_by_one: bool = False
    #: Number of reserved units of `minResources`: `wanted` begins with these, and no pods exist for
    #: them (`min_resources`).
    reserved: int = 0
    #: Its run limit in milliseconds, its priority, and its own id if it has a reservation: gangs
    #: that differ in these may use different capacity. None: no gang gets reservations.
    foresight: tuple[int, int, str] | None = None
    #: None: it waits for no ProvisioningRequest.
    provisioning: ProvisioningStage | None = None
    #: The user whose past use counts (`state.past_use`); None: past use does not count.
    user: str | None = None
    #: Equal for interchangeable gangs.
    signature: tuple[object, ...] = ()
    _amounts: dict[int, int] | None = None
    _largest: dict[int, int] | None = None

    def __post_init__(self) -> None:
        self.signature = (
            self.queue,
            self.quorum,
            self.minima,
            self.wanted,
            self.avoid,
            self.structure,
            self.ranks,
            self.lacking,
            self.one_by_one,
        )
        if self.foresight is not None:
            self.signature = (*self.signature, self.foresight)
        if self.provisioning is not None:
            self.signature = (*self.signature, self.provisioning)
        if self.user is not None:
            self.signature = (*self.signature, ("user", self.user))

    @property
    def members(self) -> int:
        """Number of waiting members, including reserved units."""
        return sum(count for _, _, count in self.wanted)

    def without_reserved(self) -> "Need":
        """The need without reserved units: only that of existing pods."""
        units = sum(1 for role, _, _ in self.wanted if role == RESERVED)
        return msgspec.structs.replace(
            self,
            quorum=self.quorum - self.reserved,
            minima=tuple(minimum for minimum in self.minima if minimum[0] != RESERVED),
            wanted=self.wanted[units:],
            ranks=self.ranks[units:],
            reserved=0,
            _amounts=None,
            _largest=None,
        )

    @property
    def may_exceed_message(self) -> bool:
        """Whether one decision may be too small for all members, depending on their names."""
        return self.attached or self.members > ALWAYS_FIT

    @property
    def least(self) -> int:
        """The smallest number of members that an attempt places, otherwise it places none."""
        return self.quorum or self.lacking or 1

    def amounts(self, shapes: ShapeTable) -> dict[int, int]:
        """Requests of the quorum, or of one member without one, by resource row; read-only."""
        if self._amounts is None:
            self._amounts = amounts_of_first(self.wanted, self.quorum or 1, shapes)
        return self._amounts

    def largest(self, shapes: ShapeTable) -> dict[int, int]:
        """The largest request of a member, by resource row. Callers must not write to it."""
        if self._largest is None:
            self._largest = {}
            for _, shape_id, _ in self.wanted:
                for row, amount in shapes.entries[shape_id].pairs:
                    self._largest[row] = max(self._largest.get(row, 0), amount)
        return self._largest


def amounts_of_first(wanted: Iterable[Wanted], members: int, shapes: ShapeTable) -> dict[int, int]:
    """What the first of these members request, so many of them, by resource row."""
    amounts: dict[int, int] = {}
    for _, shape_id, count in wanted:
        taken = min(count, members)
        add_amounts(amounts, shapes.entries[shape_id].pairs, taken)
        members -= taken
    return amounts


class Delay(NamedTuple):
    """The reservation that a gang might delay: whose it is, and for when."""

    gang: GangKey
    title: str
    #: 0: capacity is kept from now on.
    from_ms: int
    #: The longest run limit with which the gang would not delay it; 0: there is none.
    most_ms: int


class FailedSearch(NamedTuple):
    """A search for victims that found none."""

    #: Versions of the search's input.
    mark: tuple[object, ...]
    #: Unix milliseconds at which a pod's protection ends, so that the same search may find victims;
    #: None: never.
    retry_ms: int | None


class Shortfall(msgspec.Struct, eq=False):
    """A lower bound of the members of a refused gang for which there is no free capacity."""

    #: 0: unknown.
    members: int
    #: Positions in the change logs of the node capacity and the nodes at which it is valid.
    capacity_at: int
    nodes_at: int


class Outlook(NamedTuple):
    """Whether new nodes would help gangs that wait for free capacity."""

    new_nodes: NewNodes = NewNodes.HELP
    #: The largest of the roles and shapes that fit on no node, even when it is empty. See
    #: `NewNodes.OTHER_KIND`.
    too_large: frozenset[tuple[str, int]] = frozenset()


class Holders(NamedTuple):
    """Gangs that hold missing capacity. Gangs of one owner have the same title."""

    #: Of the oldest ones: key and title.
    oldest: tuple[tuple[GangKey, str], ...] = ()
    #: Of all.
    keys: frozenset[GangKey] = frozenset()

    def others(self, gang: GangKey) -> tuple[tuple[str, ...], int]:
        """The titles of the oldest ones, and the number of all, without this gang."""
        titles = tuple(title for key, title in self.oldest if key != gang)
        return titles, len(self.keys) - (gang in self.keys)


class Explanation(NamedTuple):
    """Why the gangs of a bucket wait; it applies to each of them."""

    sentence: str
    shapes: tuple[ShapeReport, ...] = ()
    quota: tuple[Reason, ...] = ()
    #: Waiting gangs ahead of them.
    ahead: tuple[str, ...] = ()
    #: Of the missing capacity.
    holders: Holders = Holders()
    outlook: Outlook = Outlook()
