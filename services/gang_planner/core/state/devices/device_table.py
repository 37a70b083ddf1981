"""The devices that ResourceSlices publish, and where each can be used.

Only the slices of a pool's newest generation count, and only if the pool is *settled*: all its
slices exist, no two devices or counter sets have one name, and devices consume counters that exist.
"""

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from services.gang_planner.core.state.devices.capacity import DeviceCapacityRule, rules_of
from services.gang_planner.core.state.devices.selection import Device
from shared.kube.quantities import QuantityError, exact
from shared.model.devices import (
    Counters,
    DeviceDetails,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
)
from shared.model.object_table import Table
from shared.model.terms import Requirement, SelectorTerm

Pool: TypeAlias = tuple[str, str]
"""Driver and name."""
Counter: TypeAlias = tuple[str, str]
"""Counter set and name, within a pool."""
Reach: TypeAlias = tuple[SelectorTerm, ...] | None
"""Nodes that match one of the terms; None: all nodes."""

_NO_DETAILS: Final = DeviceDetails()


@dataclass(frozen=True, eq=False, slots=True)
class DeviceEntry:
    """A device of a settled pool."""

    id: Device
    details: DeviceDetails
    #: Of the device itself, and of rules.
    taints: tuple[DeviceTaint, ...]
    #: The only node that can use it; "": all nodes within `reach` can.
    node: str
    reach: Reach
    #: Rules of its capacities; None: they cannot be read, and no claim gets the device.
    rules: tuple[DeviceCapacityRule, ...] | None
    #: Shared counters that it consumes.
    consumes: tuple[tuple[Counter, Fraction], ...]
    #: Whether allocating it may change what other nodes can use.
    wide: bool

    @property
    def pool(self) -> Pool:
        return self.id[0], self.id[1]

    @property
    def on_one_node(self) -> bool:
        """Whether a claim with the device can be used on one node only."""
        return bool(self.node) or self.details.binds_to_node


@dataclass(frozen=True, eq=False, slots=True)
class PoolDevices:
    """What a settled pool has."""

    #: gpu-2 before gpu-10.
    entries: list[DeviceEntry]
    counters: dict[Counter, Fraction]
    #: The entries that consume counters.
    consumers: list[DeviceEntry]


class DeviceTable:
    """All devices, as of one version of the slices and taint rules. What an earlier table read of a
    pool is taken over if the pool has the same slices, and no rule changed.
    """

    def __init__(
        self,
        slices: Table[ResourceSlice],
        rules: Table[DeviceTaintRule],
        earlier: "DeviceTable | None" = None,
    ) -> None:
        self.rules = sorted(rules.values(), key=lambda rule: rule.name)
        same_rules = earlier is not None and self.rules == earlier.rules
        known = earlier.pools if earlier is not None and same_rules else {}
        #: The slices of each pool, and its devices; None: it is not settled.
        self.pools: dict[Pool, tuple[list[ResourceSlice], PoolDevices | None]] = {}
        self.entries: dict[Device, DeviceEntry] = {}
        #: Counters of each pool that has any, and its devices that consume them.
        self.counters: dict[Pool, dict[Counter, Fraction]] = {}
        self.consumers: dict[Pool, list[DeviceEntry]] = {}
        #: Pools that are not settled, by node.
        self.unsettled_on: dict[str, str] = {}
        self.unsettled_wide: list[tuple[Reach, str]] = []
        #: All devices, by pool.
        self.ordered: list[DeviceEntry] = []
        for pool, of_pool in sorted(_newest(slices.values()).items()):
            before, devices = known.get(pool, ([], None))
            if not _identical(before, of_pool):
                devices = self._read_pool(pool, of_pool)
            self.pools[pool] = of_pool, devices
            if devices is None:
                self._add_unsettled("/".join(pool), of_pool)
            else:
                self._add(pool, devices)
        #: Whether any device has binding conditions.
        self.conditional = any(entry.details.binding_conditions for entry in self.ordered)

    def _add(self, pool: Pool, devices: PoolDevices) -> None:
        self.ordered += devices.entries
        for entry in devices.entries:
            self.entries[entry.id] = entry
        if devices.counters:
            self.counters[pool] = devices.counters
        if devices.consumers:
            self.consumers[pool] = devices.consumers

    def _add_unsettled(self, name: str, slices: list[ResourceSlice]) -> None:
        for node, reach in (
            place for resource_slice in slices for place in _places(resource_slice)
        ):
            if node:
                self.unsettled_on.setdefault(node, name)
            elif (reach, name) not in self.unsettled_wide:
                self.unsettled_wide.append((reach, name))

    def _read_pool(self, pool: Pool, slices: list[ResourceSlice]) -> PoolDevices | None:
        """The pool's devices; None: it is not settled."""
        names = [name for resource_slice in slices for name in resource_slice.devices]
        if slices[0].pool_slices not in {0, len(slices)} or len(names) != len(set(names)):
            return None
        sets = [
            counters for resource_slice in slices for counters in resource_slice.shared_counters
        ]
        if len(sets) != len({counters.counter_set for counters in sets}):
            return None
        try:
            counters = dict(_amounts(sets))
            devices = [
                (name, details, place, tuple(_amounts(details.consumes)))
                for resource_slice in slices
                for name, details, place in _devices(resource_slice)
            ]
        except QuantityError:
            return None
        if any(name not in counters for *_, consumes in devices for name, _ in consumes):
            return None
        spread = len({place[0] for *_, place, _ in devices}) > 1
        entries = [
            DeviceEntry(
                (*pool, name),
                details,
                (*details.taints, *self._taints_of((*pool, name))),
                node,
                reach,
                _rules(pool[0], details),
                consumes,
                wide=not node or (spread and bool(consumes)),
            )
            for name, details, (node, reach), consumes in devices
        ]
        entries.sort(key=_natural)
        return PoolDevices(entries, counters, [entry for entry in entries if entry.consumes])

    def _taints_of(self, device: Device) -> Iterator[DeviceTaint]:
        """The taints of all rules that select the device."""
        for rule in self.rules:
            wanted = rule.driver, rule.pool, rule.device
            if all(expected in {None, own} for expected, own in zip(wanted, device, strict=True)):
                yield rule.taint


