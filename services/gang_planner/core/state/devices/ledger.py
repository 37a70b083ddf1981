"""The use of ResourceClaims by pods, and the devices chosen for claims without allocated devices.

It is part of a `NodeCapacity`, like `storage.ledger`. When the first pod takes a claim without
devices, devices that its node can use are chosen; other pods of the claim can only use nodes on
which these devices are available. Until a decision has written them down, devices may be exchanged
for others of the same node, so that a member of a gang does not keep the only device of a later
one.

Invariant: no device is chosen for two claims, unless it is shareable.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from services.gang_planner.core.state.claim_turns import ClaimTurns
from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.devices.allocation_search import (
    STEPS_MAX,
    Found,
    Pick,
    Problem,
    search,
)
from services.gang_planner.core.state.devices.demand import (
    ClaimNeed,
    DeviceDemand,
    Key,
    claim_key,
)
from services.gang_planner.core.state.devices.demands import Demands
from services.gang_planner.core.state.devices.extended import ClassesOfResources
from services.gang_planner.core.state.devices.free_numbers import FreeNumbers
from services.gang_planner.core.state.devices.grants import (
    Grant,
    allocations,
    has_devices,
    is_current,
    renewed,
    usable_on,
    was_allocated,
)
from services.gang_planner.core.state.devices.inventory import Inventory
from services.gang_planner.core.state.devices.masks import SolutionMask, SolutionMasks
from services.gang_planner.core.state.devices.node_devices import ChosenDevices, DevicesOfNode
from services.gang_planner.core.state.devices.plain_devices import PlainProblems, Taken
from services.gang_planner.core.state.devices.reach import within_all
from services.gang_planner.core.state.devices.vacated import StillAllocated, VacatedDevices
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.devices import ResourceClaim

#: Number of changed nodes that are named; beyond it, any may have changed.
_SLOTS_MAX: Final = 1_024

Open: TypeAlias = tuple[ResourceClaim, ClaimNeed]
"""A claim without devices, and its need."""


class _Shared(NamedTuple):
    """What depends only on tables and nodes, for all ledgers of these."""

    inventory: Inventory
    plain: PlainProblems
    #: Which class has which extended resource.
    classes: ClassesOfResources
    demands: Demands


class Devices:
    """Claims in use on one node capacity."""

    def __init__(
        self, tables: ReferenceObjects, nodes: NodeTable, shared: _Shared | None = None
    ) -> None:
        """`shared`: of another ledger of the same tables and nodes."""
        self._tables = tables
        self._nodes = nodes
        if shared is None:
            inventory, classes = Inventory(tables, nodes), ClassesOfResources(tables)
            demands = Demands(tables, classes, inventory.selection)
            shared = _Shared(inventory, PlainProblems(inventory), classes, demands)
        self._shared = shared
        self._inventory, self._plain, self.classes, self._demands = shared
        #: Claim -> number of pods on nodes, and of reservations, that use it.
        self.uses: dict[Key, int] = {}
        self._grants: dict[Key, Grant] = {}
        #: What decisions without an outcome have chosen for claims that have devices in CLUSTER. If
        #: a binder undoes its preparation, they are chosen again: it may be killed before it
        #: reports that, and the next one prepares the same devices.
        self._prepared: dict[Key, Grant] = {}
        #: Grants of decisions in the log whose reservations are not made yet.
        self._pins: dict[Key, Grant] = {}
        #: Claims whose grants last without users, with the resourceVersion of the last one: see
        #: `keep`. None: it is not later than pods are known up to with the next heartbeat.
        self._kept: dict[Key, int | None] = {}
        #: Claims whose devices no decision has written down, with their slots and needs.
        self._movable: dict[Key, tuple[int, ClaimNeed]] = {}
        #: Devices in the cluster that count as free during a trial.
        self._vacated = VacatedDevices()
        #: The devices of all grants and pins.
        self._chosen = ChosenDevices()
        self._masks = SolutionMasks()
        self._claims_at: int | None = None
        #: Positions of the logs of the inventory and of chosen devices, at the last call of
        #: `changed_slots`.
        self._reported = self._inventory.changes.position, 0
        #: How often they had forgotten what changed since then.
        self._forgotten = 0
        #: They change with the devices and the users of a claim.
        self._turns = ClaimTurns()

    def copy(self) -> "Devices":
        other = Devices(self._tables, self._nodes, self._shared)
        other.uses = dict(self.uses)
        other._grants, other._pins = dict(self._grants), dict(self._pins)
        other._prepared = dict(self._prepared)
        other._kept, other._movable = dict(self._kept), dict(self._movable)
        other._chosen = self._chosen.copy()
        other._turns = self._turns.copy()
        other._claims_at = self._claims_at
        return other

    def unused(self) -> "Devices":
        """The same devices without claims in use."""
        return Devices(self._tables, self._nodes, self._shared)

    # ------------------------------------------------------------------- asking

    def version(self, shape: ShapeEntry) -> tuple[object, ...]:
        """A version that changes whenever the results for the shape may change on any node, except
        on those that `changed_slots` has named, and where capacity is taken or released.
        """
        demand = self.demand(shape)
        self._refresh()
        wide = self._inventory.wide_changes, self._chosen.wide_changes, self._forgotten
        if shape.alike:
            # No pod uses its claims.
            return (self._demands.version, *wide)
        version = (self._demands.version, *wide, *self._demands.claims(shape))
        return (*version, *self._turns.of(shape.device_keys)) if demand.open else version

    def changed_slots(self) -> Sequence[int]:
        """Slots of nodes whose devices may have been taken or become free since the last call."""
        self._refresh()
        logs = self._inventory.changes, self._chosen.changes
        before, self._reported = self._reported, (logs[0].position, logs[1].position)
        changed = [log.since(at, _SLOTS_MAX) for log, at in zip(logs, before, strict=True)]
        if any(one is None for one in changed):
            self._forgotten += 1
            return ()
        return [slot for one in changed if one is not None for slot in one.tolist()]

    def demand(self, shape: ShapeEntry) -> DeviceDemand:
        return self._demands.of(shape)

    def inventory(self) -> Inventory:
        """All devices, as the tables have them now."""
        self._refresh()
        return self._inventory

    def plain_needs(self, shapes: Iterable[ShapeEntry]) -> Iterator[Problem | None]:
        """For each of these shapes the needs of its claims, if they are a plain problem and no pod
        uses a claim; None: nodes may serve another pod with equal needs differently. Equal needs
        that follow each other are the same object.
        """
        self._refresh()
        demand_of = self._demands.of
        uses, pins, grants = self.uses.keys(), self._pins.keys(), self._grants.keys()
        last: Problem = ()
        is_plain = False
        for shape in shapes:
            demand, keys = demand_of(shape), shape.device_keys
            needs = demand.needs
            unused = uses.isdisjoint(keys) and pins.isdisjoint(keys) and grants.isdisjoint(keys)
            if not needs or demand.allocated or not unused:
                yield None
                continue
            if needs != last:
                last, is_plain = needs, self._plain.find(needs) is not None
            yield last if is_plain else None

    def grant(self, key: Key) -> Grant | None:
        """The devices chosen for the claim; None: none, or it has had allocated devices since."""
        found = self._grants.get(key)
        if found is None or not is_current(self._tables.resource_claims, key, found):
            return None
        return found

    def awaits_devices(self, shape: ShapeEntry) -> bool:
        """Whether claims in the cluster still have devices that are chosen for the shape's."""
        self._refresh()
        grants = [self.grant(key) for key in shape.device_keys]
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
            grant = self.grant((claim.namespace, claim.name))
            if grant is not None:
                mask &= usable_on(grant, self._nodes)
        problem = self.unsolved(demand)
        if problem:
            mask &= self._mask(problem).flags
        return mask[slots]

    def times_served(self, demand: DeviceDemand, slots: Slots) -> Ints:
        """How many pods with these plain needs each of these slots serves, with claims of their
        own. It is a lower bound on nodes where members of a gang may exchange devices.
        """
        mask = self._mask(demand.needs)
        found: Ints = np.maximum(mask.times, mask.flags)[slots]
        return found

    def points_of_alternatives(self, shape: ShapeEntry, slots: Ints) -> Ints | None:
        """How early in their lists the alternatives are that would serve the shape on each of these
        slots (`preference_of`); None: its claims without devices have no alternatives.
        """
        problem = self.unsolved(self.demand(shape))
        if not any(need.has_alternatives for need in problem):
            return None
        return self._mask(problem).points[slots]

    def unsolved(self, demand: DeviceDemand) -> Problem:
        """The needs of the claims for which no devices are chosen."""
        return tuple(
            need for claim, need in demand.open if self.grant((claim.namespace, claim.name)) is None
        )

    def is_served(self, shape: ShapeEntry) -> bool:
        """Whether each claim of the shape has devices, or some are chosen for it."""
        return not self.unsolved(self.demand(shape))

    def on_slot(self, problem: Problem, slot: int) -> Problem:
        """The needs on one node: without the extended resources that its device plugin has."""
        has_plugin = partial(self._nodes.has_plugin_of, slot=slot)
        return tuple([need.without(has_plugin) for need in problem])

    def numbers(self) -> FreeNumbers:
        """How many devices are free, for plain problems."""
        self._refresh()
        return FreeNumbers(self._plain, self._nodes, self._taken)

    def on_node(self, slot: int) -> DevicesOfNode:
        """The devices of a node, and their use."""
        self._refresh()
        return DevicesOfNode(self._inventory, self._chosen, slot, self._vacated)

    # ------------------------------------------------------------------- taking

    def take(self, slot: int, shape: ShapeEntry, count: int = 1) -> None:
        """Count `count` pods or reservations of the shape on a node; choose missing devices."""
        # Also if a claim is refused by now: a binder may allocate what a decision has chosen.
        self._take_pins(shape.device_keys, slot)
        missing: list[Open] = []
        for claim, need in self.demand(shape).open:
            key = (claim.namespace, claim.name)
            before = self._grants.get(key)
            if before is None or before.claim_uid != claim.uid:
                if before is not None:
                    self._drop_grant(key)
                if key not in self._pins:
                    # With a pin, a later decision has chosen another node.
                    missing.append((claim, need))
        # Together, so that no claim takes the only device of another one. A pod that another
        # scheduler bound may use more than there is: then each claim gets what there is for it.
        if missing and not self._choose(missing, slot):
            for one in missing if len(missing) > 1 else ():
                self._choose([one], slot)
        for key in shape.device_keys:
            self.uses[key] = self.uses.get(key, 0) + count
        self._moved(*shape.device_keys)

    def take_alike(self, slots: Sequence[int], shapes: Sequence[ShapeEntry]) -> None:
        """Like `take` for each of these shapes on the slot at the same index; they have equal plain
        needs, and their claims are not in use.
        """
        self._refresh()
        needs = self.demand(shapes[0]).needs
        plain = self._plain.find(needs)
        picks: dict[int, Iterator[Sequence[tuple[Pick, ...]]]] = {}
        names, claims = self._nodes.names, self._tables.resource_claims
        moved: list[Key] = []
        for slot, shape in zip(slots, shapes, strict=True):
            if plain is not None and slot not in picks:
                picks[slot] = plain.picks(names[slot], self._taken)
            found = next(picks[slot], None) if plain is not None else None
            if found is None:
                # Members of the gang exchange devices, which those listed do not show.
                self.take(slot, shape)
                picks.pop(slot, None)
                continue
            # All claims are open, and their devices are on one node.
            for key, need, each in zip(shape.device_keys, needs, found, strict=True):
                uid = claims.by_name[key].uid
                seen = claims.allocations.get(uid, 0)
                self._grants[key] = Grant(names[slot], uid, each, allocations=seen)
                self._chosen.hold_on(slot, key, each)
                self._movable[key] = slot, need
                self.uses[key] = 1
                moved.append(key)
        self._moved(*moved)

    def give(self, shape: ShapeEntry, count: int = 1) -> None:
        for key in shape.device_keys:
            self.uses[key] -= count
            self._moved(key)
            if not self.uses[key]:
                del self.uses[key]
                self._prepared.pop(key, None)
                if key not in self._kept:
                    self._drop_grant(key)

    def settle(self, keys: Iterable[Key]) -> None:
        """Fix the devices of claims, because a decision contains them."""
        for key in keys:
            if (grant := self._grants.get(key)) is not None:
                self._grants[key] = grant._replace(decided=True)
            if (movable := self._movable.pop(key, None)) is not None:
                # Another member may have fitted on the node because this claim could change its
                # devices.
                self._chosen.changes.add(movable[0])

    def land(self, shape: ShapeEntry) -> None:
        """A pod has arrived on the node that a decision has chosen: its claims have devices."""
        for key in shape.device_keys:
            self._prepared.pop(key, None)
            if (grant := self._grants.get(key)) is not None:
                self._grants[key] = grant._replace(decided=False)

    def keep(self, shape: ShapeEntry, version: int) -> None:
        """Keep the devices of a pod that leaves its node or its reservation, until CLUSTER shows
        that its claim has them or is gone. `version`: the newest resourceVersion of the pod.

        The binder allocates devices before it binds the pod. If CLUSTER shows the end of the pod
        first, the devices look free although the claim still has them.
        """
        self._kept |= {key: version for key in shape.device_keys if self.grant(key) is not None}

    def keep_pinned(self, key: Key, picks: Sequence[Pick]) -> None:
        """Keep the pinned devices of a pod that CLUSTER had lost before the planner knew of its
        decision.
        """
        pin = self._pins.get(key)
        if pin is None or pin.picks != picks or key in self.uses:
            return
        self.unpin(key)
        if is_current(self._tables.resource_claims, key, pin):
            self._grant(key, pin)
            self._kept[key] = None
            self._moved(key)

    def claims_known_up_to(self, version: int, pods: int) -> list[int]:
        """Release kept devices that CLUSTER would show by now: the claim has not got them, or has
        had them unseen. `pods`: the resourceVersion up to which pods are known. Returns the slots
        of their nodes.
        """
        slots: list[int] = []
        for key, since in list(self._kept.items()):
            if since is None:
                since = self._kept[key] = pods
            if since > version:
                continue
            del self._kept[key]
            grant = self._grants.get(key)
            if grant is not None and key not in self.uses:
                self._drop_grant(key)
                slot = self._nodes.find(grant.node)
                slots += [] if slot is None else [slot]
        return slots

    def pin(self, key: Key, pin: Grant) -> None:
        """Restore the devices of a decision in the log.

        They apply when the decision's reservation is made, or immediately if a pod on the node
        already uses the claim and the claim has no allocated devices yet. They replace devices that
        the planner chose for a pod that another scheduler bound.
        """
        self._refresh()
        slot = self._nodes.find(pin.node) if key in self.uses else None
        seen = allocations(self._tables.resource_claims, key, pin.claim_uid)
        pin = pin._replace(allocations=seen, decided=True)
        self._drop(key)
        for other in self._chosen.holders(pin.picks):
            self._drop(other)
        if slot is not None:
            self._grant(key, pin)
            self._moved(key)
        else:
            if has_devices(self._tables.resource_claims, key):
                self._prepared[key] = pin
            self._pins[key] = pin
            self._chosen.hold(key, pin.picks, self._inventory)

    def unpin(self, key: Key, picks: Sequence[Pick] | None = None) -> None:
        """Drop the pin of a claim that no pod will use; `picks`: only if it has these."""
        pin = self._pins.get(key)
        if pin is not None and picks in {None, pin.picks}:
            del self._pins[key]
            self._chosen.release(key, pin.picks, self._inventory)

    def vacate(self, claims: Iterable[ResourceClaim]) -> list[int]:
        """Count the devices of claims in the cluster as free, because all pods of these claims
        leave. The caller knows that no other pod or reservation uses these claims.

        Returns:
            Slots of nodes whose devices became free.
        """
        vacated = list(claims)
        for one in vacated:
            self._vacated.add(one)
        return self._log_devices(vacated)

    def occupy(self, claims: Iterable[ResourceClaim]) -> list[int]:
        """Undo `vacate`; claims that were not vacated are ignored."""
        return self._log_devices([one for one in claims if self._vacated.remove(one)])

    def contradiction(self) -> str:
        """The first inconsistency, such as a device that is chosen twice; "": none."""
        both = self._grants.keys() & self._pins.keys()
        if both:
            return f"devices of {sorted(both)} are both chosen and pinned"
        return self._chosen.contradiction(
            {key: one.picks for key, one in (self._grants | self._pins).items()}
        )

    # ----------------------------------------------------------------- internal

    def _moved(self, *keys: Key) -> None:
        chosen = self._grants, self._prepared, self._pins, self._kept, self._movable
        self._turns.move(keys, (self._tables.resource_claims.by_name, self.uses, *chosen))

    def _drop(self, key: Key) -> None:
        self._kept.pop(key, None)
        self._prepared.pop(key, None)
        self._drop_grant(key)
        self.unpin(key)

    def _drop_grant(self, key: Key) -> None:
        self._movable.pop(key, None)
        if (grant := self._grants.pop(key, None)) is not None:
            self._chosen.release(key, grant.picks, self._inventory)
            self._moved(key)

    def _grant(self, key: Key, grant: Grant) -> None:
        self._grants[key] = grant
        self._chosen.hold(key, grant.picks, self._inventory)

    def _refresh(self) -> None:
        """Read the tables, and drop choices whose claims have had allocated devices since."""
        self._inventory.refresh()
        claims = self._tables.resource_claims
        if self._claims_at == claims.changes:
            return
        changed = None if self._claims_at is None else claims.changed_since(self._claims_at)
        self._claims_at = claims.changes
        if changed is None:
            keys = dict.fromkeys([*self._pins, *self._grants, *self._prepared, *self._kept])
        else:
            keys = dict.fromkeys(map(claim_key, changed))
        for key in keys:
            one = self._grants.get(key) or self._pins.get(key)
            if one is not None and was_allocated(claims, key, one):
                self._grants.pop(key, None)
                self._pins.pop(key, None)
                self._movable.pop(key, None)
                self._chosen.release(key, one.picks, self._inventory)
                if one.decided:
                    self._prepared[key] = one
        self._choose_again([key for key in keys if key in self._prepared])
        for key in [one for one in keys if one in self._kept and self.grant(one) is None]:
            del self._kept[key]
            if key not in self.uses:
                self._drop_grant(key)

    def _choose_again(self, keys: Iterable[Key]) -> None:
        """Choose devices again for decided claims that have lost them."""
        claims = self._tables.resource_claims
        for key in keys:
            one = self._prepared[key]
            if has_devices(claims, key):
                continue
            del self._prepared[key]
            again = renewed(claims, key, one, self._inventory.allocated)
            if again and key in self.uses and not self._chosen.holders(one.picks):
                self._grant(key, again)
                self._moved(key)

    def _take_pins(self, keys: Iterable[Key], slot: int) -> None:
        """Turn pins of these claims for this node into grants."""
        claims = self._tables.resource_claims
        for key in [one for one in keys if one in self._pins]:
            claim, pin = claims.by_name.get(key), self._pins[key]
            if claim is not None and claim.uid != pin.claim_uid:
                self.unpin(key)
            elif usable_on(pin, self._nodes)[slot] and is_current(claims, key, pin):
                self.unpin(key)
                self._grant(key, pin)

    def _log_devices(self, claims: Iterable[ResourceClaim]) -> list[int]:
        self._inventory.refresh()
        slots: list[int] = []
        for claim in claims:
            parts = [(one.driver, one.pool, one.device) for one in claim.shares]
            for device in (*claim.allocated, *parts):
                slot = self._inventory.slot_of(device)
                if slot is not None:
                    slots.append(slot)
                elif device in self._inventory.table.entries:
                    self._chosen.wide_changes += 1
        self._chosen.changes.extend(slots)
        return slots

    # ---- searches

    def _mask(self, problem: Problem) -> SolutionMask:
        """Where the problem has a solution now."""
        self._refresh()
        mask, slots = self._masks.find(problem, self._inventory, self._chosen, self._nodes.size)
        search_on = partial(self._search, problem)
        plain = self._plain.find(problem)
        if plain is None:
            mask.search_on(problem, slots, search_on)
            return mask
        names, taken = self._nodes.names, self._taken
        movable = {slot for slot, need in self._movable.values() if need not in problem}
        mask.count_on(slots, lambda slot: plain.times(names[slot], taken), movable, search_on)
        return mask

    @property
    def _taken(self) -> Taken:
        allocated = self._inventory.allocated
        if self._vacated.whole:
            return StillAllocated(allocated, self._vacated), self._chosen.whole
        return allocated, self._chosen.whole

    def _search(self, problem: Problem, slot: int, steps_max: int = STEPS_MAX) -> Found:
        """Devices of a node for a problem. The first picks are for the claims of
        `_movable_on(slot)` if the result has more than the problem.
        """
        node = DevicesOfNode(self._inventory, self._chosen, slot, self._vacated)
        problem = self.on_slot(problem, slot)
        found = search(problem, node, steps_max)
        if found.picks is not None or not self._movable:
            return found
        if not (movable := self._movable_on(slot)):
            return found
        needs = self.on_slot(tuple(self._movable[key][1] for key in movable), slot)
        without = self._chosen.without(movable)
        node = DevicesOfNode(self._inventory, without, slot, self._vacated)
        both = search((*needs, *problem), node, max(steps_max - found.steps, 1))
        return both._replace(steps=found.steps + both.steps)

    def _movable_on(self, slot: int) -> list[Key]:
        return [
            key
            for key, (place, _) in self._movable.items()
            if place == slot and self._grants[key].node_affinity is None
        ]

    def _choose(self, claims: list[Open], slot: int) -> bool:
        """Choose devices for every request of these claims; False: the node has too few, nothing
        is chosen.
        """
        self._refresh()
        found = self._search(tuple(need for _, need in claims), slot)
        if found.picks is None:
            return False
        moved = self._movable_on(slot) if len(found.picks) > len(claims) else []
        before = [self._grants[key] for key in moved]
        for key, grant in zip(moved, before, strict=True):
            self._chosen.release(key, grant.picks, self._inventory)
        for key, grant, picks in zip(moved, before, found.picks, strict=False):
            self._grant(key, self._grant_of(slot, key, grant.claim_uid, picks))
            self._moved(key)
        for (claim, need), picks in zip(claims, found.picks[len(moved) :], strict=True):
            key = claim.namespace, claim.name
            if claim.extended and not picks:
                # The node's device plugin serves the pod.
                continue
            self._grant(key, self._grant_of(slot, key, claim.uid, picks))
            self._movable[key] = slot, need
        return True

    def _grant_of(self, slot: int, key: Key, claim_uid: str, picks: tuple[Pick, ...]) -> Grant:
        entries = [self._inventory.table.entries[one.device] for one in picks]
        seen = allocations(self._tables.resource_claims, key, claim_uid)
        return Grant(self._nodes.names[slot], claim_uid, picks, within_all(entries), seen)
