"""Reference objects, typed as in `shared.kube.objects`: namespaces, quotas, storage, devices,
HyperNodes and workloads.
"""

import msgspec

from shared.kube.objects import (
    Condition,
    Int32,
    KubeStruct,
    LabelSelector,
    NodeSelector,
    ObjectMeta,
    Present,
    Quantity,
    ResourceList,
)


class Namespace(KubeStruct, frozen=True, kw_only=True):
    """v1 Namespace."""

    metadata: ObjectMeta = ObjectMeta()


class ScopeRequirement(KubeStruct, frozen=True, kw_only=True):
    """One requirement of a scope selector."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(KubeStruct, frozen=True, kw_only=True):
    """`spec.scopeSelector` of a quota."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a ResourceQuota."""

    hard: ResourceList = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(KubeStruct, frozen=True, kw_only=True):
    """`status` of a ResourceQuota: the enforced limits, and the usage."""

    hard: ResourceList = msgspec.field(default_factory=dict)
    used: ResourceList = msgspec.field(default_factory=dict)


class ResourceQuota(KubeStruct, frozen=True, kw_only=True):
    """v1 ResourceQuota."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


# --- storage ---


class ClaimReference(KubeStruct, frozen=True, kw_only=True):
    """`spec.claimRef` of a volume."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiSource(KubeStruct, frozen=True, kw_only=True):
    """`spec.csi` of a volume."""

    driver: str = ""
    volume_handle: str = ""


class InTreeSource(KubeStruct, frozen=True, kw_only=True):
    """An in-tree volume that a CSI driver has taken over: its type uses one of these fields."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    pd_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    volume_path: str = ""


class VolumeNodeAffinity(KubeStruct, frozen=True, kw_only=True):
    """`spec.nodeAffinity` of a volume."""

    required: NodeSelector | None = None


class VolumeSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a PersistentVolume."""

    capacity: ResourceList = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None
    aws_elastic_block_store: InTreeSource | None = None
    gce_persistent_disk: InTreeSource | None = None
    azure_disk: InTreeSource | None = None
    cinder: InTreeSource | None = None
    vsphere_volume: InTreeSource | None = None
    portworx_volume: InTreeSource | None = None


class VolumeStatus(KubeStruct, frozen=True, kw_only=True):
    """`status` of a PersistentVolume or of a claim."""

    phase: str = ""


class PersistentVolume(KubeStruct, frozen=True, kw_only=True):
    """v1 PersistentVolume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class ClaimResources(KubeStruct, frozen=True, kw_only=True):
    """`spec.resources` of a claim."""

    requests: ResourceList = msgspec.field(default_factory=dict)


class ClaimSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a PersistentVolumeClaim."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ClaimResources = ClaimResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"


class PersistentVolumeClaim(KubeStruct, frozen=True, kw_only=True):
    """v1 PersistentVolumeClaim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()
    status: VolumeStatus = VolumeStatus()


class TopologyRequirement(KubeStruct, frozen=True, kw_only=True):
    """`matchLabelExpressions[]` of an allowed topology."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(KubeStruct, frozen=True, kw_only=True):
    """`allowedTopologies[]` of a storage class."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(KubeStruct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 StorageClass."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class CsiAllocatable(KubeStruct, frozen=True, kw_only=True):
    """`allocatable` of a driver on a node."""

    count: Int32 | None = None


class CsiNodeDriver(KubeStruct, frozen=True, kw_only=True):
    """`spec.drivers[]` of a CSINode."""

    name: str = ""
    topology_keys: tuple[str, ...] = ()
    allocatable: CsiAllocatable = CsiAllocatable()


class CsiNodeSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a CSINode."""

    drivers: tuple[CsiNodeDriver, ...] = ()


class CsiNode(KubeStruct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 CSINode."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a CSIDriver."""

    storage_capacity: bool = False


