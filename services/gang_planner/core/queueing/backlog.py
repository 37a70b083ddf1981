"""Gangs that want to be placed, in buckets of gangs that any cluster state treats alike.

Gangs with the same *signature* (queue, what is needed of which shapes) fit or do not fit together.
A bucket that was refused is not looked at again before something was freed: ten thousand equal
gangs cost one attempt, and an unrelated pod costs none.
"""

import heapq
from bisect import bisect_left, insort
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from services.gang_planner.core.placement.task_topology import Tasks
from services.gang_planner.core.tables.demand import Demand
from services.gang_planner.core.tables.gangs import Gang, OrderKey
from services.gang_planner.core.tables.shapes import ShapeTable
from shared.model.gang_keys import GangKey
from shared.model.objects import NetworkTopology

if TYPE_CHECKING:
    from services.gang_planner.core.tables.ground import Ground
    from services.gang_planner.core.telling.explaining import Explanation

Wanted: TypeAlias = tuple[str, int, int]
"""(role, shape id, members that can be placed)."""

Claimant: TypeAlias = tuple[str, int, tuple[int, ...]]
"""(claiming queue, resource row, shapes that it waits with)."""


class SubNeed(NamedTuple):
    """What one sub-gang asks for: its quorum is placed whole or nothing of it is."""

    #: Name of the sub-group policy that makes it, and what tells it from the policy's others.
    policy: str
    part: str
    quorum: int
    wanted: tuple[Wanted, ...]
    topology: NetworkTopology | None = None
    #: Nodes that hold members of it.
    near: tuple[str, ...] = ()


class Structure(NamedTuple):
    """What a gang asks beyond numbers: to be close together, whole or in parts."""

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


class Need:
    """What a gang asks of the cluster. Equal needs in one queue are interchangeable."""

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
        #: Somebody has claims.
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


class Bucket:
    """Gangs of one signature, in order."""

    __slots__ = (
        "asked",
        "behind",
        "entries",
        "exceeded",
        "explained_at",
        "explanation",
        "held_by",
        "hopeless",
        "impossible",
        "judged_at",
        "need",
        "over",
        "refused_at",
        "short_at",
        "short_by",
        "short_nodes_at",
        "short_of_quota",
        "spent",
        "spent_at",
    )

    def __init__(self, need: Need) -> None:
        self.need = need
        self.entries: list[tuple[OrderKey, GangKey, Gang]] = []
        #: `Ground.freed` at its refusal; -1: not refused.
        self.refused_at = -1
        #: Refused by the queue's ceiling, not by the nodes.
        self.short_of_quota = False
        #: The search for room ended by its budget.
        self.exceeded = False
        #: Its `minResources` could not be met by all nodes, or by its queue's capability, when it
        #: was refused: it keeps no other gang out.
        self.impossible = False
        #: Full name of the gang that must be placed before, its queue being strict; "": nobody.
        self.behind = ""
        #: It would fit, but leaves the room to queues that claim it: their marks.
        self.held_by: tuple[Claimant, ...] = ()
        #: Not even empty nodes could hold it, as of `judged_at` in the nodes' changes: it is no
        #: part of what its queue demands.
        self.hopeless = False
        self.judged_at = -1
        #: With what others were asked for room in vain, by kind, and when to ask all the same.
        self.asked: dict[str, tuple[tuple[object, ...], int]] = {}
        #: Members that find no room however they are placed, at least, as of these positions in the
        #: changes of the ground and of the nodes; 0: nobody knows. See `shortfalls`.
        self.short_by = 0
        self.short_at = -1
        self.short_nodes_at = -1
        #: Spaces (level, domain) that did not hold one of its gangs, as of `spent_at`, and whether
        #: that is not certain: the search there ended by its budget.
        self.spent: dict[tuple[int, int], bool] = {}
        self.spent_at: tuple[int, int] = (-1, -1)
        #: Cached by `explaining`, true as of `explained_at`.
        self.explanation: Explanation | None = None
        self.explained_at = -1
        #: What was true when its first gang last failed to take room held for gangs that it
        #: outranks.
        self.over: tuple[object, ...] = ()

    def spent_spaces(self, ground: "Ground") -> dict[tuple[int, int], bool]:
        """Spaces that need not be tried: in vain before, and nothing has been freed since."""
        now = ground.freed, ground.nodes.changes.position
        if self.spent_at != now:
            self.spent_at = now
            self.spent.clear()
        return self.spent

    @property
    def reason(self) -> str:
        """Why it was refused last; "" before any attempt."""
        if self.behind:
            return "BehindInQueue"
        if self.refused_at < 0:
            return ""
        if self.short_of_quota:
            return "NotEnoughQuota"
        return "SearchBudgetExceeded" if self.exceeded else "NotEnoughResources"


