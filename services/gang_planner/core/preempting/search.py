"""Finds the cheapest pods whose eviction lets a gang be placed, and proves that it does.

Least harm first: members above the quorum of their gangs and pods that are gangs of their own, then
whole gangs; last, where policies
leave it to the API server, pods that a PodDisruptionBudget protects. Within each, as low a priority
as suffices. There as few pods as possible: chosen node by node (`growing`), proven by the ordinary
search for placements on the ground without them, and then each that is not needed is left out. Of
a few candidates every choice that costs less is looked at, so that small cases are exact (`exact`).

A gang that will fit when pods that are leaving anyway have left evicts nobody.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.placing import Attempt, Group, slots_of
from services.gang_planner.core.preempting.budgets import Budgets
from services.gang_planner.core.preempting.exact import Exact, is_few
from services.gang_planner.core.preempting.fairness import Fairness
from services.gang_planner.core.preempting.growing import Growing
from services.gang_planner.core.preempting.hopes import Hope
from services.gang_planner.core.preempting.rules import Asks, VictimRules
from services.gang_planner.core.preempting.sources import Source, Sources, leaving
from services.gang_planner.core.preempting.trial import Trial
from services.gang_planner.core.preempting.units import (
    Cost,
    Unit,
    cost_of,
    members_of,
    units_of,
)

if TYPE_CHECKING:
    from services.gang_planner.core.backlog import Need
    from services.gang_planner.core.columns import Bools
    from services.gang_planner.core.members import Member
    from services.gang_planner.core.shapes import ShapeEntry
    from services.gang_planner.core.statement import Allocation

#: Proofs in one search; a gang of thousands needs few, because most of its victims are counted off.
_PROOFS_MAX: Final = 400
#: Victims of one decision: with its bindings they fit into a message.
VICTIMS_MAX: Final = 2_000


class Found(NamedTuple):
    """Whom to evict, and where the gang goes then; nobody: it only has to wait."""

    victims: "list[Member]"
    allocations: "tuple[Allocation, ...]"


class Search:
    """One search for one gang."""

    def __init__(self, work: CycleWork, asks: Asks, need: "Need", rules: VictimRules) -> None:
        self._work = work
        self._session = work.session
        self._asks = asks
        self._need = need
        self._rules = rules
        #: Whether gangs may be brought below their quorum; an extra member is not worth one.
        self._whole = not rules.keeps_quorum and need.quorum > 0
        self._trial = Trial(work.state)
        self._budgets = Budgets(work.state)
        self._proofs_left = _PROOFS_MAX
        self._avoid = slots_of(work.session, need.avoid)
        self._wanted = need.quorum
        #: It ended by its budget: whether evictions would help is not known.
        self.exceeded = False
        #: When somebody who is protected now no longer is; 0: nobody is.
        self.eligible_ms = 0

    def run(self) -> Found | None:
        """Search; nothing has changed when it ends. None: no evictions help, or none are found."""
        state = self._work.state
        sources = Sources(state, self._asks, self._rules)
        self.eligible_ms = sources.eligible_ms
        self._session.work_left -= 20 * len(state.gangs.gangs)
        if not sources.found:
            return None
        with self._trial as trial:
            trial.take_away(leaving(state))
            for wanted in _amounts(self._need):
                self._wanted = wanted
                found = self._of(sources.found)
                if found is not None or self._out_of_budget():
                    return found
        return None

    def _of(self, sources: Sequence[Source]) -> Found | None:
        there = self._proven()
        if there is not None:
            return Found([], there)
        fair = Fairness(self._asks, self._need, self._session.shapes)
        if not fair.may_take(self._wanted):
            return None
        sources = fair.limited(sources, self._usable())
        if not self._pairwise and not self._suffices(self._pool(sources)):
            return None
        taken = self._counted_off(sources)
        pool = self._pool(sources)
        if is_few(pool):
            taken = self._exact(pool, taken)
        return self._found(taken) if taken else None

    def _pool(self, sources: Sequence[Source], *, breaking: bool = True) -> list[Unit]:
        whole, usable = self._whole, self._usable()
        return units_of(sources, whole=whole, breaking=whole and breaking, usable=usable)

    def _counted_off(self, sources: Sequence[Source]) -> list[Unit] | None:
        """Units that suffice, of the first level of harm that has enough of them."""
        budgets = (True,) if self._rules.keeps_budgets else (True, False)
        for keeps_budgets in budgets:
            for breaking in (False, True) if self._whole else (False,):
                taken = self._level(sources, breaking=breaking, keeps_budgets=keeps_budgets)
                if taken or self._out_of_budget():
                    return taken
            if not self._budgets.any:
                break
        return None

    def _exact(self, pool: Sequence[Unit], known: list[Unit] | None) -> list[Unit] | None:
        """The cheapest choice of few units; `known` is one that suffices."""
        fair = self._within_budgets if self._rules.keeps_budgets and self._budgets.any else None
        exact = Exact(pool, self._hopes(pool), self._cost, fair, self._proven_without)
        found = exact.better_than(known)
        self.exceeded = found is None and (self.exceeded or exact.exceeded)
        return found

    def _hopes(self, pool: Sequence[Unit]) -> list[Hope]:
        """What amounts alone say of each shape; nothing, where evictions change what other nodes
        hold.
        """
        if self._pairwise:
            return []
        groups = self._attempt().groups
        hopes: list[Hope] = []
        for group in groups:
            others = sum(one.wanted for one in groups if one is not group)
            least = max(self._wanted - others, 0)
            for role, count in self._need.minima:
                same = sum(g.wanted for g in groups if g is not group and g.role == role)
                least = max(least, count - same if role == group.role else 0)
            hopes.append(Hope(self._session, group.shape, least, pool, self._avoid))
        return hopes

    def _proven_without(self, units: Sequence[Unit]) -> bool:
        members = members_of(units)
        self._trial.take_away(members)
        suffices = self._proven() is not None
        self._trial.put_back(members)
        return suffices

    def _found(self, taken: Sequence[Unit]) -> Found | None:
        members = members_of(taken)
        if len(members) > VICTIMS_MAX:
            return None
        self._trial.take_away(members)
        allocations = self._proven()
        self._trial.put_back(members)
        assert allocations is not None, "a set of victims was proven to suffice"
        return Found(members, allocations)

    def _level(
        self, sources: Sequence[Source], *, breaking: bool, keeps_budgets: bool
    ) -> list[Unit] | None:
        """The cheapest units of one level of harm; None: even all of it does not help."""
        pool = self._pool(sources, breaking=breaking)
        if keeps_budgets:
            pool = [one for one in pool if not self._budgets.violations(one.members)]
        fair = self._within_budgets if keeps_budgets and self._budgets.any else None
        if not self._suffices(pool):
            return None
        lowest = _up_to(self._priority_of(pool), pool)
        taken = self._cheapest(lowest, fair)
        broken = 0 if taken is None else sum(one.breaks for one in taken)
        if len(lowest) < len(pool) and (taken is None or broken > 1):
            # Higher priorities may do where these may not be taken together, or break fewer gangs.
            other = self._cheapest(pool, fair)
            if taken is None or (other is not None and self._cost(other) < self._cost(taken)):
                return other
        return taken

    def _priority_of(self, pool: Sequence[Unit]) -> int:
        """The lowest priority up to which a pool that suffices might."""
        priorities = sorted({one.gang.priority for one in pool})
        low, high = -1, len(priorities) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._suffices(_up_to(priorities[middle], pool)):
                high = middle
            else:
                low = middle
        return priorities[high]

    def _suffices(self, pool: Sequence[Unit]) -> bool:
        """Whether a pool could suffice if all of it might be taken together."""
        return bool(pool) and self._proven_without(pool)

    def _cheapest(
        self, pool: Sequence[Unit], fair: "Callable[[Sequence[Unit]], bool] | None"
    ) -> list[Unit] | None:
        growing = Growing(self._session, self._trial, pool, fair)
        self._grow(growing)
        if self._proven() is None:
            self._add(growing, pool)
        if self._proven() is None:
            growing.clear()
            return None
        self._leave_out(growing)
        taken = list(growing.taken)
        growing.clear()
        return taken

    def _grow(self, growing: Growing) -> None:
        """Take units until every shape would fit, one shape after the other."""
        tried = self._attempt()
        targets = _targets(tried.groups, self._need, self._wanted)
        for group, target in targets:
            if target:
                growing.until(group.shape, target, self._avoid)
                self._session.spread(
                    tried.statement,
                    self._asks.gang.queue,
                    group.role,
                    group.shape,
                    target,
                    self._avoid,
                )
        tried.statement.discard()

    def _add(self, growing: Growing, pool: Sequence[Unit]) -> None:
        """What was counted off does not suffice (a topology, a quota): take more, cheapest first,
        twice as many each time.
        """
        left = [one for one in pool if one not in growing.taken]
        more = max(len(growing.taken), 1)
        while left and self._proven() is None and not self._out_of_budget():
            growing.take_all(left[:more])
            left = left[more:]
            more *= 2

    def _leave_out(self, growing: Growing) -> None:
        """Leave out what is not needed, the most costly first."""
        single = self._single()
        for unit in sorted(growing.taken, key=lambda one: self._cost([one]), reverse=True):
            if self._out_of_budget():
                return
            # What fits is counted off; only what might do without is proven.
            if single is not None:
                spare = self._session.fits.total(single) - self._wanted
                if growing.needed(unit, single, spare):
                    continue
            growing.undo([unit])
            if self._proven() is None:
                growing.take([unit])

    def _single(self) -> "ShapeEntry | None":
        """The gang's shape, if it has only one."""
        if len(self._need.wanted) != 1:
            return None
        return self._session.shapes.entries[self._need.wanted[0][1]]

    def _cost(self, units: Sequence[Unit]) -> Cost:
        return cost_of(units, self._budgets, self._asks.now_ms)

    @property
    def _pairwise(self) -> bool:
        """Whether an eviction may change what other nodes hold, or even be in the way."""
        shapes = self._session.shapes.entries
        return any(shapes[one].pairwise or shapes[one].attached for _, one, _ in self._need.wanted)

    def _within_budgets(self, units: Sequence[Unit]) -> bool:
        return not self._budgets.violations(members_of(units))

    def _usable(self) -> "Bools | None":
        """Nodes that any shape of the gang may use; None: anywhere, because its queue is full."""
        masks = self._session.fits.masks
        shapes = [self._session.shapes.entries[one] for _, one, _ in self._need.wanted]
        queue = self._asks.gang.queue
        amounts = self._need.amounts(self._session.shapes)
        if self._asks.kind == "preempt" and queue.excess(amounts, promised=False):
            return None
        usable = np.zeros(self._session.ground.nodes.size, dtype=np.bool_)
        for shape in shapes:
            usable |= masks.mask(shape)
        usable[self._avoid] = False
        return usable

    def _attempt(self) -> Attempt:
        most = self._wanted
        return Attempt(self._session, self._asks.gang.queue, self._need, members_max=most)

    def _proven(self) -> "tuple[Allocation, ...] | None":
        """Where the gang goes on the ground as it is now; None: it does not fit."""
        self._proofs_left -= 1
        tried = self._attempt()
        if not tried.run():
            self.exceeded |= tried.exceeded
            return None
        allocations = tried.statement.allocations
        tried.statement.discard()
        enough = sum(one.total for one in allocations) >= self._wanted
        return allocations if enough else None

    def _out_of_budget(self) -> bool:
        out = self._session.exhausted or self._proofs_left <= 0
        self.exceeded |= out
        return out