class CsiDriver(KubeStruct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 CSIDriver."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CsiDriverSpec = CsiDriverSpec()


class AttachedSource(KubeStruct, frozen=True, kw_only=True):
    """`spec.source` of a VolumeAttachment."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: AttachedSource = AttachedSource()


class VolumeAttachment(KubeStruct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 VolumeAttachment."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class CsiStorageCapacity(KubeStruct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 CSIStorageCapacity."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity = 0
    maximum_volume_size: Quantity | None = None


# --- topology ---


class ExactMatch(KubeStruct, frozen=True, kw_only=True):
    """Members by name."""

    name: str = ""


class RegexMatch(KubeStruct, frozen=True, kw_only=True):
    """Members by a regular expression on their names."""

    pattern: str = ""


class MemberSelector(KubeStruct, frozen=True, kw_only=True):
    """`selector` of a member; exactly one field is set."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class HyperNodeMember(KubeStruct, frozen=True, kw_only=True):
    """`spec.members[]` of a HyperNode."""

    type: str = ""
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a HyperNode."""

    tier: Int32 = 0
    tier_name: str = ""
    members: tuple[HyperNodeMember, ...] = ()


class HyperNode(KubeStruct, frozen=True, kw_only=True):
    """topology.volcano.sh/v1alpha1 HyperNode."""

    metadata: ObjectMeta = ObjectMeta()
    spec: HyperNodeSpec = HyperNodeSpec()


# --- devices ---


class CelSelector(KubeStruct, frozen=True, kw_only=True):
    """A selector of devices in CEL."""

    expression: str = ""


class DeviceSelector(KubeStruct, frozen=True, kw_only=True):
    """`selectors[]` of a class or a request."""

    cel: CelSelector | None = None


class DeviceClassSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a DeviceClass."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[Present, ...] = ()


class DeviceClass(KubeStruct, frozen=True, kw_only=True):
    """resource.k8s.io/v1 DeviceClass."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class Device(KubeStruct, frozen=True, kw_only=True):
    """`spec.devices[]` of a ResourceSlice: its name, and the fields that divide the device or
    restrict its use.
    """

    name: str = ""
    taints: tuple[Present, ...] = ()
    consumes_counters: tuple[Present, ...] = ()
    allow_multiple_allocations: bool = False
    binding_conditions: tuple[str, ...] = ()
    node_name: str = ""
    node_selector: Present | None = None
    all_nodes: bool = False


class ResourcePool(KubeStruct, frozen=True, kw_only=True):
    """`spec.pool` of a ResourceSlice."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a ResourceSlice."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = ()


class ResourceSlice(KubeStruct, frozen=True, kw_only=True):
    """resource.k8s.io/v1 ResourceSlice."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceCapacity(KubeStruct, frozen=True, kw_only=True):
    """`capacity` of a request."""

    requests: ResourceList = msgspec.field(default_factory=dict)


class ExactDeviceRequest(KubeStruct, frozen=True, kw_only=True):
    """`exactly` of a request."""

    device_class_name: str = ""
    selectors: tuple[Present, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[Present, ...] = ()
    capacity: DeviceCapacity = DeviceCapacity()


class DeviceRequest(KubeStruct, frozen=True, kw_only=True):
    """`spec.devices.requests[]` of a claim."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[Present, ...] = ()


class DeviceClaim(KubeStruct, frozen=True, kw_only=True):
    """`spec.devices` of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Present, ...] = ()
    config: tuple[Present, ...] = ()


class ResourceClaimSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a ResourceClaim."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(KubeStruct, frozen=True, kw_only=True):
    """`status.allocation.devices.results[]`."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False


class AllocatedDevices(KubeStruct, frozen=True, kw_only=True):
    """`status.allocation.devices`."""

    results: tuple[AllocatedDevice, ...] = ()


class Allocation(KubeStruct, frozen=True, kw_only=True):
    """`status.allocation`."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class ClaimConsumer(KubeStruct, frozen=True, kw_only=True):
    """`status.reservedFor[]`."""

    uid: str = ""


class ResourceClaimStatus(KubeStruct, frozen=True, kw_only=True):
    """`status` of a ResourceClaim."""

    allocation: Allocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()


class ResourceClaim(KubeStruct, frozen=True, kw_only=True):
    """resource.k8s.io/v1 ResourceClaim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class WorkloadSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a Job, JobSet, LeaderWorkerSet or Volcano Job: the fields that limit its pods."""

    suspend: bool = False
    replicas: int | None = None
    parallelism: int | None = None


class WorkloadPhase(KubeStruct, frozen=True, kw_only=True):
    """`status.state` of a Volcano Job."""

    phase: str = ""


class WorkloadStatus(KubeStruct, frozen=True, kw_only=True):
    """`status` of the same kinds: the fields that show whether the workload has finished."""

    conditions: tuple[Condition, ...] = ()
    state: WorkloadPhase = WorkloadPhase()


class Workload(KubeStruct, frozen=True, kw_only=True):
    """An object of any kind whose controller creates pods: the fields common to these kinds."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()
