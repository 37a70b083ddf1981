"""An observer of a cluster that trusts no service: it reads only the API server's watches.

It keeps, per gang, the instants of the first binding, of the quorum and of the last binding, and it
collects what must never be: a pod on two nodes, a node with more on it than it offers, a gang of
which some but less than the quorum is bound. A gang is identified by what its pods say (the group's
name, else a controller that a PodDisruptionBudget names), so a group that is re-created is the same
gang. A gang without its group has no quorum, and is not judged.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from aiohttp import ClientError

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.requests import Requests, node_allocatable, pod_requests
from tests.support.waiting import TIMEOUT_S, eventually

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
GROUPS: Final = (
    "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    "/apis/scheduling.incubator.k8s.io/v1alpha1/podgroups",
    "/apis/scheduling.sigs.dev/v1alpha2/podgroups",
)
BUDGETS: Final = "/apis/policy/v1/poddisruptionbudgets"
ENDED: Final = frozenset({"Succeeded", "Failed"})
RETRY_DELAY_S: Final = 0.1
GangKey: TypeAlias = tuple[str, str]
"""Namespace and name of the group, or of the owner's UID."""


@dataclass
class GangRecord:
    """What was seen of one gang; instants are of the auditor's clock, in seconds."""

    key: GangKey
    #: UIDs of members that count: bound and not failed, or succeeded.
    placed: set[str] = field(default_factory=set)
    first_bound_s: float | None = None
    quorum_s: float | None = None
    last_bound_s: float | None = None
    #: UIDs of all members that were ever bound.
    ever_bound: set[str] = field(default_factory=set)
    #: How long each attempt stood that ended with nothing bound, in seconds.
    taken_back_s: list[float] = field(default_factory=list)

    @property
    def partial_s(self) -> float:
        """How long it was bound in part: from the first binding to the quorum."""
        if self.first_bound_s is None or self.quorum_s is None:
            return 0.0
        return self.quorum_s - self.first_bound_s


