"""Which units may be evicted together: from each gang its surplus or all of it, and as much as each
ledger allows.

* `BudgetLedger`: a PodDisruptionBudget allows as many evictions as its status says, less those of
  ours that are in flight;
* `FairShareLedger`, for reclaim: a queue loses pods only while it holds more than it deserves of
  what the gang lacks, and stays above its guarantee;
* `DominantShareLedger`: a gang loses pods only while its dominant share stays at least as large as
  that of the preemptor then is.

Every part of a permitted set is permitted: units can be undone in any order.

Two queues, or two gangs, cannot keep evicting each other. After a reclaim its queue deserves
everything that it holds, so nothing can be reclaimed from it in return. Each eviction by dominant
shares brings two of them closer to each other; no gang is evicted whole, because its share would be
zero.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from services.gang_planner.core.preemption.units import (
    NOTHING_TAKEN,
    TakenUnits,
    Unit,
    amounts_of,
)
from services.gang_planner.core.state.columns import add_amounts, dominant_share
from shared.model.terms import Labels, Selector, selects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from services.gang_planner.core.state.gangs import Gang, Member
    from services.gang_planner.core.state.planner_state import State
    from services.gang_planner.core.state.queues import QueueEntry
    from shared.model.gang_keys import GangKey
    from shared.model.reference_objects import Budget

#: Requirements of all budgets of a namespace: each is compared with each of its pods whose labels
#: differ, in a cycle that all tenants share.
REQUIREMENTS_MAX: Final = 1_000
_labels: Final = msgspec.msgpack.Decoder(Labels).decode


class Ledger(Protocol):
    """A limit on what is taken."""

    def allows(self, unit: Unit) -> bool:
        """Whether a unit may be taken besides those taken so far."""
        ...

    def add(self, unit: Unit, by: int = 1) -> None:
        """A unit is taken, or (-1) undone."""
        ...


class Allowances:
    """The units taken so far, and which others may be taken with them."""

    def __init__(self, ledgers: "Iterable[Ledger]" = ()) -> None:
        self._lost: dict[GangKey, TakenUnits] = {}
        self._ledgers = tuple(ledgers)

    @property
    def by_name(self) -> bool:
        """Whether it matters which of two pods with the same amounts is evicted."""
        return bool(self._ledgers)

    def allows(self, unit: Unit) -> bool:
        if not self._lost.get(unit.gang.key, NOTHING_TAKEN).allows(unit):
            return False
        return not self._ledgers or all(ledger.allows(unit) for ledger in self._ledgers)

    def allows_all(self, units: "Sequence[Unit]") -> bool:
        if len(units) == 1:
            return self.allows(units[0])
        taken: list[Unit] = []
        for unit in units:
            if not self.allows(unit):
                break
            self.add(unit)
            taken.append(unit)
        for unit in taken:
            self.add(unit, -1)
        return len(taken) == len(units)

    def add(self, unit: Unit, by: int = 1) -> None:
        lost = self._lost.get(unit.gang.key)
        if lost is None:
            lost = self._lost[unit.gang.key] = TakenUnits()
        lost.add(unit, by)
        for ledger in self._ledgers:
            ledger.add(unit, by)

    def lost(self, unit: Unit) -> TakenUnits:
        """The units taken from a unit's gang."""
        return self._lost.get(unit.gang.key, NOTHING_TAKEN)


