"""Applies the watcher's records and snapshots to the cluster state.

A record of a newer epoch only makes the cluster state stale: its content is in that epoch's
snapshot. A snapshot replaces the cluster state. Decisions in flight stay; their reservations end
where the snapshot shows pods bound or gone.
"""

from collections.abc import Sequence

from services.gang_planner.core.lifecycle import hold_rules
from services.gang_planner.core.state import accounting, gang_runs, in_flight, sub_gangs
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.gang_requests import is_served
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.inter_pod import profiles
from services.gang_planner.core.state.member_states import SUCCEEDED
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.planner_state import State
from shared.contracts.cluster import (
    ClusterRecord,
    DeviceClassChanges,
    NamespaceChanges,
    NodeChanges,
    ObjectChanges,
    PodChanges,
    PodGroupChanges,
    PriorityClassChanges,
    ProvisioningRequestChanges,
    QueueChanges,
    ReferenceObjectChanges,
    ResourceQuotaChanges,
    SnapshotPage,
    StreamOpened,
    Synced,
    VolumeAttachmentChanges,
    WorkloadChanges,
)
from shared.kube.quantities import INT64_MAX
from shared.kube.resources import PODS, RESOURCE_CLAIMS
from shared.model.gang_keys import GangKey, key_of
from shared.model.invariants import InvariantViolation
from shared.model.object_table import Table
from shared.model.objects import LastRun, Node, Resources
from shared.model.reference_objects import Namespace, ResourceQuota


def apply_record(state: State, seq: int, record: ClusterRecord) -> None:
    """Apply the record of CLUSTER with this sequence number; records applied before are ignored."""
    view = state.view
    if seq <= view.cluster_seq:
        return
    view.cluster_seq = seq
    if isinstance(record, StreamOpened):
        return
    view.newest_epoch = max(view.newest_epoch, record.epoch)
    if record.epoch != view.epoch:
        return
    if isinstance(record, Synced):
        before, view.synced = view.synced, record
        if is_served(before) != is_served(record):
            state.gangs.touch_all()
        _release_devices(state.node_capacity, record)
    else:
        _apply_changes(state, record, from_snapshot=False)
        _recall_runs(state.gangs)
        if state.holds.losses or state.holds.pending:
            hold_rules.judge(state)
    if state.unresolved:
        in_flight.resolve_all(state)


def load_snapshot(state: State, pages: Sequence[SnapshotPage]) -> None:
    """Replace the cluster state. Objects that are not in the pages are removed."""
    if not pages:
        raise InvariantViolation("snapshot", "has at least one page")
    view = state.view
    if not view.epoch:
        view.snapshot_seq = pages[0].cluster_seq
    view.epoch = pages[0].epoch
    view.newest_epoch = max(view.newest_epoch, view.epoch)
    view.cluster_seq = pages[0].cluster_seq
    view.synced = pages[0].synced
    _adopt_clock(state.gangs, state.members, view.synced.at_ms)
    named: set[str] = set()
    #: A PodDisruptionBudget is read as two kinds: it may no longer be a group.
    groups: set[str] = set()
    for page in pages:
        for record in page.records:
            of_kind = groups if isinstance(record, PodGroupChanges) else named
            of_kind.update(changed.uid for changed in record.changed)
    _remove_missing(state, named, groups, view.synced.at_ms)
    for page in pages:
        for record in page.records:
            _apply_changes(state, record, from_snapshot=True)
    _recall_runs(state.gangs)
    accounting.follow_device_classes(state, view.synced.at_ms)
    _release_devices(state.node_capacity, view.synced)
    # Node names may have new UIDs, and queues new objects: every gang is assessed again.
    state.gangs.touch_all()
    state.node_capacity.freed += 1
    hold_rules.judge(state)
    in_flight.resolve_all(state)


def _adopt_clock(gangs: GangTable, members: dict[str, Member], at_ms: int) -> None:
    """Replace the instants of the watcher: the earlier ones may be of another watcher's clock."""
    for gang in gangs.gangs.values():
        if gang.bound_ms:
            gang.bound_ms = at_ms
    for member in members.values():
        if member.leaving_ms:
            member.leaving_ms = at_ms


def _release_devices(node_capacity: NodeCapacity, synced: Synced) -> None:
    """Release devices of pods that have left, once their claims would be known.

    A watcher that reads no ResourceClaims names no version: there are none.
    """
    known = dict(synced.resource_versions)
    version = known.get(RESOURCE_CLAIMS.title, INT64_MAX)
    node_capacity.claims_known_up_to(version, known.get(PODS.title, 0))


def _remove_missing(state: State, named: set[str], groups: set[str], at_ms: int) -> None:
    for uid in [uid for uid in state.members if uid not in named]:
        accounting.remove_pod(state, uid)
    for uid in [uid for uid in state.gangs.groups if uid not in groups]:
        accounting.move_members(state, state.gangs.remove_group(uid), at_ms)
    for uid in [uid for uid in state.nodes.by_uid if uid not in named]:
        _remove_node(state, uid)
    for uid in [uid for uid in state.queues.objects if uid not in named]:
        state.queues.remove(uid)
    state.queues.settle()
    state.gangs.priority_classes.keep_only(named)
    state.reference_objects.remove_missing(named)
    profiles.namespaces_changed(state)


