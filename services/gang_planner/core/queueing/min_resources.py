"""The part of a group's `minResources` beyond the pods of its quorum, as *reserved units*, and the
capacity that the cluster lacks for them.

A Spark driver or the leader of a LeaderWorkerSet is a gang of one pod whose group declares the
resources of the whole application: its other pods are created when the first one runs. Their shapes
are unknown, so the rest of `minResources` is divided into equal units. A gang without placed
members needs capacity for its quorum and all of its units. The rest is divided as follows:

| rest of `minResources` | units |
| --- | --- |
| a multiple of one waiting pod's requests | pods of that shape |
| devices with a common divisor above 1 | one unit per part, including its CPU and memory |
| otherwise | devices separately; CPU in cores, with memory in proportion |

Units with a waiting pod's shape use the nodes that the pod may use. Other units use nodes whose
taints the waiting pods tolerate, or whose taint is named after a requested device. Node selectors
are not copied, because pods of another role often have other selectors.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from services.gang_planner.core.framework.admission import QUOTA_KEYS
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queueing import namespace_quota
from services.gang_planner.core.state.columns import Bools, clamped
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import RESERVED, Need, Wanted, amounts_of_first
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import PODS, ShapeEntry, ShapeTable
from services.gang_planner.core.state.queues import QueueEntry
from shared.kube.quantities import DIVISIBLE
from shared.model.objects import Resources, Shape, Toleration

#: Maximum number of units of a gang; beyond it, units become larger.
_UNITS_MAX: Final = 256
_CORE: Final = 1_000
_GIBIBYTE: Final = 1 << 30
#: Number of cached divisions.
_REMEMBERED_MAX: Final = 4_096


class Unattainable(NamedTuple):
    """`minResources` that the current nodes and queues cannot satisfy, even when empty."""

    resource: str
    needed: int
    #: The maximum, used and free.
    most: int
    #: The queue whose capability `most` is; None: `most` is the sum of the usable nodes.
    queue: str | None


class Requirement(NamedTuple):
    """Needed amount of one resource, and its free amount on usable nodes."""

    resource: str
    needed: int
    free: int

    @property
    def short(self) -> int:
        """The missing amount."""
        return max(self.needed - self.free, 0)


def units(
    shapes: ShapeTable, minimum: Mapping[int, int], wanted: tuple[Wanted, ...], quorum: int
) -> tuple[Wanted, ...]:
    """The reserved units of a gang without placed members, as (role, shape id, count).

    Args:
        shapes: The table in which the units' shapes are interned.
        minimum: `minResources` by resource row (`reservable`).
        wanted: The gang's waiting members; the first `quorum` members count as its quorum.
        quorum: Number of members that are placed together.
    """
    key = tuple(minimum.items()), wanted, quorum
    cached = shapes.units.get(key)
    if cached is None:
        if len(shapes.units) >= _REMEMBERED_MAX:
            shapes.units.clear()
        cached = shapes.units[key] = _units(shapes, minimum, wanted, quorum)
    return cached


def declared(shapes: ShapeTable, minimum: Resources) -> dict[int, int]:
    """`minResources` by resource row, without keys that exist only in quotas."""
    return {
        shapes.resources.row_of_minimum(name): clamped(amount)
        for name, amount in minimum
        if amount > 0 and not name.startswith(QUOTA_KEYS)
    }


def reservable(state: State, gang: Gang) -> dict[int, int]:
    """The part of a gang's `minResources` that the quotas of its namespace can ever admit."""
    group = gang.group
    minimum = declared(state.shapes, (group.min_resources if group is not None else None) or ())
    return namespace_quota.within_limits(state, gang, minimum) if minimum else minimum


def unattainable(session: Session, queue: QueueEntry, need: Need) -> Unattainable | None:
    """The first resource for which the capability of the gang's queue or of an ancestor, or the sum
    of the nodes that its pods may use, is less than `minResources` need; None: there is none.
    """
    needed, names = _needed(session.shapes, need), session.shapes.resources.names
    for entry in queue.chain:
        for row in sorted(needed.keys() & entry.capability.keys()):
            most = entry.capability[row]
            if needed[row] > most:
                return Unattainable(names[row], needed[row], most, entry.name)
    nodes = session.node_capacity.nodes
    usable = _usable(session, need)
    nodes.allocatable.ensure(*session.node_capacity.free.cells.shape)
    for row, amount in sorted(needed.items()):
        most = int(nodes.allocatable.cells[row, : nodes.size][usable].sum())
        if amount > most:
            return Unattainable(names[row], amount, most, None)
    return None


def requirements(session: Session, need: Need) -> list[Requirement]:
    """Needed amounts of `minResources` and current free amounts on nodes that the gang's pods may
    use.
    """
    usable = _usable(session, need)
    session.node_capacity.fit_cells()
    free = session.node_capacity.free.cells[:, : len(usable)]
    return [
        Requirement(
            session.shapes.resources.names[row], amount, int(free[row][usable].clip(min=0).sum())
        )
        for row, amount in sorted(_needed(session.shapes, need).items())
    ]


