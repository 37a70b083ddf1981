"""Messages of the CLUSTER stream and of the watcher's snapshots.

Writer: the active watcher, fenced. Readers: planners, webhook (queues), recorders.

The *epoch* of a watcher is the sequence, in CLUSTER, of its first `Synced` record: the fence
guarantees that number before the record is written. A new epoch replaces the cluster state; within
an epoch an older resourceVersion of a UID is ignored.
"""

from typing import TypeAlias

import msgspec

from shared.model.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from shared.model.objects import Node, Pod, PodGroup, PriorityClass, Queue
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
from shared.model.terms import Struct


class Gone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An object that no longer exists; `resource_version` is that of its deletion."""

    uid: str
    resource_version: int
    #: A pod that had succeeded. The record of that may be missing, if the pod was deleted at once.
    succeeded: bool = False


class _Changes(Struct, frozen=True, kw_only=True):
    """All objects of one kind that were created, changed or deleted before one flush, in the order
    in which the API server sent them.
    """

    epoch: int
    #: When the flush was made.
    at_ms: int
    removed: tuple[Gone, ...] = ()


class NodeChanges(_Changes, frozen=True, kw_only=True, tag="nodes.changed"):
    changed: tuple[Node, ...] = ()


class PodChanges(_Changes, frozen=True, kw_only=True, tag="pods.changed"):
    changed: tuple[Pod, ...] = ()


class PodGroupChanges(_Changes, frozen=True, kw_only=True, tag="podgroups.changed"):
    changed: tuple[PodGroup, ...] = ()


class QueueChanges(_Changes, frozen=True, kw_only=True, tag="queues.changed"):
    changed: tuple[Queue, ...] = ()


class PriorityClassChanges(_Changes, frozen=True, kw_only=True, tag="priorityclasses.changed"):
    changed: tuple[PriorityClass, ...] = ()


class NamespaceChanges(_Changes, frozen=True, kw_only=True, tag="namespaces.changed"):
    changed: tuple[Namespace, ...] = ()


class ResourceQuotaChanges(_Changes, frozen=True, kw_only=True, tag="resourcequotas.changed"):
    changed: tuple[ResourceQuota, ...] = ()


class BudgetChanges(_Changes, frozen=True, kw_only=True, tag="budgets.changed"):
    changed: tuple[Budget, ...] = ()


class VolumeChanges(_Changes, frozen=True, kw_only=True, tag="volumes.changed"):
    changed: tuple[Volume, ...] = ()


class ClaimChanges(_Changes, frozen=True, kw_only=True, tag="claims.changed"):
    changed: tuple[Claim, ...] = ()


class StorageClassChanges(_Changes, frozen=True, kw_only=True, tag="storageclasses.changed"):
    changed: tuple[StorageClass, ...] = ()


class CsiNodeChanges(_Changes, frozen=True, kw_only=True, tag="csinodes.changed"):
    changed: tuple[CsiNode, ...] = ()


class CsiDriverChanges(_Changes, frozen=True, kw_only=True, tag="csidrivers.changed"):
    changed: tuple[CsiDriver, ...] = ()


class StorageCapacityChanges(_Changes, frozen=True, kw_only=True, tag="storagecapacities.changed"):
    changed: tuple[StorageCapacity, ...] = ()


class VolumeAttachmentChanges(_Changes, frozen=True, kw_only=True, tag="volumeattachments.changed"):
    changed: tuple[VolumeAttachment, ...] = ()


class HyperNodeChanges(_Changes, frozen=True, kw_only=True, tag="hypernodes.changed"):
    changed: tuple[HyperNode, ...] = ()


class TopologyChanges(_Changes, frozen=True, kw_only=True, tag="topologies.changed"):
    changed: tuple[Topology, ...] = ()


class DeviceClassChanges(_Changes, frozen=True, kw_only=True, tag="deviceclasses.changed"):
    changed: tuple[DeviceClass, ...] = ()


class ResourceSliceChanges(_Changes, frozen=True, kw_only=True, tag="resourceslices.changed"):
    changed: tuple[ResourceSlice, ...] = ()


class DeviceTaintRuleChanges(_Changes, frozen=True, kw_only=True, tag="devicetaintrules.changed"):
    changed: tuple[DeviceTaintRule, ...] = ()


class ResourceClaimChanges(_Changes, frozen=True, kw_only=True, tag="resourceclaims.changed"):
    changed: tuple[ResourceClaim, ...] = ()


class WorkloadChanges(_Changes, frozen=True, kw_only=True, tag="workloads.changed"):
    changed: tuple[Workload, ...] = ()


class ProvisioningRequestChanges(
    _Changes, frozen=True, kw_only=True, tag="provisioningrequests.changed"
):
    changed: tuple[ProvisioningRequest, ...] = ()


class Synced(Struct, frozen=True, kw_only=True, tag="cluster.synced"):
    """The watcher's cluster state is complete and its watches are alive. The watcher writes it when
    it opens an epoch, and then every second.
    """

    epoch: int
    at_ms: int
    watcher: str
    #: (resource, resourceVersion up to which its objects are known).
    resource_versions: tuple[tuple[str, int], ...] = ()
    #: Dialects whose kinds the API server serves now.
    dialects: tuple[str, ...] = ()


class StreamOpened(Struct, frozen=True, kw_only=True, tag="stream.opened"):
    """Record 1 of every fenced stream, written by setup: sequences count from here."""

    stream: str
    generation: str = msgspec.field(name="incarnation")
    at_ms: int
    #: Generation of the lost stream that this one replaces, as running services report it:
    #: requests that were decided there may still be in flight. "": none is known.
    replaces: str = ""


ReferenceObjectChanges: TypeAlias = (
    NamespaceChanges
    | ResourceQuotaChanges
    | BudgetChanges
    | VolumeChanges
    | ClaimChanges
    | StorageClassChanges
    | CsiNodeChanges
    | CsiDriverChanges
    | StorageCapacityChanges
    | VolumeAttachmentChanges
    | HyperNodeChanges
    | TopologyChanges
    | DeviceClassChanges
    | ResourceSliceChanges
    | DeviceTaintRuleChanges
    | ResourceClaimChanges
    | WorkloadChanges
    | ProvisioningRequestChanges
)
"""Changes of the kinds that the planner stores unchanged, and looks up."""

ObjectChanges: TypeAlias = (
    NodeChanges
    | PodChanges
    | PodGroupChanges
    | QueueChanges
    | PriorityClassChanges
    | ReferenceObjectChanges
)

ClusterRecord: TypeAlias = ObjectChanges | Synced | StreamOpened


class SnapshotRequest(msgspec.Struct, frozen=True, kw_only=True, tag="snapshot.ask"):
    """A request on `ask.watcher.snapshot`: `snapshot` "" and page 0 freeze a new snapshot, whose
    name is in the answer.
    """

    snapshot: str = ""
    page: int = 0
    #: Neutral kinds to include; empty: all.
    kinds: tuple[str, ...] = ()


class SnapshotPage(Struct, frozen=True, kw_only=True, tag="snapshot.page"):
    """One page, at most 512 KiB: the cluster state as of CLUSTER sequence `cluster_seq` in
    `epoch`.
    """

    snapshot: str
    page: int
    pages: int
    epoch: int
    cluster_seq: int
    synced: Synced
    #: Age of `synced` in milliseconds, by the watcher's own clock.
    synced_age_ms: int = 0
    #: Change records with everything in `changed`, nothing in `removed`.
    records: tuple[ObjectChanges, ...] = ()


class SnapshotUnavailable(msgspec.Struct, frozen=True, kw_only=True, tag="snapshot.unavailable"):
    """The watcher is not synced, or has dropped the requested snapshot: request a new one."""

    reason: str


SnapshotAnswer: TypeAlias = SnapshotPage | SnapshotUnavailable
