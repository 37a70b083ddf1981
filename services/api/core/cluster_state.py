"""Pods, groups, workloads and nodes of CLUSTER: members and owner of each gang, and what each node
has left.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from shared.contracts.cluster import (
    ClusterRecord,
    Gone,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    SnapshotPage,
    WorkloadChanges,
)
from shared.contracts.codec import requests_of
from shared.contracts.identity import id_of_key
from shared.model.gang_keys import GangKey, key_of, key_of_group
from shared.model.group_trees import GroupTrees, is_in_tree
from shared.model.object_table import Table
from shared.model.objects import Node, Pod, PodGroup
from shared.model.owners import owner_title
from shared.model.reference_objects import Workload
from shared.model.terms import Resources

#: The kinds of CLUSTER that this needs.
KINDS: Final = ("node", "pod", "podgroup", "workload")
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})


class NodeLoad(msgspec.Struct, eq=False):
    """What the pods on one node request, in the model's units."""

    requested: dict[str, int] = {}
    pods: int = 0
    #: Pods that belong to gangs.
    members: int = 0

    def add(self, requests: Resources, sign: int, *, member: bool) -> None:
        """Count a pod (`sign` 1), or no longer (-1)."""
        self.pods += sign
        self.members += sign * member
        for resource, amount in requests:
            self.requested[resource] = self.requested.get(resource, 0) + sign * amount


