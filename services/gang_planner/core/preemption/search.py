"""Finds the cheapest pods whose eviction lets a gang be placed, and proves that it does.

Least harm first: members above the quorum of their gangs and single pods, then whole gangs; last,
where policies leave it to the API server, pods that a PodDisruptionBudget protects. At each level
of harm, the lowest priority that may suffice by amounts (`upper_bounds`); at that priority as few
pods as possible. They are selected node by node (`greedy_selection`) and proven by the ordinary
search for placements on the capacity without them; then each that is not needed is left out. With
few candidates every cheaper choice is examined, so that small cases are exact (`exact_search`).

No pod is evicted for a gang that will fit when the pods that are already leaving have left.

Which pods may be evicted depends on the members that need them:

* members that a gang needs to start: members above minima of their gangs, and whole gangs;
* members that a started gang lacks of its minima: members above minima, and single pods;
* members above its minimum: by preempt no pod, by reclaim members above minima.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.eviction_rules import Preemptor, VictimRules
from services.gang_planner.core.framework.statement import Allocation
from services.gang_planner.core.placement import gang_placement
from services.gang_planner.core.placement.attempt import Attempt, Group, PlacementRequest
from services.gang_planner.core.placement.gang_placement import Refusal
from services.gang_planner.core.placement.members import MembersRequest, place_members
from services.gang_planner.core.preemption.candidates import VictimCandidates, claims_of
from services.gang_planner.core.preemption.constraints import (
    Allowances,
    BudgetLedger,
    Budgets,
    DominantShareLedger,
    FairShareLedger,
    Ledger,
)
from services.gang_planner.core.preemption.device_amounts import DeviceAmounts
from services.gang_planner.core.preemption.exact_search import Cost, ExactSearch, is_small
from services.gang_planner.core.preemption.greedy_selection import GreedySelection
from services.gang_planner.core.preemption.trial import Trial
from services.gang_planner.core.preemption.units import Unit, members_of, work_s
from services.gang_planner.core.preemption.upper_bounds import PoolBound, ShapeRequest, UpperBound
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.needs import Need, amounts_of_first
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.invariants import required

#: Proofs in one search; a gang of thousands needs few, because most of its victims are counted off.
_PROOFS_MAX: Final = 400
#: Below every priority: that of no unit.
_LOWEST: Final = -(2**62)
#: Victims of one decision: with its bindings they fit into a message.
VICTIMS_MAX: Final = 2_000


class FoundVictims(NamedTuple):
    """The pods to evict, and where the gang is placed then; without victims it only has to wait."""

    victims: list[Member]
    allocations: tuple[Allocation, ...]


class VictimSearch:
    def __init__(
        self,
        work: CycleContext,
        preemptor: Preemptor,
        need: Need,
        rules: VictimRules,
        candidates: VictimCandidates,
        units: list[Unit] | None = None,
    ) -> None:
        """`units`: members of the gang itself that may be evicted for it; None: all candidates that
        the gang may evict.
        """
        self._state = work.state
        self._session = work.session
        self._preemptor = preemptor
        self._need = need
        self._rules = rules
        self._candidates = candidates
        self._units = candidates.of(preemptor) if units is None else units
        self._swaps = units is not None
        self._trial = Trial(work.state, claims_of(work.state.shapes, need))
        self._budgets = Budgets(work.state, candidates.budgets)
        self._proofs_left = _PROOFS_MAX
        self._avoid = work.state.nodes.slots_of(need.avoid)
        self._wanted = need.quorum
        #: Evictions anywhere help, because its queue, or one above it, is full.
        self._anywhere = preemptor.gang.queue.exceeded_by(need.amounts(work.session.shapes))
        self._requests: list[ShapeRequest] = []
        self._devices = DeviceAmounts(work.state.node_capacity.devices, None, ())
        #: The units chosen last, and where the gang is placed without them; None: not known.
        self._placed: tuple[list[Unit], tuple[Allocation, ...]] | None = None
        #: It ended by its budget: whether evictions would help is not known.
        self.budget_exceeded = False

    def run(self) -> FoundVictims | None:
        """Search without lasting changes; None: no evictions help, or none are found."""
        self._session.work_left -= len(self._units)
        if not self._units:
            return None
        with self._trial as trial:
            trial.take_away(self._candidates.leaving)
            for wanted, units in self._stages():
                self._wanted = wanted
                chosen = self._of(units) if units else None
                if chosen is not None or self._out_of_budget():
                    return chosen
        return None

    def _stages(self) -> Iterator[tuple[int, list[Unit]]]:
        """How many members to place, and the units that may be evicted for them: the quorum; for a
        started gang the members that it lacks, as many as possible; then members above its minima.
        Without a declared minimum, each member counts by itself.
        """
        need, units = self._need, self._units
        if need.quorum:
            yield need.quorum, units
            return
        above_minima = [unit for unit in units if not unit.whole]
        wanted = sum(count for _, _, count in need.wanted)
        lacking = [unit for unit in units if not unit.whole or unit.single]
        for amount in _halves(min(need.lacking, wanted)):
            yield amount, lacking
        if need.one_by_one and not self._swaps:
            for amount in _halves(wanted):
                yield amount, units
            return
        if self._preemptor.kind == "reclaim" or self._swaps:
            for amount in _halves(wanted):
                yield amount, above_minima

    def _of(self, units: list[Unit]) -> FoundVictims | None:
        there = self._proven()
        if there is not None:
            return FoundVictims([], there)
        ledgers: list[Ledger] = []
        amounts = amounts_of_first(self._need.wanted, self._wanted, self._session.shapes)
        self._requests = self._requests_now()
        if self._preemptor.kind == "reclaim":
            queue = self._preemptor.gang.queue
            filled = queue.filled_above(amounts)
            if filled is None:
                return None
            fair = FairShareLedger(queue, self._lacking(amounts), self._rules.levels, filled)
            ledgers.append(fair)
            units = fair.givers(units)
        elif "share" in self._rules.entitles:
            shares = DominantShareLedger(
                self._state, self._preemptor.gang, amounts, self._session.totals
            )
            ledgers.append(shares)
            units = [unit for unit in units if shares.allows(unit)]
        pool = self._devices.with_devices(self._helpful(units))
        taken = self._greedy(pool, ledgers)
        if is_small(pool):
            taken = self._exact(pool, ledgers, taken)
        return self._found(taken) if taken else None

    def _lacking(self, amounts: dict[int, int]) -> set[int]:
        """The resources of which the gang lacks an amount on all its nodes together, or in the
        limits of its queues. All that it wants if it lacks none: what is free is in small parts.
        """
        usable = self._usable()
        free = self._session.node_capacity.free.cells[:, : len(usable)]
        lacking = {
            row
            for row, amount in amounts.items()
            if int(free[row][usable].clip(min=0).sum()) < amount
        }
        for shortage in self._preemptor.gang.queue.shortages(amounts, promised=False):
            lacking |= shortage.over.keys()
        return lacking or set(amounts)

    def _usable(self) -> Bools:
        """One flag per slot: whether any shape of the gang may use the node."""
        usable: Bools = np.logical_or.reduce([request.usable for request in self._requests])
        return usable

    def _requests_now(self) -> list[ShapeRequest]:
        """How many of each shape must fit, whichever members are placed."""
        groups = Attempt(self._session, self._request).groups
        shapes = [group.shape for group in groups]
        devices = self._state.node_capacity.devices
        self._devices = DeviceAmounts(devices, self._trial.consumers, shapes)
        requests: list[ShapeRequest] = []
        for group in groups:
            others = sum(other.wanted for other in groups if other is not group)
            least = max(self._wanted - others, 0)
            for role, count in self._need.minima:
                same = sum(g.wanted for g in groups if g is not group and g.role == role)
                least = max(least, count - same if role == group.role else 0)
            requests.append(
                ShapeRequest(self._session, group.shape, least, self._avoid, self._devices)
            )
        return requests

    def _helpful(self, units: list[Unit]) -> list[Unit]:
        """Units on nodes that any shape of the gang may use."""
        if self._anywhere:
            return units
        usable = self._usable()
        if usable.all():
            return units
        flags: list[bool] = usable.tolist()
        return [unit for unit in units if any(flags[slot] for slot in unit.freed)]

    def _greedy(self, pool: list[Unit], ledgers: Sequence[Ledger]) -> list[Unit] | None:
        """Units that suffice, at the lowest level of harm that has enough of them."""
        guarded = self._budgets.any
        for keeps_budgets in (True, False) if guarded else (False,):
            if not keeps_budgets and guarded and self._rules.keeps_budgets:
                break
            some = pool
            if keeps_budgets:
                some = [unit for unit in pool if not self._budgets.violations(unit.members)]
            allowances = self._allowances(ledgers, keeps_budgets=keeps_budgets)
            gentle = [unit for unit in some if not unit.breaks]
            for level in (gentle, some) if len(gentle) < len(some) else (some,):
                taken = self._level(level, allowances)
                if taken or self._out_of_budget():
                    return taken
        return None

    def _allowances(self, ledgers: Sequence[Ledger], *, keeps_budgets: bool) -> Allowances:
        budgets = [BudgetLedger(self._budgets)] if keeps_budgets else []
        return Allowances([*ledgers, *budgets])

    def _exact(
        self, pool: Sequence[Unit], ledgers: Sequence[Ledger], known: list[Unit] | None
    ) -> list[Unit] | None:
        """The cheapest choice of few units; `known` is one that suffices."""
        keeps_budgets = self._rules.keeps_budgets and self._budgets.any
        allowances = self._allowances(ledgers, keeps_budgets=keeps_budgets)
        upper_bounds = [UpperBound(request, pool) for request in self._requests]
        exact = ExactSearch(
            pool, upper_bounds, self._cost, allowances, self._proven_without, self._preemptor.now_ms
        )
        choice = exact.better_than(known)
        self.budget_exceeded = choice is None and (self.budget_exceeded or exact.budget_exceeded)
        return choice

    def _proven_without(self, units: Sequence[Unit]) -> bool:
        members = members_of(units)
        self._trial.take_away(members)
        suffices = self._proven() is not None
        self._trial.put_back(members)
        return suffices

    def _found(self, taken: Sequence[Unit]) -> FoundVictims | None:
        members = members_of(taken)
        if len(members) > VICTIMS_MAX:
            return None
        if self._placed is not None and self._placed[0] is taken:
            return FoundVictims(members, self._placed[1])
        self._trial.take_away(members)
        allocations = self._proven()
        self._trial.put_back(members)
        rule = "were proven to suffice and do not"
        return FoundVictims(members, required(allocations, "victims", rule))

    def _level(self, pool: list[Unit], allowances: Allowances) -> list[Unit] | None:
        """The cheapest units of one level of harm; None: even all of them do not suffice."""
        if not pool:
            return None
        bound = PoolBound(pool, self._requests)
        if not bound.may_suffice() or not (self._by_amounts or self._proven_without(pool)):
            return None
        highest = _priority_of(bound, pool)
        lowest = [unit for unit in pool if unit.gang.priority <= highest]
        taken = self._cheapest(lowest, allowances)
        broken = 0 if taken is None else sum(unit.breaks for unit in taken)
        if len(lowest) < len(pool) and (taken is None or broken > 1):
            # Units of higher priority may suffice where these do not, or break fewer gangs.
            other = self._cheapest(pool, allowances)
            if taken is None or (other is not None and self._cost(other) < self._cost(taken)):
                return other
        return taken

    @property
    def _by_amounts(self) -> bool:
        """Whether amounts alone decide how many fit, so that no proof is needed."""
        need, shape = self._need, self._single()
        if shape is None or need.structure is not None or self._anywhere:
            return False
        return not (shape.pairwise or shape.attached or shape.shape.host_ports)

    def _cheapest(self, pool: Sequence[Unit], allowances: Allowances) -> list[Unit] | None:
        selection = GreedySelection(self._session, self._trial, pool, allowances, self._devices)
        self._grow(selection)
        proven = self._proven()
        if proven is None:
            self._add(selection, pool)
            proven = self._proven()
        if proven is None:
            selection.clear()
            return None
        chosen = len(selection.taken)
        self._leave_out(selection)
        taken = list(selection.taken)
        self._placed = (taken, proven) if len(taken) == chosen else None
        selection.clear()
        return taken

    def _grow(self, selection: GreedySelection) -> None:
        """Take units until every shape would fit, one shape after the other."""
        tried = Attempt(self._session, self._request)
        targets = _targets(tried.groups, self._need, self._wanted)
        targets = [(group, target) for group, target in targets if target]
        for place, (group, target) in enumerate(targets, 1):
            selection.until(group.shape, target, self._avoid)
            if place < len(targets):
                # The next shape is placed beside it.
                request = MembersRequest(
                    statement=tried.statement,
                    role=group.role,
                    shape=group.shape,
                    wanted=target,
                    avoid=self._avoid,
                )
                place_members(self._session, request)
        tried.statement.discard()

    def _add(self, selection: GreedySelection, pool: Sequence[Unit]) -> None:
        """Take more units where the estimated ones do not suffice (because of a topology, or a
        quota): the cheapest first, twice as many each time.
        """
        left = [unit for unit in pool if unit not in selection.taken]
        more = max(len(selection.taken), 1)
        while left and self._proven() is None and not self._out_of_budget():
            selection.take_all(left[:more])
            left = left[more:]
            more *= 2

    def _leave_out(self, selection: GreedySelection) -> None:
        """Leave out units that are not needed, the most costly first."""
        single = self._single()
        for unit in sorted(selection.taken, key=lambda unit: self._cost([unit]), reverse=True):
            if self._out_of_budget():
                return
            # Amounts show most units to be needed; only the remaining ones cost a proof.
            if single is not None:
                spare = self._session.fits.total(single) - self._wanted
                if selection.needed(unit, single, spare):
                    continue
            selection.undo([unit])
            if self._proven() is None:
                selection.take([unit])

    def _single(self) -> ShapeEntry | None:
        """The gang's shape, if it has only one."""
        if len(self._need.wanted) != 1:
            return None
        return self._session.shapes.entries[self._need.wanted[0][1]]

    def _cost(self, units: Sequence[Unit]) -> Cost:
        members = members_of(units) if len(units) > 1 else units[0].members if units else ()
        return (
            self._budgets.violations(members),
            len({unit.gang.key for unit in units if unit.breaks}),
            max((unit.gang.priority for unit in units), default=_LOWEST),
            len(members),
            sum(unit.whole for unit in units),
            max((unit.importance for unit in units), default=_LOWEST),
            sum(work_s(member, self._preemptor.now_ms) for member in members),
            sum(member.pod.restarts for member in members),
        )

    @property
    def _request(self) -> PlacementRequest:
        queue = self._preemptor.gang.queue
        return PlacementRequest(queue=queue, need=self._need, members_max=self._wanted)

    def _proven(self) -> tuple[Allocation, ...] | None:
        """Where the gang fits on the node capacity as it is now; None: nowhere."""
        self._proofs_left -= 1
        placement = gang_placement.place(self._session, self._request)
        if isinstance(placement, Refusal):
            self.budget_exceeded |= placement.budget_exceeded
            return None
        allocations = placement.statement.allocations
        placement.statement.discard()
        enough = sum(allocation.total for allocation in allocations) >= self._wanted
        return allocations if enough else None

    def _out_of_budget(self) -> bool:
        out = self._session.exhausted or self._proofs_left <= 0
        self.budget_exceeded |= out
        return out


def _halves(wanted: int) -> Iterator[int]:
    while wanted:
        yield wanted
        wanted //= 2


def _targets(groups: Sequence[Group], need: Need, wanted: int) -> list[tuple[Group, int]]:
    """How many of each role and shape are to fit, those that fit the least first."""
    ordered = sorted(groups, key=lambda group: group.plenty)
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


def _priority_of(bound: PoolBound, pool: Sequence[Unit]) -> int:
    """The lowest priority up to which units may suffice, where those of the whole pool do."""
    *lower, highest = sorted({unit.gang.priority for unit in pool})
    index = bisect_left(lower, True, key=bound.may_suffice)
    return lower[index] if index < len(lower) else highest
