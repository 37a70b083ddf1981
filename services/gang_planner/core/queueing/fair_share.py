"""What each queue deserves of contested resources, its fair share of them, and which queues these
amounts limit.

A policy sets the weight and the maximum amount of each queue (`Policy.deserve`). From these, this
module computes two amounts per queue, resource and level of the tree:

* `deserved` decides about evictions: reclaim takes nothing from a queue that holds no more, and
  takes for a queue up to it. A queue deserves all of what it declares, even where the nodes have
  less than all queues declare together: no eviction follows from the loss of nodes (ADR 0108). By
  weight it deserves its fair share. It never deserves less than its guarantee.
* `fair_share` decides about placement: the queue's part of the capacity that gangs can use
  (`usable_amounts`), by water-filling with guarantees as floors. It is less than the deserved
  amount only where the usable capacity is less than all queues deserve together.

Fair shares limit a queue only while another queue claims the resource; until then it may use all
free capacity. A queue *claims* a resource while it holds less than its fair share and has waiting
gangs that the cluster could hold. Queues that hold their fair shares then may not use the nodes
that pods of the claimants could use. They may still use all other nodes: a claim on GPU nodes
excludes no gang from CPU nodes. A queue below its fair share may exceed it by one whole gang;
otherwise two gangs larger than the shares of their queues would block each other permanently.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.policy import Deserve
from services.gang_planner.core.placement import gang_placement
from services.gang_planner.core.placement.attempt import PlacementRequest
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queueing import min_resources
from services.gang_planner.core.queueing.water_filling import Party, whole_shares
from services.gang_planner.core.state.backlog import Line
from services.gang_planner.core.state.columns import Bools, Ints, add_amounts
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.needs import Claimant, Need, Wanted
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry, ShapeTable
from services.gang_planner.core.state.queued_demand import QueuedDemand
from services.gang_planner.core.state.queues import ROOT, QueueEntry, QueueTable
from services.gang_planner.core.state.reservations import ReservationTable
from services.gang_planner.core.state.taints import first_untolerated
from shared.model.gang_keys import GangKey


def share_out(state: State, session: Session, demand: QueuedDemand, *, alone: bool = False) -> None:
    """Compute the demand, deserved amounts and fair shares of every queue, if more than one queue
    has gangs that hold or wait for capacity, or also `alone`. Otherwise all shares are empty, which
    saves the computation in clusters with one active queue.
    """
    queues, wanting = state.queues, demand.by_queue
    deserve = session.policies.deserve
    for entry in queues.entries.values():
        if entry.demand:
            entry.demand = {}
    if deserve is None or not (alone or _many(queues.entries, wanting)):
        _share_nothing(queues)
        return
    for name in sorted(wanting):
        for entry in queues.entry(name).chain:
            for shape_id, count in wanting[name].items():
                entry.demand[shape_id] = entry.demand.get(shape_id, 0) + count
    usable = usable_amounts(queues, state.reservations, session, demand)
    now = (deserve, queues.changes, *usable)
    if queues.shared_at == now:
        return
    _share_nothing(queues)
    declared = True
    for parent, children in queues.siblings():
        siblings = [child for child in children if not _is_whole_cluster(child)]
        declared &= _share(session, siblings, _amounts_of(parent, usable), deserve)
    queues.shared_at = now if declared else ()


def usable_amounts(
    queues: QueueTable, reservations: ReservationTable, session: Session, demand: QueuedDemand
) -> list[int]:
    """The capacity that gangs of all queues can use, by resource row; computed once per cycle.

    It is less than the sum of all nodes: shares of that sum would exceed what queues can ever hold,
    and no queue would hold more than it deserves.

    It is the sum of the amounts that gangs hold on any node and the free amounts on usable nodes. A
    node is usable if it is Ready and not cordoned, and if a held or waiting pod of any gang
    tolerates its taints. What victims still hold of the reservations of preemptors counts once.
    """
    if session.usable is None:
        tolerated = _tolerated(queues, session, demand)
        usable = session.free_on_usable.sums(tolerated)
        for entry in queues.entries.values():
            if entry.parent is None:
                for row, amount in entry.used.items():
                    usable[row] += amount
        for row, amount in _charged_twice(reservations, session).items():
            usable[row] -= amount
        session.usable = usable
    return session.usable


def _charged_twice(reservations: ReservationTable, session: Session) -> dict[int, int]:
    """The part of preemptors' reservations that their victims have not left yet, by resource row:
    both gangs are charged for it. Counted twice, it would let a gang reclaim more than its queue
    deserves once the victims have left; the gang would then be evicted in turn.
    """
    reserved: dict[tuple[int, int], int] = {}
    for reservation in reservations.promised.values():
        for row, amount in reservation.shape.pairs:
            reserved[row, reservation.slot] = reserved.get((row, reservation.slot), 0) + amount
    free = session.node_capacity.free.cells
    twice: dict[int, int] = {}
    for (row, slot), amount in reserved.items():
        missing = max(-int(free[row, slot]), 0)
        twice[row] = twice.get(row, 0) + min(amount, missing)
    return twice


def _tolerated(queues: QueueTable, session: Session, demand: QueuedDemand) -> Bools:
    """One flag per set of taints: whether a pod of any gang tolerates it."""
    sets = session.node_capacity.nodes.taints.sets
    tolerated: Bools = np.ones(len(sets), dtype=np.bool_)
    tainted = [at for at, taints in enumerate(sets) if first_untolerated((), taints) is not None]
    if not tainted:
        return tolerated
    counts = [*demand.by_queue.values(), *(queue.shapes for queue in queues.entries.values())]
    shapes = session.shapes.entries
    ids = {shape_id for each in counts for shape_id in each}
    tolerations = {shapes[shape_id].shape.tolerations for shape_id in ids} - {()}
    for at in tainted:
        tolerated[at] = any(
            first_untolerated(pod_tolerations, sets[at]) is None for pod_tolerations in tolerations
        )
    return tolerated


def _many(entries: Mapping[str, QueueEntry], wanting: Mapping[str, object]) -> bool:
    """Whether more than one queue has gangs that hold or wait for capacity."""
    if len(wanting) > 1:
        return True
    return (
        len(wanting.keys() | {name for name, queue in entries.items() if any(queue.used.values())})
        > 1
    )


def _share_nothing(queues: QueueTable) -> None:
    queues.shared_at = ()
    for entry in queues.entries.values():
        if entry.deserved:
            entry.deserved, entry.fair_share = {}, {}


class _Amounts(NamedTuple):
    """What siblings divide among themselves, by resource row."""

    usable: Mapping[int, int]
    #: The most that a child can deserve of what it declares; None: it deserves all of it.
    deserved: Mapping[int, int] | None


def _amounts_of(parent: QueueEntry | None, usable: Sequence[int]) -> _Amounts:
    if parent is None:
        return _Amounts(dict(enumerate(usable)), None)
    if not _is_whole_cluster(parent):
        return _Amounts(parent.fair_share, parent.deserved)
    limits = parent.ceiling
    return _Amounts(
        {row: min(amount, limits.get(row, amount)) for row, amount in enumerate(usable)}, None
    )


def _is_whole_cluster(queue: QueueEntry) -> bool:
    """Whether it is a `root` that limits its children by its capability only."""
    return queue.name == ROOT and not queue.declared


def _share(session: Session, queues: Sequence[QueueEntry], has: _Amounts, deserve: Deserve) -> bool:
    """Divide the amounts of a parent among its children. Returns whether all of them declare
    deserved amounts, so that the shares do not depend on demand.
    """
    all_declared = True
    #: By queue; empty until their demand matters.
    wants_of: list[dict[int, int]] = []
    for row, usable in has.usable.items():
        parties: list[Party] = []
        #: What each queue deserves because it declares it.
        declared: list[int] = []
        for at, entry in enumerate(queues):
            weight, most = deserve(entry, row)
            if most is None:
                wants_of = wants_of or [wanted(session.shapes, queue) for queue in queues]
                most = wants_of[at].get(row, 0)
            else:
                if row in entry.capability:
                    most = min(most, entry.capability[row])
                if has.deserved is not None:
                    most = min(most, has.deserved[row])
                declared.append(most)
            if row in entry.ceiling:
                most = min(most, entry.ceiling[row])
            parties.append(Party(weight, entry.guarantee.get(row, 0), most))
        all_declared &= bool(declared)
        if not any(party.floor or party.most for party in parties) and not any(declared):
            # No queue declares or demands the resource, so it limits no queue.
            continue
        fair = whole_shares(usable, parties)
        for entry, party, share, deserved in zip(
            queues, parties, fair, declared or fair, strict=True
        ):
            entry.fair_share[row] = share
            entry.deserved[row] = max(deserved, party.floor)
    return all_declared


def wanted(shapes: ShapeTable, entry: QueueEntry) -> dict[int, int]:
    """The amounts that a queue's gangs hold and wait for, by resource row."""
    wants = dict(entry.used)
    add_amounts(wants, shapes.sums(entry.demand.items()).items())
    return wants


