"""The use of ResourceClaims by pods, and the devices chosen for claims without allocated devices.

It is part of a `NodeCapacity`, like `storage.ledger`. When the first pod takes a claim without
devices, devices that its node can use are chosen; other pods of the claim can only use nodes on
which these devices are available. Until a decision has written them down, devices may be exchanged
for others of the same node, so that a member of a gang does not keep the only device of a later
one.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.devices.allocation_search import Problem
from services.gang_planner.core.state.devices.demand import (
    ClaimNeed,
    Content,
    DeviceDemand,
    Pick,
    demand_of,
)
from services.gang_planner.core.state.devices.device_table import within_all
from services.gang_planner.core.state.devices.extended import ClassesOfResources
from services.gang_planner.core.state.devices.grants import DeviceGrants, Grant, usable_on
from services.gang_planner.core.state.devices.inventory import Inventory
from services.gang_planner.core.state.devices.plain_devices import PlainProblems
from services.gang_planner.core.state.devices.searches import DeviceSearches
from services.gang_planner.core.state.devices.selection import Selection
from services.gang_planner.core.state.devices.selector_limits import SelectorLimits
from services.gang_planner.core.state.devices.vacated import AllocatedDevices
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.devices import ResourceClaim

#: Number of cached demands, and of different needs of claims.
_DEMANDS_MAX: Final = 65_536
_NEEDS_MAX: Final = 65_536
#: Number of changed nodes that are named; beyond it, any may have changed.
_SLOTS_MAX: Final = 1_024

Open: TypeAlias = tuple[ResourceClaim, ClaimNeed]
"""A claim without devices, and its need."""


Claims: TypeAlias = list[ResourceClaim | Key | None]
"""The claims of a shape, those for the extended resources of its pod, and the keys of those that
wait for others of their namespace.
"""


class Demands:
    """Demands by shape. Claims with equal contents have the same object as need while `version`
    stays the same.
    """

    def __init__(
        self, tables: ReferenceObjects, classes: ClassesOfResources, selection: Selection
    ) -> None:
        self._tables = tables
        self._classes = classes
        self._selection = selection
        self._limits = SelectorLimits(tables)
        self._read = (
            tables.resource_slices,
            tables.device_taint_rules,
            tables.device_classes,
            tables.namespaces,
        )
        #: Number of changes of these tables that the demands agree with.
        self.version = 0
        #: By encoded shape, with what its claims were.
        self._demands: dict[bytes, tuple[Claims, DeviceDemand]] = {}
        self._needs: dict[Content, ClaimNeed] = {}

    def of(self, shape: ShapeEntry) -> DeviceDemand:
        # Written out, because it is called several times for every pod with claims.
        slices, rules, classes, namespaces = self._read
        changes = slices.changes + rules.changes + classes.changes + namespaces.changes
        if self.version != changes:
            self.version = changes
            self._demands.clear()
            self._needs.clear()
        elif len(self._demands) >= _DEMANDS_MAX:
            self._demands.clear()
        claims = self.claims(shape)
        known = self._demands.get(shape.encoded)
        if known is not None and known[0] == claims:
            return known[1]
        if len(self._needs) >= _NEEDS_MAX:
            self._needs.clear()
        demand = demand_of(
            shape.shape,
            shape.device_keys,
            self._tables,
            self._classes,
            self._selection,
            self._needs,
            self._limits.waiting(),
        )
        self._demands[shape.encoded] = claims, demand
        return demand

    def claims(self, shape: ShapeEntry) -> Claims:
        """What the shape's claims are now; None: there is no such claim."""
        claims = self._tables.resource_claims
        named: Claims = list(map(claims.by_name.get, shape.device_keys))
        for pod_uid in shape.device_pods:
            named += claims.of_pod(shape.shape.namespace, pod_uid)
        if waiting := self._limits.waiting():
            named += [key for key in shape.device_keys if key in waiting]
        return named


class _Shared(NamedTuple):
    """What depends only on tables and nodes, for all that have the same."""

    inventory: Inventory
    plain: PlainProblems
    #: Which class has which extended resource.
    classes: ClassesOfResources
    demands: Demands