def within_all(entries: Iterable[DeviceEntry]) -> tuple[SelectorTerm, ...] | None:
    """Nodes that can use all these devices; (): all nodes; None: only the node for which they were
    chosen.
    """
    expressions: dict[Requirement, None] = {}
    fields: dict[Requirement, None] = {}
    for entry in entries:
        if entry.on_one_node or (entry.reach is not None and len(entry.reach) != 1):
            # Kubernetes allows one term in a slice.
            return None
        for term in entry.reach or ():
            expressions.update(dict.fromkeys(term.expressions))
            fields.update(dict.fromkeys(term.fields))
    if not expressions and not fields:
        return ()
    return (SelectorTerm(expressions=tuple(expressions), fields=tuple(fields)),)


def _newest(slices: Iterable[ResourceSlice]) -> dict[Pool, list[ResourceSlice]]:
    """The slices of each pool's newest generation."""
    pools: dict[Pool, list[ResourceSlice]] = {}
    for resource_slice in slices:
        of_pool = pools.setdefault((resource_slice.driver, resource_slice.pool), [])
        if of_pool and resource_slice.generation > of_pool[0].generation:
            of_pool.clear()
        if not of_pool or resource_slice.generation == of_pool[0].generation:
            of_pool.append(resource_slice)
    return pools


def _devices(
    resource_slice: ResourceSlice,
) -> Iterator[tuple[str, DeviceDetails, tuple[str, Reach]]]:
    """Devices that some node can use: name, details and place."""
    for index, name in enumerate(resource_slice.devices):
        details = (
            resource_slice.details[index] if index < len(resource_slice.details) else _NO_DETAILS
        )
        place = _place(details if resource_slice.per_device_nodes else resource_slice)
        if place is not None:
            yield name, details, place


def _places(resource_slice: ResourceSlice) -> Iterator[tuple[str, Reach]]:
    holders = resource_slice.details if resource_slice.per_device_nodes else (resource_slice,)
    yield from (place for place in map(_place, holders) if place is not None)


def _place(source: ResourceSlice | DeviceDetails) -> tuple[str, Reach] | None:
    """The node, or "" and the nodes; None: no node."""
    if source.node:
        return source.node, None
    if source.all_nodes:
        return "", None
    return ("", source.node_affinity) if source.node_affinity is not None else None


def _amounts(sets: Iterable[Counters]) -> Iterator[tuple[Counter, Fraction]]:
    """Raises QuantityError."""
    for counters in sets:
        for name, text in counters.amounts:
            yield (counters.counter_set, name), exact(text)


def _rules(driver: str, details: DeviceDetails) -> tuple[DeviceCapacityRule, ...] | None:
    try:
        return rules_of(driver, details)
    except QuantityError:
        return None


def _identical(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _natural(entry: DeviceEntry) -> tuple[int, str]:
    *_, name = entry.id
    return len(name), name
