"""Upper bounds, by amounts alone, of how often shapes fit without some pods."""

from collections.abc import Sequence
from operator import add

import numpy as np

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.preemption.device_amounts import DeviceAmounts, free_amounts
from services.gang_planner.core.preemption.units import Unit
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.invariants import required


class ShapeRequest:
    """How many pods of a shape must fit at least, and the nodes that they may use."""

    def __init__(
        self,
        session: Session,
        shape: ShapeEntry,
        least: int,
        avoid: Ints,
        devices: DeviceAmounts,
    ) -> None:
        self.devices = devices
        #: What one pod takes, by row.
        self.pairs = devices.pairs(shape)
        self._column: Ints = np.array([amount for _, amount in self.pairs]).reshape(-1, 1)
        self.least = least
        usable: Bools = session.fits.masks.mask(shape).copy()
        usable[avoid] = False
        #: One flag per slot.
        self.usable = usable
        session.node_capacity.fit_cells()
        #: Free amounts, by row of the pairs and slot.
        self.free: Ints = free_amounts(
            session.node_capacity.free.cells, self.pairs, devices, len(usable)
        )

    def counts(self, free: Ints) -> Ints:
        """How many fit on each node if these amounts are free."""
        if not self.pairs:
            return np.where(self.usable, self.least, 0)
        counts: Ints = (free // self._column).min(axis=0)
        return np.where(self.usable, np.maximum(counts, 0), 0)


class PoolBound:
    """The bound for a whole pool, computed by arrays."""

    def __init__(self, pool: Sequence[Unit], requests: Sequence[ShapeRequest]) -> None:
        # Each pod counts once: as a single member, else in its whole gang, else in a part of it.
        wholes = {unit.gang.key for unit in pool if unit.whole and not unit.source.surplus}
        members = (
            (member, unit.gang.priority)
            for unit in pool
            if not (unit.whole and unit.source.surplus)
            and not (unit.part is not None and unit.gang.key in wholes)
            for member in unit.members
        )
        self._requests = requests
        #: Where pods of one priority and shape are.
        self._slots: dict[tuple[int, ShapeEntry], list[int]] = {}
        #: (slot, number) of devices that pods of one priority free at most, by row.
        self._devices: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for member, priority in members:
            slot = required(member.slot, member.pod.uid, "is on no node")
            self._slots.setdefault((priority, member.shape), []).append(slot)
            if member.shape.shape.device_claims and requests:
                for row, number in requests[0].devices.of_pod(member.pod.uid).items():
                    self._devices.setdefault((priority, row), []).append((slot, number))

    def may_suffice(self, priority: int | None = None) -> bool:
        """Whether enough could fit without all units up to a priority; None: without all."""
        amounts: dict[int, Ints] = {}
        for request in self._requests:
            free = request.free.copy()
            for at, (row, _) in enumerate(request.pairs):
                if row not in amounts:
                    amounts[row] = self._freed(row, priority, free.shape[1])
                free[at] += amounts[row]
            if int(request.counts(free).sum()) < request.least:
                return False
        return True

    def _freed(self, row: int, priority: int | None, size: int) -> Ints:
        freed = np.zeros(size, dtype=np.int64)
        if row < 0:
            for (of_priority, of), places in self._devices.items():
                if of == row and (priority is None or of_priority <= priority):
                    for slot, number in places:
                        freed[slot] += number
            return freed
        for (of_priority, shape), slots in self._slots.items():
            amount = shape.by_row.get(row, 0)
            if amount and (priority is None or of_priority <= priority):
                freed += np.bincount(slots, minlength=size) * amount
        return freed


class UpperBound:
    """The bound for few units, which are taken one by one in the order of their pool."""

    def __init__(self, request: ShapeRequest, pool: Sequence[Unit]) -> None:
        slots = sorted({slot for unit in pool for slot in unit.freed if request.usable[slot]})
        self._pairs = request.pairs
        #: Amounts free now, in the order of the shape's resources, by slot.
        self._free: dict[int, list[int]] = {slot: request.free[:, slot].tolist() for slot in slots}
        counts = request.counts(request.free)
        self._wanted = request.least - int(counts.sum()) + int(counts[slots].sum())
        #: The amounts that each unit frees there, by its identity.
        self._freed = {id(unit): self._left_by(unit) for unit in pool}
        #: The amounts that all units from an index on free.
        self._rest: list[dict[int, list[int]]] = [{}]
        for unit in reversed(pool):
            rest = dict(self._rest[-1])
            for slot, amounts in self._freed[id(unit)].items():
                rest[slot] = list(map(add, rest.get(slot, [0] * len(amounts)), amounts))
            self._rest.append(rest)
        self._rest.reverse()
        #: The most that one pod frees of each resource.
        self._most = [
            max(
                (_left_by_pod(request, member, row) for unit in pool for member in unit.members),
                default=0,
            )
            for row, _ in self._pairs
        ]

    def free(self, unit: Unit, sign: int = 1) -> None:
        """Count a unit as gone, or (-1) as back."""
        for slot, amounts in self._freed[id(unit)].items():
            free = self._free[slot]
            for at, amount in enumerate(amounts):
                free[at] += sign * amount

    def may_suffice(self, at: int) -> bool:
        """Whether enough could fit without all units from this index on."""
        rest = self._rest[at]
        total = 0
        for slot, free in self._free.items():
            more = rest.get(slot)
            total += self._count(free if more is None else list(map(add, free, more)))
        return total >= self._wanted

    def pods_missing(self) -> int:
        """How many more pods must be evicted at least."""
        counts = {slot: self._count(free) for slot, free in self._free.items()}
        missing = self._wanted - sum(counts.values())
        if missing <= 0:
            return 0
        pods = 1
        for at, (_, amount) in enumerate(self._pairs):
            steps: list[int] = []
            for slot, free in self._free.items():
                before = 0
                for more in range(1, missing + 1):
                    lacking = max((counts[slot] + more) * amount - free[at], 0)
                    steps.append(lacking - before)
                    before = lacking
            lacking = sum(sorted(steps)[:missing])
            if self._most[at]:
                pods = max(pods, -(-lacking // self._most[at]))
        return pods

    def _count(self, free: Sequence[int]) -> int:
        least = min(
            (left // amount for left, (_, amount) in zip(free, self._pairs, strict=True)),
            default=self._wanted,
        )
        return max(least, 0)

    def _left_by(self, unit: Unit) -> dict[int, list[int]]:
        return {
            slot: [amounts.get(row, 0) for row, _ in self._pairs]
            for slot, amounts in unit.freed.items()
            if slot in self._free
        }


def _left_by_pod(request: ShapeRequest, member: Member, row: int) -> int:
    if row < 0:
        return request.devices.of_pod(member.pod.uid).get(row, 0)
    return member.shape.by_row.get(row, 0)
