"""Devices chosen for claims. They no longer count once CLUSTER shows that the claim is gone, or
has had allocated devices since.

A choice of devices has more states than `claim_ledger` says, because nothing but the planner keeps
two claims from the same device, and a binder allocates before it binds:

| state | begins | ends |
| --- | --- | --- |
| movable | `choose_movable`: another claim may exchange devices with it | `settle` |
| decided | `settle`, `pin`: a decision without an outcome has it | `land`: the pod has arrived |
| prepared | CLUSTER shows a decided claim with devices | `land`; chosen again if they are undone |
| kept | `keep`: the last pod leaves, and the claim may have its devices | CLUSTER shows the claim |

The devices for extended resources of a pod are chosen for the claims that the pod owns, of which a
binder makes the one that it needs.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from services.gang_planner.core.state.claim_ledger import ClaimLedger, Key
from services.gang_planner.core.state.columns import Bools, ChangeLog
from services.gang_planner.core.state.devices.demand import Amounts, ClaimNeed, Pick, claim_key
from services.gang_planner.core.state.devices.extended import pod_uid_of
from services.gang_planner.core.state.devices.inventory import Inventory
from services.gang_planner.core.state.devices.selection import Device
from services.gang_planner.core.state.node_terms import matching_any
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reference_objects import ResourceClaims
from shared.model.devices import ResourceClaim
from shared.model.terms import SelectorTerm


class Grant(NamedTuple):
    """Devices chosen for a claim."""

    node: str
    claim_uid: str
    picks: tuple[Pick, ...]
    #: Nodes on which the claim can be used, beside `node`; (): all; None: none.
    node_affinity: tuple[SelectorTerm, ...] | None = None
    #: How often the claim had been seen with devices when they were chosen.
    allocations: int = 0
    #: Whether a decision without an outcome contains them.
    decided: bool = False

    @property
    def content(self) -> object:
        return self.picks


class DeviceGrants(ClaimLedger[Grant, Device]):
    """The claims in use on one node capacity, and the devices chosen for them."""

    def __init__(self, claims: ResourceClaims, nodes: NodeTable, inventory: Inventory) -> None:
        super().__init__(claims.by_name)
        self._claims = claims
        self.nodes = nodes
        self.inventory = inventory
        #: Shareable device -> parts of it that are chosen, by claim.
        self.lent: dict[Device, list[tuple[Key, Amounts]]] = {}
        #: Slots of nodes on which devices were chosen or released.
        self.changes = ChangeLog()
        #: Increases when such a device is not on one node only.
        self.wide_changes = 0
        #: Claims whose devices no decision has written down, with their slots and needs.
        self.movable: dict[Key, tuple[int, ClaimNeed]] = {}
        #: What decisions without an outcome have chosen for claims that have devices in CLUSTER. If
        #: a binder undoes its preparation, they are chosen again: it may be killed before it
        #: reports that, and the next one prepares the same devices.
        self._prepared: dict[Key, Grant] = {}
        #: Claims whose devices stay chosen without users, with the resourceVersion of the last one:
        #: see `keep`. None: it is not later than pods are known up to with the next heartbeat.
        self._kept: dict[Key, int | None] = {}
        self._claims_at: int | None = None

    def copy(self) -> "DeviceGrants":
        other = DeviceGrants(self._claims, self.nodes, self.inventory)
        other.take_over(self)
        other.lent = {device: list(parts) for device, parts in self.lent.items()}
        other._prepared, other._kept = dict(self._prepared), dict(self._kept)
        other.movable, other._claims_at = dict(self.movable), self._claims_at
        return other

    def knows(self, keys: Iterable[Key]) -> bool:
        """Whether a pod uses one of these claims, or something is chosen or pinned for it."""
        places = self.uses, self._pins, self._choices
        return not all(place.keys().isdisjoint(keys) for place in places)

    def seen(self, key: Key, claim_uid: str) -> int:
        """How often the claim was seen with devices."""
        uids = (
            [claim_uid] if pod_uid_of(key[1]) is None else [claim.uid for claim in self._there(key)]
        )
        return sum(self._claims.allocations.get(uid, 0) for uid in uids)

    # ---------------------------------------------------------------- transitions

    def choose_movable(self, key: Key, grant: Grant, slot: int, need: ClaimNeed) -> None:
        """Choose devices of a node, which may be exchanged until a decision contains them."""
        self.choose(key, grant)
        self.movable[key] = slot, need

    def choose_alike(self, key: Key, grant: Grant, slot: int, need: ClaimNeed) -> None:
        """The same for a claim not in use that has its devices alone, and for its first pod."""
        self._choices[key] = grant
        for unit in self.units(grant):
            self.holders[unit] = key
        self.changes.add(slot)
        self.movable[key] = slot, need
        self.uses[key] = {slot: 1}

    def movable_on(self, slot: int) -> dict[Key, Grant]:
        """Claims that may get other devices of this node, with those that they have."""
        return {
            key: self._choices[key]
            for key, (place, _) in self.movable.items()
            if place == slot and self._choices[key].node_affinity is None
        }

    def exchange(self, grants: Mapping[Key, Grant]) -> None:
        """Choose other devices of their node for movable claims."""
        for key in grants:
            self._release(key, self._choices[key])
        for key, grant in grants.items():
            self._choices[key] = grant
            self._hold(key, grant)

    def settle(self, keys: Iterable[Key]) -> None:
        """Fix the devices of claims, because a decision contains them."""
        for key in keys:
            if (grant := self._choices.get(key)) is not None:
                self._choices[key] = grant._replace(decided=True)
            if (movable := self.movable.pop(key, None)) is not None:
                # Another member may have fitted on the node because this claim could change its
                # devices.
                self.changes.add(movable[0])

    def land(self, shape: ShapeEntry) -> None:
        """A pod has arrived on the node that a decision has chosen: its claims have devices."""
        for key in shape.device_keys:
            self._prepared.pop(key, None)
            if (grant := self._choices.get(key)) is not None:
                self._choices[key] = grant._replace(decided=False)

    def keep(self, shape: ShapeEntry, version: int) -> None:
        """Keep the devices of a pod that leaves its node or its reservation, until CLUSTER shows
        that its claim has them or is gone. `version`: the newest resourceVersion of the pod.

        The binder allocates devices before it binds the pod. If CLUSTER shows the end of the pod
        first, the devices look free although the claim still has them. (A volume names its claim
        itself, so that a binder is refused it for another one.)
        """
        for key in shape.device_keys:
            if self.find(key) is not None:
                self._kept[key] = version

    def keep_pinned(self, key: Key, only: Grant) -> None:
        """Keep the pinned devices of a pod that CLUSTER had lost before the planner knew of its
        decision.
        """
        pin = self._pins.get(key)
        if pin is None or pin.content != only.content or key in self.uses:
            return
        self.unpin(key)
        if self.is_current(key, pin):
            self.choose(key, pin)
            self._kept[key] = None

    def known_up_to(self, version: int, pods: int) -> list[int]:
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
            grant = self._choices.get(key)
            if grant is not None and key not in self.uses:
                self.drop(key)
                slot = self.nodes.find(grant.node)
                slots += [] if slot is None else [slot]
        return slots

    def refresh(self) -> None:
        """Read the tables, and end choices whose claims have had allocated devices since."""
        self.inventory.refresh()
        claims = self._claims
        if self._claims_at == claims.changes:
            return
        changed = None if self._claims_at is None else claims.changed_since(self._claims_at)
        self._claims_at = claims.changes
        if changed is None:
            keys = dict.fromkeys([*self._pins, *self._choices, *self._prepared, *self._kept])
        else:
            keys = dict.fromkeys(map(claim_key, changed))
        for key in keys:
            choice = self._choices.get(key) or self._pins.get(key)
            if choice is not None and self._was_allocated(key, choice):
                super().end(key)
                if choice.decided:
                    self._prepared[key] = choice
        for key in [key for key in keys if key in self._prepared and not self._has_devices(key)]:
            self._choose_again(key, self._prepared.pop(key))
        for key in [key for key in keys if key in self._kept and self.find(key) is None]:
            del self._kept[key]
            if key not in self.uses:
                self.drop(key)

    @override
    def pin(self, key: Key, pin: Grant) -> None:
        self.refresh()
        self.end(key)
        seen = self.seen(key, pin.claim_uid)
        super().pin(key, pin._replace(allocations=seen, decided=True))
        if key in self._pins and self._has_devices(key):
            self._prepared[key] = self._pins[key]

    @override
    def end(self, key: Key) -> None:
        self._kept.pop(key, None)
        self._prepared.pop(key, None)
        super().end(key)

    @override
    def fall_free(self, key: Key) -> None:
        self._prepared.pop(key, None)
        if key not in self._kept:
            self.drop(key)

    @override
    def drop(self, key: Key) -> None:
        self.movable.pop(key, None)
        super().drop(key)

    # ------------------------------------------------------------------ of a kind

    @override
    def is_current(self, key: Key, choice: Grant) -> bool:
        if pod_uid_of(key[1]) is not None:
            return not self._was_allocated(key, choice)
        claim = self._claims.by_name.get(key)
        if claim is None or claim.uid != choice.claim_uid or claim.is_allocated:
            return False
        return self._claims.allocations.get(claim.uid, 0) <= choice.allocations

    @override
    def applies(self, key: Key, pin: Grant, slot: int) -> bool:
        return bool(usable_on(pin, self.nodes)[slot]) and self.is_current(key, pin)

    @override
    def units(self, choice: Grant) -> list[Device]:
        return [pick.device for pick in choice.picks if not pick.admin and pick.consumed is None]

    @override
    def touch(self, choice: Grant) -> None:
        for pick in choice.picks:
            slot = self.inventory.slot_of(pick.device)
            if slot is not None:
                self.changes.add(slot)
            else:
                self.wide_changes += 1

    @override
    def contradiction(self) -> str:
        chosen = self._choices | self._pins
        parts = sorted((*part, key) for key, choice in chosen.items() for part in _parts(choice))
        counted = sorted(
            (device, part, key) for device, of in self.lent.items() for key, part in of
        )
        if parts != counted:
            return f"parts {parts} are chosen, {counted} count as such"
        return super().contradiction()

    # ----------------------------------------------------------------- internal

    @override
    def _hold(self, key: Key, choice: Grant) -> None:
        for device, amounts in _parts(choice):
            self.lent.setdefault(device, []).append((key, amounts))
        super()._hold(key, choice)

    @override
    def _release(self, key: Key, choice: Grant) -> None:
        for device, amounts in _parts(choice):
            self.lent[device].remove((key, amounts))
            if not self.lent[device]:
                del self.lent[device]
        super()._release(key, choice)

    def _choose_again(self, key: Key, before: Grant) -> None:
        """Choose devices again for a decided claim that has lost them, if it is in use and no other
        claim has one of them.
        """
        allocated = self.inventory.allocated
        if any(pick.device in allocated and not pick.admin for pick in before.picks):
            return
        again = before._replace(allocations=self.seen(key, before.claim_uid))
        holders = {self.holders.get(unit, key) for unit in self.units(again)}
        if key in self.uses and self.is_current(key, again) and holders <= {key}:
            self.unpin(key)
            self.choose(key, again)

    def _was_allocated(self, key: Key, grant: Grant) -> bool:
        """Whether the claim has devices, or had some since these were chosen."""
        there = self._there(key)
        seen = sum([self._claims.allocations.get(claim.uid, 0) for claim in there])
        return seen > grant.allocations or any(claim.is_allocated for claim in there)

    def _has_devices(self, key: Key) -> bool:
        """Whether CLUSTER shows the claim with devices."""
        return any(claim.is_allocated for claim in self._there(key))

    def _there(self, key: Key) -> list[ResourceClaim]:
        """The claims of the name, or of the pod."""
        pod_uid = pod_uid_of(key[1])
        if pod_uid is not None:
            return self._claims.of_pod(key[0], pod_uid)
        claim = self._claims.by_name.get(key)
        return [] if claim is None else [claim]


def _parts(grant: Grant) -> list[tuple[Device, Amounts]]:
    """The parts of shareable devices."""
    return [(pick.device, pick.consumed) for pick in grant.picks if pick.consumed is not None]


def usable_on(grant: Grant, nodes: NodeTable) -> Bools:
    """One flag per slot: whether the chosen devices are usable there."""
    if grant.node_affinity == ():
        return np.ones(nodes.size, dtype=np.bool_)
    if grant.node_affinity is not None:
        return matching_any(grant.node_affinity, nodes, slice(0, nodes.size))
    return nodes.only(grant.node)
