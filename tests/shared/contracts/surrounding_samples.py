"""One sample of every message about what surrounds pods and nodes, and of those grown with them.

The rules are those of `samples`, which takes these in.
"""

import msgspec

from shared.contracts.cluster import (
    BudgetChanges,
    ClaimChanges,
    CsiDriverChanges,
    CsiNodeChanges,
    DeviceClassChanges,
    Gone,
    HyperNodeChanges,
    NamespaceChanges,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    QueueChanges,
    ResourceClaimChanges,
    ResourceQuotaChanges,
    ResourceSliceChanges,
    StorageCapacityChanges,
    StorageClassChanges,
    TopologyChanges,
    VolumeAttachmentChanges,
    VolumeChanges,
    WorkloadChanges,
)
from shared.contracts.decisions import (
    Binding,
    Cycle,
    DeviceChoice,
    EvictionDecision,
    GangDecision,
    Victim,
    VolumeChoice,
)
from shared.model.devices import (
    DeviceAttribute,
    DeviceClass,
    DeviceDetails,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from shared.model.objects import NetworkTopology, Node, Pod, PodGroup, Queue, Shape, SubGroup
from shared.model.reference_objects import (
    Budget,
    Claim,
    CsiDriver,
    CsiLimit,
    CsiNode,
    HyperNode,
    HyperNodeMember,
    Namespace,
    ResourceQuota,
    StorageCapacity,
    StorageClass,
    Topology,
    Volume,
    VolumeAttachment,
    Workload,
)
from shared.model.terms import (
    PodAffinity,
    PodTerm,
    Requirement,
    Selector,
    SelectorTerm,
    SpreadConstraint,
    WeightedTerm,
)

_ON_RACK_1 = SelectorTerm(expressions=(Requirement(key="rack", operator="In", values=("rack-1",)),))
_WORKERS = Selector(requirements=(Requirement(key="role", operator="In", values=("worker",)),))
_SHAPE = Shape(
    requests=(("cpu", 1000), ("pods", 1)),
    preferred_node_affinity=(WeightedTerm(weight=10, term=_ON_RACK_1),),
    pod_affinity=PodAffinity(
        affinity=(
            PodTerm(
                selector=_WORKERS,
                namespaces=("kubeflow",),
                namespace_selector=Selector(),
                topology_key="zone",
            ),
        ),
        anti_affinity=(
            PodTerm(selector=_WORKERS, namespaces=("kubeflow",), topology_key="hostname"),
        ),
        preferred=(PodTerm(selector=None, namespaces=("a",), topology_key="rack", weight=5),),
        preferred_anti=(PodTerm(namespaces=("a",), topology_key="rack", weight=100),),
    ),
    spread=(
        SpreadConstraint(
            max_skew=1,
            topology_key="zone",
            when_unsatisfiable="ScheduleAnyway",
            selector=_WORKERS,
            min_domains=2,
            node_affinity_policy="Ignore",
            node_taints_policy="Honor",
        ),
    ),
    images=("registry/worker:1",),
    claims=("data",),
    device_claims=("?gpu",),
    namespace="kubeflow",
)
_POD = Pod(
    uid="pod-1",
    namespace="kubeflow",
    name="job-1-worker-0",
    resource_version=7,
    shape=msgspec.msgpack.encode(_SHAPE),
    labels=msgspec.msgpack.encode((("role", "worker"),)),
    nominated_node="k8s-g1",
    preempts=False,
    priority_class="high",
    preemptable="true",
    task_priority=3,
    cooldown_ms=600_000,
    started_ms=1_700_000_000_000,
    restarts=2,
)
_TOPOLOGY = NetworkTopology(mode="soft", highest_tier=2)
_GROUP = PodGroup(
    uid="group-1",
    dialect="volcano",
    namespace="kubeflow",
    name="job-1",
    resource_version=6,
    topology=NetworkTopology(highest_tier_name="spine"),
    sub_groups=(
        SubGroup(
            name="stage",
            selector=_WORKERS,
            match_label_keys=("stage",),
            size=2,
            min_sub_groups=3,
            topology=_TOPOLOGY,
        ),
    ),
    sla_waiting_ms=60_000,
    preemptable="false",
    notes=(("volcano.sh/task-topology-affinity", "ps,worker"),),
)
_CYCLE = Cycle(cluster_seq=11, outcomes_seq=12, now_ms=13, configuration="digest")
_BINDING = Binding(uid="pod-1", namespace="kubeflow", name="job-1-worker-0", node="k8s-g1")

SURROUNDING_SAMPLES: tuple[msgspec.Struct, ...] = (
    NamespaceChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Namespace(uid="ns-1", name="kubeflow", resource_version=3, labels=(("team", "a"),)),
        ),
        removed=(Gone(uid="ns-0", resource_version=2),),
    ),
    ResourceQuotaChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ResourceQuota(
                uid="quota-1",
                namespace="kubeflow",
                name="compute",
                resource_version=3,
                hard=(("pods", 10), ("requests.cpu", 4000)),
                used=(("pods", 1),),
                scopes=("PriorityClass In high,low", "NotTerminating"),
            ),
        ),
    ),
    BudgetChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Budget(
                uid="budget-1",
                namespace="kubeflow",
                name="web",
                resource_version=3,
                selector=_WORKERS,
                disruptions_allowed=1,
            ),
        ),
    ),
    VolumeChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Volume(
                uid="pv-1",
                name="pv-1",
                resource_version=3,
                capacity_bytes=1 << 30,
                access_modes=("ReadWriteOnce",),
                storage_class="fast",
                mode="Block",
                phase="Bound",
                labels=(("tier", "1"),),
                claim_namespace="kubeflow",
                claim_name="data",
                claim_uid="pvc-1",
                node_affinity=(_ON_RACK_1,),
                driver="csi.example",
                handle="vol-1",
                deleting=True,
            ),
        ),
    ),
    ClaimChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Claim(
                uid="pvc-1",
                namespace="kubeflow",
                name="data",
                resource_version=3,
                storage_class="",
                volume_name="pv-1",
                access_modes=("ReadWriteOncePod",),
                request_bytes=1 << 30,
                mode="Block",
                selector=_WORKERS,
                selected_node="k8s-g1",
                bind_completed=True,
                phase="Bound",
                owner_uid="pod-1",
                deleting=True,
            ),
        ),
    ),
    StorageClassChanges(
        epoch=2,
        at_ms=1,
        changed=(
            StorageClass(
                uid="sc-1",
                name="fast",
                resource_version=3,
                provisioner="csi.example",
                wait_for_first_consumer=True,
                allowed_topologies=(_ON_RACK_1,),
                default=True,
            ),
        ),
    ),
    CsiNodeChanges(
        epoch=2,
        at_ms=1,
        changed=(
            CsiNode(
                uid="csinode-1",
                name="k8s-g1",
                resource_version=3,
                drivers=(CsiLimit(driver="csi.example", volumes_max=25, topology_keys=("zone",)),),
            ),
        ),
    ),
    CsiDriverChanges(
        epoch=2,
        at_ms=1,
        changed=(
            CsiDriver(
                uid="csidriver-1", name="csi.example", resource_version=3, storage_capacity=True
            ),
        ),
    ),
    StorageCapacityChanges(
        epoch=2,
        at_ms=1,
        changed=(
            StorageCapacity(
                uid="capacity-1",
                namespace="kube-system",
                name="c1",
                resource_version=3,
                storage_class="fast",
                node_topology=_WORKERS,
                capacity_bytes=1 << 40,
                volume_bytes_max=1 << 39,
            ),
        ),
    ),
    VolumeAttachmentChanges(
        epoch=2,
        at_ms=1,
        changed=(
            VolumeAttachment(
                uid="attachment-1",
                name="csi-1",
                resource_version=3,
                node="k8s-g1",
                driver="csi.example",
                volume="pv-1",
            ),
        ),
    ),
    HyperNodeChanges(
        epoch=2,
        at_ms=1,
        changed=(
            HyperNode(
                uid="hyper-1",
                name="rack-1",
                resource_version=3,
                tier=2,
                tier_name="rack",
                members=(
                    HyperNodeMember(kind="Node", exact="k8s-g1"),
                    HyperNodeMember(kind="Node", regex="k8s-.*"),
                    HyperNodeMember(kind="HyperNode", labels=_WORKERS),
                ),
            ),
        ),
    ),
    TopologyChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Topology(uid="topology-1", name="network", resource_version=3, levels=("zone", "rack")),
        ),
    ),
    DeviceClassChanges(
        epoch=2,
        at_ms=1,
        changed=(DeviceClass(uid="dc-1", name="gpu", resource_version=3, driver="gpu.example"),),
    ),
    ResourceSliceChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ResourceSlice(
                uid="slice-1",
                name="slice-1",
                resource_version=3,
                driver="gpu.example",
                pool="k8s-g1",
                generation=2,
                node="k8s-g1",
                node_affinity=(_ON_RACK_1,),
                all_nodes=True,
                devices=("gpu-0", "gpu-1"),
            ),
        ),
    ),
    ResourceClaimChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ResourceClaim(
                uid="claim-1",
                namespace="kubeflow",
                name="gpus",
                resource_version=3,
                requests=(DeviceRequest(name="gpu", device_class="gpu", count=2),),
                unsupported=("spec.devices.constraints",),
                allocated=(("gpu.example", "k8s-g1", "gpu-0"),),
                node_affinity=(_ON_RACK_1,),
                reserved_for=("pod-1",),
                owner_uid="pod-1",
                deleting=True,
            ),
        ),
    ),
    DeviceClassChanges(
        epoch=2,
        at_ms=1,
        changed=(
            DeviceClass(
                uid="dc-2",
                name="large",
                resource_version=3,
                selectors=('device.driver == "gpu.example" && true',),
                unsupported=("spec.config",),
            ),
        ),
    ),
    ResourceSliceChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ResourceSlice(
                uid="slice-2",
                name="slice-2",
                resource_version=3,
                devices=("gpu-0", "gpu-1"),
                details=(
                    DeviceDetails(
                        attributes=(
                            DeviceAttribute(name="gpu.example/index", value=0),
                            DeviceAttribute(name="gpu.example/healthy", value=True),
                            DeviceAttribute(name="gpu.example/models", value=("a", "b")),
                            DeviceAttribute(name="gpu.example/cuda", value="12.4.0", version=True),
                        ),
                        capacity=(("gpu.example/memory", "80Gi"),),
                    ),
                    DeviceDetails(),
                ),
            ),
        ),
    ),
    ResourceClaimChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ResourceClaim(
                uid="claim-2",
                namespace="kubeflow",
                name="large",
                resource_version=3,
                requests=(DeviceRequest(name="gpu", device_class="large", selectors=("true",)),),
            ),
        ),
    ),
    WorkloadChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Workload(
                uid="workload-1",
                namespace="kubeflow",
                name="leaderworkersets.leaderworkerset.x-k8s.io/serving",
                resource_version=3,
                owner_uid="owner-1",
                parts=2,
            ),
        ),
    ),
    WorkloadChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Workload(
                uid="workload-1",
                namespace="kubeflow",
                name="leaderworkersets.leaderworkerset.x-k8s.io/serving",
                resource_version=3,
                title="disaggregatedset/serving",
                owner_uid="owner-1",
                parts=2,
            ),
        ),
    ),
    PodChanges(epoch=2, at_ms=3, changed=(_POD,)),
    PodGroupChanges(epoch=2, at_ms=3, changed=(_GROUP,)),
    NodeChanges(
        epoch=2,
        at_ms=3,
        changed=(
            Node(
                uid="node-1",
                name="k8s-g1",
                resource_version=5,
                images=(("registry/worker:1", 1 << 30),),
            ),
        ),
    ),
    QueueChanges(
        epoch=2,
        at_ms=3,
        changed=(
            Queue(
                uid="queue-1",
                dialect="volcano",
                name="default",
                resource_version=2,
                hierarchy="root/a",
                hierarchy_weights="1/2",
                dequeue_strategy="fifo",
                node_groups=(("required", ("group-a",)),),
            ),
        ),
    ),
    GangDecision(
        gang_id="group-1",
        gang="kubeflow/job-1",
        dialect="volcano",
        epoch=5,
        attempt=3,
        bindings=(_BINDING,),
        quorum=1,
        trace_id="0" * 32,
        first_seen_ms=1,
        cycle=_CYCLE,
        volumes=(
            VolumeChoice(
                pod_uid="pod-1",
                namespace="kubeflow",
                claim="data",
                claim_uid="pvc-1",
                node="k8s-g1",
                volume="pv-1",
                volume_uid="pv-uid-1",
            ),
        ),
        devices=(
            DeviceChoice(
                pod_uid="pod-1",
                namespace="kubeflow",
                claim="gpus",
                claim_uid="claim-1",
                node="k8s-g1",
                devices=(("gpu", "gpu.example", "k8s-g1", "gpu-0"),),
            ),
        ),
    ),
    EvictionDecision(
        gang_id="group-1",
        gang="kubeflow/job-1",
        epoch=5,
        attempt=3,
        victims=(Victim(uid="pod-2", namespace="kubeflow", name="x"),),
        via="eviction",
        reason="Preempted",
        bindings=(_BINDING,),
        trace_id="1" * 32,
        cycle=_CYCLE,
    ),
)
