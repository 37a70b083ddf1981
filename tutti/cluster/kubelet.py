"""Simulated nodes. Their kubelets admit pods as real ones do. Only they check the node's capacity:
a pod that does not fit is refused (phase Failed, OutOfcpu…). They run admitted pods, restart them
by their restartPolicy, finish them, and remove them when they are deleted.

The annotation EXIT of a pod ends its containers with the exit code that is its first word, when it
appears or changes. Taints, node affinity terms and volumes are not checked.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from shared.kube.objects import Pod
from shared.kube.requests import amounts, effective_requests, host_ports
from tutti.api.objects import field
from tutti.cluster.api import Api
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import Obj, now_text, set_condition
from tutti.cluster.pods import ENDED
from tutti.cluster.resources import NODES, PODS, Key
from tutti.cluster.store import Change

if TYPE_CHECKING:
    from shared.model.objects import HostPort

EXIT = "tutti.dev/exit"
PODS_PER_NODE = "110"
RETRY_S = 0.5  # delay after a write of a status that a webhook refused
_ALIVE = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")

_log = logging.getLogger(__name__)


class _Worker:
    """One pod on a simulated node."""

    def __init__(self, obj: Obj) -> None:
        self.obj = obj
        self.uid: str = obj["metadata"]["uid"]
        self.place = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        self.node: str = obj["spec"]["nodeName"]
        self.requests: dict[str, int] = {}  # set once it is admitted
        self.ports: frozenset[HostPort] = frozenset()
        self.changed = asyncio.Event()
        self.seen_exit = ""  # value of the annotation at the last restart
        self.restarts = 0
        self.task: asyncio.Task[None] | None = None

    def exit_text(self) -> str:
        return str((self.obj["metadata"].get("annotations") or {}).get(EXIT, ""))

    def exit_code(self) -> int | None:
        """The exit code that the annotation requests; None if there is none, or it was applied."""
        words = self.exit_text().split()
        if self.exit_text() == self.seen_exit or not words or not words[0].isdigit():
            return None
        return int(words[0])


class Kubelets:
    """The kubelets of all simulated nodes. `run` it in a task; add nodes any time."""

    def __init__(self, api: Api, *, start_s: float = 0.0, stop_s: float = 0.0) -> None:
        self._api, self._start_s, self._stop_s = api, start_s, stop_s
        self._nodes: dict[str, Obj] = {}  # as they were registered
        self._workers: dict[str, _Worker] = {}  # by pod UID
        self._addresses = itertools.count(1)
        self._group: asyncio.TaskGroup | None = None
        api.store.listeners.append(self._on_change)

    async def add_node(
        self,
        name: str,
        *,
        cpu: str = "4",
        memory: str = "16Gi",
        resources: Mapping[str, str | int] | None = None,
        labels: dict[str, str] | None = None,
    ) -> None:
        """Register a Ready node; `resources` are those besides cpu, memory and pods.

        Raises:
            ApiError: 409 when a node of that name exists.
        """
        allocatable = {"cpu": cpu, "memory": memory, "pods": PODS_PER_NODE, **(resources or {})}
        platform = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        own = {"kubernetes.io/hostname": name, **platform, **(labels or {})}
        status: Obj = {"capacity": allocatable, "allocatable": allocatable}
        status["addresses"] = [{"type": "Hostname", "address": name}]
        status["nodeInfo"] = {"kubeletVersion": "v1.36.0+simulated", "operatingSystem": "linux"}
        for pressure in ("MemoryPressure", "DiskPressure", "PIDPressure"):
            set_condition(status, pressure, "False", reason="Simulated")
        set_condition(status, "Ready", "True", reason="KubeletReady")
        node: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": own}}
        node |= {"spec": {"taints": []}, "status": status}
        self._nodes[name] = await self._api.create(self._api.call("nodes"), node)
        if self._group is not None:  # pods may have been bound to it before it was there
            for row in self._api.store.rows(PODS):
                self._observe(row.obj, self._group)

    async def run(self) -> None:
        """Run the kubelets until cancelled; pods then keep their state."""
        async with asyncio.TaskGroup() as self._group:
            for row in self._api.store.rows(PODS):
                self._observe(row.obj, self._group)
            await asyncio.Event().wait()

    def _on_change(self, key: Key, change: Change) -> None:
        if key == PODS and change.type == "DELETED":
            self._drop(change.stored.obj["metadata"]["uid"])
        elif key == PODS and self._group is not None:
            self._observe(change.stored.obj, self._group)

    def _observe(self, obj: Obj, group: asyncio.TaskGroup) -> None:
        uid = obj["metadata"]["uid"]
        worker = self._workers.get(uid)
        if worker is not None:
            worker.obj = obj
            worker.changed.set()
        elif obj["spec"].get("nodeName") in self._nodes and obj["status"]["phase"] not in ENDED:
            worker = self._workers[uid] = _Worker(obj)
            worker.task = group.create_task(self._run_pod(worker), name=f"pod-{uid}")

    def _drop(self, uid: str) -> None:
        worker = self._workers.pop(uid, None)
        if worker is not None and worker.task is not None:
            worker.task.cancel()

    async def _run_pod(self, worker: _Worker) -> None:
        """Run a pod on its node, from admission to its end."""
        try:
            refusal = self._admit(worker)
            if refusal is not None:
                message = f"Pod was rejected: {refusal[1]}"
                await self._report(
                    worker, {"phase": "Failed", "reason": refusal[0], "message": message}
                )
                return
            await asyncio.sleep(self._start_s)
            number = next(self._addresses)
            address = f"10.244.{number // 250 % 250}.{number % 250 + 1}"
            while (code := await self._run_once(worker, address)) is not None:
                policy = worker.obj["spec"]["restartPolicy"]
                if policy == "Never" or (policy == "OnFailure" and code == 0):
                    await self._report(worker, _finished(worker, code))
                    return
                worker.restarts += 1
                worker.seen_exit = worker.exit_text()
            grace_s = worker.obj["metadata"].get("deletionGracePeriodSeconds", 0)
            await asyncio.sleep(min(self._stop_s, grace_s))
            call = self._api.call("pods", *worker.place)
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": worker.uid}}
            await _retry(lambda: self._api.delete(call, options))
        finally:
            self._workers.pop(worker.uid, None)

    async def _run_once(self, worker: _Worker, address: str) -> int | None:
        """Run the containers until they end; the exit code, or None if the pod is deleted."""
        if not field(worker.obj, "metadata.deletionTimestamp"):
            await self._report(worker, _running(worker, address))
        while not field(worker.obj, "metadata.deletionTimestamp"):
            code = worker.exit_code()
            if code is not None:
                return code
            worker.changed.clear()
            await worker.changed.wait()
        return None

    def _admit(self, worker: _Worker) -> tuple[str, str] | None:
        """Count the pod's requests on its node; return (reason, message) if they do not fit."""
        row = self._api.store.get(NODES, "", worker.node)
        node = row.obj if row else self._nodes[worker.node]  # a kubelet outlives its Node object
        spec = msgspec.convert(worker.obj, Pod).spec
        requests, ports = dict(effective_requests(spec)), frozenset(host_ports(spec))
        labels = field(node, "metadata.labels") or {}
        if any(labels.get(key) != value for key, value in spec.node_selector.items()):
            return "NodeAffinity", "Predicate NodeAffinity failed"
        others = [other for other in self._workers.values() if other.node == worker.node]
        if any(ports & other.ports for other in others):
            return "NodePorts", "Predicate NodePorts failed"
        allocatable = amounts(field(node, "status.allocatable") or {}, "status.allocatable")
        for resource, wanted in requests.items():
            used = sum(other.requests.get(resource, 0) for other in others)
            capacity = allocatable.get(resource, 0)
            if used + wanted > capacity:
                figures = f"requested: {wanted}, used: {used}, capacity: {capacity}"
                text = f"Node didn't have enough resource: {resource}, {figures}"
                return f"OutOf{resource}", text
        worker.requests, worker.ports = requests, ports
        return None

    async def _report(self, worker: _Worker, status: Obj) -> None:
        """Write the pod's status, unless the pod is gone or another pod has its name."""
        user = f"system:node:{worker.node}"
        call = self._api.call("pods", *worker.place, sub="status", user=user)
        uid, conditions = worker.uid, status.pop("conditions", {})

        def change(new: Obj) -> None:
            new["metadata"]["uid"] = uid
            new["status"] |= status
            for kind, value in conditions.items():
                set_condition(new["status"], kind, value)

        await _retry(lambda: self._api.modify(call, change))