class Devices:
    """The devices of one node capacity: which nodes serve a shape's claims, and what pods take."""

    def __init__(
        self,
        tables: ReferenceObjects,
        nodes: NodeTable,
        shared: _Shared | None = None,
        grants: DeviceGrants | None = None,
    ) -> None:
        """`shared`: of others with the same tables and nodes. `grants`: None: no claim is used."""
        self._tables = tables
        self._nodes = nodes
        if shared is None:
            inventory, classes = Inventory(tables, nodes), ClassesOfResources(tables)
            demands = Demands(tables, classes, inventory.selection)
            shared = _Shared(inventory, PlainProblems(inventory), classes, demands)
        self._shared = shared
        self._inventory, self._plain, self.classes, self._demands = shared
        #: The claims in use, and the devices chosen for them.
        self.grants = grants or DeviceGrants(tables.resource_claims, nodes, self._inventory)
        self.allocated = AllocatedDevices(self.grants)
        self.searches = DeviceSearches(self._plain, self.grants, self.allocated)
        #: Positions of the logs of the inventory and of chosen devices, at the last call of
        #: `changed_slots`.
        self._reported = self._inventory.changes.position, 0
        #: How often they had forgotten what changed since then.
        self._forgotten = 0

    def copy(self) -> "Devices":
        return Devices(self._tables, self._nodes, self._shared, self.grants.copy())

    def unused(self) -> "Devices":
        """The same devices without claims in use."""
        return Devices(self._tables, self._nodes, self._shared)

    # ------------------------------------------------------------------- asking

    def version(self, shape: ShapeEntry) -> tuple[object, ...]:
        """A version that changes whenever the results for the shape may change on any node, except
        on those that `changed_slots` has named, and where capacity is taken or released.
        """
        demand = self.demand(shape)
        self.grants.refresh()
        wide = self._inventory.wide_changes, self.grants.wide_changes, self._forgotten
        if shape.alike:
            # No pod uses its claims.
            return (self._demands.version, *wide)
        version = (self._demands.version, *wide, *self._demands.claims(shape))
        return (*version, *self.grants.versions(shape.device_keys)) if demand.open else version

    def changed_slots(self) -> Sequence[int]:
        """Slots of nodes whose devices may have been taken or become free since the last call."""
        self.grants.refresh()
        logs = self._inventory.changes, self.grants.changes
        before, self._reported = self._reported, (logs[0].position, logs[1].position)
        changed = [log.since(at, _SLOTS_MAX) for log, at in zip(logs, before, strict=True)]
        if any(slots is None for slots in changed):
            self._forgotten += 1
            return ()
        return [slot for slots in changed if slots is not None for slot in slots.tolist()]

    def demand(self, shape: ShapeEntry) -> DeviceDemand:
        return self._demands.of(shape)

    def inventory(self) -> Inventory:
        """All devices, as the tables have them now."""
        self.grants.refresh()
        return self._inventory

    def plain_needs(self, shape: ShapeEntry) -> Problem | None:
        """The needs of the shape's claims, if they are a plain problem and no pod uses a claim.
        None: nodes may serve another pod with equal needs differently.
        """
        self.grants.refresh()
        demand = self.demand(shape)
        needs = demand.needs
        if not needs or demand.allocated or self.grants.knows(shape.device_keys):
            return None
        return needs if self._plain.find(needs) is not None else None

    def awaits_devices(self, shape: ShapeEntry) -> bool:
        """Whether claims in the cluster still have devices that are chosen for the shape's."""
        self.grants.refresh()
        grants = [self.grants.find(key) for key in shape.device_keys]
        return any(
            pick.device in self._inventory.allocated
            for grant in grants
            if grant is not None
            for pick in grant.picks
            if not pick.admin
        )

    def devices_fit(self, demand: DeviceDemand, slots: Slots) -> Bools:
        """One flag for each of these slots: whether it has devices for all claims without devices,
        as far as the search for them can say.
        """
        mask: Bools = np.ones(self._nodes.size, dtype=np.bool_)
        for claim, _ in demand.open:
            grant = self.grants.find((claim.namespace, claim.name))
            if grant is not None:
                mask &= usable_on(grant, self._nodes)
        problem = self.unsolved(demand)
        if problem:
            mask &= self.searches.mask(problem).flags
        return mask[slots]

    def times_served(self, demand: DeviceDemand, slots: Slots) -> Ints:
        """How many pods with these plain needs each of these slots serves, with claims of their
        own. It is a lower bound on nodes where members of a gang may exchange devices.
        """
        mask = self.searches.mask(demand.needs)
        times: Ints = np.maximum(mask.times, mask.flags)[slots]
        return times

    def points_of_alternatives(self, shape: ShapeEntry, slots: Ints) -> Ints | None:
        """How early in their lists the alternatives are that would serve the shape on each of these
        slots (`preference_of`); None: its claims without devices have no alternatives.
        """
        problem = self.unsolved(self.demand(shape))
        if not any(need.has_alternatives for need in problem):
            return None
        return self.searches.mask(problem).points[slots]

    def unsolved(self, demand: DeviceDemand) -> Problem:
        """The needs of the claims for which no devices are chosen."""
        return tuple(
            need
            for claim, need in demand.open
            if self.grants.find((claim.namespace, claim.name)) is None
        )

    def is_served(self, shape: ShapeEntry) -> bool:
        """Whether each claim of the shape has devices, or some are chosen for it."""
        return not self.unsolved(self.demand(shape))

    # ------------------------------------------------------------------- taking

    def take(self, slot: int, shape: ShapeEntry, count: int = 1) -> None:
        """Count `count` pods or reservations of the shape on a node; choose missing devices."""
        grants = self.grants
        grants.take_up(shape.device_keys, slot)
        missing: list[Open] = [
            (claim, need)
            for claim, need in self.demand(shape).open
            if grants.is_open((claim.namespace, claim.name), claim.uid)
        ]
        # Together, so that no claim takes the only device of another one. A pod that another
        # scheduler bound may use more than there is: then each claim gets what there is for it.
        if missing and not self._choose(missing, slot):
            for open_claim in missing if len(missing) > 1 else ():
                self._choose([open_claim], slot)
        grants.add_users(shape.device_keys, slot, count)

    def take_alike(self, slots: Sequence[int], shapes: Sequence[ShapeEntry]) -> None:
        """Like `take` for each of these shapes on the slot at the same index; they have equal plain
        needs, and their claims are not in use.
        """
        self.grants.refresh()
        needs = self.demand(shapes[0]).needs
        plain = self._plain.find(needs)
        picks: dict[int, Iterator[Sequence[tuple[Pick, ...]]]] = {}
        names, claims = self._nodes.names, self._tables.resource_claims
        for slot, shape in zip(slots, shapes, strict=True):
            if plain is not None and slot not in picks:
                picks[slot] = plain.picks(names[slot], self.searches.taken)
            picks_of_claims = next(picks[slot], None) if plain is not None else None
            if picks_of_claims is None:
                # Members of the gang exchange devices, which those listed do not show.
                self.take(slot, shape)
                picks.pop(slot, None)
                continue
            # All claims are open, and their devices are on one node.
            for key, need, each in zip(shape.device_keys, needs, picks_of_claims, strict=True):
                uid = claims.by_name[key].uid
                seen = claims.allocations.get(uid, 0)
                grant = Grant(names[slot], uid, each, allocations=seen)
                self.grants.choose_alike(key, grant, slot, need)

    def give(self, slot: int, shape: ShapeEntry, count: int = 1) -> None:
        """Undo one `take`."""
        self.grants.remove_users(shape.device_keys, slot, count)

    def _choose(self, claims: list[Open], slot: int) -> bool:
        """Choose devices for every request of these claims; False: the node has too few, nothing
        is chosen.
        """
        grants = self.grants
        grants.refresh()
        result = self.searches.search(tuple(need for _, need in claims), slot)
        if result.picks is None:
            return False
        moved = grants.movable_on(slot).items() if len(result.picks) > len(claims) else ()
        others: dict[Key, Grant] = {}
        for (key, before), picks in zip(moved, result.picks, strict=False):
            others[key] = self._grant_of(slot, key, before.claim_uid, picks)
        grants.exchange(others)
        for (claim, need), picks in zip(claims, result.picks[len(moved) :], strict=True):
            # Without picks, the node's device plugin serves the pod.
            if picks or not claim.extended:
                key = claim.namespace, claim.name
                grants.choose_movable(key, self._grant_of(slot, key, claim.uid, picks), slot, need)
        return True

    def _grant_of(self, slot: int, key: Key, claim_uid: str, picks: tuple[Pick, ...]) -> Grant:
        entries = [self._inventory.table.entries[pick.device] for pick in picks]
        seen = self.grants.seen(key, claim_uid)
        return Grant(self._nodes.names[slot], claim_uid, picks, within_all(entries), seen)