class Budgets:
    """All budgets of the cluster, for one search."""

    def __init__(self, state: "State", matched: "dict[tuple[str, bytes], tuple[str, ...]]") -> None:
        """`matched`: the budgets that select pods of a namespace with these labels, as far as other
        searches of the cycle have found them.
        """
        self._by_namespace: dict[str, list[Budget]] = {}
        #: How many more evictions each allows, by UID.
        self._left: dict[str, int] = {}
        for uid in sorted(state.reference_objects.budgets):
            budget = state.reference_objects.budgets[uid]
            self._by_namespace.setdefault(budget.namespace, []).append(budget)
            self._left[uid] = budget.disruptions_allowed
        for namespace, budgets in self._by_namespace.items():
            selectors = (budget.selector for budget in budgets if budget.selector is not None)
            if sum(len(selector.requirements) for selector in selectors) > REQUIREMENTS_MAX:
                # As one that is too large (`bounds`), they protect all pods of the namespace.
                first = msgspec.structs.replace(budgets[0], selector=Selector())
                self._by_namespace[namespace] = [first]
                self._left[first.uid] = 0
        self._matched = matched
        if self._by_namespace:
            pods_in_flight = [state.members.get(uid) for uid in state.preemptions.victims]
            for member in pods_in_flight:
                if member is not None and member.slot is not None and not member.pod.deleting:
                    for uid in self.of(member):
                        self._left[uid] -= 1

    @property
    def any(self) -> bool:
        return bool(self._by_namespace)

    def violations(self, victims: "Iterable[Member]") -> int:
        """How many of these pods exceed the budgets; one that exceeds two budgets counts twice."""
        if not self._by_namespace:
            return 0
        taken = Counter(uid for member in victims for uid in self.of(member))
        return sum(max(count - self.left(uid), 0) for uid, count in taken.items())

    def left(self, uid: str) -> int:
        """How many more evictions a budget allows."""
        return max(self._left[uid], 0)

    def of(self, member: "Member") -> tuple[str, ...]:
        """UIDs of the budgets that select a pod."""
        budgets = self._by_namespace.get(member.pod.namespace)
        if not budgets:
            return ()
        key = member.pod.namespace, member.pod.labels
        uids = self._matched.get(key)
        if uids is None:
            labels = dict(_labels(member.pod.labels)) if member.pod.labels else {}
            uids = self._matched[key] = tuple(
                budget.uid
                for budget in budgets
                if budget.selector is not None and selects(budget.selector, labels)
            )
        return uids


class BudgetLedger:
    """No PodDisruptionBudget is violated."""

    def __init__(self, budgets: "Budgets") -> None:
        self._budgets = budgets
        self._taken: Counter[str] = Counter()

    def allows(self, unit: Unit) -> bool:
        hits = Counter(uid for member in unit.members for uid in self._budgets.of(member))
        return all(
            self._taken[uid] + count <= self._budgets.left(uid) for uid, count in hits.items()
        )

    def add(self, unit: Unit, by: int = 1) -> None:
        for member in unit.members:
            for uid in self._budgets.of(member):
                self._taken[uid] += by


class DominantShareLedger:
    def __init__(
        self, state: "State", gang: "Gang", wanted: dict[int, int], totals: "Sequence[int]"
    ) -> None:
        """`wanted`: the amounts that the gang would gain, by resource row; `totals`: the
        cluster's.
        """
        self._state = state
        self._totals = totals
        own = self._held_of(gang)
        add_amounts(own, wanted.items())
        self._own = dominant_share(own, totals)
        #: Amounts that gangs hold without the units taken, by gang; filled on demand.
        self._held: dict[GangKey, dict[int, int]] = {}

    def allows(self, unit: Unit) -> bool:
        held = dict(self._of(unit.gang))
        add_amounts(held, unit.amounts.items(), -1)
        return dominant_share(held, self._totals) >= self._own

    def add(self, unit: Unit, by: int = 1) -> None:
        add_amounts(self._of(unit.gang), unit.amounts.items(), -by)

    def _of(self, gang: "Gang") -> dict[int, int]:
        held = self._held.get(gang.key)
        if held is None:
            held = self._held[gang.key] = self._held_of(gang)
        return held

    def _held_of(self, gang: "Gang") -> dict[int, int]:
        """Amounts that a gang holds, without pods whose eviction is decided."""
        held = self._state.shapes.sums(gang.held.items())
        victims = self._state.preemptions.victims
        if victims:
            going = [
                member for uid, member in gang.members.items() if uid in victims and member.charged
            ]
            add_amounts(held, amounts_of(going).items(), -1)
        return held


