"""Which pods use which claim where, and what was chosen for claims that wait for their first
consumer.

Hangs on a `NodeCapacity`: whatever takes room for a pod with claims takes them here, whatever gives
it back gives them back, so that Statements, trial grounds, room kept and pods on nodes are all
counted alike. The first pod to take an unbound claim chooses its volume; the choice lasts as long
as a pod uses the claim, and means nothing any more once the cluster shows the claim and its volume
bound.

Invariant: no volume is chosen for two claims.
"""

from typing import NamedTuple

import numpy as np

from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.storage import provisioning
from services.gang_planner.core.state.storage.available_volumes import AvailableVolumes
from services.gang_planner.core.state.storage.chosen import Chosen
from services.gang_planner.core.state.storage.demand import (
    Key,
    VolumeDemand,
    claim_keys,
    demand_of,
    fully_bound,
)
from services.gang_planner.core.state.storage.limits import Attachments
from shared.model.reference_objects import Claim

#: Shapes whose demands are kept.
_DEMANDS_MAX = 65_536
#: A chosen volume that so many nodes could use changes what all of them offer at once.
_WIDE = 16
#: Classes and sizes of claims for which it is kept where volumes can be made.
_MAKERS_MAX = 1024


class Choice(NamedTuple):
    """What a claim gets; `volume` "": one that is made for the node."""

    slot: int
    claim_uid: str
    volume: str = ""
    volume_uid: str = ""


class VolumePin(NamedTuple):
    """The choice of a logged decision, to be made again when its room is."""

    node: str
    claim_uid: str
    volume: str
    volume_uid: str


