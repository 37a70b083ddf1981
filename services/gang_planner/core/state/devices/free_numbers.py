"""Numbers of free devices for plain problems, for searches that reckon with numbers."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.devices.allocation_search import Problem
from services.gang_planner.core.state.devices.plain_devices import (
    PlainProblem,
    PlainProblems,
    SelectedDevices,
    Taken,
)
from services.gang_planner.core.state.devices.selection import Device
from services.gang_planner.core.state.nodes import NodeTable

#: Selections of several problems that are limited together: each set of them is a limit.
_JOINT_SELECTIONS_MAX: Final = 4


class JointLimit(NamedTuple):
    """What pods of several kinds take of something that each node has a number of."""

    #: Of each kind, what one pod takes.
    taken: Sequence[int]
    #: What is free on each node.
    free: Ints


class FreeNumbers:
    """Numbers of free devices, until the next device is taken or becomes free."""

    def __init__(self, plain: PlainProblems, nodes: NodeTable, taken: Taken) -> None:
        """The inventory must be refreshed."""
        self._plain = plain
        self._nodes = nodes
        self._taken = taken

    def selections(self, problem: Problem) -> Sequence[SelectedDevices]:
        """The devices that the requests of a problem select; (): it is not plain."""
        plain = self._plain.find(problem)
        return plain.selections if plain is not None else ()

    def by_slot(self, selected: SelectedDevices) -> Iterator[tuple[int, Sequence[Device]]]:
        """Selected devices on each node, whether free or not."""
        for node, devices in selected.devices.items():
            slot = self._nodes.find(node)
            if slot is not None:
                yield slot, devices

    def free_of(self, selected: SelectedDevices) -> Ints:
        """How many of selected devices are free, by slot."""
        allocated, chosen = self._taken
        free: Ints = np.zeros(self._nodes.size, dtype=np.int64)
        for slot, devices in self.by_slot(selected):
            free[slot] = len([one for one in devices if one not in allocated and one not in chosen])
        return free

    def joint_limits(self, problems: Sequence[Problem], slots: Ints) -> Sequence[JointLimit] | None:
        """What decides how many pods with these needs each of these slots serves together, in the
        order of the slots; None: more than a few limits would. Without needs a pod has no claims.
        """
        plain = [self._plain.find(one) if one else PlainProblem((), ()) for one in problems]
        names: list[str] = [self._nodes.names[slot] for slot in slots.tolist()]
        return _joint_limits([one for one in plain if one is not None], names, self._taken)


def _joint_limits(
    problems: Sequence[PlainProblem], nodes: Sequence[str], taken: Taken
) -> list[JointLimit] | None:
    """What decides how many pods with these problems each of these nodes serves together; None: too
    many selections.

    By Hall's theorem, devices suffice if and only if for every set of selections, the requests for
    these need no more devices than the set has together.
    """
    allocated, chosen = taken
    kinds = list({one.wanted: one for problem in problems for one in problem.selections}.values())
    if len(kinds) > _JOINT_SELECTIONS_MAX:
        return None
    numbers = [{one.wanted: one.number for one in problem.selections} for problem in problems]
    free = [
        [
            {
                device
                for device in kind.devices.get(node, ())
                if device not in allocated and device not in chosen
            }
            for kind in kinds
        ]
        for node in nodes
    ]
    limits: list[JointLimit] = []
    for chosen_kinds in range(1, 1 << len(kinds)):
        some = [at for at in range(len(kinds)) if chosen_kinds >> at & 1]
        together = [
            len(frozenset[Device]().union(*(on_node[at] for at in some))) for on_node in free
        ]
        each = [sum(of.get(kinds[at].wanted, 0) for at in some) for of in numbers]
        limits.append(JointLimit(each, np.array(together, dtype=np.int64)))
    return limits
