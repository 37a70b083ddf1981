"""What a waiting gang needs of the cluster, and what is known of gangs with the same need."""

from typing import Final, NamedTuple, TypeAlias

from services.gang_planner.core.state.pod_shapes import ShapeTable
from services.gang_planner.core.state.task_topology import Tasks
from shared.contracts.verdicts import Reason, ShapeReport
from shared.model.objects import NetworkTopology

Wanted: TypeAlias = tuple[str, int, int]
"""(role, shape id, members that can be placed)."""


Claimant: TypeAlias = tuple[str, int, tuple[int, ...]]
"""(claiming queue, resource row, shapes that it waits with)."""


class SubNeed(NamedTuple):
    """What one sub-gang needs: its quorum is placed whole or not at all."""

    #: Name of the sub-group policy that makes it, and which of that policy's sub-gangs it is.
    policy: str
    part: str
    quorum: int
    wanted: tuple[Wanted, ...]
    topology: NetworkTopology | None = None
    #: Nodes that hold members of it.
    near: tuple[str, ...] = ()


class Structure(NamedTuple):
    """What a gang needs beyond numbers: that it, or parts of it, are close together."""

    topology: NetworkTopology | None = None
    #: Nodes that hold members of it: where its domains must be.
    near: tuple[str, ...] = ()
    #: The domain that it was in when it last had members placed; tried before others.
    home: str = ""
    sub_gangs: tuple[SubNeed, ...] = ()
    #: How many more sub-gangs of each policy must be placed.
    sub_minima: tuple[tuple[str, int], ...] = ()
    #: What its annotations say of its roles.
    tasks: Tasks | None = None


NOTHING_SAID: Final = Structure()
#: Role of units that `minResources` reserve: no pod's role has such a name.
RESERVED: Final = "*minResources"
#: So many members without claims fit into one decision, whatever their names.
ALWAYS_FIT: Final = 1_000


class Need:
    """What a gang needs of the cluster. Gangs of one queue with equal needs are interchangeable."""

    __slots__ = (
        "_amounts",
        "_largest",
        "attached",
        "avoid",
        "best_effort",
        "lacking",
        "minima",
        "queue",
        "quorum",
        "ranks",
        "reserved",
        "signature",
        "structure",
        "wanted",
    )

    def __init__(
        self,
        *,
        queue: str,
        quorum: int,
        minima: tuple[tuple[str, int], ...],
        wanted: tuple[Wanted, ...],
        best_effort: bool,
        attached: bool,
        avoid: tuple[str, ...] = (),
        structure: Structure | None = None,
        ranks: tuple[int, ...] = (),
        lacking: int = 0,
        reserved: int = 0,
    ) -> None:
        self.queue = queue
        #: How many must be placed together, reserved units included; 0: each that fits.
        self.quorum = quorum
        #: How many of each role must be among them.
        self.minima = minima
        self.wanted = wanted
        #: Nothing but best-effort pods: the backfill action's.
        self.best_effort = best_effort
        #: Some of its pods have claims.
        self.attached = attached
        #: Nodes that refused one of its members lately.
        self.avoid = avoid
        #: Priorities beside `wanted`, where they differ: what counts more is placed first when not
        #: all of it fits.
        self.ranks = ranks
        #: None: any nodes will do.
        self.structure = structure
        #: Members that a started gang, which has no quorum to place, is short of its minima.
        self.lacking = lacking
        #: How many of them are units that `minResources` reserve: `wanted` begins with these, and
        #: no pod exists for them (`min_resources`).
        self.reserved = reserved
        self._amounts: dict[int, int] | None = None
        self._largest: dict[int, int] | None = None
        #: What makes gangs interchangeable.
        self.signature: tuple[object, ...] = (
            queue,
            quorum,
            minima,
            wanted,
            avoid,
            structure,
            ranks,
            lacking,
        )

    @property
    def members(self) -> int:
        """How many wait."""
        return sum(count for _, _, count in self.wanted)

    def without_reserved(self) -> "Need":
        """The same without reserved units: what its pods alone ask for."""
        units = sum(1 for role, _, _ in self.wanted if role == RESERVED)
        return Need(
            queue=self.queue,
            quorum=self.quorum - self.reserved,
            minima=tuple(one for one in self.minima if one[0] != RESERVED),
            wanted=self.wanted[units:],
            best_effort=self.best_effort,
            attached=self.attached,
            avoid=self.avoid,
            structure=self.structure,
            ranks=self.ranks[units:],
            lacking=self.lacking,
        )

    @property
    def may_exceed_message(self) -> bool:
        """Whether the names of its members decide how many of them one decision can hold."""
        return self.attached or self.members > ALWAYS_FIT

    @property
    def least(self) -> int:
        """How many of them are placed at a time, or none."""
        return self.quorum or self.lacking or 1

    def amounts(self, shapes: ShapeTable) -> dict[int, int]:
        """What its quorum (or, without one, one member) asks for, by resource row; not to be
        written to.
        """
        if self._amounts is None:
            self._amounts = self._work_out(shapes)
        return self._amounts

    def largest(self, shapes: ShapeTable) -> dict[int, int]:
        """The most that one of its members asks for, by resource row; not to be written to."""
        if self._largest is None:
            self._largest = {}
            for _, shape_id, _ in self.wanted:
                for row, amount in shapes.entries[shape_id].pairs:
                    self._largest[row] = max(self._largest.get(row, 0), amount)
        return self._largest

    def _work_out(self, shapes: ShapeTable) -> dict[int, int]:
        amounts: dict[int, int] = {}
        left = self.quorum or 1
        for _, shape_id, count in self.wanted:
            taken = min(count, left)
            for row, amount in shapes.entries[shape_id].pairs:
                amounts[row] = amounts.get(row, 0) + amount * taken
            left -= taken
        return amounts


class FailedSearch(NamedTuple):
    """A search for pods to evict that found none."""

    #: What the search looked at.
    mark: tuple[object, ...]
    #: When the protection of a pod ends, so that the same search may find more; None: it cannot.
    retry_ms: int | None


class Shortfall:
    """How many members of a refused gang find no free capacity, however they are placed."""

    __slots__ = ("capacity_at", "members", "nodes_at")

    def __init__(self, members: int, capacity_at: int, nodes_at: int) -> None:
        #: A lower bound; 0: none are known.
        self.members = members
        #: Positions in the changes of the node capacity and of the nodes that it is true of.
        self.capacity_at = capacity_at
        self.nodes_at = nodes_at


class Explanation(NamedTuple):
    """Why the gangs of a bucket wait: what holds for each of them."""

    sentence: str
    shapes: tuple[ShapeReport, ...] = ()
    quota: tuple[Reason, ...] = ()
    #: Gangs that wait, and go first.
    ahead: tuple[str, ...] = ()
    #: Gangs that hold what is missing, and how many they are.
    holders: tuple[str, ...] = ()
    holders_count: int = 0
