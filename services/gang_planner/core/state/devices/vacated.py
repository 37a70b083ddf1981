"""Claims that lose their devices when pods leave, for trials of evictions.

Kubernetes' claims controller removes a pod that has ended or is gone from the pods that a claim is
reserved for. With the last one it also deallocates the claim, in the same update, whether the claim
was made from a template or not. A claim that was never reserved, or is reserved for an object that
is not a pod, keeps its devices.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from services.gang_planner.core.state.devices.demand import Key, claim_key
from services.gang_planner.core.state.devices.selection import Device
from shared.model.devices import ResourceClaim


class ClaimConsumers:
    """The pods that allocated claims are reserved for, as pods leave and come back."""

    def __init__(
        self,
        claims: Iterable[ResourceClaim],
        is_there: Callable[[str], bool],
        kept: Container[Key] = (),
    ) -> None:
        """`is_there`: whether a pod, by UID, exists and has not ended. `kept`: claims that keep
        their devices.
        """
        self._claims: dict[str, list[ResourceClaim]] = {}
        #: UID of a claim -> number of its pods that are there.
        self._left: dict[str, int] = {}
        #: Claims all of whose pods have left already.
        self.unused: list[ResourceClaim] = []
        for claim in claims:
            if not claim.is_allocated or not claim.reserved_for or claim.reserved_beyond_pods:
                continue
            if claim_key(claim) in kept:
                continue
            there = [uid for uid in claim.reserved_for if is_there(uid)]
            self._left[claim.uid] = len(there)
            for uid in there:
                self._claims.setdefault(uid, []).append(claim)
            if not there:
                self.unused.append(claim)

    def uids(self) -> Sequence[str]:
        """The pods of these claims that were there at first."""
        return list(self._claims)

    def leave(self, uid: str) -> list[ResourceClaim]:
        """A pod leaves; returns the claims of which it was the last one."""
        return self._change(uid, -1, 0)

    def come_back(self, uid: str) -> list[ResourceClaim]:
        """Undo `leave`; returns the claims of which it is the first one."""
        return self._change(uid, 1, 1)

    def of_pod(self, uid: str) -> Sequence[ResourceClaim]:
        """The claims that lose their devices with this pod, if it is the last one of each."""
        return self._claims.get(uid, ())

    def last_of(self, uids: Sequence[str]) -> list[ResourceClaim]:
        """The claims that only these pods still use."""
        users = Counter(claim.uid for uid in uids for claim in self._claims.get(uid, ()))
        found = {claim.uid: claim for uid in uids for claim in self._claims.get(uid, ())}
        return [claim for uid, claim in found.items() if users[uid] == self._left[uid]]

    def _change(self, uid: str, by: int, at: int) -> list[ResourceClaim]:
        found: list[ResourceClaim] = []
        for claim in self._claims.get(uid, ()):
            self._left[claim.uid] += by
            if self._left[claim.uid] == at:
                found.append(claim)
        return found


class VacatedDevices:
    """The claims in the cluster whose devices count as free."""

    def __init__(self) -> None:
        #: UIDs.
        self.claims: set[str] = set()
        #: Devices that these claims have alone.
        self.whole: set[Device] = set()

    def add(self, claim: ResourceClaim) -> None:
        self.claims.add(claim.uid)
        self.whole.update(claim.allocated)

    def remove(self, claim: ResourceClaim) -> bool:
        """Undo `add`; False: it was not added."""
        if claim.uid not in self.claims:
            return False
        self.claims.remove(claim.uid)
        self.whole.difference_update(claim.allocated)
        return True


class StillAllocated:
    """The devices that claims in the cluster have alone, without vacated ones."""

    def __init__(self, allocated: Mapping[Device, int], vacated: VacatedDevices) -> None:
        self._allocated = allocated
        self._vacated = vacated.whole

    def __contains__(self, device: object) -> bool:
        return device in self._allocated and device not in self._vacated
