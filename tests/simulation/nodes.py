"""The nodes of the simulated cluster, their kubelets, and what takes the pods of dead nodes away.

A kubelet acts only on what etcd holds, some time later: it admits a pod that was bound to its
node or refuses what does not fit (OutOfcpu), runs it, ends it, and removes it when it is deleted.
On a dead node nothing happens any more; the node controller calls it not ready, and pods on a node
that no longer exists are taken away.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from shared.kube.resources import NODES, PODS
from tests.simulation.kube_api import ENDED
from tests.simulation.kube_server import Etcd, Obj, Write, with_

if TYPE_CHECKING:
    from tests.simulation.loop import SimHandle

#: Of a pod, in its spec's containers: nothing else is asked for in the simulation.
_NOT_READY_AFTER_S: Final = 4.0
_LOST_PODS_AFTER_S: Final = 3.0

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

RunsFor = Callable[[Obj], int]
"""How long a pod runs, in milliseconds; -1: it never starts (its image cannot be pulled)."""


def cpu_milli(pod: Obj) -> int:
    """What a pod asks for."""
    text: str = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(text.removesuffix("m"))


def zone_of(node: str) -> str:
    """Two zones, in turns; "" of no node."""
    number = node.rpartition("-")[2]
    return ("a", "b")[int(number) % 2] if number else ""


class Kubelet:
    """One node."""

    def __init__(self, name: str, cpu: int) -> None:
        self.name = name
        self.cpu_milli = cpu
        self.alive = True
        #: Admitted pods by UID, with what they take.
        self.admitted: dict[str, int] = {}
        #: Set while the node controller is about to call it not ready.
        self.not_ready: SimHandle | None = None


class Nodes:
    """All of them."""

    def __init__(self, etcd: Etcd, runs_for: RunsFor, *, may_end: Callable[[Obj], bool]) -> None:
        """`may_end(pod)`: its work is done; members of a gang wait for each other."""
        self.etcd = etcd
        self.loop = etcd.loop
        self.kubelets: dict[str, Kubelet] = {}
        self._runs_for = runs_for
        self._may_end = may_end
        self._rng = etcd.loop.dice.rng("kubelets")
        #: UIDs of pods that ended well because they were deleted, and that no Job counts.
        self.stopped: set[str] = set()
        etcd.observers.append(self._wrote)
        etcd.on_restore.append(self._restored)

    # ---- failures of nodes

    def add(self, name: str, cpu: int) -> None:
        """A node joins, ready."""
        self.kubelets[name] = Kubelet(name, cpu)
        self.etcd.create(
            NODES,
            {
                "metadata": {"name": name, "labels": {HOST: name, ZONE: zone_of(name)}},
                "spec": {},
                "status": {
                    "allocatable": {"cpu": f"{cpu}m", "pods": "30"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
            by="node",
        )

    def die(self, name: str) -> None:
        """Its machine stops; some time later it is called not ready."""
        kubelet = self.kubelets[name]
        kubelet.alive = False
        kubelet.not_ready = self.loop.at(_NOT_READY_AFTER_S, self._set_ready, name, False)

    def revive(self, name: str) -> None:
        """It is back: the kubelet looks at everything that is bound to it."""
        kubelet = self.kubelets.get(name)
        if kubelet is None or kubelet.alive:
            return
        kubelet.alive = True
        if kubelet.not_ready is not None:
            kubelet.not_ready.cancel()
        if self._node(name) is None:
            del self.kubelets[name]
            self.add(name, kubelet.cpu_milli)
        self._set_ready(name, True)
        for pod in self.pods_on(name):
            self._look(pod["metadata"]["namespace"], pod["metadata"]["name"])

    def delete(self, name: str) -> None:
        """The node object is deleted, its machine is gone; its pods are taken away later."""
        kubelet, node = self.kubelets[name], self._node(name)
        kubelet.alive = False
        if node is not None:
            self.etcd.remove(NODES, node, by="node")
        self.loop.at(_LOST_PODS_AFTER_S * self._rng.random(), self._collect, name)

    def cordon(self, name: str, unschedulable: bool) -> None:
        """Nothing new may come (or may again)."""
        node = self._node(name)
        if node is not None:
            spec = {"unschedulable": True if unschedulable else None}
            self.etcd.change(NODES, node, lambda now: with_(now, spec=spec), by="user")

    def pods_on(self, name: str) -> list[Obj]:
        """Everything bound to that node."""
        return [pod for pod in self.etcd.all(PODS) if pod["spec"].get("nodeName") == name]

    def _node(self, name: str) -> Obj | None:
        return self.etcd.get(NODES, "", name)

    def _set_ready(self, name: str, ready: bool) -> None:
        node = self._node(name)
        if node is not None:
            conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
            self.etcd.change(
                NODES, node, lambda now: with_(now, status={"conditions": conditions}), by="node"
            )

    def _collect(self, name: str) -> None:
        """Take the pods of a node that does not exist away."""
        if self._node(name) is None:
            for pod in self.pods_on(name):
                self.etcd.remove(PODS, pod, by="gc")

    # ---- what kubelets do

    def _wrote(self, write: Write) -> None:
        if write.resource != PODS or write.by == "kubelet":
            return
        node = write.new["spec"].get("nodeName")
        kubelet = self.kubelets.get(node) if node else None
        if write.type == "DELETED":
            if kubelet is not None:
                kubelet.admitted.pop(write.new["metadata"]["uid"], None)
            return
        if not node:
            return
        metadata = write.new["metadata"]
        if kubelet is None or self._node(node) is None:
            # Bound to a node that is not there: the same garbage collector finds it.
            self.loop.at(_LOST_PODS_AFTER_S, self._collect, node)
            return
        late_s = 0.01 + self._rng.random() * 0.2
        self.loop.at(late_s, self._look, metadata["namespace"], metadata["name"])

    def _look(self, namespace: str, name: str) -> None:
        """The kubelet looks at one pod as it is now."""
        pod = self.etcd.get(PODS, namespace, name)
        if pod is None:
            return
        kubelet = self.kubelets.get(pod["spec"].get("nodeName", ""))
        if kubelet is None or not kubelet.alive or self._node(kubelet.name) is None:
            return
        uid = pod["metadata"]["uid"]
        if pod["metadata"].get("deletionTimestamp"):
            kubelet.admitted.pop(uid, None)
            self._stop(pod)
        elif pod["status"].get("phase") in ENDED:
            kubelet.admitted.pop(uid, None)
        elif uid not in kubelet.admitted:
            self._admit(kubelet, pod)

    def _stop(self, pod: Obj) -> None:
        """A pod is being deleted. One that runs is stopped first, and its program may end well."""
        if pod["status"].get("phase") != "Running":
            self.etcd.remove(PODS, pod, by="kubelet")
            return
        ends_well = self._rng.random() < 0.5
        owners = pod["metadata"].get("ownerReferences") or []
        if ends_well and not any(owner["kind"] == "Job" for owner in owners):
            self.stopped.add(pod["metadata"]["uid"])
        self._set_status(pod, phase="Succeeded" if ends_well else "Failed")
        metadata = pod["metadata"]
        self.loop.at(self._rng.random() * 0.2, self._look, metadata["namespace"], metadata["name"])

    def _admit(self, kubelet: Kubelet, pod: Obj) -> None:
        needed = cpu_milli(pod)
        if sum(kubelet.admitted.values()) + needed > kubelet.cpu_milli:
            words = "Node didn't have enough resource: cpu"
            self._set_status(pod, phase="Failed", reason="OutOfcpu", message=words)
            return
        kubelet.admitted[pod["metadata"]["uid"]] = needed
        runs_ms = self._runs_for(pod)
        if runs_ms < 0:
            waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
            self._set_status(
                pod, containerStatuses=[{"name": "main", "state": {"waiting": waiting}}]
            )
            return
        self.loop.at(0.02 + self._rng.random() * 0.3, self._run, kubelet, pod, runs_ms)

    def _run(self, kubelet: Kubelet, pod: Obj, runs_ms: int) -> None:
        uid = pod["metadata"]["uid"]
        if not kubelet.alive:
            # Checked again when the machine is back.
            kubelet.admitted.pop(uid, None)
            return
        if uid not in kubelet.admitted:
            return
        running = self._set_status(pod, phase="Running")
        if running is not None:
            self.loop.at(runs_ms / 1000, self.end, running, "Succeeded")

    def end(self, pod: Obj, phase: str) -> None:
        """A running pod ends by itself, if its node still lives."""
        kubelet = self.kubelets.get(pod["spec"]["nodeName"])
        uid = pod["metadata"]["uid"]
        if kubelet is None or not kubelet.alive or uid not in kubelet.admitted:
            if kubelet is not None and uid in kubelet.admitted:
                self.loop.at(1.0, self.end, pod, phase)
            return
        now = self.etcd.get(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
        if now is None or now["metadata"].get("deletionTimestamp"):
            return
        if phase == "Succeeded" and not self._may_end(now):
            self.loop.at(1.0, self.end, pod, phase)
            return
        del kubelet.admitted[uid]
        self._set_status(pod, phase=phase, reason="Error" if phase == "Failed" else None)

    def _set_status(self, pod: Obj, **members: Any) -> Obj | None:
        return self.etcd.change(PODS, pod, lambda now: with_(now, status=members), by="kubelet")

    def _restored(self) -> None:
        """etcd went back: every kubelet looks at everything again, and says that it is there."""
        for kubelet in list(self.kubelets.values()):
            kubelet.admitted.clear()
            if kubelet.alive and self._node(kubelet.name) is None:
                self.add(kubelet.name, kubelet.cpu_milli)
        for pod in self.etcd.all(PODS):
            if pod["spec"].get("nodeName"):
                metadata = pod["metadata"]
                self.loop.at(0.05, self._look, metadata["namespace"], metadata["name"])