class Backlog:
    """All buckets."""

    def __init__(self) -> None:
        self.buckets: dict[tuple[object, ...], Bucket] = {}
        #: Buckets that no attempt has refused since they were made.
        self.fresh: dict[tuple[object, ...], Bucket] = {}
        #: `Ground.freed` when all buckets were last looked at.
        self.swept_at = -1
        #: What waits, by queue and shape.
        self.demand = Demand()
        #: Buckets that leave room to claimants.
        self.held: dict[tuple[object, ...], Bucket] = {}
        #: Gangs that were not refused wait for binders to answer.
        self.throttled = False
        #: Buckets of started gangs that lack members.
        self.lacking: dict[tuple[object, ...], Bucket] = {}

    def put(self, gang: Gang, need: Need, order: OrderKey) -> None:
        """The gang wants to be placed, with this need and in this place."""
        signature = need.signature
        if gang.bucket is not None:
            known = gang.bucket.need
            if (known is need or known.signature == signature) and gang.order == order:
                return
            self.take(gang)
        bucket = self.buckets.get(signature)
        if bucket is None:
            bucket = self.buckets[signature] = self.fresh[signature] = Bucket(need)
            if need.lacking:
                self.lacking[signature] = bucket
        gang.bucket = bucket
        gang.order = order
        # Keys are unique: gangs themselves are never compared. Most come in their order.
        entries, entry = bucket.entries, (order, gang.key, gang)
        if not entries or entries[-1] < entry:
            entries.append(entry)
        else:
            insort(entries, entry)
        if not bucket.hopeless:
            self.demand.add(need.queue, need.wanted, 1)

    def take(self, gang: Gang) -> None:
        """The gang no longer waits."""
        bucket = gang.bucket
        if bucket is None:
            return
        gang.bucket = None
        at = bisect_left(bucket.entries, (gang.order, gang.key), key=_place)
        assert bucket.entries[at][2] is gang, f"{gang.full_name} is not in its bucket"
        del bucket.entries[at]
        self._taken(bucket, 1)

    def take_first(self, bucket: Bucket, gangs: int) -> None:
        """The first gangs of a bucket no longer wait."""
        for _, _, gang in islice(bucket.entries, gangs):
            gang.bucket = None
        del bucket.entries[:gangs]
        self._taken(bucket, gangs)

    def _taken(self, bucket: Bucket, gangs: int) -> None:
        if not bucket.hopeless:
            self.demand.add(bucket.need.queue, bucket.need.wanted, -gangs)
        if not bucket.entries:
            signature = bucket.need.signature
            del self.buckets[signature]
            self.fresh.pop(signature, None)
            self.held.pop(signature, None)
            self.lacking.pop(signature, None)

    def refuse(
        self,
        bucket: Bucket,
        freed: int,
        *,
        short_of_quota: bool,
        held_by: tuple[Claimant, ...] = (),
    ) -> None:
        """Nothing of this signature fits until something is freed, or those who hold it back no
        longer do.
        """
        signature = bucket.need.signature
        bucket.refused_at = freed
        bucket.short_of_quota = short_of_quota
        bucket.behind = ""
        bucket.held_by = held_by
        if held_by:
            self.held[signature] = bucket
            bucket.explained_at = -1
        else:
            self.held.pop(signature, None)
        self.fresh.pop(signature, None)

    def park(self, bucket: Bucket, behind: str) -> None:
        """Nothing of this signature is tried while this gang is ahead of it."""
        bucket.behind = behind
        self.fresh.pop(bucket.need.signature, None)

    def judge(self, bucket: Bucket, nodes_at: int, *, hopeless: bool) -> None:
        """Whether the nodes as of `nodes_at` could ever hold it: if not, its queue does not demand
        it.
        """
        bucket.judged_at = nodes_at
        if bucket.hopeless != hopeless:
            bucket.hopeless = hopeless
            gangs = len(bucket.entries)
            self.demand.add(bucket.need.queue, bucket.need.wanted, -gangs if hopeless else gangs)

    def active(self, freed: int) -> list[Bucket]:
        """Buckets worth an attempt: all when something was freed since the last sweep, else the
        fresh ones.
        """
        if freed != self.swept_at:
            self.swept_at = freed
            self.fresh = dict(self.buckets)
        return list(self.fresh.values())

    def waiting(self) -> int:
        """Number of gangs that want to be placed."""
        return sum(len(bucket.entries) for bucket in self.buckets.values())


