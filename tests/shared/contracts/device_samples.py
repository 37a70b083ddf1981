"""Samples of messages about devices beyond a number of whole ones. The rules are those of
`samples`, which takes these in.
"""

from typing import Final

import msgspec

from shared.contracts.cluster import (
    DeviceClassChanges,
    DeviceTaintRuleChanges,
    PodChanges,
    ResourceClaimChanges,
    ResourceSliceChanges,
)
from shared.contracts.decisions import (
    Binding,
    Cycle,
    DeviceChoice,
    DeviceConditions,
    DeviceShare,
    ExtendedClaim,
    GangDecision,
)
from shared.model.devices import (
    CapacityPolicy,
    Counters,
    DeviceClass,
    DeviceConstraint,
    DeviceDetails,
    DeviceRequest,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
    SharedDevice,
)
from shared.model.objects import ContainerDevices, Pod, PodDevices, Shape
from shared.model.terms import Requirement, SelectorTerm

_IN_RACK: Final = (
    SelectorTerm(expressions=(Requirement(key="rack", operator="In", values=("r1",)),)),
)
_POLICY: Final = CapacityPolicy(
    name="memory",
    value="80Gi",
    default="4Gi",
    values=("4Gi", "8Gi"),
    minimum="4Gi",
    maximum="80Gi",
    step="4Gi",
)

_CONTAINERS: Final = (
    ContainerDevices(
        container="load", index=0, short_lived=True, requests=(("example.com/gpu", 0, 1),)
    ),
    ContainerDevices(container="train", index=1, requests=(("example.com/gpu", 0, 1),)),
)
#: As planners make it: it is in their notes about holds.
_OF_POD: Final = Shape(
    requests=(("example.com/gpu", 1), ("pods", 1)),
    device_claims=("shared", PodDevices(pod_uid="pod-4", containers=_CONTAINERS)),
    namespace="team",
)