def _amounts(need: "Need") -> Iterator[int]:
    """How many members to make room for: the quorum; of a gang that has it as many as can be."""
    if need.quorum:
        yield need.quorum
        return
    wanted = sum(count for _, _, count in need.wanted)
    while wanted:
        yield wanted
        wanted //= 2


def _targets(groups: Sequence[Group], need: "Need", wanted: int) -> list[tuple[Group, int]]:
    """How many of each role and shape are to fit, those that fit the least first."""
    ordered = sorted(groups, key=_scarcity)
    targets = dict.fromkeys(range(len(ordered)), 0)
    for role, least in need.minima:
        for place, group in enumerate(ordered):
            if group.role == role:
                more = min(group.wanted - targets[place], least)
                targets[place] += more
                least -= more
    left = wanted - sum(targets.values())
    for place in reversed(range(len(ordered))):
        more = max(min(ordered[place].wanted - targets[place], left), 0)
        targets[place] += more
        left -= more
    return [(group, targets[place]) for place, group in enumerate(ordered)]


def _scarcity(group: Group) -> tuple[int, str, bytes]:
    return group.fit * 1000 // max(group.wanted, 1), group.role, group.shape.order


def _up_to(priority: int, pool: Sequence[Unit]) -> list[Unit]:
    return [one for one in pool if one.gang.priority <= priority]
