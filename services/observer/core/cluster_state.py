"""Pods, nodes and groups, as far as a recount and the report need them.

Every object carries the sequence of the record that last changed the fields of a recount: a
decision is checked against the objects that existed when it was made.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from shared.contracts.cluster import (
    ClusterRecord,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    SnapshotPage,
)
from shared.contracts.codec import requests_of
from shared.model.objects import Node, Pod, PodGroup
from shared.model.terms import Resources

TERMINAL: Final = frozenset({"Succeeded", "Failed"})


class Load(NamedTuple):
    """The requests of a pod on its node, and the record since which it is there."""

    requests: Resources
    seq: int


class ClusterState:
    """See the module's docstring. Records are applied in the order of the log."""

    def __init__(self) -> None:
        self.epoch = 0
        #: The last record of CLUSTER that this contains.
        self.seq = 0
        self.pods: dict[str, Pod] = {}
        self.groups: dict[str, PodGroup] = {}
        #: By name: the node, and the record that last changed it.
        self.nodes: dict[str, tuple[Node, int]] = {}
        #: By node's name and pod's UID.
        self.loads: dict[str, dict[str, Load]] = {}
        self._node_names: dict[str, str] = {}

    def replace(self, pages: Iterable[SnapshotPage]) -> tuple[list[str], list[str]]:
        """Replace everything by a snapshot; returns UIDs of pods, and of groups, that may have
        changed or are gone.
        """
        pods, groups = list(self.pods), list(self.groups)
        before = set(pods)
        self.pods, self.groups, self.nodes, self.loads = {}, {}, {}, {}
        self._node_names = {}
        for page in pages:
            self.epoch, self.seq = page.epoch, page.cluster_seq
            for record in page.records:
                self._apply(record)
        # Known pods first: gangs end before other gangs of their name begin.
        return (
            [*pods, *(uid for uid in self.pods if uid not in before)],
            [*dict.fromkeys([*groups, *self.groups])],
        )

    def apply(self, seq: int, record: ClusterRecord) -> tuple[list[str], list[str]]:
        """Apply one record; returns UIDs of pods, and of groups, that changed or are gone."""
        self.seq = seq
        self._apply(record)
        match record:
            case PodChanges(changed=changed, removed=removed):
                return [*(pod.uid for pod in changed), *(gone.uid for gone in removed)], []
            case PodGroupChanges(changed=changed, removed=removed):
                return [], [*(group.uid for group in changed), *(gone.uid for gone in removed)]
            case _:
                return [], []

    def _apply(self, record: ClusterRecord) -> None:
        match record:
            case NodeChanges(changed=changed, removed=removed):
                for node in changed:
                    self._node_names[node.uid] = node.name
                    known = self.nodes.get(node.name)
                    same = known is not None and known[0].allocatable == node.allocatable
                    self.nodes[node.name] = node, known[1] if known and same else self.seq
                for gone in removed:
                    self.nodes.pop(self._node_names.pop(gone.uid, ""), None)
            case PodChanges(changed=changed, removed=removed):
                for pod in changed:
                    self._put(pod)
                for gone in removed:
                    self._remove_load(gone.uid)
                    self.pods.pop(gone.uid, None)
            case PodGroupChanges(changed=changed, removed=removed):
                for group in changed:
                    self.groups[group.uid] = group
                for gone in removed:
                    self.groups.pop(gone.uid, None)
            case _:
                pass

    def _put(self, pod: Pod) -> None:
        load = self._remove_load(pod.uid)
        before = self.pods.get(pod.uid)
        self.pods[pod.uid] = pod
        if pod.node and pod.phase not in TERMINAL:
            # Since it is on this node, not since its status last changed.
            stays = load is not None and before is not None and before.node == pod.node
            since = load.seq if load is not None and stays else self.seq
            self.loads.setdefault(pod.node, {})[pod.uid] = Load(requests_of(pod.shape), since)

    def _remove_load(self, uid: str) -> Load | None:
        """Take the pod off its node."""
        pod = self.pods.get(uid)
        if pod is None or pod.node not in self.loads:
            return None
        on_node = self.loads[pod.node]
        load = on_node.pop(uid, None)
        # A pod may name a node that does not exist.
        if not on_node:
            del self.loads[pod.node]
        return load
