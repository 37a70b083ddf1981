"""Chooses devices of one node for claims: for all claims of a pod, or of several pods, together.

Requests for a number of ordinary devices are assigned by augmenting paths (`assign`). All other
claims are searched: one device after the other is picked for one request after the other, in the
order in which the claims state them, and the last pick is undone where none is left for the next.
A device is not tried in place of an equal one that failed. The search is exhaustive, unless it ends
after a number of steps; then it is not known whether the devices suffice.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.columns import add_amounts
from services.gang_planner.core.state.devices.capacity import consumption
from services.gang_planner.core.state.devices.demand import (
    DEVICES_MAX,
    Alternative,
    Amounts,
    ClaimNeed,
    Pick,
)
from services.gang_planner.core.state.devices.device_table import Counter, DeviceEntry, Pool
from services.gang_planner.core.state.devices.grants import DeviceGrants
from services.gang_planner.core.state.devices.inventory import Shares
from services.gang_planner.core.state.devices.selection import (
    Device,
    DeviceRequirement,
    SelectorFailure,
)
from services.gang_planner.core.state.devices.vacated import AllocatedDevices
from services.gang_planner.core.state.taints import tolerates
from shared.model.devices import DeviceConstraint, DeviceTaint, DeviceToleration

#: Devices that are tried in one search. An ordinary claim takes as many as it requests.
STEPS_MAX: Final = 2_000

#: Alternatives of a request; Kubernetes allows no more.
ALTERNATIVES_MAX: Final = 8

Values: TypeAlias = frozenset[tuple[type, bool, bool | int | str]]
"""The values of an attribute, with their types; empty: the device does not have it."""

Problem: TypeAlias = tuple[ClaimNeed, ...]


class DevicesOfNode:
    """The devices of one node, and their use by claims in the cluster and by chosen devices."""

    def __init__(
        self,
        grants: DeviceGrants,
        allocated: AllocatedDevices,
        slot: int,
        without: Container[Key] = (),
    ) -> None:
        """The grants must be refreshed. `without`: claims whose chosen devices count as free."""
        self._inventory = grants.inventory
        self._allocated = allocated
        self._grants = grants
        self._without = without
        self._slot, self._node = slot, grants.nodes.names[slot]

    @property
    def unsettled_pool(self) -> str:
        """A pool of the node that is being updated or is invalid; "": none."""
        table, within = self._inventory.table, self._inventory.within
        own_pool = table.unsettled_on.get(self._node, "")
        wide = (pool for reach, pool in table.unsettled_wide if within(reach)[self._slot])
        return own_pool or next(wide, "")

    def matching(self, requirement: DeviceRequirement) -> Sequence[DeviceEntry]:
        """The devices that the requirement may get, whether free or not, in order."""
        matches = self._inventory.matches(requirement)
        local = matches.on.get(self._node, [])
        wide = [entry for entry in matches.wide if self._inventory.within(entry.reach)[self._slot]]
        entries = [*local, *wide] if wide else local
        if self._inventory.table.conditional:
            # Pods wait for the conditions of these.
            entries = sorted(entries, key=lambda entry: bool(entry.details.binding_conditions))
        return entries

    def failure(self, requirement: DeviceRequirement) -> SelectorFailure | None:
        """The first failure of a selector on a device of the node, or of several nodes."""
        failed = self._inventory.matches(requirement).failed_on
        return failed.get(self._node, failed.get(""))

    def is_taken(self, device: Device) -> bool:
        """Whether a claim has the device alone."""
        if device in self._allocated:
            return True
        holder = self._grants.holders.get(device)
        return holder is not None and holder not in self._without

    def shares(self, device: Device) -> Shares | None:
        """What claims have of a shareable device; None: no claim has any of it."""
        allocated = self._inventory.shares(device, self._allocated.vacated.keys())
        lent = self._grants.lent.get(device, ())
        parts = [amounts for key, amounts in lent if key not in self._without]
        if not parts:
            return allocated
        total = dict(allocated or {})
        for amounts in parts:
            add_amounts(total, amounts)
        return total

    def counters(self, pool: Pool) -> dict[Counter, Fraction]:
        """The pool's counters less what devices in use consume."""
        table = self._inventory.table
        left = dict(table.counters.get(pool, {}))
        for entry in table.consumers.get(pool, ()):
            if self.is_taken(entry.id) or self.shares(entry.id) is not None:
                for counter, amount in entry.consumes:
                    left[counter] -= amount
        return left


