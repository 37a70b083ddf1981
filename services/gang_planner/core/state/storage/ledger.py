"""The use of PersistentVolumeClaims by pods, and the volumes chosen for claims that wait for their
first consumer.

It is part of a `NodeCapacity`: taking or releasing capacity for a pod also takes or releases its
claims. Therefore Statements, trial capacities, reservations and pods on nodes all count the same
way. When the first pod takes an unbound claim, its volume is chosen.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from services.gang_planner.core.state.claim_ledger import ClaimLedger, Key
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.storage.available_volumes import (
    AvailableVolumes,
    VolumeCandidates,
    enough_capacity,
    may_provision,
)
from services.gang_planner.core.state.storage.demand import (
    VolumeDemand,
    claim_keys,
    demand_of,
    fully_bound,
)
from services.gang_planner.core.state.storage.limits import Attachments
from shared.model.reference_objects import Claim

#: Number of cached demands.
_DEMANDS_MAX = 65_536
#: A choice of a volume that is usable on more nodes invalidates the results of all nodes.
_WIDE = 16
#: Number of (class, size) pairs with cached masks of provisioning.
_MAKERS_MAX = 1024
#: Number of lists whose free volumes are known.
_RESTS_MAX = 64
#: Lists up to this length are not cached.
_SHORT = 4


class Choice(NamedTuple):
    """The volume chosen for a claim; `volume` "": one that is provisioned for the node."""

    node: str
    claim_uid: str
    volume: str = ""
    volume_uid: str = ""

    @property
    def content(self) -> object:
        return self


class Storage(ClaimLedger[Choice, str]):
    """Claims in use on one node capacity, and the volumes chosen for them, by UID."""

    def __init__(self, tables: ReferenceObjects, nodes: NodeTable) -> None:
        super().__init__(tables.claims.by_name)
        self.tables = tables
        self.nodes = nodes
        self.available = AvailableVolumes(tables, nodes)
        self._limits = Attachments(tables, nodes)
        #: id of a list of candidates -> the list, and one flag for each volume: whether it is
        #: free. A gang with a thousand claims chooses a thousand times from one list.
        self._rests: dict[int, tuple[VolumeCandidates, Bools]] = {}
        #: Slots whose available volumes changed, for `changed_slots`.
        self._touched: list[int] = []
        #: Number of changed choices that concern many nodes.
        self._wide = 0
        self._demands: dict[bytes, VolumeDemand] = {}
        self._demands_at = 0
        self._pruned_at: int | None = None
        #: (class, size) -> slots where volumes can be provisioned, slots with enough capacity.
        self._makers: dict[tuple[str | None, int], tuple[Bools, Bools]] = {}
        self._makers_at = 0, 0

    def copy(self) -> "Storage":
        other = Storage(self.tables, self.nodes)
        other.take_over(self)
        # The available volumes depend only on the tables, which the copy shares.
        other.available = self.available
        other._limits, other._wide = self._limits.copy(), self._wide
        return other

    # ------------------------------------------------------------------- asking

    @property
    def changes(self) -> int:
        """Increases with every change of the tables on which results for claims depend."""
        tables = self.tables
        return (
            tables.claims.changes
            + tables.volumes.changes
            + tables.storage_classes.changes
            + tables.csi_nodes.changes
            + tables.csi_drivers.changes
            + tables.storage_capacities.changes
        )

    def version(self, shape: ShapeEntry) -> tuple[object, ...]:
        """A version that changes whenever the results for the shape may change on any node, except
        on those that `changed_slots` has named, and where capacity is taken or released.
        """
        demand = self.demand(shape)
        version = self._demands_at, self._limits.moves
        if not demand.delayed and not demand.exclusive:
            return version
        used = [self.in_use(key) for key in demand.exclusive]
        return (*version, self._wide, *used, *self.versions(claim_keys(shape.shape)))

    def changed_slots(self) -> list[int]:
        """Slots whose available volumes changed since the last call."""
        touched, self._touched = self._touched, []
        return touched

    def demand(self, shape: ShapeEntry) -> VolumeDemand:
        if self._demands_at != self.changes or len(self._demands) >= _DEMANDS_MAX:
            self._demands_at = self.changes
            self._demands.clear()
        demand = self._demands.get(shape.encoded)
        if demand is None:
            demand = self._demands[shape.encoded] = demand_of(shape.shape, self.tables)
        return demand

    def in_use(self, key: Key) -> bool:
        return key in self.uses

    def volumes_fit(self, demand: VolumeDemand) -> Bools:
        """One flag per slot: whether all bound volumes of the claims are usable there."""
        mask: Bools = np.ones(self.nodes.size, dtype=np.bool_)
        for volume in demand.bound:
            if volume.node_affinity is not None:
                mask &= self.available.usable(volume)
        return mask

    def claims_fit(self, demand: VolumeDemand) -> tuple[Bools, Bools]:
        """Two flags per slot: whether every waiting claim finds a volume or can have one
        provisioned, and whether the storage capacity suffices for the provisioned ones.
        """
        available: Bools = np.ones(self.nodes.size, dtype=np.bool_)
        capable: Bools = np.ones(self.nodes.size, dtype=np.bool_)
        sure: Bools = np.ones(self.nodes.size, dtype=np.bool_)
        contested = 0
        for claim in demand.delayed:
            matched, made, reservation = self._serving(claim)
            available &= matched | made
            capable &= matched | reservation
            sure &= made & reservation
            contested += bool(matched.any())
        if contested > 1:
            for slot in np.flatnonzero(available & capable & ~sure).tolist():
                available[slot] = None not in self._volumes_of(demand.delayed, slot)
        return available, capable

    def over_limits(self, shape: ShapeEntry) -> Bools | None:
        """One flag per slot: whether the claims would exceed an attach limit; None: nowhere."""
        return self._limits.full(claim_keys(shape.shape), self.uses)

    # ------------------------------------------------------------------- taking

    def take(self, slot: int, shape: ShapeEntry, count: int = 1) -> None:
        """Count `count` pods or reservations of the shape on a node, and choose missing volumes."""
        keys = claim_keys(shape.shape)
        self.take_up(keys, slot)
        delayed = self.demand(shape).delayed
        missing = [
            claim for claim in delayed if self.is_open((claim.namespace, claim.name), claim.uid)
        ]
        for claim, choice in zip(missing, list(self._volumes_of(missing, slot)), strict=True):
            # None: none is available, and another scheduler has bound the pod.
            if choice is not None:
                self.choose((claim.namespace, claim.name), choice)
        self.add_users(keys, slot, count)
        self._limits.change(slot, keys, count)

    def give(self, slot: int, shape: ShapeEntry, count: int = 1) -> None:
        """Undo one `take`."""
        keys = claim_keys(shape.shape)
        self._limits.change(slot, keys, -count)
        self.remove_users(keys, slot, count)

    @override
    def is_current(self, key: Key, choice: Choice) -> bool:
        claim = self.tables.claims.by_name.get(key)
        return claim is not None and claim.uid == choice.claim_uid and not fully_bound(claim)

    @override
    def applies(self, key: Key, pin: Choice, slot: int) -> bool:
        """Also if the claim is bound by now: CLUSTER may show that before the volume, which would
        then be chosen again (`_prune`).
        """
        claim = self.tables.claims.by_name.get(key)
        return claim is not None and (fully_bound(claim) or self._is_usable(pin, slot))

    @override
    def units(self, choice: Choice) -> list[str]:
        return [choice.volume_uid] if choice.volume_uid else []

    @override
    def touch(self, choice: Choice) -> None:
        uid = choice.volume_uid
        for candidates, free in self._rests.values():
            if (place := candidates.place(uid)) is not None:
                free[place] = uid not in self.holders
        volume = self.tables.volumes.get(uid)
        if volume is None:
            return
        if volume.node_affinity is not None:
            slots: list[int] = self.available.terms.slots(volume.node_affinity).tolist()
            if len(slots) <= _WIDE:
                self._touched += slots
                return
        self._wide += 1

    # ----------------------------------------------------------------- internal

    def _is_usable(self, choice: Choice, slot: int) -> bool:
        """Whether a pod on this node can use the volume."""
        volume = self.tables.volumes.get(choice.volume_uid)
        here = self.nodes.names[slot] == choice.node
        return here or (volume is not None and bool(self.available.usable(volume)[slot]))

    def _serving(self, claim: Claim) -> tuple[Bools, Bools, Bools]:
        """Three flags per slot: whether a volume for the claim is available, whether one can be
        provisioned, and whether the storage capacity suffices for it.
        """
        no_slots: Bools = np.zeros(self.nodes.size, dtype=np.bool_)
        choice = self.find((claim.namespace, claim.name))
        if choice is not None:
            volume = self.tables.volumes.get(choice.volume_uid)
            if volume is not None:
                return self.available.usable(volume), no_slots, no_slots
            only = no_slots if choice.volume_uid else self.nodes.only(choice.node)
            return no_slots, only, only
        made, reservation = self._making(claim)
        if claim.selected_node:
            return no_slots, made & self.nodes.only(claim.selected_node), reservation
        candidates = self.available.candidates(claim)
        if not candidates.volumes:
            return no_slots, made, reservation
        return candidates.mask(self._free(candidates)), made, reservation

    def _making(self, claim: Claim) -> tuple[Bools, Bools]:
        """Two flags per slot: whether a volume can be provisioned for the claim, and whether the
        storage capacity suffices. Cached by class and size; callers must not write to them.
        """
        now = self.changes, self.nodes.changes.position
        if self._makers_at != now or len(self._makers) >= _MAKERS_MAX:
            self._makers_at = now
            self._makers.clear()
        kind = claim.storage_class, claim.request_bytes
        makers = self._makers.get(kind)
        if makers is None:
            made = may_provision(claim, self.tables, self.nodes)
            reservation = enough_capacity(claim, self.tables, self.nodes) if made.any() else made
            makers = self._makers[kind] = made, reservation
        return makers

    def _free(self, candidates: VolumeCandidates) -> Bools:
        """One flag per volume of the list: whether it is not chosen. Read-only."""
        self._prune()
        if len(candidates.volumes) <= _SHORT:
            return candidates.without(self.holders)
        rest = self._rests.get(id(candidates))
        if rest is None:
            if len(self._rests) >= _RESTS_MAX:
                self._rests.clear()
            rest = candidates, candidates.without(self.holders)
            self._rests[id(candidates)] = rest
        return rest[1]

    def _prune(self) -> None:
        """End the choices that the cluster shows as bound. A choice remains until both claim and
        volume are bound: they are watched separately, and a volume that still appears free would be
        chosen again.
        """
        if self._pruned_at == self.changes:
            return
        self._pruned_at = self.changes
        claims = self.tables.claims.by_name
        for key, choice in (self._pins | self._choices).items():
            claim = claims.get(key)
            if claim is None or not fully_bound(claim):
                continue
            volume = self.tables.volumes.get(choice.volume_uid)
            seen = volume is None or bool(volume.claim_name)
            if seen or claim.volume_name != choice.volume:
                self.end(key)

    def _volumes_of(self, claims: Sequence[Claim], slot: int) -> Iterator[Choice | None]:
        """A choice for each claim, smallest claim first; None: there is none on this node."""
        node = self.nodes.names[slot]
        mine: list[str] = []
        for claim in claims:
            if (chosen := self.find((claim.namespace, claim.name))) is not None:
                yield chosen
                continue
            volume = None
            if not claim.selected_node:
                candidates = self.available.candidates(claim)
                free = self._free(candidates)
                volume = candidates.smallest(
                    slot, free & candidates.without(mine) if mine else free
                )
            if volume is not None:
                mine.append(volume.uid)
                yield Choice(node, claim.uid, volume.name, volume.uid)
                continue
            _, made, reservation = self._serving(claim)
            yield Choice(node, claim.uid) if made[slot] and reservation[slot] else None