def _needed(shapes: ShapeTable, need: Need) -> dict[int, int]:
    """Amounts of quorum and units by row, for the resources that the units request."""
    rows = {
        row
        for role, shape_id, _ in need.wanted
        if role == RESERVED
        for row, _ in shapes.entries[shape_id].pairs
    }
    return {
        row: amount
        for row, amount in need.amounts(shapes).items()
        if row in rows and shapes.resources.names[row] != PODS
    }


def _usable(session: Session, need: Need) -> Bools:
    """Nodes that pods or units of the gang may use, regardless of free capacity."""
    mask: Bools = np.zeros(session.node_capacity.nodes.size, dtype=np.bool_)
    for _, shape_id, _ in need.wanted:
        mask = mask | session.fits.masks.mask(session.shapes.entries[shape_id])
    return mask


def _units(
    shapes: ShapeTable, minimum: Mapping[int, int], wanted: tuple[Wanted, ...], quorum: int
) -> tuple[Wanted, ...]:
    taken = amounts_of_first(wanted, quorum, shapes)
    names = shapes.resources.names
    rest = {
        names[row]: amount - taken.get(row, 0)
        for row, amount in minimum.items()
        if amount > taken.get(row, 0)
    }
    if not rest.keys() - {PODS}:
        return ()
    entries = [shapes.entries[shape_id] for _, shape_id, _ in wanted]
    for entry in entries:
        count = _multiple(rest, entry, shapes)
        if count:
            return ((RESERVED, shapes.intern(_like(entry)).id, count),)
    rest.pop(PODS, None)
    tolerations = _tolerations(entries, rest)
    return tuple(
        (RESERVED, shapes.intern(_encoded(requests, tolerations)).id, count)
        for requests, count in _divided(rest)
    )


def _multiple(rest: dict[str, int], entry: ShapeEntry, shapes: ShapeTable) -> int:
    """The factor by which the shape's requests equal the rest; 0: none."""
    counts = set[int]()
    for name, amount in rest.items():
        own = entry.by_row.get(shapes.resources.row(name), 0)
        if not own or amount % own:
            return 0
        counts.add(amount // own)
    count = counts.pop()
    return 0 if counts or count > _UNITS_MAX else count


def _divided(rest: dict[str, int]) -> list[tuple[dict[str, int], int]]:
    """The rest as (requests of a unit, count); the sum is exactly the rest."""
    devices = {name: amount for name, amount in rest.items() if name not in DIVISIBLE}
    plain = {name: amount for name, amount in rest.items() if name in DIVISIBLE}
    common = math.gcd(*devices.values()) if devices else 0
    if common > 1:
        return _parts(rest, _at_most(common))
    parts = [
        part
        for name, amount in sorted(devices.items())
        for part in _parts({name: amount}, min(amount, _UNITS_MAX))
    ]
    if not plain:
        return parts
    size, amount = (_CORE, plain["cpu"]) if "cpu" in plain else (_GIBIBYTE, max(plain.values()))
    return [*parts, *_parts(plain, min(-(-amount // size), _UNITS_MAX))]


def _at_most(common: int) -> int:
    """The greatest divisor that does not exceed `_UNITS_MAX`."""
    return next(
        divisor for divisor in range(min(common, _UNITS_MAX), 0, -1) if common % divisor == 0
    )


def _parts(amounts: dict[str, int], count: int) -> list[tuple[dict[str, int], int]]:
    """`count` equal parts, and one part with the remainders."""
    equal = {name: amount // count for name, amount in amounts.items() if amount >= count}
    over = {name: amount - equal.get(name, 0) * count for name, amount in amounts.items()}
    over = {name: amount for name, amount in over.items() if amount}
    return [(part, times) for part, times in ((equal, count), (over, 1)) if part]


def _tolerations(entries: Sequence[ShapeEntry], rest: dict[str, int]) -> tuple[Toleration, ...]:
    tolerations = {toleration: None for entry in entries for toleration in entry.shape.tolerations}
    for name in sorted(rest):
        if name not in DIVISIBLE:
            # The toleration that Kubernetes' admission plugin ExtendedResourceToleration adds.
            tolerations[Toleration(key=name, operator="Exists")] = None
    return tuple(tolerations)


def _like(entry: ShapeEntry) -> bytes:
    """The encoded shape without claims, ports and inter-pod terms."""
    shape = entry.shape
    return msgspec.msgpack.encode(
        Shape(
            requests=shape.requests,
            node_selector=shape.node_selector,
            node_affinity=shape.node_affinity,
            tolerations=shape.tolerations,
        )
    )


def _encoded(requests: dict[str, int], tolerations: tuple[Toleration, ...]) -> bytes:
    return msgspec.msgpack.encode(
        Shape(requests=tuple(sorted(requests.items())), tolerations=tolerations)
    )