class Found(NamedTuple):
    """The result of a search."""

    #: Picks of each claim; None: none were found.
    picks: tuple[tuple[Pick, ...], ...] | None
    steps: int
    #: The search ended before everything was tried.
    exhausted: bool = False


def search(problem: Problem, node: DevicesOfNode, steps_max: int = STEPS_MAX) -> Found:
    """Devices for every request of these claims."""
    plain = _plain_candidates(problem, node)
    if plain is not None:
        return _assigned(problem, plain)
    return _Search(problem, node, steps_max).run()


def preference_of(problem: Problem, result: Found) -> int:
    """kube-scheduler's points for the alternatives that serve a problem: for each request that has
    several, 8 for the first one, 7 for the second, and so on. 0: nothing was found.

    `result`: its last picks are for the problem.
    """
    points = 0
    for need, picks in zip(problem, (result.picks or ())[-len(problem) :], strict=False):
        if need.has_alternatives:
            served = {pick.request for pick in picks}
            points += sum(
                ALTERNATIVES_MAX - index
                for request in need.requests
                if len(request.alternatives) > 1
                for index, alternative in enumerate(request.alternatives)
                if alternative.name in served
            )
    return points


def blocking_taint(
    taints: Sequence[DeviceTaint], tolerations: Sequence[DeviceToleration]
) -> DeviceTaint | None:
    """The first taint that none of the tolerations tolerates."""
    for taint in taints:
        if not tolerates(tolerations, taint):
            return taint
    return None


# --- ordinary devices, by number


def _plain_candidates(problem: Problem, node: DevicesOfNode) -> list[list[DeviceEntry]] | None:
    """The free devices for each request, if `assign` decides the problem; None: it does not."""
    candidates_of: list[list[DeviceEntry]] = []
    for claim in problem:
        if claim.constraints:
            return None
        for request in claim.requests:
            if (only := request.only_number) is None:
                return None
            candidates = _free_and_tolerated(only, node)
            if any(entry.consumes or entry.details.shareable for entry in candidates):
                return None
            candidates_of.append(candidates)
    return candidates_of


def _free_and_tolerated(alternative: Alternative, node: DevicesOfNode) -> list[DeviceEntry]:
    """Devices that the alternative may get, as far as the use of other devices does not matter."""
    return [
        entry
        for entry in node.matching(alternative.requirement)
        if (alternative.admin or not node.is_taken(entry.id)) and is_usable(entry, alternative)
    ]


def is_usable(entry: DeviceEntry, alternative: Alternative) -> bool:
    """Whether a matching device may be allocated for the alternative while no claim has it."""
    return entry.rules is not None and not (
        entry.taints and blocking_taint(entry.taints, alternative.tolerations)
    )


def _assigned(problem: Problem, candidates: list[list[DeviceEntry]]) -> Found:
    requests = [request.alternatives[0] for claim in problem for request in claim.requests]
    needs = [
        (alternative.number or 0, [entry.id for entry in of_request])
        for alternative, of_request in zip(requests, candidates, strict=True)
    ]
    steps = len(needs)
    if any(number > len(devices) for number, devices in needs) or any(
        sum(request.alternatives[0].number or 0 for request in claim.requests) > DEVICES_MAX
        for claim in problem
    ):
        return Found(None, steps)
    devices = assign(needs)
    if devices is None:
        return Found(None, steps)
    remaining = iter(devices)
    return Found(
        tuple(
            tuple(
                Pick(request.name, device)
                for request in claim.requests
                for device in next(remaining)
            )
            for claim in problem
        ),
        steps,
    )