class ClusterState:
    """The state of one snapshot and of the records after it, applied in the order of the log."""

    def __init__(self, pages: Iterable[SnapshotPage] = ()) -> None:
        """Take the objects of a snapshot; without one, there are none."""
        self.epoch = 0
        #: The last record that this contains; the last one that changed a node or its load; and the
        #: same of each node that exists, or has pods, by its name.
        self.seq = 0
        self.nodes_seq = 0
        self.node_seqs: dict[str, int] = {}
        self.nodes: dict[str, Node] = {}
        self.loads: dict[str, NodeLoad] = {}
        self._node_names: dict[str, str] = {}
        self._pods: dict[str, Pod] = {}
        #: Pods by UID, by the key of the group that they name.
        self._pods_by_key: dict[GangKey, dict[str, Pod]] = {}
        #: Keys of gangs that have pods, by the id of the gang without an object.
        self._key_by_id: dict[str, GangKey] = {}
        self._groups: dict[str, PodGroup] = {}
        self._uids_by_key: dict[GangKey, dict[str, None]] = {}
        self._trees = GroupTrees()
        self._workloads = Table(Workload)
        for page in pages:
            self.epoch, self.seq = page.epoch, page.cluster_seq
            for record in page.records:
                self._apply(record)
        self.nodes_seq = self.seq

    def apply(self, seq: int, record: ClusterRecord) -> set[str]:
        """Apply one record; returns the ids of gangs whose members may have changed."""
        self.seq = seq
        touched = self._apply(record)
        return {gang_id for key in touched for gang_id in self._ids(key)}

    def members(self, gang_id: str, group_uid: str, namespace: str) -> Iterator[Pod]:
        """The pods of a gang in a namespace: of the tree of its group object, or, without one, by
        its id.
        """
        group = self._groups.get(group_uid)
        if group is not None:
            key = key_of_group(group)
        else:
            # The ids of planners of older versions are the owner's UID alone.
            key = self._key_by_id.get(gang_id, ("owner", namespace, gang_id))
        for part_key in (key, *(key_of_group(part) for part in self._trees.parts(key))):
            yield from self._pods_by_key.get(part_key, {}).values()

    def owner(self, gang_id: str, group_uid: str, namespace: str) -> str:
        """The object that the gang's user created, as the planner names it in sentences: kind and
        name, as "jobset/train"; "": none is known.

        A workload that becomes known after its pods counts at the gang's next change.
        """
        group = self._groups.get(group_uid)
        owner = group.owner if group is not None else None
        members = self.members(gang_id, group_uid, namespace)
        return owner_title(self._workloads, self._pods.get, owner, namespace, members)

    def _ids(self, key: GangKey) -> Iterator[str]:
        """Ids that a gang of this key may have."""
        gang = self._trees.gang_of(key)
        yield from self._uids_by_key.get(gang, ())
        yield id_of_key(gang)
        if gang[0] == "owner":
            yield gang[2]

    def _apply(self, record: ClusterRecord) -> set[GangKey]:
        match record:
            case NodeChanges(changed=nodes, removed=removed):
                self._change_nodes(nodes, removed)
            case PodChanges(changed=pods, removed=removed):
                return {
                    *(key for pod in pods for key in self._put_pod(pod)),
                    *(key for gone in removed for key in self._remove_pod(gone.uid)),
                }
            case PodGroupChanges(changed=groups, removed=removed):
                return {
                    *(key for group in groups for key in self._put_group(group)),
                    *(key for gone in removed for key in self._remove_group(gone.uid)),
                }
            case WorkloadChanges(changed=workloads, removed=removed):
                for workload in workloads:
                    self._workloads.put(workload)
                for gone in removed:
                    self._workloads.remove(gone.uid)
            case _:
                pass
        return set()

    # Nodes.

    def _change_nodes(self, changed: Iterable[Node], removed: Iterable[Gone]) -> None:
        for node in changed:
            self._node_names[node.uid] = node.name
            self.nodes[node.name] = node
            self._note_change(node.name)
        for gone in removed:
            name = self._node_names.pop(gone.uid, "")
            known = self.nodes.get(name)
            if known is not None and known.uid == gone.uid:
                del self.nodes[name]
                self._note_change(name)

    def _note_change(self, node: str) -> None:
        """The node or its load has changed."""
        self.nodes_seq = self.seq
        if node in self.nodes or node in self.loads:
            self.node_seqs[node] = self.seq
        else:
            self.node_seqs.pop(node, None)

    def _load(self, pod: Pod, sign: int) -> None:
        if not pod.node or pod.phase in _TERMINAL:
            return
        load = self.loads.get(pod.node)
        if load is None:
            load = self.loads[pod.node] = NodeLoad()
        load.add(requests_of(pod.shape), sign, member=pod.ours)
        if not load.pods:
            del self.loads[pod.node]
        self._note_change(pod.node)

    # Pods.

    def _put_pod(self, pod: Pod) -> Iterator[GangKey]:
        yield from self._remove_pod(pod.uid)
        self._pods[pod.uid] = pod
        self._load(pod, 1)
        key = key_of(pod)
        if key is not None:
            self._pods_by_key.setdefault(key, {})[pod.uid] = pod
            self._key_by_id[id_of_key(key)] = key
            yield key

    def _remove_pod(self, uid: str) -> Iterator[GangKey]:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self._load(pod, -1)
        key = key_of(pod)
        if key is not None:
            of_key = self._pods_by_key[key]
            del of_key[uid]
            if not of_key:
                del self._pods_by_key[key]
                self._key_by_id.pop(id_of_key(key), None)
            yield key

    # Groups.

    def _put_group(self, group: PodGroup) -> Iterator[GangKey]:
        yield from self._remove_group(group.uid)
        key = key_of_group(group)
        self._groups[group.uid] = group
        self._uids_by_key.setdefault(key, {})[group.uid] = None
        yield key
        if is_in_tree(group):
            for moved in self._trees.put(group):
                yield from (moved.before, moved.key)

    def _remove_group(self, uid: str) -> Iterator[GangKey]:
        group = self._groups.pop(uid, None)
        if group is None:
            return
        key = key_of_group(group)
        of_key = self._uids_by_key[key]
        del of_key[uid]
        if not of_key:
            del self._uids_by_key[key]
        yield key
        for moved in self._trees.remove(group):
            yield from (moved.before, moved.key)