def _apply_changes(state: State, record: ObjectChanges, *, from_snapshot: bool) -> None:
    match record:
        case PodChanges():
            _apply_pods(state, record, from_snapshot=from_snapshot)
        case NodeChanges():
            for node in record.changed:
                _put_node(state, node, from_snapshot=from_snapshot)
            for gone in record.removed:
                _remove_node(state, gone.uid)
        case PodGroupChanges():
            _apply_groups(state, record, from_snapshot=from_snapshot)
        case QueueChanges():
            _apply_queues(state, record, from_snapshot=from_snapshot)
        case PriorityClassChanges():
            _apply_priority_classes(state.gangs, record, from_snapshot=from_snapshot)
        case _:
            _apply_reference_objects(state, record, from_snapshot=from_snapshot)


def _apply_pods(state: State, record: PodChanges, *, from_snapshot: bool) -> None:
    """Apply changes of pods. The pods that a gang's run remembers, or that were its last ones, are
    removed before pods join the gang, which may be their successors, or belong to its next run.
    """
    for gone in record.removed:
        if gone.succeeded:
            accounting.note_success(state, gone.uid, record.at_ms)
    versions = {gone.uid: gone.resource_version for gone in record.removed}
    for uid in _removed_first(state.gangs, state.members, record) if record.removed else ():
        accounting.remove_pod(state, uid, versions[uid])
    for pod in record.changed:
        accounting.put_pod(state, pod, record.at_ms, from_snapshot=from_snapshot)
    for gone in record.removed:
        accounting.remove_pod(state, gone.uid, gone.resource_version)


def _removed_first(gangs: GangTable, members: dict[str, Member], record: PodChanges) -> list[str]:
    """The pods of gangs that have ended, and of others that pods join: the succeeded ones, and all
    if none is left. Only of gangs with a group object, which keeps a gang without pods.
    """
    trees = gangs.trees
    named = (key_of(pod) for pod in record.changed if pod.uid not in members)
    joined = {trees.gang_of(key) for key in named if key is not None}
    gone = frozenset(gone_pod.uid for gone_pod in record.removed)
    removed_first: list[str] = []
    others: dict[GangKey, list[str]] = {}
    for gone_pod in record.removed:
        member = members.get(gone_pod.uid)
        gang = member.gang if member is not None else None
        if member is None or gang is None or gang.group is None or not gang.group.uid:
            continue
        if gang.completed or (gang.key in joined and member.state == SUCCEEDED):
            removed_first.append(gone_pod.uid)
        elif gang.key in joined and gang.succeeded:
            others.setdefault(gang.key, []).append(gone_pod.uid)
    for key, uids in others.items():
        if gangs.gangs[key].members.keys() <= gone:
            removed_first += uids
    return removed_first


def _recall_runs(gangs: GangTable) -> None:
    """Restore the runs of gangs whose group objects have appeared, once all records are applied
    that came with these.
    """
    unrecalled = gangs.unrecalled
    for key in list(unrecalled):
        gang = gangs.gangs.get(gangs.trees.gang_of(key))
        if gang is not None and gang.group is not None and gang.group.last_run is not None:
            recall_run(gang, gang.group.last_run)
            gangs.touch(gang)
    unrecalled.clear()


def recall_run(gang: Gang, last: LastRun) -> None:
    """Restore the run of a gang whose pods were deleted while this planner did not see it."""
    parts = {sub_gang.name: sub_gang.succeeded for sub_gang in sub_gangs.sub_gangs(gang)}
    gang_runs.recall(gang, last, parts)


def _apply_groups(state: State, record: PodGroupChanges, *, from_snapshot: bool) -> None:
    for group in record.changed:
        before = state.gangs.groups.get(group.uid)
        if before is None or from_snapshot or group.resource_version >= before.resource_version:
            moved = state.gangs.put_group(group, record.at_ms)
            accounting.move_members(state, moved, record.at_ms)
            state.preemptions.stirred += 1
    for gone in record.removed:
        accounting.move_members(state, state.gangs.remove_group(gone.uid), record.at_ms)


def _put_node(state: State, node: Node, *, from_snapshot: bool) -> None:
    nodes = state.nodes
    slot = nodes.find(node.name)
    before = nodes.objects[slot] if slot is not None else None
    if (
        before is not None
        and before.uid == node.uid
        and node.resource_version < before.resource_version
        and not from_snapshot
    ):
        return
    slot = nodes.slot(node.name)
    had = nodes.allocatable.cells[:, slot].copy()
    existed = bool(nodes.exists[slot])
    nodes.put(node)
    _change_capacity(state.node_capacity, slot, had)
    if not existed:
        accounting.node_changed(state, slot)


