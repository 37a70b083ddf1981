"""Messages of the CLUSTER stream and of the watcher's snapshots.

Writer: the active watcher, fenced. Readers: planners, webhook (queues), recorders.

The *epoch* of a watcher is the sequence, in CLUSTER, of its first `Synced` record: the fence
guarantees that number before the record is written. A new epoch replaces the cluster state; within
an epoch an older resourceVersion of a UID is ignored.
"""

from typing import TypeAlias

import msgspec

from shared.model.objects import Node, Pod, PodGroup, PriorityClass, Queue
from shared.model.reference_objects import (
    Budget,
    Claim,
    CsiDriver,
    CsiNode,
    DeviceClass,
    HyperNode,
    Namespace,
    ResourceClaim,
    ResourceQuota,
    ResourceSlice,
    StorageCapacity,
    StorageClass,
    Volume,
    VolumeAttachment,
    Workload,
)


class Gone(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An object that no longer exists; `resource_version` is that of its deletion."""

    uid: str
    resource_version: int


class _Changes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All changes of one kind in one flush, in the order in which the API server sent them."""

    epoch: int
    #: When the flush was made.
    at_ms: int
    removed: tuple[Gone, ...] = ()


class NodeChanges(_Changes, frozen=True, kw_only=True, omit_defaults=True, tag="nodes.changed"):
    """Nodes that appeared, changed or went."""

    changed: tuple[Node, ...] = ()


class PodChanges(_Changes, frozen=True, kw_only=True, omit_defaults=True, tag="pods.changed"):
    """Pods that appeared, changed or went."""

    changed: tuple[Pod, ...] = ()


class PodGroupChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="podgroups.changed"
):
    """Groups of every dialect that appeared, changed or went."""

    changed: tuple[PodGroup, ...] = ()


class QueueChanges(_Changes, frozen=True, kw_only=True, omit_defaults=True, tag="queues.changed"):
    """Queues that appeared, changed or went."""

    changed: tuple[Queue, ...] = ()


class PriorityClassChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="priorityclasses.changed"
):
    """Priority classes that appeared, changed or went."""

    changed: tuple[PriorityClass, ...] = ()


class NamespaceChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="namespaces.changed"
):
    """Namespaces that appeared, changed or went."""

    changed: tuple[Namespace, ...] = ()


class ResourceQuotaChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="resourcequotas.changed"
):
    """ResourceQuotas that appeared, changed or went."""

    changed: tuple[ResourceQuota, ...] = ()


class BudgetChanges(_Changes, frozen=True, kw_only=True, omit_defaults=True, tag="budgets.changed"):
    """PodDisruptionBudgets, as evictions see them, that appeared, changed or went."""

    changed: tuple[Budget, ...] = ()


class VolumeChanges(_Changes, frozen=True, kw_only=True, omit_defaults=True, tag="volumes.changed"):
    """PersistentVolumes that appeared, changed or went."""

    changed: tuple[Volume, ...] = ()


class ClaimChanges(_Changes, frozen=True, kw_only=True, omit_defaults=True, tag="claims.changed"):
    """PersistentVolumeClaims that appeared, changed or went."""

    changed: tuple[Claim, ...] = ()


class StorageClassChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="storageclasses.changed"
):
    """StorageClasses that appeared, changed or went."""

    changed: tuple[StorageClass, ...] = ()


class CsiNodeChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="csinodes.changed"
):
    """CSINodes that appeared, changed or went."""

    changed: tuple[CsiNode, ...] = ()


class CsiDriverChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="csidrivers.changed"
):
    """CSIDrivers that appeared, changed or went."""

    changed: tuple[CsiDriver, ...] = ()


class StorageCapacityChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="storagecapacities.changed"
):
    """CSIStorageCapacities that appeared, changed or went."""

    changed: tuple[StorageCapacity, ...] = ()


class VolumeAttachmentChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="volumeattachments.changed"
):
    """VolumeAttachments that appeared, changed or went."""

    changed: tuple[VolumeAttachment, ...] = ()


class HyperNodeChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="hypernodes.changed"
):
    """HyperNodes that appeared, changed or went."""

    changed: tuple[HyperNode, ...] = ()


class DeviceClassChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="deviceclasses.changed"
):
    """DeviceClasses that appeared, changed or went."""

    changed: tuple[DeviceClass, ...] = ()


class ResourceSliceChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="resourceslices.changed"
):
    """ResourceSlices that appeared, changed or went."""

    changed: tuple[ResourceSlice, ...] = ()


class ResourceClaimChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="resourceclaims.changed"
):
    """ResourceClaims that appeared, changed or went."""

    changed: tuple[ResourceClaim, ...] = ()


class WorkloadChanges(
    _Changes, frozen=True, kw_only=True, omit_defaults=True, tag="workloads.changed"
):
    """Workloads that appeared or changed, or that make no pods any more."""

    changed: tuple[Workload, ...] = ()


class Synced(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="cluster.synced"):
    """The watcher's cluster state is complete and its watches are alive: written when an epoch
    opens, renewed each second.
    """

    epoch: int
    at_ms: int
    watcher: str
    #: (kind of the API, resourceVersion up to which it is known).
    resource_versions: tuple[tuple[str, int], ...] = ()
    #: Dialects whose kinds the API server serves now.
    dialects: tuple[str, ...] = ()


class StreamOpened(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="stream.opened"
):
    """Record 1 of every fenced stream, written by setup: sequences count from here."""

    stream: str
    generation: str = msgspec.field(name="incarnation")
    at_ms: int
    #: Generation of the stream that services still remembered when this one was made: its storage
    #: was lost, and what was decided there may be in flight still. "": no service remembered one.
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
    | DeviceClassChanges
    | ResourceSliceChanges
    | ResourceClaimChanges
    | WorkloadChanges
)
"""Changes of kinds that the planner keeps as they are, and looks up."""

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
    """Ask on `ask.watcher.snapshot`; `snapshot` "" and page 0 freeze a new one, the answer names
    it.
    """

    snapshot: str = ""
    page: int = 0
    #: Kinds wanted; empty: all.
    kinds: tuple[str, ...] = ()


class SnapshotPage(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="snapshot.page"
):
    """One page, at most 512 KiB: the cluster state as of CLUSTER sequence `cluster_seq` in
    `epoch`.
    """

    snapshot: str
    page: int
    pages: int
    epoch: int
    cluster_seq: int
    synced: Synced
    #: How old `synced` is, by the watcher's own clock.
    synced_age_ms: int = 0
    #: Change records with everything in `changed`, nothing in `removed`.
    records: tuple[ObjectChanges, ...] = ()


class SnapshotUnavailable(msgspec.Struct, frozen=True, kw_only=True, tag="snapshot.unavailable"):
    """The watcher is not synced, or the snapshot asked for has been dropped: ask again."""

    reason: str


SnapshotAnswer: TypeAlias = SnapshotPage | SnapshotUnavailable