class Line:
    """The gangs of some buckets in order: by queue, then by their own order; heads are taken one by
    one.

    A queue's place may change after every gang (its share grows), so queues are compared at each
    turn.
    """

    def __init__(self, buckets: list[Bucket]) -> None:
        self._heaps: dict[str, list[tuple[OrderKey, GangKey, int]]] = {}
        self._buckets = buckets
        for index, bucket in enumerate(buckets):
            order, key, _ = bucket.entries[0]
            self._heaps.setdefault(bucket.need.queue, []).append((order, key, index))
        for heap in self._heaps.values():
            heapq.heapify(heap)

    def queues(self) -> list[str]:
        """Queues with a gang in line."""
        return list(self._heaps)

    def head(self, queue: str) -> tuple[int, Bucket, Gang]:
        """Take the bucket whose first gang is a queue's next out of the line: its place, itself,
        that gang.
        """
        heap = self._heaps[queue]
        _, key, index = heapq.heappop(heap)
        if not heap:
            del self._heaps[queue]
        bucket = self._buckets[index]
        gang = bucket.entries[0][2]
        assert gang.key == key, f"{gang.full_name} stands where {key} stood"
        return index, bucket, gang

    def alike(self, bucket: Bucket, most: int) -> list[Gang]:
        """The first gangs of a bucket that was just taken out of the line, at most so many: those
        that nobody of their queue stands before.
        """
        heap = self._heaps.get(bucket.need.queue)
        until = heap[0][:2] if heap else None
        found: list[Gang] = []
        for order, key, gang in islice(bucket.entries, most):
            if until is not None and (order, key) > until:
                break
            found.append(gang)
        return found

    def holds(self, queue: str) -> bool:
        """Whether a queue has a gang in line."""
        return queue in self._heaps

    def buckets_of(self, queue: str) -> list[Bucket]:
        """A queue's buckets that are in line."""
        return [self._buckets[index] for _, _, index in self._heaps.get(queue, ())]

    def drop(self, queue: str) -> list[Bucket]:
        """Take all that is left of a queue out of the line; returns it."""
        return [self._buckets[index] for _, _, index in self._heaps.pop(queue, ())]

    def put_back(self, index: int) -> None:
        """The bucket goes on with its next gang, if it has one."""
        bucket = self._buckets[index]
        if not bucket.entries:
            return
        order, key, _ = bucket.entries[0]
        heapq.heappush(self._heaps.setdefault(bucket.need.queue, []), (order, key, index))


def _place(
    entry: tuple[OrderKey, GangKey, Gang] | tuple[OrderKey, GangKey],
) -> tuple[OrderKey, GangKey]:
    return entry[0], entry[1]
