"""Claims that lose their devices when pods leave: for trials of evictions, and for preemptors.

Kubernetes' claims controller removes a pod that has ended or is gone from the pods that a claim is
reserved for. With the last one it also deallocates the claim, in the same update, whether the claim
was made from a template or not. A claim that was never reserved, or is reserved for an object that
is not a pod, keeps its devices. A deleted pod without a node has ended.
"""

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from typing import TYPE_CHECKING

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.devices.demand import claim_key
from services.gang_planner.core.state.devices.inventory import devices_of
from shared.model.devices import ResourceClaim

if TYPE_CHECKING:
    from services.gang_planner.core.state.devices.grants import DeviceGrants
    from services.gang_planner.core.state.devices.selection import Device


class ClaimConsumers:
    """The pods that allocated claims are reserved for, and which of them are away."""

    def __init__(
        self,
        claims: Iterable[ResourceClaim],
        is_there: Callable[[str], bool],
        kept: Container[Key] = (),
    ) -> None:
        """`is_there`: whether a pod, by UID, exists and has not ended. `kept`: claims that keep
        their devices.
        """
        #: UIDs of pods that have left since.
        self.away: Collection[str] = ()
        self._claims: dict[str, list[ResourceClaim]] = {}
        #: UID of a claim -> its pods that were there at first.
        self._users: dict[str, list[str]] = {}
        self._unused: list[ResourceClaim] = []
        for claim in claims:
            if not claim.is_allocated or not claim.reserved_for or claim.reserved_beyond_pods:
                continue
            if claim_key(claim) in kept:
                continue
            there = self._users[claim.uid] = list(filter(is_there, claim.reserved_for))
            for uid in there:
                self._claims.setdefault(uid, []).append(claim)
            if not there:
                self._unused.append(claim)

    def uids(self) -> Sequence[str]:
        """The pods of these claims that were there at first."""
        return list(self._claims)

    def of_pod(self, uid: str) -> Sequence[ResourceClaim]:
        """The claims that lose their devices with this pod, if it is the last one of each."""
        return self._claims.get(uid, ())

    def last_of(self, uids: Collection[str]) -> list[ResourceClaim]:
        """The claims that only these pods still use."""
        claims = {claim.uid: claim for uid in uids for claim in self.of_pod(uid)}
        return [
            claim
            for claim in claims.values()
            if all(uid in uids or uid in self.away for uid in self._users[claim.uid])
        ]

    def freed(self) -> list[ResourceClaim]:
        """The claims that no pod uses any more."""
        return [*self._unused, *self.last_of(self.away)]


class AllocatedDevices:
    """The devices that claims in the cluster have alone, without those of claims that are vacated:
    all their pods leave.
    """

    def __init__(self, grants: "DeviceGrants") -> None:
        self._grants = grants
        self._allocated = grants.inventory.allocated
        #: By UID.
        self.vacated: dict[str, ResourceClaim] = {}
        #: Devices that these claims have alone.
        self._free: set[Device] = set()

    def __contains__(self, device: object) -> bool:
        return device in self._allocated and device not in self._free

    def vacate(self, claims: Iterable[ResourceClaim]) -> list[int]:
        """Count the devices of these claims in the cluster as free, and of no others. The caller
        knows that no other pod or reservation uses these claims.

        Returns:
            Slots of nodes whose devices became free, or are no longer.
        """
        before, self.vacated = self.vacated, {claim.uid: claim for claim in claims}
        self._free = {device for claim in self.vacated.values() for device in claim.allocated}
        inventory = self._grants.inventory
        inventory.refresh()
        slots: list[int] = []
        for uid in before.keys() ^ self.vacated.keys():
            for device in devices_of(before.get(uid) or self.vacated[uid]):
                slot = inventory.slot_of(device)
                if slot is not None:
                    slots.append(slot)
                elif device in inventory.table.entries:
                    self._grants.wide_changes += 1
        self._grants.changes.extend(slots)
        return slots
