"""Which refused buckets still do not fit, judged without an attempt, by the nodes that changed.

When a bucket is refused because even each of its shapes alone does not fit often enough, the number
of members that do not fit is known. Since then capacity can only have become free on nodes that
changed. All buckets are compared with these nodes at once, as a matrix of shapes and nodes; a
bucket that lacks more members than they could take is refused again. So one freed node among
thousands does not cost an attempt for thousands of shapes that are too large for it.

The sum of gains is an upper bound and stays one: gains of later cycles are added, capacity that was
taken since is not subtracted, until an attempt counts the missing members again.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.gangs import Bucket
from services.gang_planner.core.state.holds import HoldTable
from services.gang_planner.core.state.needs import Need, Shortfall
from services.gang_planner.core.state.pod_shapes import ShapeEntry

#: Changed nodes up to which comparing them is worth it; more, and all nodes are compared.
_CHANGED_MAX: Final = 512


class Shortfalls:
    """What the changes until now can mean for refused buckets, within one pass over them."""

    def __init__(self, holds: HoldTable, session: Session, buckets: Iterable[Bucket]) -> None:
        self._holds = holds
        self._session = session
        self._buckets = [
            bucket for bucket in buckets if bucket.shortfall and bucket.shortfall.members
        ]
        #: Gain by shape id, for each position in the node capacity's changes; None: too many have
        #: changed.
        self._gains: dict[int, dict[int, int] | None] = {}
        held = [
            hold.gang.priority
            for hold in holds.by_uid.values()
            if hold.reservation is not None and hold.gang is not None
        ]
        #: Gangs of higher priority may take capacity that is reserved for other gangs.
        self._lowest_held = min(held, default=None)

    def forget(self) -> None:
        """Compare nodes again: they show other amounts now."""
        self._gains.clear()

    def remains(self, bucket: Bucket, shortfall: Shortfall) -> bool:
        """Whether none of the bucket's gangs can fit, as when it had this shortfall."""
        node_capacity = self._session.node_capacity
        if not shortfall.members:
            return False
        if shortfall.nodes_at != node_capacity.nodes.changes.position:
            return False
        gang = bucket.entries[0][2]
        if self._holds.of(gang) or (
            self._lowest_held is not None and gang.priority > self._lowest_held
        ):
            return False
        if shortfall.capacity_at == node_capacity.changes.position:
            return True
        gains = self._gained(shortfall.capacity_at)
        if gains is None or any(shape_id not in gains for _, shape_id, _ in bucket.need.wanted):
            # Shapes may be unknown: the bucket was refused in this pass, by a gang that then took
            # capacity that is reserved for others.
            return False
        gained = sum(gains[shape_id] for _, shape_id, _ in bucket.need.wanted)
        shortfall.members = max(shortfall.members - gained, 0)
        shortfall.capacity_at = node_capacity.changes.position
        return shortfall.members > 0

    def _gained(self, position: int) -> dict[int, int] | None:
        """How many more members of each shape may fit because of changes since a position."""
        if position in self._gains:
            return self._gains[position]
        self._gains[position] = None
        slots = self._session.node_capacity.changes.since(position, _CHANGED_MAX)
        if slots is None:
            return None
        ids = {
            shape_id: None
            for bucket in self._buckets
            if bucket.shortfall is not None and bucket.shortfall.capacity_at == position
            for _, shape_id, _ in bucket.need.wanted
        }
        shapes = [self._session.shapes.entries[shape_id] for shape_id in ids]
        self._session.work_left -= len(shapes) * len(slots)
        gains: list[int] = _capacity(self._session, shapes, slots).sum(axis=1).tolist()
        gained = self._gains[position] = dict(zip(ids, gains, strict=True))
        return gained


def shortfall_of(session: Session, need: Need, missing: int) -> Shortfall:
    """What is known of a refused need: `missing` members of its quorum do not fit even if every
    shape had all free capacity for itself.
    """
    node_capacity = session.node_capacity
    return Shortfall(
        max(missing, 0) if _is_additive(session, need) else 0,
        node_capacity.changes.position,
        node_capacity.nodes.changes.position,
    )


def _is_additive(session: Session, need: Need) -> bool:
    """Whether nothing but nodes and their free amounts decides how many members fit."""
    entries = session.shapes.entries
    return bool(need.quorum) and not any(
        entries[shape_id].attached or entries[shape_id].pairwise for _, shape_id, _ in need.wanted
    )


def _capacity(session: Session, shapes: list[ShapeEntry], slots: Ints) -> Ints:
    """How often each shape fits on each of these nodes at most, by their amounts alone."""
    node_capacity = session.node_capacity
    node_capacity.fit_cells()
    free = np.maximum(node_capacity.free.cells[:, slots], 0)
    asked = np.zeros((len(shapes), len(free)), dtype=np.int64)
    for at, shape in enumerate(shapes):
        asked[at, shape.rows] = shape.amounts
    least = np.full((len(shapes), len(slots)), UNLIMITED, dtype=np.int64)
    for row in np.flatnonzero(asked.any(axis=0)).tolist():
        amounts = asked[:, row]
        some = amounts > 0
        times = free[row] // np.where(some, amounts, 1)[:, None]
        least = np.where(some[:, None], np.minimum(least, times), least)
    return least