class FairShareLedger:
    """What one gang may take from other queues; a `Ledger`."""

    def __init__(
        self,
        own: "QueueEntry",
        rows: "Iterable[int]",
        levels: int | None,
        filled: "Sequence[QueueEntry]" = (),
    ) -> None:
        """`rows`: the resources that the gang lacks. `levels`: how many queues above a victim's
        must hold more than they deserve, too; None: all. `filled`: queues above `own` that must not
        hold more than now.
        """
        self._own = own
        self._filled = filled
        self._levels = levels
        self._rows = sorted(rows)
        #: Queues that would lose something, by the name of the gang's.
        self._lines: dict[str, tuple[_Line, ...]] = {}
        self._by_queue: dict[str, _Line] = {}

    def givers(self, pool: "Iterable[Unit]") -> list[Unit]:
        """Units of queues that may give anything."""
        return [
            unit
            for unit in pool
            if all(queue in unit.gang.queue.chain for queue in self._filled)
            and any(line.asked for line in self._of(unit))
            and all(line.has_too_much for line in self._of(unit))
        ]

    def allows(self, unit: Unit) -> bool:
        block = amounts_of(unit.members[unit.source.surplus :]) if unit.whole else unit.amounts
        return all(line.gives(unit.amounts, block) for line in self._of(unit))

    def add(self, unit: Unit, by: int = 1) -> None:
        block = amounts_of(unit.members[unit.source.surplus :]) if unit.whole else unit.amounts
        for line in self._of(unit):
            line.add(unit.amounts, block, by)

    def _of(self, unit: Unit) -> "tuple[_Line, ...]":
        queue = unit.gang.queue
        lines = self._lines.get(queue.name)
        if lines is None:
            # Up to where both belong to one queue: what that holds stays the same.
            chain = [above for above in queue.chain if above not in self._own.chain]
            if self._own in queue.chain:
                chain = []
            for height, above in enumerate(chain):
                if above.name not in self._by_queue:
                    asked = self._levels is None or height <= self._levels
                    self._by_queue[above.name] = _Line(above, self._rows, asked=asked)
            lines = self._lines[queue.name] = tuple(self._by_queue[above.name] for above in chain)
        return lines


class _Line:
    """A queue that would lose something.

    It gives a unit while it holds more than it deserves of something that the gang lacks. Taken in
    the best order, that is: all but the largest of what it gives must leave it with more.
    """

    def __init__(self, entry: "QueueEntry", rows: "Sequence[int]", *, asked: bool) -> None:
        """`asked`: it must have too much; else only its guarantee counts."""
        deserved = entry.deserved
        #: Whether it has a share of what is asked for.
        self.asked = asked and any(row in deserved for row in rows)
        #: By how much it holds more than it deserves, of what is asked for.
        self._over = {
            row: entry.used.get(row, 0) - deserved[row] for row in rows if row in deserved
        }
        self._spare = {
            row: entry.used.get(row, 0) - least for row, least in entry.guarantee.items()
        }
        self._lost: dict[int, int] = {}
        self._blocks: list[dict[int, int]] = []
        self._largest: dict[int, int] = {}

    @property
    def has_too_much(self) -> bool:
        """Whether it gives anything."""
        return not self.asked or any(over > 0 for over in self._over.values())

    def gives(self, amounts: dict[int, int], block: dict[int, int]) -> bool:
        """Whether it gives these amounts, too; `block`: the last of them, all at once."""
        lost, largest = self._lost, self._largest
        if self.asked and not any(
            lost.get(row, 0) + amounts[row] - max(largest.get(row, 0), block.get(row, 0)) < over
            for row, over in self._over.items()
            if amounts.get(row, 0)
        ):
            return False
        return all(
            row not in amounts or lost.get(row, 0) + amounts[row] <= spare
            for row, spare in self._spare.items()
        )

    def add(self, amounts: dict[int, int], block: dict[int, int], by: int) -> None:
        """These amounts were taken, or (-1) given back."""
        add_amounts(self._lost, amounts.items(), by)
        if by > 0:
            self._blocks.append(block)
            for row, amount in block.items():
                self._largest[row] = max(self._largest.get(row, 0), amount)
            return
        self._blocks.remove(block)
        for row, amount in block.items():
            if amount == self._largest[row]:
                self._largest[row] = max((block.get(row, 0) for block in self._blocks), default=0)