def assign(needs: Sequence[tuple[int, Sequence[Device]]]) -> list[list[Device]] | None:
    """Give each need (number, candidates in order) so many of its candidates, none to two needs.

    Returns the devices of each need, or None: together, the needs cannot be served. Augmenting
    paths find an assignment if there is one.
    """
    places = [need for need, (number, _) in enumerate(needs) for _ in range(number)]
    candidates = [needs[need][1] for need in places]
    given: dict[int, Device] = {}
    holders: dict[Device, int] = {}
    for place in range(len(places)):
        if not _augment(place, candidates, given, holders):
            return None
    devices_of_needs: list[list[Device]] = [[] for _ in needs]
    for place, need in enumerate(places):
        devices_of_needs[need].append(given[place])
    return devices_of_needs


def _augment(
    place: int,
    candidates: Sequence[Sequence[Device]],
    given: dict[int, Device],
    holders: dict[Device, int],
) -> bool:
    """Find a device for one more place; places that have one may get another."""
    reached: dict[Device, int] = {}
    waiting = [place]
    for current in waiting:
        for device in candidates[current]:
            if device in reached:
                continue
            reached[device] = current
            if device in holders:
                waiting.append(holders[device])
                continue
            step: Device | None = device
            while step is not None:
                mover = reached[step]
                holders[step] = mover
                given[mover], step = step, given.get(mover)
            return True
    return False


# --- everything else


def values_of(entry: DeviceEntry, attribute: str) -> Values:
    """The values of a device's attribute ("domain/name")."""
    for candidate in entry.details.attributes:
        if candidate.name == attribute:
            listed = candidate.value if isinstance(candidate.value, tuple) else (candidate.value,)
            return frozenset((type(value), candidate.version, value) for value in listed)
    return frozenset()


class Constraint:
    """A constraint of one claim, and the devices picked so far."""

    def __init__(self, of: DeviceConstraint) -> None:
        self.attribute = of.attribute
        self._of = of
        #: After each device: the values in common, or the values taken.
        self._states: list[Values] = []

    def admits(self, request: str, values: Values) -> bool:
        """Whether a device with these values may be added for the request."""
        if not self._applies(request):
            return True
        if not self._states:
            return bool(values)
        if self._of.distinct:
            return bool(values) and values.isdisjoint(self._states[-1])
        return not values.isdisjoint(self._states[-1])

    def add(self, request: str, values: Values) -> None:
        """Add an admitted device."""
        if not self._applies(request):
            return
        if self._states:
            before = self._states[-1]
            values = before | values if self._of.distinct else before & values
        self._states.append(values)

    def remove(self, request: str) -> None:
        """Remove the newest device, which was added for the request."""
        if self._applies(request):
            self._states.pop()

    def _applies(self, request: str) -> bool:
        names = self._of.requests
        return not names or request in names or request.partition("/")[0] in names


class _Place(NamedTuple):
    """What is to be picked next."""

    claim: int
    request: int
    #: Index of the alternative; None: it is not chosen yet.
    alternative: int | None = None
    #: Number of devices that the alternative has.
    picked: int = 0
    #: The first candidate that may be picked: candidates of one request are picked in order.
    start: int = 0


class _Exhausted(Exception):
    """The search has taken all its steps."""


