"""Places one gang: its quorum whole or nothing, then as many of the rest as fit.

A gang has a few *groups*, each a role and a shape. The quorum is found greedily: every group gets a
target (its role's minimum first, the rest where most room is), targets are placed scarcest group
first, shortfalls are made up by other groups. If that fails, once more with nodes filled up instead
of levelled, which leaves more room for the next shape. One group is placed exactly whenever it
fits; several shapes that compete may, rarely, be refused although a cleverer order exists.
"""

from dataclasses import dataclass

import numpy as np

from services.gang_planner.core.backlog import Need
from services.gang_planner.core.columns import Ints
from services.gang_planner.core.queues import QueueEntry
from services.gang_planner.core.session import Session
from services.gang_planner.core.shapes import ShapeEntry
from services.gang_planner.core.statement import Statement


@dataclass(slots=True)
class Group:
    """Members of one role and shape during one attempt."""

    role: str
    shape: ShapeEntry
    wanted: int
    #: How many fit alone, at most `wanted`.
    fit: int
    placed: int = 0
    target: int = 0

    @property
    def left(self) -> int:
        """Members not placed."""
        return self.wanted - self.placed


class Attempt:
    """One try to place a need."""

    def __init__(
        self, session: Session, queue: QueueEntry, need: Need, *, members_max: int
    ) -> None:
        self._session = session
        self._queue = queue
        self._need = need
        self._members_max = members_max
        self._avoid = slots_of(session, need.avoid)
        self._packed = False
        self.statement = Statement(session.ground, queue)
        shapes = session.shapes.entries
        self.groups = [
            Group(role, shapes[shape_id], wanted, min(wanted, session.total(shapes[shape_id])))
            for role, shape_id, wanted in need.wanted
        ]

    def run(self) -> bool:
        """Place quorum and extras. False: nothing is placed, the statement is discarded."""
        if not self._hopeless():
            for packed in (False, True):
                self._packed = packed
                if self._place_quorum():
                    self._place_extras()
                    if self.placed:
                        return True
                self._reset()
                if len(self.groups) == 1:
                    break
        self.statement.discard()
        return False

    def run_partly(self) -> None:
        """Place as much of the quorum as fits, to say what is missing; the caller discards the
        statement.
        """
        need = self._need.quorum or 1
        for group in self._scarcest_first():
            self._place(group, min(group.left, need - self.placed))

    @property
    def placed(self) -> int:
        """Members placed so far."""
        return sum(group.placed for group in self.groups)

    def _hopeless(self) -> bool:
        """Whether even each shape alone leaves the quorum short: the usual case in a full cluster,
        so it is cheap.
        """
        need = self._need
        if sum(group.fit for group in self.groups) < max(need.quorum, 1):
            return True
        return any(
            sum(group.fit for group in self.groups if group.role == role) < count
            for role, count in need.minima
        )

    def _place_quorum(self) -> bool:
        need = self._need
        if not need.quorum:
            return True
        for role, count in need.minima:
            members = [group for group in self.groups if group.role == role]
            _aim(members, count)
        _aim(self.groups, need.quorum - sum(group.target for group in self.groups))
        for group in self._scarcest_first():
            self._place(group, group.target)
        for role, count in need.minima:
            self._make_up([group for group in self.groups if group.role == role], count)
        self._make_up(self.groups, need.quorum)
        return self._holds()

    def _holds(self) -> bool:
        need = self._need
        return self.placed >= need.quorum and all(
            sum(group.placed for group in self.groups if group.role == role) >= count
            for role, count in need.minima
        )

    def _make_up(self, groups: list[Group], wanted: int) -> None:
        for group in groups:
            missing = wanted - sum(one.placed for one in groups)
            if missing <= 0:
                return
            self._place(group, min(missing, group.left))

    def _place_extras(self) -> None:
        for group in self._scarcest_first():
            self._place(group, min(group.left, self._members_max - self.placed))

    def _place(self, group: Group, wanted: int) -> None:
        if wanted > 0:
            group.placed += self._session.spread(
                self.statement,
                self._queue,
                group.role,
                group.shape,
                wanted,
                self._avoid,
                packed=self._packed,
            )

    def _scarcest_first(self) -> list[Group]:
        return sorted(self.groups, key=_plenty)

    def _reset(self) -> None:
        self.statement.rollback(0)
        for group in self.groups:
            group.placed = group.target = 0


def _aim(groups: list[Group], amount: int) -> None:
    """Raise targets by `amount` in all, where most room is."""
    for group in sorted(groups, key=_plenty, reverse=True):
        if amount <= 0:
            return
        more = max(0, min(group.fit - group.target, amount))
        group.target += more
        amount -= more


def _plenty(group: Group) -> tuple[int, str, bytes]:
    """How easily the group is placed; role and shape decide between equals, not the order of
    arrival.
    """
    return group.fit * 1000 // max(group.wanted, 1), group.role, group.shape.encoded


def slots_of(session: Session, names: tuple[str, ...]) -> Ints:
    """Slots of the nodes with these names, as far as they are known."""
    slots = [session.ground.nodes.find(name) for name in names]
    return np.array([slot for slot in slots if slot is not None], dtype=np.int64)
