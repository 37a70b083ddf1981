"""Selects units node by node until a shape fits often enough: each step frees capacity for one more
pod on one node, and the cheapest step of all nodes is taken.

A step is one unit that suffices, or several that do together. Amounts are the only estimate: where
the node cannot take the pod for another reason (host ports, anti-affinity), the step is undone and
the node is not used.
"""

import heapq
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from services.gang_planner.core.preemption.units import Unit
from services.gang_planner.core.state.columns import add_amounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.gang_planner.core.placement.session import Session
    from services.gang_planner.core.preemption.constraints import Allowances
    from services.gang_planner.core.preemption.device_amounts import DeviceAmounts, Pairs
    from services.gang_planner.core.preemption.trial import Trial
    from services.gang_planner.core.state.columns import Bools, Ints
    from services.gang_planner.core.state.gangs import Member
    from services.gang_planner.core.state.pod_shapes import ShapeEntry

#: Units examined on one node: the cheapest ones.
_EXAMINED_MAX: Final = 64
_Cost: TypeAlias = tuple[int, int, int, int]
"""Of a step: gangs broken, pods evicted per pod that fits then (in thousandths), the highest
priority, gangs that end.
"""


_Entry: TypeAlias = tuple[_Cost, int, int, tuple[Unit, ...], int]
"""A possible step: its cost, the rank and slot of the node, its units, and how often the node had
changed when the step was computed.
"""