class _Search:
    def __init__(self, problem: Problem, node: DevicesOfNode, steps_max: int) -> None:
        self._problem = problem
        self._node = node
        self._steps_left = steps_max
        self._steps_max = steps_max
        #: Candidates of each alternative; None: it cannot be served.
        self._candidates: dict[tuple[int, int, int], list[DeviceEntry] | None] = {}
        #: Each alternative, and the devices that match it.
        self._alternatives = [
            (alternative, {entry.id for entry in node.matching(alternative.requirement)})
            for claim in problem
            for request in claim.requests
            for alternative in request.alternatives
        ]
        self._constraints = [
            [Constraint(constraint) for constraint in claim.constraints] for claim in problem
        ]
        self._picks: list[list[Pick]] = [[] for _ in problem]
        #: Device -> claims that have picked it, and whether with admin access.
        self._holders: dict[Device, list[tuple[int, bool]]] = {}
        #: Shareable device -> what was picked of it, for each pick.
        self._lent: dict[Device, list[dict[str, Fraction]]] = {}
        self._counters: dict[Pool, dict[Counter, Fraction]] = {}
        self._kinds: dict[Device, object] = {}

    def run(self) -> Found:
        if not all(self._may_fit(index) for index in range(len(self._problem))):
            return Found(None, 1)
        # Each generator leaves its pick in place while it is suspended.
        levels = [self._fill(_Place(0, 0))]
        exhausted = False
        try:
            while levels:
                place = next(levels[-1], None)
                if place is None:
                    levels.pop()
                elif place.claim == len(self._problem):
                    return Found(tuple(map(tuple, self._picks)), self._steps)
                else:
                    levels.append(self._fill(place))
        except _Exhausted:
            exhausted = True
        return Found(None, self._steps, exhausted)

    @property
    def _steps(self) -> int:
        return self._steps_max - self._steps_left

    def _may_fit(self, claim: int) -> bool:
        """Whether each request of the claim has an alternative with enough candidates."""
        for number, request in enumerate(self._problem[claim].requests):
            if all(
                self._candidates_of(claim, number, index) is None
                for index in range(len(request.alternatives))
            ):
                return False
        return True

    def _candidates_of(self, claim: int, request: int, index: int) -> list[DeviceEntry] | None:
        key = claim, request, index
        if key not in self._candidates:
            alternative = self._problem[claim].requests[request].alternatives[index]
            self._candidates[key] = self._candidates_for(alternative)
        return self._candidates[key]

    def _candidates_for(self, alternative: Alternative) -> list[DeviceEntry] | None:
        node = self._node
        if alternative.number is not None:
            candidates = [
                entry
                for entry in _free_and_tolerated(alternative, node)
                if self._consumption(entry, alternative) is not None
            ]
            return candidates if len(candidates) >= alternative.number else None
        if node.unsettled_pool:
            return None
        every = node.matching(alternative.requirement)
        # Devices without the requested capacity do not count as matching.
        matching = [entry for entry in every if self._consumption(entry, alternative) is not None]
        free = [entry for entry in matching if alternative.admin or not node.is_taken(entry.id)]
        if not matching or len(free) < len(matching) or len(matching) > DEVICES_MAX:
            return None
        return matching if all(is_usable(entry, alternative) for entry in matching) else None

    # ---- one level

    def _fill(self, place: _Place) -> Iterator[_Place]:
        """The next places: after each way to fill this one."""
        requests = self._problem[place.claim].requests
        if place.request == len(requests):
            yield _Place(place.claim + 1, 0)
            return
        if place.alternative is None:
            for index, alternative in enumerate(requests[place.request].alternatives):
                candidates = self._candidates_of(place.claim, place.request, index)
                number = len(candidates or ()) if alternative.number is None else alternative.number
                room = DEVICES_MAX - len(self._picks[place.claim])
                if candidates is not None and number <= room:
                    yield _Place(place.claim, place.request, index)
            return
        alternative = requests[place.request].alternatives[place.alternative]
        candidates = self._candidates_of(place.claim, place.request, place.alternative) or []
        number = len(candidates) if alternative.number is None else alternative.number
        if place.picked == number:
            yield _Place(place.claim, place.request + 1)
            return
        usable = [
            position
            for position in range(place.start, len(candidates))
            if self._admissible(place.claim, alternative, candidates[position])
        ]
        failed: set[object] = set()
        for tried, position in enumerate(usable):
            if len(usable) - tried < number - place.picked:
                # Too few are left, also of those that come later.
                return
            entry = candidates[position]
            kind = self._kind(entry)
            if kind in failed:
                continue
            self._spend()
            if not self._pick(place.claim, alternative, entry):
                continue
            yield place._replace(picked=place.picked + 1, start=position + 1)
            self._undo(place.claim, alternative, entry)
            failed.add(kind)

    def _spend(self) -> None:
        if self._steps_left <= 0:
            raise _Exhausted
        self._steps_left -= 1

    # ---- one device

    def _admissible(self, claim: int, alternative: Alternative, entry: DeviceEntry) -> bool:
        """Whether nothing but counters keeps the device from being picked now."""
        holders = self._holders.get(entry.id, ())
        if any(other == claim or not (admin or alternative.admin) for other, admin in holders):
            return False
        if entry.details.shareable and not self._lends(entry, alternative):
            return False
        return all(
            constraint.admits(alternative.name, values_of(entry, constraint.attribute))
            for constraint in self._constraints[claim]
        )

    def _lends(self, entry: DeviceEntry, alternative: Alternative) -> bool:
        consumed = self._consumption(entry, alternative) or {}
        lent = [self._node.shares(entry.id) or {}, *self._lent.get(entry.id, ())]
        return all(
            consumed[rule.name] + sum(part.get(rule.name, 0) for part in lent) <= rule.value
            for rule in entry.rules or ()
        )

    def _consumption(
        self, entry: DeviceEntry, alternative: Alternative
    ) -> dict[str, Fraction] | None:
        """What the request consumes of the device's capacities, if it has them now."""
        if entry.rules is None:
            return {}
        consumed = consumption(entry.id[0], entry.rules, dict(alternative.capacity))
        shares = self._node.shares(entry.id)
        if consumed is None or not entry.details.shareable or shares is None:
            return consumed
        fits = all(
            consumed[rule.name] + shares.get(rule.name, 0) <= rule.value for rule in entry.rules
        )
        return consumed if fits else None

    def _pick(self, claim: int, alternative: Alternative, entry: DeviceEntry) -> bool:
        """Pick an admissible device; False: its counters do not suffice."""
        shareable = entry.details.shareable
        if entry.consumes and not (shareable and self._is_shared(entry)) and not self._count(entry):
            return False
        consumed: Amounts | None = None
        if shareable:
            amounts = self._consumption(entry, alternative) or {}
            self._lent.setdefault(entry.id, []).append(amounts)
            consumed = tuple(sorted(amounts.items()))
        else:
            self._holders.setdefault(entry.id, []).append((claim, alternative.admin))
        for constraint in self._constraints[claim]:
            constraint.add(alternative.name, values_of(entry, constraint.attribute))
        self._picks[claim].append(Pick(alternative.name, entry.id, alternative.admin, consumed))
        return True

    def _undo(self, claim: int, alternative: Alternative, entry: DeviceEntry) -> None:
        """Undo the last pick, of this device."""
        self._picks[claim].pop()
        for constraint in self._constraints[claim]:
            constraint.remove(alternative.name)
        if entry.details.shareable:
            self._lent[entry.id].pop()
        else:
            self._holders[entry.id].pop()
        if entry.consumes and not (entry.details.shareable and self._is_shared(entry)):
            left = self._counters[entry.pool]
            for counter, amount in entry.consumes:
                left[counter] += amount

    def _is_shared(self, entry: DeviceEntry) -> bool:
        """Whether claims have parts of the device, so that its counters are consumed already."""
        return self._node.shares(entry.id) is not None or bool(self._lent.get(entry.id))

    def _count(self, entry: DeviceEntry) -> bool:
        """Consume the device's counters; False: the pool has too little, and nothing is consumed.

        As in kube-scheduler, a pool in which any counter is overdrawn gives out no such device.
        """
        left = self._counters.get(entry.pool)
        if left is None:
            left = self._counters[entry.pool] = self._node.counters(entry.pool)
        for counter, amount in entry.consumes:
            left[counter] -= amount
        if min(left.values()) >= 0:
            return True
        for counter, amount in entry.consumes:
            left[counter] += amount
        return False

    def _kind(self, entry: DeviceEntry) -> object:
        """Equal for devices of which one can take the other's place in everything still to come."""
        kind = self._kinds.get(entry.id)
        if kind is None:
            kind = self._kinds[entry.id] = (
                tuple(
                    entry.id in matching and is_usable(entry, alternative)
                    for alternative, matching in self._alternatives
                ),
                tuple(
                    values_of(entry, constraint.attribute)
                    for constraints in self._constraints
                    for constraint in constraints
                ),
                entry.consumes,
                entry.pool if entry.consumes else None,
                entry.rules,
                entry.details.shareable,
                _frozen(self._node.shares(entry.id)),
                self._node.is_taken(entry.id),
            )
        lent = tuple(map(_frozen, self._lent.get(entry.id, ())))
        return kind, lent, tuple(self._holders.get(entry.id, ()))


def _frozen(shares: Mapping[str, Fraction] | None) -> Amounts | None:
    return None if shares is None else tuple(sorted(shares.items()))