DEVICE_SAMPLES: Final[tuple[msgspec.Struct, ...]] = (
    DeviceClassChanges(
        epoch=2,
        at_ms=1,
        changed=(DeviceClass(uid="dc-3", name="gpu", resource_version=3, configured=True),),
    ),
    DeviceTaintRuleChanges(
        epoch=2,
        at_ms=1,
        changed=(
            DeviceTaintRule(
                uid="rule-1",
                name="rule-1",
                resource_version=3,
                taint=DeviceTaint(key="broken", value="yes", effect="NoSchedule"),
                driver="gpu.example",
                pool="rack",
                device="gpu-0",
            ),
        ),
    ),
    ResourceSliceChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ResourceSlice(
                uid="slice-3",
                name="slice-3",
                resource_version=3,
                driver="gpu.example",
                pool="rack",
                per_device_nodes=True,
                devices=("gpu-0", "gpu-1", "gpu-2"),
                details=(
                    DeviceDetails(
                        taints=(DeviceTaint(key="broken", value="yes", effect="NoExecute"),),
                        consumes=(Counters(counter_set="gpu", amounts=(("slices", "2"),)),),
                        node="n1",
                    ),
                    DeviceDetails(shareable=True, policies=(_POLICY,), node_affinity=_IN_RACK),
                    DeviceDetails(
                        all_nodes=True, binds_to_node=True, binding_conditions=("Ready",)
                    ),
                ),
            ),
            ResourceSlice(
                uid="slice-4",
                name="slice-4",
                resource_version=3,
                driver="gpu.example",
                pool="rack",
                shared_counters=(Counters(counter_set="gpu", amounts=(("slices", "7"),)),),
            ),
        ),
    ),
    ResourceClaimChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ResourceClaim(
                uid="claim-3",
                namespace="team",
                name="gpus",
                resource_version=3,
                requests=(
                    DeviceRequest(
                        name="all",
                        device_class="gpu",
                        all_devices=True,
                        admin_access=True,
                        tolerations=(
                            DeviceToleration(
                                key="broken", operator="Equal", value="yes", effect="NoExecute"
                            ),
                        ),
                    ),
                    DeviceRequest(
                        name="gpu",
                        alternatives=(
                            DeviceRequest(
                                name="part", device_class="gpu", capacity=(("memory", "8Gi"),)
                            ),
                        ),
                    ),
                ),
                constraints=(
                    DeviceConstraint(attribute="gpu.example/numa"),
                    DeviceConstraint(
                        attribute="gpu.example/uuid", requests=("all", "gpu/part"), distinct=True
                    ),
                ),
                has_allocation=True,
                shares=(
                    SharedDevice(
                        driver="gpu.example",
                        pool="rack",
                        device="gpu-1",
                        capacity=(("memory", "8Gi"),),
                    ),
                ),
            ),
        ),
    ),
    GangDecision(
        gang_id="group-3",
        gang="team/job-3",
        dialect="volcano",
        epoch=7,
        attempt=1,
        bindings=(Binding(uid="pod-3", namespace="team", name="job-3-0", node="n1"),),
        quorum=1,
        trace_id="0123456789abcdef0123456789abcdef",
        first_seen_ms=1,
        cycle=Cycle(cluster_seq=1, outcomes_seq=0, now_ms=2, configuration="c"),
        devices=(
            DeviceChoice(
                pod_uid="pod-3",
                namespace="team",
                claim="gpus",
                claim_uid="claim-3",
                node="n1",
                devices=(
                    ("all", "gpu.example", "rack", "gpu-0"),
                    ("gpu/part", "gpu.example", "rack", "gpu-1"),
                ),
                shares=(DeviceShare(index=1, capacity=(("memory", "8589934592"),)),),
                admin=("all",),
                node_affinity=_IN_RACK,
                classes=("gpu",),
            ),
        ),
    ),
    DeviceClassChanges(
        epoch=2,
        at_ms=1,
        changed=(
            DeviceClass(
                uid="dc-4",
                name="gpu",
                resource_version=3,
                driver="gpu.example",
                extended_resource="example.com/gpu",
                created_ms=1,
            ),
        ),
    ),
    ResourceClaimChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ResourceClaim(
                uid="claim-4",
                namespace="team",
                name="job-4-0-extended-resources-0123456789",
                resource_version=3,
                owner_uid="pod-4",
                extended=True,
            ),
        ),
    ),
    PodChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Pod(
                uid="pod-4",
                namespace="team",
                name="job-4-0",
                resource_version=3,
                shape=msgspec.msgpack.encode(_OF_POD),
                ours=True,
                extended=_CONTAINERS,
            ),
        ),
    ),
    GangDecision(
        gang_id="group-4",
        gang="team/job-4",
        dialect="volcano",
        epoch=7,
        attempt=1,
        bindings=(Binding(uid="pod-4", namespace="team", name="job-4-0", node="n1"),),
        quorum=1,
        trace_id="0123456789abcdef0123456789abcdef",
        first_seen_ms=1,
        cycle=Cycle(cluster_seq=1, outcomes_seq=0, now_ms=2, configuration="c"),
        devices=(
            DeviceChoice(
                pod_uid="pod-4",
                namespace="team",
                claim="job-4-0-extended-resources-0123456789",
                claim_uid="",
                node="n1",
                devices=(("container-1-request-0", "gpu.example", "n1", "gpu-0"),),
                extended=ExtendedClaim(
                    requests=(("container-1-request-0", "gpu", 1),),
                    mappings=(("train", "example.com/gpu", "container-1-request-0"),),
                ),
            ),
        ),
    ),
    ResourceSliceChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ResourceSlice(
                uid="slice-5",
                name="slice-5",
                resource_version=3,
                driver="gpu.example",
                pool="fabric",
                devices=("gpu-0",),
                details=(
                    DeviceDetails(
                        binding_conditions=("Attached",), binding_failure_conditions=("Broken",)
                    ),
                ),
            ),
        ),
    ),
    GangDecision(
        gang_id="group-5",
        gang="team/job-5",
        dialect="volcano",
        epoch=7,
        attempt=1,
        bindings=(Binding(uid="pod-5", namespace="team", name="job-5-0", node="n1"),),
        quorum=1,
        trace_id="0123456789abcdef0123456789abcdef",
        first_seen_ms=1,
        cycle=Cycle(cluster_seq=1, outcomes_seq=0, now_ms=2, configuration="c"),
        devices=(
            DeviceChoice(
                pod_uid="pod-5",
                namespace="team",
                claim="gpus",
                claim_uid="claim-5",
                node="n1",
                devices=(("gpu", "gpu.example", "fabric", "gpu-0"),),
                conditions=(DeviceConditions(index=0, binding=("Attached",), failure=("Broken",)),),
            ),
        ),
    ),
)
