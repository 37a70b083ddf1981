"""Places many gangs in one pass over the nodes, where they compete for nothing but free capacity.

The cost of an attempt does not depend on the size of a gang, so thousands of small gangs would cost
thousands of passes. Gangs that follow each other in line, of one queue or of several that take
turns, are gathered first: taken out of the backlog and charged to their queues, as if they were
placed. Then all their members are distributed at once, role by role and shape by shape, and each
gang gets its nodes in the order in which a loop over the gangs would have chosen them.

The same gangs are placed as by that loop: a batch gathers only gangs that fit however the nodes are
shared out (`BatchPlacement.most`). They may get other nodes, and no rule depends on it: scores are
linear for the whole pass, where the loop computes and rounds them again for each gang, and members
of several shapes are distributed shape by shape. Gangs whose members do depend on single nodes
(terms about other pods, claims, sub-gangs, nodes to avoid, holds) are left to `gang_placement`.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from services.gang_planner.core.allocation.decision import record
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.placement.domains import Space, find_spaces
from services.gang_planner.core.placement.members import MembersRequest, place_batch
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queueing.turns import Turns
from services.gang_planner.core.state.backlog import Line
from services.gang_planner.core.state.columns import add_amounts
from services.gang_planner.core.state.gangs import Bucket, Gang, Member
from services.gang_planner.core.state.members import Assignments, placing_order
from services.gang_planner.core.state.needs import ALWAYS_FIT, Need
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.invariants import required

#: Shapes compared for each gang that is gathered; with more, those gathered are placed first.
_SHAPES_MAX: Final = 16
_ANY_NUMBER: Final = 1 << 60

_Place: TypeAlias = tuple[str, int]
"""(role, shape id)."""


class Batch(NamedTuple):
    """Members of one role and shape, of each gang."""

    role: str
    shape: ShapeEntry
    members: int


class BatchRequest(NamedTuple):
    """What each gang of a bucket needs."""

    need: Need
    queue: QueueEntry
    #: In the order in which `gang_placement` places them.
    groups: tuple[Batch, ...]
    #: Of all its members, by resource row.
    amounts: dict[int, int]
    #: It may go to any node, beside any other gang.
    plain: bool
    #: Cached results of `taken`, by shape id.
    takes: dict[int, int]

    def taken(self, shape: ShapeEntry) -> int:
        """How many pods of this shape each gang displaces at most, whichever nodes it uses: each of
        its pods at most the greatest ratio of their requests, rounded up.
        """
        pods = self.takes.get(shape.id)
        if pods is None:
            pods = sum(group.members * _displaced(shape, group.shape) for group in self.groups)
            self.takes[shape.id] = pods
        return pods


class _Series(NamedTuple):
    """Gangs of one bucket that were gathered in one turn."""

    request: BatchRequest
    gangs: Sequence[Gang]


class BatchPlacement:
    """Gangs that are placed together, in the order of their turns.

    While gangs are gathered, nodes do not show what these take: no code may read nodes before
    `place`.
    """

    def __init__(self, work: CycleContext) -> None:
        self._work = work
        self._series: list[_Series] = []
        #: Where all of them go; None: no gang has been gathered.
        self._space: Space | None = None
        #: How many more members of each shape certainly fit, by shape id.
        self._capacity: dict[int, int] = {}
        self._shapes: list[ShapeEntry] = []
        #: By bucket; None: its gangs are placed one by one.
        self._requests: dict[Bucket, BatchRequest | None] = {}

    @property
    def waiting(self) -> bool:
        """Whether any are gathered that have not been placed."""
        return bool(self._series)

    def gather(self, bucket: Bucket, line: Line, turns: Turns, gangs_max: int) -> bool:
        """Take the bucket's first gangs out of the backlog, to be placed together with the gangs
        gathered before. Those may have to be placed first.

        Args:
            bucket: It was just taken out of the line.
            line: Gangs of other buckets that come before one of its own end the series.
            turns: The bucket's queue has the turn.
            gangs_max: How many of its gangs their queue may place now; at least 1.

        Returns:
            False: the first of them has to be placed by itself.
        """
        if bucket not in self._requests:
            self._requests[bucket] = _request(self._work.session, bucket)
        request = self._requests[bucket]
        if request is None:
            return False
        most = self.most(bucket, request)
        if most <= 0:
            # The gangs gathered so far may hide how much capacity is free.
            self.place()
            most = self.most(bucket, request)
        most = min(most, gangs_max)
        if most > 1 and not turns.alone:
            most = _turns_kept(request, most, turns)
        return most > 0 and self._take(bucket, request, line.alike(bucket, most))

    def most(self, bucket: Bucket, request: BatchRequest) -> int:
        """How many of the bucket's first gangs can be gathered now, according to quotas, nodes and
        the cycle's budget; 0: the gangs gathered before go first, or this one is placed alone.
        """
        session, quorum = self._work.session, request.need.quorum
        # A gang larger than the in-flight limit is placed alone.
        admitted = session.admitted // quorum or int(not session.in_flight)
        budget = min(-(-session.bindings_left // quorum), admitted)
        most = min(budget, len(bucket.entries), _quota(request))
        if self._series and not self._joins(bucket, request):
            return 0
        return min(most, self._capacity_for(bucket, request)) if most > 0 else 0

    def _take(self, bucket: Bucket, request: BatchRequest, gangs: Sequence[Gang]) -> bool:
        """Take these gangs of a bucket up to the first one that has to be placed by itself; False:
        there is none before it.
        """
        holds_of = self._work.state.holds.of
        # Of gangs with refused members more may wait than is wanted.
        special = (at for at, gang in enumerate(gangs) if gang.history.bad or holds_of(gang))
        count = next(special, len(gangs))
        if not count:
            return False
        account = gangs[0].account
        for group in request.groups:
            request.queue.charge(group.shape, group.members * count)
            if account is not None:
                account.charge(group.shape, group.members * count)
        for shape in self._shapes:
            self._capacity[shape.id] -= request.taken(shape) * count
        self._work.state.backlog.take_first(bucket, count)
        bucket.budget_exceeded = False
        self._work.session.spend(request.need.quorum * count)
        self._series.append(_Series(request, gangs[:count]))
        return True

    def place(self) -> None:
        """Spread the members of all that were gathered, and decide gang by gang."""
        series, space = self._series, self._space
        self._forget()
        if not series:
            return
        work, space = self._work, required(space, "a batch", "was gathered for no space")
        slots_of_gangs = _spread(work, series, space)
        for request, gangs in series:
            for gang in gangs:
                members: list[Member] = []
                slots: list[int] = []
                # Sorted, as the members of every decision are.
                for role, shape_id, _ in request.need.wanted:
                    waiting: Collection[Member] = gang.waiting[role, shape_id].values()
                    members += waiting if len(waiting) < 2 else sorted(waiting, key=placing_order)
                    slots += next(slots_of_gangs[role, shape_id])
                assignments = Assignments(members, slots)
                record(work, gang, request.need, assignments, domain=space.name, charged=True)

    def _forget(self) -> None:
        self._series, self._space = [], None
        self._capacity, self._shapes = {}, []

    def _joins(self, bucket: Bucket, request: BatchRequest) -> bool:
        """Whether gangs of this bucket go where those go that were gathered already."""
        first = self._series[0].request
        space = required(self._space, "a batch", "was gathered for no space")
        if request.queue is not first.queue:
            within = self._work.session.policies.within
            if within(request.queue, None) is not None or within(first.queue, None) is not None:
                return False
        if request.plain and first.plain:
            return True
        if request.need.signature[1:] != first.need.signature[1:]:
            return False
        return (space.level, space.domain) not in bucket.spaces_to_skip(
            self._work.session.node_capacity
        )

    def _capacity_for(self, bucket: Bucket, request: BatchRequest) -> int:
        """How many gangs certainly fit beside those gathered, in any order and on any nodes."""
        if not self._series:
            self._forget()
            self._space = _space(self._work.session, bucket, request)
        space = self._space
        if space is None:
            return 0
        for group in request.groups:
            if group.shape.id not in self._capacity and not self._count(group.shape, space):
                return 0
        return min(
            self._capacity[shape.id] // taken
            for shape in self._shapes
            if (taken := request.taken(shape))
        )

    def _count(self, shape: ShapeEntry, space: Space) -> bool:
        """Count how many members of one more shape fit beside the gangs gathered; False: these have
        too many shapes already.
        """
        if len(self._shapes) >= _SHAPES_MAX:
            return False
        counts = self._work.session.fits.counts(shape)
        fitting = int(counts.sum() if space.mask is None else counts[space.mask].sum())
        fitting -= sum(request.taken(shape) * len(gangs) for request, gangs in self._series)
        self._capacity[shape.id] = fitting
        self._shapes.append(shape)
        return True


def _turns_kept(request: BatchRequest, most: int, turns: Turns) -> int:
    """How many gangs the queue that has the turn may place, at most `most`, before it is another
    one's; each that is placed makes its own key greater.
    """

    def has_turn(placed: int) -> bool:
        for group in request.groups:
            request.queue.charge(group.shape, group.members * placed)
        kept = turns.stays_first()
        for group in request.groups:
            request.queue.charge(group.shape, -group.members * placed)
        return kept

    kept = 1
    # Doubled rather than bisected: the greatest number costs more looks than another turn.
    while kept < most and has_turn(min(2 * kept, most) - 1):
        kept = min(2 * kept, most)
    return kept


def _request(session: Session, bucket: Bucket) -> BatchRequest | None:
    need = bucket.need
    if need.best_effort or need.avoid or need.reserved or session.policies.place_points:
        return None
    structure = need.structure
    if structure is not None and (
        structure.near or structure.home or structure.sub_gangs or structure.tasks is not None
    ):
        return None
    wanted = need.members
    if wanted != need.quorum or wanted > ALWAYS_FIT:
        return None
    groups = [
        Batch(role, session.shapes.entries[shape_id], count)
        for role, shape_id, count in need.wanted
    ]
    if any(group.shape.attached or group.shape.pairwise for group in groups):
        return None
    ports = any(group.shape.shape.host_ports for group in groups)
    if ports and len(groups) > 1:
        return None
    groups.sort(key=lambda group: (group.role, group.shape.order))
    amounts: dict[int, int] = {}
    for group in groups:
        add_amounts(amounts, group.shape.pairs, group.members)
    plain = structure is None and not ports
    return BatchRequest(need, bucket.entries[0][2].queue, tuple(groups), amounts, plain, {})


def _quota(request: BatchRequest) -> int:
    """How many gangs the ceilings of their queue allow."""
    most = _ANY_NUMBER
    for entry in request.queue.chain:
        for row, limit in entry.ceiling.items():
            if row in request.amounts:
                most = min(most, (limit - entry.used.get(row, 0)) // request.amounts[row])
    return most


def _space(session: Session, bucket: Bucket, request: BatchRequest) -> Space | None:
    """Where the first of the gangs would be placed. The other gangs follow it as long as they fit,
    because its domain has become the fullest that can hold them.
    """
    need = request.need
    structure = need.structure
    base = session.allowed_nodes(request.queue, structure)
    if structure is None or structure.topology is None:
        return Space(base)
    skipped = bucket.spaces_to_skip(session.node_capacity)
    spaces = find_spaces(
        session,
        structure.topology,
        request.groups,
        need.quorum,
        need.minima,
        base=base,
    )
    return next((space for space in spaces if (space.level, space.domain) not in skipped), None)


def _spread(
    work: CycleContext, series: Sequence[_Series], space: Space
) -> dict[_Place, Iterator[list[int]]]:
    """Take the capacity for all members; returns each gang's slots by role and shape, in the order
    of the gangs.
    """
    state, session = work.state, work.session
    members: dict[_Place, list[int]] = {}
    for request, gangs in series:
        for group in request.groups:
            counts = members.setdefault((group.role, group.shape.id), [])
            counts += [group.members] * len(gangs)
    structure = series[0].request.need.structure
    order = state.node_capacity.topology.order(
        structure.topology if structure is not None else None
    )
    statement = Statement(state.node_capacity, None)
    slots_of_gangs: dict[_Place, Iterator[list[int]]] = {}
    shapes = state.shapes.entries
    for role, shape_id in sorted(members, key=lambda place: (place[0], shapes[place[1]].order)):
        counts = members[role, shape_id]
        all_members = MembersRequest(
            statement=statement,
            role=role,
            shape=shapes[shape_id],
            wanted=sum(counts),
            within=space.mask,
        )
        slots_of_gangs[role, shape_id] = place_batch(session, all_members, counts, order)
    statement.commit()
    return slots_of_gangs


def _displaced(shape: ShapeEntry, other: ShapeEntry) -> int:
    """How many pods of a shape one pod of another shape displaces from a node, at most."""
    if shape is other:
        return 1
    amounts = dict(other.pairs)
    return max((-(-amounts.get(row, 0) // amount) for row, amount in shape.pairs), default=0)