async def _retry(write: Callable[[], Awaitable[object]]) -> None:
    """Repeat a write until it succeeds or its pod is gone."""
    while True:
        try:
            await write()
        except ApiError as error:
            if error.code in (404, 409):
                return
            _log.warning("retrying a write of a kubelet: %s", error)
            await asyncio.sleep(RETRY_S)
        else:
            return


def _containers(worker: _Worker, state: Obj, *, ready: bool) -> list[Obj]:
    own = {"imageID": "", "ready": ready, "started": ready, "restartCount": worker.restarts}
    own |= {"state": state, "lastState": {}}
    names = [(each["name"], each["image"]) for each in worker.obj["spec"]["containers"]]
    return [{"name": name, "image": image, **own} for name, image in names]


def _running(worker: _Worker, address: str) -> Obj:
    state = {"running": {"startedAt": now_text()}}
    return {
        "phase": "Running",
        "startTime": field(worker.obj, "status.startTime") or now_text(),
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": _containers(worker, state, ready=True),
        "conditions": dict.fromkeys(_ALIVE, "True"),
    }


def _finished(worker: _Worker, code: int) -> Obj:
    reason = "Error" if code else "Completed"
    state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": now_text()}}
    return {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": _containers(worker, state, ready=False),
        "conditions": {"Ready": "False", "ContainersReady": "False"},
    }
