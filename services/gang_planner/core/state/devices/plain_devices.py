"""Problems that only numbers of devices decide, counted for all nodes at once.

Such a *plain* problem requests numbers of devices that are each on one node, consume no counters
and are not shareable, without constraints or alternatives, and not for extended resources, which
device plugins may have; and two of its requests match the same devices or none in common. So a node
serves it as often as it has enough free devices for each *selection*: all requests for the same
devices. `allocation_search` gives the same answer.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.devices.allocation_search import Problem, is_usable
from services.gang_planner.core.state.devices.demand import DEVICES_MAX, Alternative, Pick
from services.gang_planner.core.state.devices.inventory import Inventory
from services.gang_planner.core.state.devices.selection import Device, DeviceRequirement
from shared.model.devices import DeviceToleration

if TYPE_CHECKING:
    from services.gang_planner.core.state.devices.device_table import DeviceTable

#: Number of cached selections and problems.
_CACHED_MAX: Final = 256
#: Selections of several problems that are limited together: each set of them is a limit.
_JOINT_SELECTIONS_MAX: Final = 4

Wanted: TypeAlias = tuple[DeviceRequirement, tuple[DeviceToleration, ...]]
Devices: TypeAlias = Mapping[str, Sequence[Device]]
"""By node, in order."""
Taken: TypeAlias = tuple[Container[Device], Container[Device]]
"""Devices that claims have alone, in the cluster and chosen."""


class SelectedDevices(NamedTuple):
    """Devices that some requests of a problem may get, and how many they need together."""

    devices: Devices
    number: int
    wanted: Wanted


class PlainProblem:
    """A plain problem, with its devices as slices publish them."""

    def __init__(
        self,
        selections: Sequence[SelectedDevices],
        requests: Sequence[Sequence[tuple[int, str, int]]],
    ) -> None:
        self.selections = selections
        #: Of each claim, for each request: its selection, its name, its number of devices.
        self._requests = requests

    def times(self, node: str, taken: Taken) -> int:
        """How often the free devices of a node serve it."""
        allocated, chosen = taken
        least: int | None = None
        for devices, number, _ in self.selections:
            free = 0
            for device in devices.get(node, ()):
                if device not in allocated and device not in chosen:
                    free += 1
            times = free // number
            if least is None or times < least:
                least = times
        return least or 0

    def picks(self, node: str, taken: Taken) -> Iterator[Sequence[tuple[Pick, ...]]]:
        """The picks of each claim, for as many pods as the node serves. Devices that were picked
        may be taken before the next picks, no other devices of the node.
        """
        left = [iter(free_of(devices.get(node, ()), taken)) for devices, *_ in self.selections]
        while True:
            picks: list[tuple[Pick, ...]] = []
            for requests in self._requests:
                of_claim: list[Pick] = []
                for selection, name, number in requests:
                    picked = [Pick(name, device) for device in islice(left[selection], number)]
                    if len(picked) < number:
                        return
                    of_claim += picked
                picks.append(tuple(of_claim))
            yield picks


def free_of(devices: Sequence[Device], taken: Taken) -> list[Device]:
    """Those of these devices that no claim has alone."""
    allocated, chosen = taken
    return [device for device in devices if device not in allocated and device not in chosen]


class PlainProblems:
    """Which problems are plain, for one inventory; cached until slices or taint rules change."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._of: DeviceTable = inventory.table
        self._devices: dict[Wanted, Devices | None] = {}
        self._problems: dict[Problem, PlainProblem | None] = {}

    def find(self, problem: Problem) -> PlainProblem | None:
        """The plain problem; None: it is not plain. The inventory must be refreshed."""
        if self._of is not self._inventory.table or len(self._problems) >= _CACHED_MAX:
            self._of = self._inventory.table
            self._devices.clear()
            self._problems.clear()
        try:
            return self._problems[problem]
        except KeyError:
            plain = self._problems[problem] = self._read(problem)
            return plain

    def _read(self, problem: Problem) -> PlainProblem | None:
        numbers: dict[Wanted, int] = {}
        requests: list[list[tuple[int, str, int]]] = []
        for claim in problem:
            if claim.constraints or claim.extended:
                return None
            requests.append([])
            for request in claim.requests:
                if (only := request.only_number) is None:
                    return None
                number, wanted = only.number or 0, (only.requirement, only.tolerations)
                numbers[wanted] = numbers.get(wanted, 0) + number
                requests[-1].append((list(numbers).index(wanted), only.name, number))
            if sum(number for *_, number in requests[-1]) > DEVICES_MAX:
                return None
        selections: list[SelectedDevices] = []
        for wanted, number in numbers.items():
            devices = self._usable(wanted)
            if devices is None or not number:
                return None
            selections.append(SelectedDevices(devices, number, wanted))
        return PlainProblem(selections, requests) if selections and _disjoint(selections) else None

    def _usable(self, wanted: Wanted) -> Devices | None:
        """The devices that such a request may get while they are free; None: more than numbers
        decides.
        """
        if wanted not in self._devices:
            self._devices[wanted] = self._select(wanted)
        return self._devices[wanted]

    def _select(self, wanted: Wanted) -> Devices | None:
        requirement, tolerations = wanted
        matches = self._inventory.matches(requirement)
        if matches.wide:
            return None
        alternative = Alternative("", requirement, tolerations=tolerations)
        by_node: dict[str, list[Device]] = {}
        for node, entries in matches.on.items():
            usable = [entry for entry in entries if is_usable(entry, alternative)]
            if any(entry.consumes or entry.details.shareable for entry in usable):
                return None
            if self._of.conditional:
                # Pods wait for the conditions of these.
                usable.sort(key=lambda entry: bool(entry.details.binding_conditions))
            by_node[node] = [entry.id for entry in usable]
        return by_node


def _disjoint(selections: Sequence[SelectedDevices]) -> bool:
    """Whether no device is selected twice."""
    seen: set[Device] = set()
    for selected in selections if len(selections) > 1 else ():
        devices = {device for on_node in selected.devices.values() for device in on_node}
        if not seen.isdisjoint(devices):
            return False
        seen |= devices
    return True


class JointLimit(NamedTuple):
    """What pods of several kinds take of something that each node has a number of."""

    #: Of each kind, what one pod takes.
    taken: Sequence[int]
    #: What is free on each node.
    free: Ints


def joint_limits(
    problems: Sequence[PlainProblem], nodes: Sequence[str], taken: Taken
) -> list[JointLimit] | None:
    """What decides how many pods with these problems each of these nodes serves together; None: too
    many selections.

    By Hall's theorem, devices suffice if and only if for every set of selections, the requests for
    these need no more devices than the set has together.
    """
    selections = [selected for problem in problems for selected in problem.selections]
    kinds = list({selected.wanted: selected for selected in selections}.values())
    if len(kinds) > _JOINT_SELECTIONS_MAX:
        return None
    numbers = [
        {selected.wanted: selected.number for selected in problem.selections}
        for problem in problems
    ]
    free = [[set(free_of(kind.devices.get(node, ()), taken)) for kind in kinds] for node in nodes]
    limits: list[JointLimit] = []
    for chosen_kinds in range(1, 1 << len(kinds)):
        some = [at for at in range(len(kinds)) if chosen_kinds >> at & 1]
        together = [
            len(frozenset[Device]().union(*(on_node[at] for at in some))) for on_node in free
        ]
        each = [sum(of.get(kinds[at].wanted, 0) for at in some) for of in numbers]
        limits.append(JointLimit(each, np.array(together, dtype=np.int64)))
    return limits
