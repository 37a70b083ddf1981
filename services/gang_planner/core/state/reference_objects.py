"""Namespaces, quotas, budgets, storage, devices, HyperNodes, topologies, workloads and
ProvisioningRequests from CLUSTER, by kind and UID.

The objects are stored unchanged. A table that is derived from them stores the kind's `changes` and
is computed again when that number has changed.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final

from typing_extensions import override

from shared.model.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from shared.model.object_table import ObjectIndex, Table
from shared.model.objects import ReferenceObject
from shared.model.reference_objects import (
    Budget,
    Claim,
    CsiDriver,
    CsiNode,
    HyperNode,
    Namespace,
    ProvisioningRequest,
    ResourceQuota,
    StorageCapacity,
    StorageClass,
    Topology,
    Volume,
    VolumeAttachment,
    Workload,
)

#: Number of changes of ResourceClaims that readers can ask for.
_CLAIM_CHANGES_MAX: Final = 16_384


class ResourceClaims(Table[ResourceClaim]):
    """ResourceClaims, and how often each was seen with devices.

    Devices may be allocated and released again between two readings of the table.
    """

    def __init__(self) -> None:
        super().__init__(ResourceClaim)
        #: Claims for extended resources by the namespace and the UID of their pod.
        self._of_pods: ObjectIndex[tuple[str, str]] = ObjectIndex()
        #: UID -> number of its versions that had allocated devices.
        self.allocations: dict[str, int] = {}
        #: What the newest changes put or removed, the latest last.
        self._log: list[ResourceClaim] = []

    def changed_since(self, changes: int) -> list[ResourceClaim] | None:
        """What was put or removed since `changes` had this value, which may be any version of a
        claim; None: the log has forgotten, and all claims may have changed.
        """
        count = self.changes - changes
        if count > len(self._log):
            return None
        return self._log[len(self._log) - count :]

    @override
    def put(self, claim: ResourceClaim, /, *, from_snapshot: bool = False) -> bool:
        if not super().put(claim, from_snapshot=from_snapshot):
            return False
        self._note(claim)
        if claim.is_allocated:
            self.allocations[claim.uid] = self.allocations.get(claim.uid, 0) + 1
        if claim.extended:
            self._of_pods.put(claim.uid, (claim.namespace, claim.owner_uid))
        else:
            self._of_pods.remove(claim.uid)
        return True

    @override
    def remove(self, uid: str) -> bool:
        self.allocations.pop(uid, None)
        self._of_pods.remove(uid)
        if (claim := self.get(uid)) is not None:
            self._note(claim)
        return super().remove(uid)

    def of_pod(self, namespace: str, pod_uid: str) -> list[ResourceClaim]:
        """The claims for extended resources of a pod in a namespace, by name. A claim in another
        one that names the pod as its owner is not the pod's.
        """
        claims = (self[uid] for uid in self._of_pods.uids((namespace, pod_uid)))
        return sorted(claims, key=lambda claim: claim.name)

    def _note(self, claim: ResourceClaim) -> None:
        self._log.append(claim)
        if len(self._log) > _CLAIM_CHANGES_MAX:
            del self._log[: _CLAIM_CHANGES_MAX // 2]


class ProvisioningRequests(Table[ProvisioningRequest]):
    """ProvisioningRequests, also by gang."""

    def __init__(self) -> None:
        super().__init__(ProvisioningRequest)
        self._by_gang: ObjectIndex[str] = ObjectIndex()

    @property
    def gang_ids(self) -> Iterable[str]:
        """The ids of gangs with requests, also of gangs that do not exist any more."""
        return self._by_gang

    def namespace_of(self, gang_id: str) -> str:
        """The first namespace with requests of this gang; "": there is none."""
        return min((self[uid].namespace for uid in self._by_gang.uids(gang_id)), default="")

    def of_gang(self, gang_id: str, namespace: str) -> list[ProvisioningRequest]:
        """The requests of a gang, which are in its namespace, from the first attempt on."""
        known = (self[uid] for uid in self._by_gang.uids(gang_id))
        of_namespace = [request for request in known if request.namespace == namespace]
        return sorted(of_namespace, key=lambda request: (request.attempt, request.name))

    @override
    def put(self, request: ProvisioningRequest, /, *, from_snapshot: bool = False) -> bool:
        if not super().put(request, from_snapshot=from_snapshot):
            return False
        self._by_gang.put(request.uid, request.gang_id)
        return True

    @override
    def remove(self, uid: str) -> bool:
        self._by_gang.remove(uid)
        return super().remove(uid)


class ReferenceObjects:
    """One table per kind."""

    def __init__(self) -> None:
        self.namespaces = Table(Namespace)
        self.quotas = Table(ResourceQuota)
        self.budgets = Table(Budget)
        self.volumes = Table(Volume)
        self.claims = Table(Claim)
        self.storage_classes = Table(StorageClass)
        self.csi_nodes = Table(CsiNode)
        self.csi_drivers = Table(CsiDriver)
        self.storage_capacities = Table(StorageCapacity)
        self.volume_attachments = Table(VolumeAttachment)
        self.hypernodes = Table(HyperNode)
        self.topologies = Table(Topology)
        self.device_classes = Table(DeviceClass)
        self.resource_slices = Table(ResourceSlice)
        self.device_taint_rules = Table(DeviceTaintRule)
        self.resource_claims = ResourceClaims()
        self.workloads = Table(Workload)
        self.provisioning_requests = ProvisioningRequests()
        self._tables: dict[type[ReferenceObject], Table[Any]] = {
            table.kind: table for table in vars(self).values()
        }

    def is_living(self, workload: str, part: str) -> bool:
        """Whether the workload with this UID exists and creates pods of this part."""
        living = self.workloads.get(workload)
        if living is None:
            return False
        return living.parts is None or not part.isdecimal() or int(part) < living.parts

    def put(self, reference: ReferenceObject, *, from_snapshot: bool) -> bool:
        return self._tables[type(reference)].put(reference, from_snapshot=from_snapshot)

    def remove(self, uid: str) -> bool:
        return any(table.remove(uid) for table in self._tables.values())

    def remove_missing(self, named: Collection[str]) -> None:
        for table in self._tables.values():
            table.keep_only(named)