_Level: TypeAlias = tuple[QueueEntry | None, int]
"""(parent, resource row)."""


class Limit(NamedTuple):
    """The fair share of a gang's queue, as a limit on the gang."""

    #: Members that one decision may place, including those above the quorum; None: unlimited.
    members_max: int | None = None
    #: Slots of nodes that are kept for claimants; None: none.
    withheld: Ints | None = None
    #: The claims that caused the limit.
    claimants: tuple[Claimant, ...] = ()

    def leaves_nothing(self, nodes: int) -> bool:
        """Whether the limit withholds every node, of this many."""
        return self.withheld is not None and len(self.withheld) >= nodes


UNLIMITED: Final = Limit()


class FairShareDemand:
    """What queues claim of their fair shares within one run of an action, computed when needed."""

    def __init__(self, work: CycleContext) -> None:
        self._work = work
        #: A refusal has shown that a queue's demand is smaller than assumed.
        self._outdated = False
        self._look()

    def _look(self) -> None:
        state = self._work.state
        share_out(state, self._work.session, state.backlog.demand)
        #: Without demand there are no claims.
        idle = not any(queue.demand for queue in state.queues.entries.values())
        #: (parent, row) -> child queues that claim the resource.
        self._claiming: dict[_Level, dict[QueueEntry, Claimant]] = {}
        #: Rows that any queue claimed when this was computed.
        self._claimed: set[int] = set()
        self._known: dict[_Level, tuple[Claimant, ...]] = {}
        self._slots: dict[tuple[Claimant, ...], Ints] = {}
        if not idle:
            self._find()
        self._outdated = False

    def limit(self, queue: QueueEntry, need: Need) -> Limit:
        """The limit of the queue's fair share on a gang with this need.

        Other queues never delay the members that a started gang lacks of its minima, because its
        other members hold capacity without making progress.
        """
        if not self._claiming:
            return UNLIMITED
        limit = self._limit(queue, need)
        if limit is not UNLIMITED and self._outdated:
            self._look()
            limit = self._limit(queue, need)
        if limit is not UNLIMITED and need.lacking:
            return Limit(max(need.lacking, limit.members_max or 0))
        return limit

    def judge(self, bucket: Bucket) -> None:
        """Determine whether a refused bucket counts as demand. A gang that does not fit on empty
        nodes, or under the ceilings of its queue, does not.
        """
        state, session = self._work.state, self._work.session
        nodes_at = state.nodes.changes.position
        if session.policies.deserve is None or bucket.judged_at == nodes_at:
            return
        before = bucket.unsatisfiable
        queue = state.queues.entry(bucket.need.queue)
        unsatisfiable = _is_unsatisfiable(session, queue, bucket.need)
        state.backlog.judge(bucket, nodes_at, unsatisfiable=unsatisfiable)
        self._outdated |= before != bucket.unsatisfiable

    def _limit(self, queue: QueueEntry, need: Need) -> Limit:
        claimants: tuple[Claimant, ...] = ()
        most: int | None = None
        elastic = sum(count for _, _, count in need.wanted) > need.quorum
        for row, amount in need.largest(self._work.state.shapes).items():
            if row not in self._claimed:
                continue
            for entry in queue.chain:
                left = entry.fair_share.get(row, 0) - entry.used.get(row, 0)
                if left <= 0:
                    claimants += self._claimants(entry, row)
                elif elastic and self._claimants(entry, row) not in ((), self._own(entry, row)):
                    fitting = -(-left // amount)
                    most = fitting if most is None else min(most, fitting)
        if claimants:
            return Limit(None, self._withheld(claimants), claimants)
        return UNLIMITED if most is None else Limit(max(most, need.quorum, 1))

    def unlimited(self, queue: QueueEntry, need: Need, most: int) -> int:
        """How many gangs with this need, at most `most`, can be placed in sequence while `limit`
        stays UNLIMITED. It is UNLIMITED for the first, and none has members above its quorum.
        """
        if not self._claiming:
            return most
        amounts = need.amounts(self._work.state.shapes)
        for row, amount in amounts.items():
            if row not in self._claimed:
                continue
            for entry in queue.chain:
                if self._claimants(entry, row):
                    left = entry.fair_share.get(row, 0) - entry.used.get(row, 0)
                    most = min(most, 1 + (left - 1) // amount)
        return most

    def placed(self, queue: QueueEntry) -> None:
        """Account for a placed gang: its queue and the ancestors that now hold their fair
        share no longer claim.
        """
        for entry in queue.chain:
            for row in entry.fair_share:
                key = (entry.parent, row)
                claiming = self._claiming.get(key)
                if (
                    claiming is not None
                    and entry in claiming
                    and entry.used.get(row, 0) >= entry.fair_share[row]
                ):
                    del claiming[entry]
                    self._known.pop(key, None)

    def released(self) -> list[Bucket]:
        """Buckets that were refused in favour of claimants, if their claimants have changed."""
        held = self._work.state.backlog.held
        now: dict[tuple[str, tuple[Wanted, ...], int], Limit] = {}
        buckets: list[Bucket] = []
        for bucket in held.values():
            need = bucket.need
            limit = now.get((need.queue, need.wanted, need.lacking))
            if limit is None:
                limit = self.limit(self._work.state.queues.entry(need.queue), need)
                now[need.queue, need.wanted, need.lacking] = limit
            if limit.claimants != bucket.claimants:
                buckets.append(bucket)
        return buckets

    def _find(self) -> None:
        """Find the queues that demand a resource and hold less than their fair share. Held amounts
        only grow during the action, so claims can only disappear.
        """
        shapes = self._work.state.shapes.entries
        for name, entry in sorted(self._work.state.queues.entries.items()):
            if not entry.demand:
                continue
            waits_with = tuple(sorted(entry.demand))
            for row, amount in sorted(entry.fair_share.items()):
                if entry.used.get(row, 0) >= amount:
                    continue
                if any(row in shapes[shape_id].by_row for shape_id in waits_with):
                    claiming = self._claiming.setdefault((entry.parent, row), {})
                    claiming[entry] = (name, row, waits_with)
                    self._claimed.add(row)

    def _claimants(self, entry: QueueEntry, row: int) -> tuple[Claimant, ...]:
        """The claims on a resource at the queue's level, possibly including its own."""
        key = (entry.parent, row)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = tuple(self._claiming.get(key, {}).values())
        return known

    def _own(self, entry: QueueEntry, row: int) -> tuple[Claimant, ...]:
        """The queue's own claim, as a tuple; empty if it has none."""
        own = self._claiming.get((entry.parent, row), {}).get(entry)
        return () if own is None else (own,)

    def _withheld(self, claimants: tuple[Claimant, ...]) -> Ints:
        """Slots of nodes that pods of the claimants could use if they were empty."""
        slots = self._slots.get(claimants)
        if slots is None:
            state, session = self._work.state, self._work.session
            mask = np.zeros(state.nodes.size, dtype=np.bool_)
            for shape_id in sorted(
                {shape_id for _, _, waits_with in claimants for shape_id in waits_with}
            ):
                mask |= usable(session, state.shapes.entries[shape_id]) > 0
            slots = self._slots[claimants] = np.flatnonzero(mask)
        return slots


@dataclass(slots=True)
class Extras:
    """Shares free capacity fairly among extra members within one pass over a line: all quorums come
    before them, and the rest goes to members above quorums in equal parts.

    Gangs of one queue that wait with extras of one shape share the nodes that fit it, so that all
    of them come to have the same number of members as far as possible.
    """

    work: CycleContext
    line: Line
    #: Parts by queue and shape, worked out when the first gang asks.
    parts: dict[tuple[str, int], dict[GangKey, int]] = field(
        default_factory=dict[tuple[str, int], dict[GangKey, int]]
    )

    def lower(self, limit: Limit, bucket: Bucket, gang: Gang) -> Limit | None:
        """A limit, lowered for extra members; None: the gang may place no members before other
        gangs. Its bucket is no longer in line.
        """
        need, session = bucket.need, self.work.session
        most = None
        # Extras are unlimited only if no other gang waits. The backlog is read, not the line: the
        # line depends on earlier attempts, which a replay does not know completely.
        if len(self.work.state.backlog.buckets) != 1 or len(bucket.entries) != 1:
            most = self._most(bucket, gang)
        if session.admitted < need.members:
            # Members above the minimum may be placed after binders have answered for other pods.
            admitted = max(session.admitted, need.least)
            most = admitted if most is None else min(most, admitted)
        if most is None:
            return limit
        if most <= 0:
            return None
        if limit.members_max is not None:
            most = min(most, limit.members_max)
        return limit._replace(members_max=most)

    def _most(self, bucket: Bucket, gang: Gang) -> int | None:
        """How many members the gang may place now; None: any number.

        Members that a started gang lacks of its minima are not
        extras.
        """
        need = bucket.need
        if need.structure is not None:
            return None
        if need.quorum:
            return need.quorum if need.members > need.quorum else None
        if len(need.wanted) != 1 or need.best_effort:
            return None
        ((_, shape_id, wanted),) = need.wanted
        if wanted == 1:
            return None
        key = (need.queue, shape_id)
        parts = self.parts.get(key)
        if parts is None:
            in_line = [bucket, *self.line.buckets_of(need.queue)]
            parts = self.parts[key] = self._share(shape_id, in_line)
        part = parts.get(gang.key)
        return None if part is None else max(part, need.lacking)

    def _share(self, shape_id: int, in_line: list[Bucket]) -> dict[GangKey, int]:
        #: Gang, members that wait, and how many of them are not extras.
        gangs: list[tuple[Gang, int, int]] = []
        for bucket in in_line:
            need = bucket.need
            if need.quorum or need.structure is not None or len(need.wanted) != 1:
                continue
            ((_, wanted_shape, wanted),) = need.wanted
            if wanted_shape == shape_id:
                lacking = min(need.lacking, wanted)
                gangs += [(gang, wanted, lacking) for _, _, gang in bucket.entries]
        if len(gangs) < 2:
            return {}
        fitting = self.work.session.total(self.work.state.shapes.entries[shape_id])
        if fitting >= sum(wanted for _, wanted, _ in gangs):
            return {}
        # Members whose pods are gone do not count: a part is one of pods.
        have = [gang.have() - gang.run.succeeded for gang, _, _ in gangs]
        parties = [
            Party(1, count + lacking, count + wanted)
            for count, (_, wanted, lacking) in zip(have, gangs, strict=True)
        ]
        total = fitting + sum(have)
        shares = whole_shares(total, parties)
        # Members are whole: the first gangs in line that still want one get those left over.
        rising = [at for at, party in enumerate(parties) if shares[at] < party.most]
        rising.sort(key=lambda at: shares[at])
        for at in rising[: max(total - sum(shares), 0)]:
            shares[at] += 1
        return {
            gang.key: share - count
            for (gang, _, _), share, count in zip(gangs, shares, have, strict=True)
        }


def usable(session: Session, shape: ShapeEntry) -> Ints:
    """How many pods of the shape each node could hold if it were empty, ignoring host ports."""
    nodes = session.node_capacity.nodes
    mask = session.fits.masks.mask(shape)
    if not len(shape.rows):
        return mask.astype(np.int64)
    session.node_capacity.fit_cells()
    nodes.allocatable.ensure(*session.node_capacity.free.cells.shape)
    has = nodes.allocatable.cells[shape.rows, : nodes.size]
    counts: Ints = (has // shape.column).min(axis=0)
    counts[~mask] = 0
    return counts


def fits_otherwise(session: Session, queue: QueueEntry, need: Need) -> bool:
    """Whether gangs with this need would fit if no other queue claimed the capacity."""
    if need.structure is None and len(need.wanted) == 1:
        ((_, shape_id, _),) = need.wanted
        shape = session.shapes.entries[shape_id]
        return session.total(shape) >= max(need.quorum, 1)
    request = PlacementRequest(queue=queue, need=need, members_max=need.quorum or 1)
    return gang_placement.fits(session, request)


def _is_unsatisfiable(session: Session, queue: QueueEntry, need: Need) -> bool:
    amounts = need.amounts(session.shapes)
    for entry in queue.chain:
        if any(amount > entry.ceiling.get(row, amount) for row, amount in amounts.items()):
            return True
    if need.reserved and min_resources.unattainable(session, queue, need) is not None:
        return True
    fitting = 0
    for _, shape_id, count in need.wanted:
        session.work_left -= session.node_capacity.nodes.size
        fitting += min(count, int(usable(session, session.shapes.entries[shape_id]).sum()))
    return fitting < max(need.quorum, 1)