class Auditor:
    """`run` it in a task, wait for `watching`, and ask it at the end."""

    def __init__(
        self,
        client: RawClient,
        clock_s: Callable[[], float] = time.monotonic,
        *,
        groups: Sequence[str] = GROUPS,
    ) -> None:
        """`groups`: paths of the PodGroups that it follows; the API server serves all of them."""
        self._client = client
        self._clock_s = clock_s
        self._groups = groups
        self._nodes: dict[str, Requests] = {}
        self._pods: dict[str, Object] = {}
        self._loads: dict[str, dict[str, Requests]] = {}
        self._minima: dict[str, tuple[GangKey, int]] = {}
        self._listed: set[str] = set()
        self.gangs: dict[GangKey, GangRecord] = {}
        #: Pod UID -> every node that it was seen on.
        self.seen_on: dict[str, set[str]] = {}
        #: UIDs of pods that ever said PodScheduled=False.
        self.marked_unscheduled: set[str] = set()
        #: Pods that their kubelet refused: "namespace/name: OutOfcpu".
        self.refused: list[str] = []
        #: What was on a node that did not offer as much.
        self.overcommitted: list[str] = []

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        followed: list[tuple[str, Callable[[str, Object], None]]] = [
            ("/api/v1/nodes", self.see_node),
            ("/api/v1/pods", self.see_pod),
            (BUDGETS, self.see_group),
            *((path, self.see_group) for path in self._groups),
        ]
        async with asyncio.TaskGroup() as group:
            for path, see in followed:
                group.create_task(self._follow(path, see), name=f"audit-{path}")
        raise AssertionError("a watch is followed for ever")

    async def watching(self) -> None:
        """Wait until everything has been listed once: what comes from now on is seen."""
        await eventually(
            lambda: len(self._listed) == 3 + len(self._groups), because="the auditor looks"
        )

    async def verdict(self, *, settle_s: float = 5.0) -> None:
        """Judge all that was seen; a gang may have `settle_s` to become whole.

        Raises:
            AssertionError: Something was as it must never be.
        """
        await self.catch_up()
        await eventually(self._all_whole, timeout_s=settle_s, because="every gang is whole or not")
        assert not self.double_bindings()
        assert not self.overcommitted
        assert not self.refused

    async def catch_up(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until it has seen what the API server holds."""
        await eventually(
            self._caught_up,
            timeout_s=timeout_s,
            because="the auditor has seen what the API server holds",
        )

    def double_bindings(self) -> list[str]:
        """Pods that were seen on more than one node."""
        return [f"{uid}: {sorted(on)}" for uid, on in self.seen_on.items() if len(on) > 1]

    def partial(self) -> list[str]:
        """Gangs of which something is bound but which never had their quorum."""
        return [
            f"{'/'.join(gang.key)}: {len(gang.placed)} of {self.quorum(gang.key)}"
            for gang in self.gangs.values()
            if gang.placed and gang.quorum_s is None and self.quorum(gang.key) > 0
        ]

    def longest_partial_s(self) -> float:
        """The longest time that any gang was bound in part."""
        return max((gang.partial_s for gang in self.gangs.values()), default=0.0)

    def quorum(self, key: GangKey) -> int:
        """The gang's size as its group says now; 0 without a group."""
        return max((size for found, size in self._minima.values() if found == key), default=0)

    def see_node(self, kind: str, node: Object) -> None:
        """A node's event."""
        name = node["metadata"]["name"]
        if kind == "DELETED":
            self._nodes.pop(name, None)
            return
        self._nodes[name] = node_allocatable(node)
        self._weigh(name)

    def see_group(self, kind: str, group: Object) -> None:
        """A group's or budget's event; groups that cannot be read declare nothing."""
        metadata = group["metadata"]
        if kind == "DELETED":
            self._minima.pop(metadata["uid"], None)
            return
        name, size = metadata["name"], group.get("spec", {}).get("minMember")
        if group.get("kind") == "PodDisruptionBudget" or "minAvailable" in group.get("spec", {}):
            owners = [one for one in metadata.get("ownerReferences", ()) if one.get("controller")]
            name, size = (owners[0]["uid"] if owners else ""), group["spec"].get("minAvailable")
        key = (metadata["namespace"], name)
        self._minima[metadata["uid"]] = (key, size if isinstance(size, int) else 0)
        if key in self.gangs:
            self._count(self.gangs[key])

    def see_pod(self, kind: str, pod: Object) -> None:
        """A pod's event."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        known = self._pods.get(uid)
        if known is not None and known["metadata"] == pod["metadata"] and kind != "DELETED":
            return  # listed again
        phase = pod["status"].get("phase", "")
        self._pods[uid] = pod
        if kind == "DELETED":
            del self._pods[uid]
        if node:
            self.seen_on.setdefault(uid, set()).add(node)
        self._load(kind, pod, ended=phase in ENDED)
        self._note_status(pod, known)
        key = gang_of(pod)
        if key is None:
            return
        gang = self.gangs.setdefault(key, GangRecord(key))
        counts = kind != "DELETED" and node and phase != "Failed"
        if counts and uid not in gang.placed:
            gang.placed.add(uid)
            gang.ever_bound.add(uid)
            gang.last_bound_s = self._clock_s()
        elif not counts:
            gang.placed.discard(uid)
        self._count(gang)

    def _note_status(self, pod: Object, known: Object | None) -> None:
        metadata, status = pod["metadata"], pod["status"]
        for condition in status.get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                self.marked_unscheduled.add(metadata["uid"])
        reason = status.get("reason", "")
        was = known["status"].get("reason", "") if known is not None else ""
        if reason != was and (reason.startswith("OutOf") or reason == "NodePorts"):
            self.refused.append(f"{metadata['namespace']}/{metadata['name']}: {reason}")

    def _count(self, gang: GangRecord) -> None:
        """Keep the instants of a gang; one of which nothing is left starts again."""
        now_s = self._clock_s()
        if not gang.placed:
            if gang.quorum_s is None and gang.first_bound_s is not None:
                gang.taken_back_s.append(now_s - gang.first_bound_s)
                gang.first_bound_s = None
            return
        if gang.first_bound_s is None:
            gang.first_bound_s = now_s
        quorum = self.quorum(gang.key)
        if gang.quorum_s is None and quorum and len(gang.placed) >= quorum:
            gang.quorum_s = now_s

    def _load(self, kind: str, pod: Object, *, ended: bool) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if not node:
            return
        loads = self._loads.setdefault(node, {})
        if kind == "DELETED" or ended:
            loads.pop(uid, None)
        elif uid not in loads:
            loads[uid] = pod_requests(pod)
            self._weigh(node)

    def _weigh(self, node: str) -> None:
        offered, loads = self._nodes.get(node), self._loads.get(node, {})
        if offered is None:
            return
        for resource in {name for load in loads.values() for name in load}:
            used = sum(load.get(resource, 0) for load in loads.values())
            if used > offered.get(resource, 0):
                self.overcommitted.append(f"{node}: {used} {resource} of {offered.get(resource)}")

    async def _follow(self, path: str, see: Callable[[str, Object], None]) -> None:
        known: dict[str, Object] = {}
        while True:
            try:
                listed = await self._client.get(path)
                current = {item["metadata"]["uid"]: item for item in listed["items"]}
                for uid in known.keys() - current.keys():
                    see("DELETED", known[uid])
                known = current
                for item in current.values():
                    see("ADDED", item)
                self._listed.add(path)
                version = listed["metadata"]["resourceVersion"]
                async for kind, item in self._client.watch(path, resourceVersion=version):
                    uid = item["metadata"]["uid"]
                    known.pop(uid, None) if kind == "DELETED" else known.update({uid: item})
                    see(kind, item)
            except (ApiError, ClientError, TimeoutError):
                await asyncio.sleep(RETRY_DELAY_S)

    async def _caught_up(self) -> bool:
        listed = await self._client.get("/api/v1/pods")
        versions = {pod["metadata"]["uid"]: _version(pod) for pod in listed["items"]}
        return {uid: _version(pod) for uid, pod in self._pods.items()} == versions

    def _all_whole(self) -> bool:
        assert not self.partial(), f"bound in part: {self.partial()}"
        return True


def gang_of(pod: Object) -> GangKey | None:
    """The gang that a pod says it is in; None for one that is alone."""
    metadata = pod["metadata"]
    named = metadata.get("annotations", {}).get(GROUP_NAME)
    if named:
        return metadata["namespace"], named
    owners = [one for one in metadata.get("ownerReferences", ()) if one.get("controller")]
    if not owners:
        return None
    # Volcano's rule for the pods of an owner that name no group; kube-batch's is the owner itself.
    prefix = "podgroup-" if pod["spec"]["schedulerName"] in {"tutti", "volcano"} else ""
    return metadata["namespace"], prefix + owners[0]["uid"]


def _version(pod: Object) -> str:
    return str(pod["metadata"]["resourceVersion"])