class Storage:
    """Claims in use on one node capacity."""

    def __init__(self, tables: ReferenceObjects, nodes: NodeTable) -> None:
        self.tables = tables
        self.nodes = nodes
        self.available = AvailableVolumes(tables, nodes)
        self._limits = Attachments(tables, nodes)
        #: Pods per slot, of each claim that any pod on a node or with kept room uses.
        self.uses: dict[Key, dict[int, int]] = {}
        self._choices: dict[Key, Choice] = {}
        self._pins: dict[Key, VolumePin] = {}
        #: UIDs of volumes in the two tables above.
        self._chosen = Chosen()
        #: A number per claim in use that changes with its choice or its users.
        self._turns: dict[Key, int] = {}
        self._turn = 0
        #: Choices made or dropped that concern many nodes.
        self._wide = 0
        self._demands: dict[bytes, VolumeDemand] = {}
        self._demands_at = -1
        self._pruned_at = -1
        #: Where volumes can be made, and where there is room for them, by class and size.
        self._makers: dict[tuple[str | None, int], tuple[Bools, Bools]] = {}
        self._makers_at: tuple[int, int] = (-1, -1)

    def copy(self) -> "Storage":
        """An independent ledger of the same state of things."""
        other = Storage(self.tables, self.nodes)
        # What was worked out of the tables is as true there.
        other.available = self.available
        other.uses = {key: dict(slots) for key, slots in self.uses.items()}
        other._limits = self._limits.copy()
        other._choices = dict(self._choices)
        other._pins, other._chosen = dict(self._pins), self._chosen.copy()
        other._turns, other._turn, other._wide = dict(self._turns), self._turn, self._wide
        return other

    # ------------------------------------------------------------------- asking

    @property
    def changes(self) -> int:
        """Moves with every change of the tables that claims are judged by."""
        tables = self.tables
        return (
            tables.claims.changes
            + tables.volumes.changes
            + tables.storage_classes.changes
            + tables.csi_nodes.changes
            + tables.csi_drivers.changes
            + tables.storage_capacities.changes
        )

    def version(self, shape: ShapeEntry) -> tuple[int, ...]:
        """Changes whenever the answers for this shape may be others, on any node."""
        demand = self.demand(shape)
        moves = self._limits.moves
        if not demand.delayed and not demand.exclusive:
            return (self._demands_at, moves)
        turns = sum(self._turns.get(key, 0) for key in claim_keys(shape.shape))
        return (self._demands_at, moves, self._wide, turns)

    def demand(self, shape: ShapeEntry) -> VolumeDemand:
        """What the shape's claims need now."""
        if self._demands_at != self.changes or len(self._demands) >= _DEMANDS_MAX:
            self._demands_at = self.changes
            self._demands.clear()
        found = self._demands.get(shape.encoded)
        if found is None:
            found = self._demands[shape.encoded] = demand_of(shape.shape, self.tables)
        return found

    def in_use(self, key: Key) -> bool:
        """Whether a pod on a node, or room kept for one, uses the claim."""
        return key in self.uses

    def choice(self, key: Key) -> Choice | None:
        """What was chosen for the claim, if it still waits for it."""
        found = self._choices.get(key)
        claim = self.tables.claims.by_name.get(key)
        if found is None or claim is None or claim.uid != found.claim_uid or fully_bound(claim):
            return None
        return found

    def volumes_fit(self, demand: VolumeDemand) -> Bools:
        """Slots in which every volume that the claims are bound to can be used."""
        mask: Bools = np.ones(self.nodes.size, dtype=np.bool_)
        for volume in demand.bound:
            if volume.node_affinity is not None:
                mask &= self.available.usable(volume)
        return mask

    def claims_fit(self, demand: VolumeDemand) -> tuple[Bools, Bools]:
        """Slots in which every waiting claim finds a volume or has one made; and of these, those
        with enough capacity for what is made.
        """
        found: Bools = np.ones(self.nodes.size, dtype=np.bool_)
        capable: Bools = np.ones(self.nodes.size, dtype=np.bool_)
        sure: Bools = np.ones(self.nodes.size, dtype=np.bool_)
        contested = 0
        for claim in demand.delayed:
            matched, made, reservation = self._serving(claim)
            found &= matched | made
            capable &= matched | reservation
            sure &= made & reservation
            contested += bool(matched.any())
        if contested > 1:
            for slot in np.flatnonzero(found & capable & ~sure).tolist():
                found[slot] = self._choose(demand.delayed, slot) is not None
        return found, capable

    def over_limits(self, shape: ShapeEntry) -> Bools | None:
        """Slots of nodes that take no more volumes of the claims' drivers; None: there are none."""
        return self._limits.full(claim_keys(shape.shape), self.uses)

    # ------------------------------------------------------------------- taking

    def take(self, slot: int, shape: ShapeEntry, count: int = 1) -> list[int]:
        """Pods of this shape are on the node, or room for them is kept there.

        Returns:
            Other slots for which something changed with it.
        """
        touched: list[int] = []
        demand = self.demand(shape)
        waiting = [claim for claim in demand.delayed if self._open(claim)]
        if waiting:
            for claim, choice in self._pinned_or_chosen(waiting, slot):
                key = claim.namespace, claim.name
                before = self._choices.get(key)
                if before is not None:
                    self._chosen.drop(before.volume_uid)
                self._choices[key] = choice
                self._chosen.put(choice.volume_uid, key)
                touched += self._reach(choice)
        for key in claim_keys(shape.shape):
            users = self.uses.setdefault(key, {})
            users[slot] = users.get(slot, 0) + count
            self._limits.change(slot, key, count)
            self._moved(key)
        return touched

    def give(self, slot: int, shape: ShapeEntry, count: int = 1) -> list[int]:
        """Undo one `take`."""
        touched: list[int] = []
        for key in claim_keys(shape.shape):
            users = self.uses[key]
            users[slot] -= count
            if not users[slot]:
                del users[slot]
            self._limits.change(slot, key, -count)
            self._moved(key)
            if not users:
                del self.uses[key]
                choice = self._choices.pop(key, None)
                if choice is not None:
                    self._chosen.drop(choice.volume_uid)
                    touched += self._reach(choice)
        return touched

    def pin(self, key: Key, pin: VolumePin) -> None:
        """A decision read from the log has chosen this; it is taken up when its room is kept, or at
        once by a pod that is seen there already, while its claim is not seen bound.

        The log wins over what was chosen here for a pod that others bound.
        """
        self.unpin(key)
        slot = self.nodes.find(pin.node)
        there = slot is not None and slot in self.uses.get(key, ())
        if there and (before := self._choices.pop(key, None)) is not None:
            self._chosen.drop(before.volume_uid)
        if pin.volume_uid:
            other = self._chosen.claim(pin.volume_uid)
            if other is not None:
                self._choices.pop(other, None)
                self._pins.pop(other, None)
                self._moved(other)
            self._chosen.put(pin.volume_uid, key)
            self._wide += 1
        if slot is not None and there:
            self._choices[key] = Choice(slot, pin.claim_uid, pin.volume, pin.volume_uid)
            self._moved(key)
        else:
            self._pins[key] = pin

    def unpin(self, key: Key) -> None:
        """No pod will use what was pinned for the claim."""
        pin = self._pins.pop(key, None)
        if pin is not None and pin.volume_uid:
            self._chosen.drop(pin.volume_uid)
            self._wide += 1

    def contradiction(self) -> str:
        """Whether a volume is chosen twice, or its choice forgotten; "": neither."""
        chosen: list[Choice | VolumePin] = [*self._choices.values(), *self._pins.values()]
        volumes = sorted(one.volume_uid for one in chosen if one.volume_uid)
        if volumes != self._chosen.uids():
            return f"volumes {volumes} are chosen, {self._chosen.uids()} count as such"
        return ""

    # ----------------------------------------------------------------- internal

    def _moved(self, key: Key) -> None:
        self._turn += 1
        self._turns[key] = self._turn

    def _open(self, claim: Claim) -> bool:
        choice = self._choices.get((claim.namespace, claim.name))
        return choice is None or choice.claim_uid != claim.uid

    def _reach(self, choice: Choice) -> list[int]:
        """Slots for which a volume is no longer, or again, to be had."""
        volume = self.tables.volumes.get(choice.volume_uid)
        if volume is None:
            return []
        if volume.node_affinity is not None:
            slots: list[int] = self.available.terms.slots(volume.node_affinity).tolist()
            if len(slots) <= _WIDE:
                return slots
        self._wide += 1
        return []

    def _serving(self, claim: Claim) -> tuple[Bools, Bools, Bools]:
        """Slots with a volume for the claim, slots where one can be made, and of any of these those
        with the capacity for it.
        """
        nobody: Bools = np.zeros(self.nodes.size, dtype=np.bool_)
        choice = self.choice((claim.namespace, claim.name))
        if choice is not None:
            volume = self.tables.volumes.get(choice.volume_uid)
            if volume is not None:
                return self.available.usable(volume), nobody, nobody
            only = nobody.copy()
            only[choice.slot] = not choice.volume_uid
            return nobody, only, only
        made, reservation = self._making(claim)
        if claim.selected_node:
            there = nobody.copy()
            slot = self.nodes.find(claim.selected_node)
            if slot is not None:
                there[slot] = True
            return nobody, made & there, reservation
        candidates = self.available.candidates(claim)
        if not candidates.volumes:
            return nobody, made, reservation
        return candidates.mask(self._current().free(candidates)), made, reservation

    def _making(self, claim: Claim) -> tuple[Bools, Bools]:
        """Slots where a volume can be made for the claim, and those with the capacity for it; the
        same for all claims of one class and size. Not to be written to.
        """
        now = self.changes, self.nodes.changes.position
        if self._makers_at != now or len(self._makers) >= _MAKERS_MAX:
            self._makers_at = now
            self._makers.clear()
        kind = claim.storage_class, claim.request_bytes
        found = self._makers.get(kind)
        if found is None:
            made = provisioning.allowed(claim, self.tables, self.nodes)
            reservation = (
                provisioning.enough(claim, self.tables, self.nodes) if made.any() else made
            )
            found = self._makers[kind] = made, reservation
        return found

    def _current(self) -> Chosen:
        """What is chosen for claims, until the cluster shows claim and volume bound: both are
        watched apart, and a volume that still looks free would be given away again.
        """
        if self._pruned_at != self.changes:
            self._pruned_at = self.changes
            claims = self.tables.claims.by_name
            chosen: dict[Key, Choice | VolumePin] = {**self._pins, **self._choices}
            for key, one in chosen.items():
                claim = claims.get(key)
                if claim is None or not fully_bound(claim):
                    continue
                volume = self.tables.volumes.get(one.volume_uid)
                seen = volume is None or bool(volume.claim_name)
                if seen or claim.volume_name != one.volume:
                    self._choices.pop(key, None)
                    self._pins.pop(key, None)
                    self._chosen.drop(one.volume_uid)
        return self._chosen

    def _pinned_or_chosen(self, claims: list[Claim], slot: int) -> list[tuple[Claim, Choice]]:
        found: list[tuple[Claim, Choice]] = []
        left: list[Claim] = []
        for claim in claims:
            key = claim.namespace, claim.name
            pin = self._pins.get(key)
            self.unpin(key)
            if (
                pin is not None
                and pin.claim_uid == claim.uid
                and pin.node == self.nodes.names[slot]
            ):
                found.append((claim, Choice(slot, claim.uid, pin.volume, pin.volume_uid)))
            else:
                left.append(claim)
        # Where nothing is to be had (a pod that others bound) the claim has no choice of ours.
        chosen = self._choose(tuple(left), slot) or ()
        return [*found, *zip(left, chosen, strict=False)]

    def _choose(self, claims: tuple[Claim, ...], slot: int) -> list[Choice] | None:
        """A volume for each claim, smallest claim first, or one that is made; None: not here."""
        before = self._current()
        mine: list[str] = []
        choices: list[Choice] = []
        for claim in claims:
            if (chosen := self.choice((claim.namespace, claim.name))) is not None:
                choices.append(chosen)
                continue
            volume = None
            if not claim.selected_node:
                candidates = self.available.candidates(claim)
                free = before.free(candidates)
                volume = candidates.smallest(
                    slot, free & candidates.without(mine) if mine else free
                )
            if volume is not None:
                mine.append(volume.uid)
                choices.append(Choice(slot, claim.uid, volume.name, volume.uid))
                continue
            _, made, reservation = self._serving(claim)
            if not (made[slot] and reservation[slot]):
                return None
            choices.append(Choice(slot, claim.uid))
        return choices