def _remove_node(state: State, uid: str) -> None:
    nodes = state.nodes
    slot = nodes.by_uid.get(uid)
    if slot is None:
        return
    had = nodes.allocatable.cells[:, slot].copy()
    nodes.remove(slot)
    _change_capacity(state.node_capacity, slot, had)
    accounting.node_changed(state, slot)


def _change_capacity(node_capacity: NodeCapacity, slot: int, had: Ints) -> None:
    has = node_capacity.nodes.allocatable.cells[:, slot].copy()
    has[: len(had)] -= had
    node_capacity.add_capacity(slot, has)


def _apply_queues(state: State, record: QueueChanges, *, from_snapshot: bool) -> None:
    for queue in record.changed:
        before = state.queues.objects.get(queue.uid)
        if before is None or from_snapshot or queue.resource_version >= before.resource_version:
            state.queues.put(queue)
    for gone in record.removed:
        state.queues.remove(gone.uid)
    state.queues.settle()
    state.node_capacity.freed += 1
    state.gangs.touch_all()


def _apply_priority_classes(
    gangs: GangTable, record: PriorityClassChanges, *, from_snapshot: bool
) -> None:
    for priority_class in record.changed:
        gangs.priority_classes.put(priority_class, from_snapshot=from_snapshot)
    for gone in record.removed:
        gangs.priority_classes.remove(gone.uid)
    gangs.touch_all()


def _apply_reference_objects(
    state: State, record: ReferenceObjectChanges, *, from_snapshot: bool
) -> None:
    if isinstance(record, ProvisioningRequestChanges):
        _apply_provisioning_requests(state, record, from_snapshot=from_snapshot)
        return
    news, objects = False, state.reference_objects
    queues = _queues_by_namespace(objects.namespaces, record)
    limits = _limits_of_quotas(objects.quotas, record)
    for reference_object in record.changed:
        news |= objects.put(reference_object, from_snapshot=from_snapshot)
    for gone in record.removed:
        news |= objects.remove(gone.uid)
    # A workload only affects holds.
    if not news or isinstance(record, WorkloadChanges):
        return
    if isinstance(record, DeviceClassChanges):
        accounting.follow_device_classes(state, record.at_ms)
    if isinstance(record, NamespaceChanges):
        profiles.namespaces_changed(state)
        others = _queues_by_namespace(objects.namespaces, record).items() ^ queues.items()
        if others:
            state.gangs.namespaces_changed({name for name, _ in others})
    if isinstance(record, ResourceQuotaChanges):
        changed = _limits_of_quotas(objects.quotas, record).items() ^ limits.items()
        state.gangs.limits_changed({namespace for (namespace, _), _ in changed})
    # Gangs that were refused without this object are tried again. A new volume attachment never
    # makes a gang fit.
    if record.removed or not isinstance(record, VolumeAttachmentChanges):
        state.node_capacity.freed += 1


def _apply_provisioning_requests(
    state: State, record: ProvisioningRequestChanges, *, from_snapshot: bool
) -> None:
    """Store the requests, and mark their gangs as changed."""
    known = state.reference_objects.provisioning_requests
    ids = {request.gang_id for request in record.changed}
    for request in record.changed:
        known.put(request, from_snapshot=from_snapshot)
        gang = state.gangs.by_id.get(request.gang_id)
        if (
            gang is not None
            and gang.request is not None
            and (request.namespace, request.name) == (gang.namespace, str(gang.request.name))
        ):
            # It may be deleted again before the next cycle.
            gang.request.seen = True
    for gone in record.removed:
        if (removed := known.get(gone.uid)) is not None:
            ids.add(removed.gang_id)
            known.remove(gone.uid)
    for gang_id in sorted(ids):
        gang = state.gangs.by_id.get(gang_id)
        if gang is not None:
            state.gangs.touch(gang)
        elif known.namespace_of(gang_id):
            # A controller created it while its gang was deleted: it is to be deleted, too.
            state.gangs.retired[gang_id] = None


def _queues_by_namespace(known: Table[Namespace], record: ReferenceObjectChanges) -> dict[str, str]:
    """Namespace -> its queue, of the namespaces in a record."""
    if not isinstance(record, NamespaceChanges):
        return {}
    namespaces = (known.get(uid) for uid in _uids_in(record))
    return {namespace.name: namespace.queue for namespace in namespaces if namespace is not None}


def _uids_in(record: ReferenceObjectChanges) -> list[str]:
    """The UIDs of the objects that a record changes or removes, in order."""
    return sorted({changed.uid for changed in (*record.changed, *record.removed)})


def _limits_of_quotas(
    known: Table[ResourceQuota], record: ReferenceObjectChanges
) -> dict[tuple[str, str], tuple[Resources, tuple[str, ...]]]:
    """(namespace, UID) -> limits and scopes, of the quotas in a record."""
    if not isinstance(record, ResourceQuotaChanges):
        return {}
    quotas = (known.get(uid) for uid in _uids_in(record))
    return {
        (quota.namespace, quota.uid): (quota.hard, quota.scopes)
        for quota in quotas
        if quota is not None
    }