class _EstimatedCounts:
    """How many pods of one shape nodes could hold, by amounts alone, while steps are chosen."""

    def __init__(
        self, session: "Session", shape: "ShapeEntry", usable: "Bools", devices: "DeviceAmounts"
    ) -> None:
        self.usable = usable
        #: How many more pods fit than at the beginning.
        self.gained = 0
        #: How many would fit, by slot of the nodes that were examined.
        self.counts: dict[int, int] = {}
        self._free: dict[int, dict[int, int]] = {}
        #: What one pod takes, by row.
        self.pairs = devices.pairs(shape)
        self._now: list[int] = session.fits.counts(shape).tolist()
        cells = session.node_capacity.free.cells[:, : len(usable)]
        self._cells: list[tuple[int, list[int]]] = [
            (row, (cells[row] if row >= 0 else devices.free(row)).tolist()) for row, _ in self.pairs
        ]

    def on(self, slot: int) -> tuple[int, dict[int, int]]:
        """How many fit on a node, and the free amounts there, by resource row."""
        free = self._free.get(slot)
        if free is None:
            free = self._free[slot] = {row: amounts[slot] for row, amounts in self._cells}
            self.counts[slot] = self._now[slot]
        return self.counts[slot], free

    def take(self, unit: Unit) -> None:
        """Count a unit as gone from all its nodes."""
        for slot, freed in unit.freed.items():
            if not self.usable[slot]:
                continue
            before, free = self.on(slot)
            for row in free:
                free[row] += freed.get(row, 0)
            fits = min((free[row] // amount for row, amount in self.pairs), default=before)
            self.counts[slot] = max(fits, before)
            self.gained += self.counts[slot] - before


class GreedySelection:
    """The units selected so far from one pool, on one trial of the node capacity."""

    def __init__(
        self,
        session: "Session",
        trial: "Trial",
        pool: "Sequence[Unit]",
        allowances: "Allowances",
        devices: "DeviceAmounts",
    ) -> None:
        self._devices = devices
        self._session = session
        self._trial = trial
        self._allowances = allowances
        self.taken: list[Unit] = []
        self._chosen: set[int] = set()
        #: Counts what was taken or undone on a node.
        self._changes: dict[int, int] = {}
        self._estimate: _EstimatedCounts
        self._on: defaultdict[int, list[Unit]] = defaultdict(list)
        for unit in pool:
            for slot in unit.freed:
                self._on[slot].append(unit)

    def until(self, shape: "ShapeEntry", wanted: int, avoid: "Ints") -> bool:
        """Take units until `wanted` pods of the shape fit; False: there are not enough.

        Steps are estimated by amounts first, and taken together; nodes that hold fewer pods than
        estimated are not used, and the units on them are not evicted.
        """
        fits = self._session.fits
        usable = fits.masks.mask(shape).copy()
        usable[avoid] = False
        excluded = int(fits.counts(shape)[avoid].sum()) if len(avoid) else 0
        while (missing := wanted + excluded - fits.total(shape)) > 0:
            if self._session.exhausted:
                return False
            self._estimate = _EstimatedCounts(self._session, shape, usable, self._devices)
            steps = self._count(missing)
            self._trial.take_away([member for unit in steps for member in unit.members])
            counts = fits.counts(shape)
            wrong = [slot for slot, count in self._estimate.counts.items() if counts[slot] < count]
            if not wrong:
                return fits.total(shape) - excluded >= wanted
            usable[wrong] = False
            self.undo([unit for unit in steps if not any(usable[slot] for slot in unit.freed)])
        return True

    def _count(self, missing: int) -> list[Unit]:
        """Choose steps, the cheapest first, until as many more pods fit as are missing."""
        estimate = self._estimate
        rank = self._session.node_capacity.nodes.rank()
        heap: list[_Entry] = []
        for slot in self._on:
            if estimate.usable[slot]:
                self._push(heap, int(rank[slot]), slot)
        steps: list[Unit] = []
        while heap and estimate.gained < missing:
            _, place, slot, units, change = heapq.heappop(heap)
            if change == self._changes.get(slot, 0) and self._allowances.allows_all(units):
                for unit in units:
                    self._note(unit)
                    estimate.take(unit)
                    steps.append(unit)
                self._session.work_left -= len(self._on[slot])
            # Otherwise a unit of the step has been taken, or its gang may lose no more.
            self._push(heap, place, slot)
        return steps

    def _push(self, heap: "list[_Entry]", place: int, slot: int) -> None:
        cost, units = self._step(slot)
        if units:
            heapq.heappush(heap, (cost, place, slot, units, self._changes.get(slot, 0)))

    def take_all(self, units: "Sequence[Unit]") -> None:
        """Take as many of these as may be taken together, in their order: a whole gang may follow
        single members of it.
        """
        members: list[Member] = []
        for unit in units:
            if id(unit) not in self._chosen and self._allowances.allows(unit):
                self._note(unit)
                members += unit.members
        self._trial.take_away(members)

    def take(self, units: "Sequence[Unit]") -> None:
        for unit in units:
            self._note(unit)
            self._trial.take_away(unit.members)

    def clear(self) -> None:
        self._trial.put_back([member for unit in self.taken for member in unit.members])
        for unit in self.taken:
            self._allowances.add(unit, -1)
        self.taken.clear()
        self._chosen.clear()

    def undo(self, units: "Sequence[Unit]") -> None:
        for unit in units:
            self.taken.remove(unit)
            self._chosen.discard(id(unit))
            self._allowances.add(unit, -1)
            lost = self._allowances.lost(unit)
            self._changed(unit)
            if not (lost.whole or (unit.whole and lost.count)):
                self._trial.put_back(unit.members)
                continue
            # Single members of the gang were taken before all of it was.
            same = [other for other in self.taken if other.gang is unit.gang]
            kept = {member.pod.uid for other in same for member in other.members}
            self._trial.put_back([member for member in unit.members if member.pod.uid not in kept])

    def _note(self, unit: Unit) -> None:
        self.taken.append(unit)
        self._chosen.add(id(unit))
        self._allowances.add(unit)
        self._changed(unit)

    def _changed(self, unit: Unit) -> None:
        for slot in unit.freed:
            self._changes[slot] = self._changes.get(slot, 0) + 1

    def needed(self, unit: Unit, shape: "ShapeEntry", spare: int) -> bool:
        """Whether fewer pods of the shape than are wanted fit without it, by amounts alone, when
        `spare` more fit than are wanted.
        """
        counts = self._session.fits.counts(shape)
        cells = self._session.node_capacity.free.cells
        for slot, freed in unit.freed.items():
            has = int(counts[slot])
            without = min(
                (int(cells[row, slot]) - freed.get(row, 0)) // amount for row, amount in shape.pairs
            )
            spare -= has - min(max(without, 0), has)
        return spare < 0

    def _step(self, slot: int) -> tuple[_Cost, tuple[Unit, ...]]:
        """The cheapest units without which one more pod fits on a node; empty: there are none."""
        counts, free = self._estimate.on(slot)
        short = {
            row: lacking
            for row, amount in self._estimate.pairs
            if (lacking := (counts + 1) * amount - free[row]) > 0
        }
        on, chosen = self._on[slot], self._chosen
        left = islice((unit for unit in on if id(unit) not in chosen), _EXAMINED_MAX)
        there: list[Unit] = []
        for unit in left:
            there.append(unit)
            if not (_covers(unit.freed[slot], short) and self._allowances.allows(unit)):
                continue
            units: tuple[Unit, ...] = (unit,)
            cost = self._cost(units, slot)
            if len(unit.members) > 1:
                smaller = [other for other in (*there, *left) if _is_gentler(other, unit)]
                several = self._several(smaller, slot, short)
                if several:
                    others = self._cost(several, slot), several
                    return others if others[0] < cost else (cost, units)
            return cost, units
        units = self._several(there, slot, short)
        return self._cost(units, slot), units

    def _cost(self, units: "Sequence[Unit]", slot: int) -> _Cost:
        pairs = self._estimate.pairs
        counts, free = self._estimate.on(slot)
        if len(units) == 1:
            (unit,) = units
            gain = _fitting(pairs, free, unit.freed[slot]) - counts
            pods = len(unit.members) * 1000 // max(gain, 1)
            return unit.breaks, pods, unit.gang.priority, unit.whole
        freed: dict[int, int] = {}
        for unit in units:
            add_amounts(freed, unit.freed[slot].items())
        gain = max(_fitting(pairs, free, freed) - counts, 1)
        return (
            sum(unit.breaks for unit in units),
            sum(len(unit.members) for unit in units) * 1000 // gain,
            max((unit.gang.priority for unit in units), default=0),
            sum(unit.whole for unit in units),
        )

    def _several(self, there: list[Unit], slot: int, short: dict[int, int]) -> tuple[Unit, ...]:
        """Units that suffice together; those that free the most per pod come first."""
        left = dict(short)
        chosen: list[Unit] = []
        others = list(there)
        while any(amount > 0 for amount in left.values()):
            unit = self._best(others, slot, left)
            if unit is None:
                break
            others.remove(unit)
            chosen.append(unit)
            self._allowances.add(unit)
            for row, amount in unit.freed[slot].items():
                if row in left:
                    left[row] -= amount
        for unit in chosen:
            self._allowances.add(unit, -1)
        return () if any(amount > 0 for amount in left.values()) else tuple(chosen)

    def _best(self, units: list[Unit], slot: int, left: dict[int, int]) -> Unit | None:
        """The unit that frees the most of the missing amounts per pod, the first of equals."""
        best: Unit | None = None
        most = 0
        rated: dict[int, int] = {}
        for unit in units:
            rate = rated.get(unit.kind)
            if rate is None:
                relief = _relief(unit.freed[slot], left) // len(unit.members)
                rate = rated[unit.kind] = relief
            if rate > most and self._allowances.allows(unit):
                best, most = unit, rate
        return best


def _fitting(pairs: "Pairs", free: dict[int, int], freed: dict[int, int]) -> int:
    """How many pods fit into the amounts that are free, plus those freed."""
    most = None
    for row, amount in pairs:
        times = (free[row] + freed.get(row, 0)) // amount
        if most is None or times < most:
            most = times
    return 1 if most is None else most


def _is_gentler(unit: Unit, other: Unit) -> bool:
    """Whether several units, this one among them, may do less harm than the other one alone."""
    return len(unit.members) < len(other.members) and not unit.breaks


def _covers(freed: dict[int, int], short: dict[int, int]) -> bool:
    return all(freed.get(row, 0) >= amount for row, amount in short.items())


def _relief(freed: dict[int, int], left: dict[int, int]) -> int:
    """How much of the missing amounts it frees, in millionths, summed over resources."""
    return sum(
        min(freed.get(row, 0), amount) * 1_000_000 // amount
        for row, amount in left.items()
        if amount > 0
    )
