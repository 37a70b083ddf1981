"""Reference objects, typed as in `shared.kube.objects`: namespaces, quotas, storage, devices,
topologies and workloads.
"""

import msgspec

from shared.kube.objects import (
    Conditions,
    Int32,
    Int64,
    KubeObject,
    KubeStruct,
    LabelSelector,
    NodeSelector,
    Present,
    Quantity,
    ResourceList,
    ResourceRequirements,
)
from shared.model.devices import DeviceToleration


class ScopeRequirement(KubeStruct, frozen=True, kw_only=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(KubeStruct, frozen=True, kw_only=True):
    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(KubeStruct, frozen=True, kw_only=True):
    hard: ResourceList = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(KubeStruct, frozen=True, kw_only=True):
    hard: ResourceList = msgspec.field(default_factory=dict)
    used: ResourceList = msgspec.field(default_factory=dict)


class ResourceQuota(KubeObject, frozen=True, kw_only=True):
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


# --- storage ---


class ClaimReference(KubeStruct, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiSource(KubeStruct, frozen=True, kw_only=True):
    driver: str = ""
    volume_handle: str = ""


class InTreeSource(KubeStruct, frozen=True, kw_only=True):
    """An in-tree volume that a CSI driver has taken over: its type uses one of these fields."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    pd_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    volume_path: str = ""


class VolumeNodeAffinity(KubeStruct, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class VolumeSpec(KubeStruct, frozen=True, kw_only=True):
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
    phase: str = ""


class PersistentVolume(KubeObject, frozen=True, kw_only=True):
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class ClaimSpec(KubeStruct, frozen=True, kw_only=True):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"


class PersistentVolumeClaim(KubeObject, frozen=True, kw_only=True):
    spec: ClaimSpec = ClaimSpec()
    status: VolumeStatus = VolumeStatus()


class TopologyRequirement(KubeStruct, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(KubeStruct, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(KubeObject, frozen=True, kw_only=True):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class CsiAllocatable(KubeStruct, frozen=True, kw_only=True):
    count: Int32 | None = None


class CsiNodeDriver(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    topology_keys: tuple[str, ...] = ()
    allocatable: CsiAllocatable = CsiAllocatable()


class CsiNodeSpec(KubeStruct, frozen=True, kw_only=True):
    drivers: tuple[CsiNodeDriver, ...] = ()


class CsiNode(KubeObject, frozen=True, kw_only=True):
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(KubeStruct, frozen=True, kw_only=True):
    storage_capacity: bool = False


class CsiDriver(KubeObject, frozen=True, kw_only=True):
    spec: CsiDriverSpec = CsiDriverSpec()


class AttachedSource(KubeStruct, frozen=True, kw_only=True):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(KubeStruct, frozen=True, kw_only=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachedSource = AttachedSource()


class VolumeAttachment(KubeObject, frozen=True, kw_only=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class CsiStorageCapacity(KubeObject, frozen=True, kw_only=True):
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity = 0
    maximum_volume_size: Quantity | None = None


# --- topology ---


class TopologyLevel(KubeStruct, frozen=True, kw_only=True):
    node_label: str = ""


class TopologySpec(KubeStruct, frozen=True, kw_only=True):
    levels: tuple[TopologyLevel, ...] = ()


class Topology(KubeObject, frozen=True, kw_only=True):
    """KAI's object, which has all levels from the widest to the closest."""

    spec: TopologySpec = TopologySpec()


# --- devices ---


class CelSelector(KubeStruct, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(KubeStruct, frozen=True, kw_only=True):
    cel: CelSelector | None = None


class DeviceClassSpec(KubeStruct, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str = ""
    config: tuple[Present, ...] = ()


class DeviceClass(KubeObject, frozen=True, kw_only=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(KubeStruct, frozen=True, kw_only=True):
    """One of the values is set; the lists exist since Kubernetes 1.37."""

    int_value: Int64 | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string: str | None = None
    version: str | None = None
    int_values: tuple[Int64, ...] | None = msgspec.field(name="ints", default=None)
    bool_values: tuple[bool, ...] | None = msgspec.field(name="bools", default=None)
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRange(KubeStruct, frozen=True, kw_only=True):
    minimum: Quantity | None = msgspec.field(name="min", default=None)
    maximum: Quantity | None = msgspec.field(name="max", default=None)
    step: Quantity | None = None


class CapacityRequestPolicy(KubeStruct, frozen=True, kw_only=True):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class CapacityValue(KubeStruct, frozen=True, kw_only=True):
    value: Quantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(KubeStruct, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class CounterValue(KubeStruct, frozen=True, kw_only=True):
    value: Quantity = "0"


class CounterSet(KubeStruct, frozen=True, kw_only=True):
    """`spec.sharedCounters[]` of a ResourceSlice."""

    name: str = ""
    counters: dict[str, CounterValue] = msgspec.field(default_factory=dict)


class CounterConsumption(KubeStruct, frozen=True, kw_only=True):
    counter_set: str = ""
    counters: dict[str, CounterValue] = msgspec.field(default_factory=dict)


class Device(KubeStruct, frozen=True, kw_only=True):
    """`spec.devices[]` of a ResourceSlice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, CapacityValue] = msgspec.field(default_factory=dict)
    taints: tuple[DeviceTaint, ...] = ()
    consumes_counters: tuple[CounterConsumption, ...] = ()
    allow_multiple_allocations: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    binds_to_node: bool = False
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False


class ResourcePool(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(KubeStruct, frozen=True, kw_only=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    shared_counters: tuple[CounterSet, ...] = ()
    devices: tuple[Device, ...] = ()


class ResourceSlice(KubeObject, frozen=True, kw_only=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(KubeStruct, frozen=True, kw_only=True):
    """A rule's selection of devices. The class and selectors that v1alpha3 had until 1.34 are not
    read: then the taint keeps away from more devices than it should.
    """

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(KubeStruct, frozen=True, kw_only=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(KubeObject, frozen=True, kw_only=True):
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class DeviceCapacity(KubeStruct, frozen=True, kw_only=True):
    requests: ResourceList = msgspec.field(default_factory=dict)


class ExactDeviceRequest(KubeStruct, frozen=True, kw_only=True):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: Int64 = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: DeviceCapacity = DeviceCapacity()


class DeviceSubRequest(ExactDeviceRequest, frozen=True, kw_only=True):
    """An alternative of `firstAvailable`; it has no admin access."""

    name: str = ""


class DeviceRequest(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(KubeStruct, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(KubeStruct, frozen=True, kw_only=True):
    """`spec.devices` of a claim. Its configuration is read by the binder only."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


class ResourceClaimSpec(KubeStruct, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(KubeStruct, frozen=True, kw_only=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: ResourceList = msgspec.field(default_factory=dict)


class AllocatedDevices(KubeStruct, frozen=True, kw_only=True):
    results: tuple[AllocatedDevice, ...] = ()


class Allocation(KubeStruct, frozen=True, kw_only=True):
    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class ClaimConsumer(KubeStruct, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    uid: str = ""

    @property
    def is_pod(self) -> bool:
        return not self.api_group and self.resource in {"", "pods"}


class ResourceClaimStatus(KubeStruct, frozen=True, kw_only=True):
    allocation: Allocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()


class ResourceClaim(KubeObject, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class WorkloadSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a Job, JobSet, LeaderWorkerSet or Volcano Job: the fields that limit its pods."""

    suspend: bool = False
    replicas: Int32 | None = None
    parallelism: Int32 | None = None


class WorkloadPhase(KubeStruct, frozen=True, kw_only=True):
    phase: str = ""


class WorkloadStatus(Conditions, frozen=True, kw_only=True):
    """`status` of the same kinds: the fields that show whether the workload has finished."""

    state: WorkloadPhase = WorkloadPhase()


class Workload(KubeObject, frozen=True, kw_only=True):
    """An object of any kind whose controller creates pods: the fields common to these kinds."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ProvisioningRequest(KubeObject, frozen=True, kw_only=True):
    """The answer to a request; what it asks for is in its name."""

    status: Conditions = Conditions()
