"""Simulated nodes. Their kubelets admit pods as real ones do, and are the only ones here who look
whether there is room: a pod that does not fit is refused (phase Failed, OutOfcpu…). What they admit
they run, restart by its restartPolicy, finish and, when it is deleted, remove.

A pod's annotations steer it: RUN_SECONDS, after which its containers end with exit code 0, and
EXIT, which ends them with the code that is its first word as soon as it appears or changes.
Taints, node affinity terms and volumes are not looked at.
"""

import asyncio
import itertools
import logging

import msgspec

from shared.kube.objects import Pod, ResourceList
from shared.kube.requests import amounts, effective_requests, host_ports
from shared.model.objects import HostPort
from tutti.cluster.api import Api
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import Obj, clone, dig, now_text, set_condition
from tutti.cluster.resources import NODES, PODS, Key
from tutti.cluster.store import Change

RUN_SECONDS = "tutti.dev/run-seconds"
EXIT = "tutti.dev/exit"
PODS_PER_NODE = 110
RETRY_S = 0.5  # after a report that a webhook refused
_ENDED = ("Succeeded", "Failed")
_ALIVE = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")

_log = logging.getLogger(__name__)


class _Charge(msgspec.Struct, frozen=True):
    """What an admitted pod takes from its node."""

    node: str
    requests: dict[str, int]
    ports: frozenset[HostPort]


class _Worker:
    """One pod on one of our nodes."""

    def __init__(self, obj: Obj) -> None:
        self.obj = obj
        self.changed = asyncio.Event()
        self.told: int | None = None  # an exit code from `Kubelets.finish`
        self.seen_exit = ""  # the annotation as it was when the containers (re)started
        self.restarts = 0
        self.task: asyncio.Task[None] | None = None

    def annotation(self, name: str) -> str:
        """An annotation of the pod as it is now; empty if absent."""
        return str((self.obj["metadata"].get("annotations") or {}).get(name, ""))


class Kubelets:
    """The kubelets of all simulated nodes. `run` it in a task; add and remove nodes at any time."""

    def __init__(self, api: Api, *, start_s: float = 0.0, stop_s: float = 0.0) -> None:
        self._api = api
        self._start_s = start_s
        self._stop_s = stop_s
        self._nodes: dict[str, Obj] = {}  # as they were registered
        self._workers: dict[str, _Worker] = {}
        self._charges: dict[str, _Charge] = {}
        self._addresses = itertools.count(1)
        self._group: asyncio.TaskGroup | None = None
        api.store.listeners.append(self._heard)

    async def add_node(
        self,
        name: str,
        *,
        cpu: str = "4",
        memory: str = "16Gi",
        resources: ResourceList | None = None,
        labels: dict[str, str] | None = None,
        taints: list[Obj] | None = None,
    ) -> None:
        """Registers a node that is Ready; `resources` are those besides cpu, memory and pods.

        Raises:
            ApiError: 409 when a node of that name exists.
        """
        room = {"cpu": cpu, "memory": memory, "pods": str(PODS_PER_NODE), **(resources or {})}
        own = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }
        status: Obj = {
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "Hostname", "address": name}],
        }
        status["nodeInfo"] = {"kubeletVersion": "v1.36.0+simulated", "operatingSystem": "linux"}
        for pressure in ("MemoryPressure", "DiskPressure", "PIDPressure"):
            set_condition(status, pressure, "False", reason="Simulated")
        set_condition(status, "Ready", "True", reason="KubeletReady", message="simulated kubelet")
        node: Obj = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": own | (labels or {})},
        }
        node |= {"spec": {"taints": taints or []}, "status": status}
        self._nodes[name] = await self._api.create(self._api.call("nodes"), node)

    async def remove_node(self, name: str) -> None:
        """The node vanishes with its kubelet: its pods stay in the API as they were last reported.

        Raises:
            ApiError: 404.
        """
        self._nodes.pop(name, None)
        for uid, worker in list(self._workers.items()):
            if worker.obj["spec"]["nodeName"] == name:
                self._drop(uid)
        await self._api.delete(self._api.call("nodes", name=name), {})

    def finish(self, namespace: str, name: str, exit_code: int = 0) -> None:
        """Lets a running pod's containers end. Its restartPolicy says whether they start again.

        Raises:
            KeyError: No simulated node runs such a pod.
        """
        for worker in self._workers.values():
            metadata = worker.obj["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                worker.told = exit_code
                worker.changed.set()
                return
        raise KeyError(f"no simulated node runs {namespace}/{name}")

    async def run(self) -> None:
        """Plays the kubelets until it is cancelled; pods then stay as they are."""
        async with asyncio.TaskGroup() as self._group:
            for row in self._api.store.rows(PODS):
                self._see(row.obj, self._group)
            await asyncio.Event().wait()

    def _heard(self, key: Key, change: Change) -> None:
        if key == PODS and change.type == "DELETED":
            self._drop(change.stored.obj["metadata"]["uid"])
        elif key == PODS and self._group is not None:
            self._see(change.stored.obj, self._group)

    def _see(self, obj: Obj, group: asyncio.TaskGroup) -> None:
        uid, spec = obj["metadata"]["uid"], obj["spec"]
        worker = self._workers.get(uid)
        if worker is not None:
            worker.obj = obj
            worker.changed.set()
        elif spec.get("nodeName") in self._nodes and obj["status"].get("phase") not in _ENDED:
            worker = self._workers[uid] = _Worker(obj)
            worker.task = group.create_task(self._live(worker), name=f"pod-{uid}")

    def _drop(self, uid: str) -> None:
        worker = self._workers.pop(uid, None)
        if worker is not None and worker.task is not None:
            worker.task.cancel()

    async def _live(self, worker: _Worker) -> None:
        """A pod's time on its node, from admission to its end."""
        uid = worker.obj["metadata"]["uid"]
        try:
            refusal = self._admit(worker.obj)
            if refusal is not None:
                await self._report(
                    worker, {"phase": "Failed", "reason": refusal[0], "message": refusal[1]}
                )
                return
            await asyncio.sleep(self._start_s)
            number = next(self._addresses)
            address = f"10.244.{number // 250 % 250}.{number % 250 + 1}"
            while not dig(worker.obj, "metadata.deletionTimestamp"):
                worker.seen_exit = worker.annotation(EXIT) if worker.restarts else ""
                await self._report(worker, _running(worker, address))
                code = await self._end_of(worker)
                if code is None:
                    break
                policy = worker.obj["spec"]["restartPolicy"]
                if policy == "Never" or (policy == "OnFailure" and code == 0):
                    await self._report(worker, _finished(worker, code))
                    return
                worker.restarts += 1
            await asyncio.sleep(
                min(self._stop_s, worker.obj["metadata"].get("deletionGracePeriodSeconds", 0))
            )
            await self._remove(worker.obj)
        finally:
            self._charges.pop(uid, None)
            self._workers.pop(uid, None)

    async def _end_of(self, worker: _Worker) -> int | None:
        """Waits for the containers' exit code; None: the pod is deleted."""
        run_s = _number(worker.annotation(RUN_SECONDS))
        end = None if run_s is None else asyncio.get_running_loop().time() + run_s
        while True:
            worker.changed.clear()
            if dig(worker.obj, "metadata.deletionTimestamp"):
                return None
            if worker.told is not None:
                code, worker.told = worker.told, None
                return code
            wanted = worker.annotation(EXIT)
            if wanted != worker.seen_exit and (number := _number(wanted.split(" ")[0])) is not None:
                return int(number)
            try:
                async with asyncio.timeout_at(end):
                    await worker.changed.wait()
            except TimeoutError:
                return 0

    def _admit(self, obj: Obj) -> tuple[str, str] | None:
        """Takes the pod's room from its node; or (reason, message) why it cannot have it."""
        name = obj["spec"]["nodeName"]
        row = self._api.store.get(NODES, "", name)
        node = row.obj if row else self._nodes[name]  # a kubelet outlives its Node object
        spec = msgspec.convert(obj, Pod).spec
        charge = _Charge(name, dict(effective_requests(spec)), frozenset(host_ports(spec)))
        labels = dig(node, "metadata.labels") or {}
        if any(labels.get(key) != value for key, value in spec.node_selector.items()):
            return "NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed"
        others = [other for other in self._charges.values() if other.node == name]
        if any(charge.ports & other.ports for other in others):
            return "NodePorts", "Pod was rejected: Predicate NodePorts failed"
        room = amounts(dig(node, "status.allocatable") or {}, "status.allocatable")
        for resource, wanted in charge.requests.items():
            used = sum(other.requests.get(resource, 0) for other in others)
            capacity = room.get(resource, 0)
            if used + wanted > capacity:
                figures = f"requested: {wanted}, used: {used}, capacity: {capacity}"
                text = f"Pod was rejected: Node didn't have enough resource: {resource}, {figures}"
                return f"OutOf{resource}", text
        self._charges[obj["metadata"]["uid"]] = charge
        return None

    async def _report(self, worker: _Worker, status: Obj) -> None:
        """Writes the pod's status. A pod that has gone, or whose name another has, is nobody's news."""
        metadata = worker.obj["metadata"]
        call = self._api.call(
            "pods",
            metadata["namespace"],
            metadata["name"],
            subresource="status",
            user=f"system:node:{worker.obj['spec']['nodeName']}",
        )

        def change(new: Obj) -> None:
            new["metadata"]["uid"] = metadata["uid"]
            conditions = {c["type"]: c["status"] for c in status.get("conditions", ())}
            new["status"] |= {key: value for key, value in status.items() if key != "conditions"}
            for kind, value in conditions.items():
                set_condition(new["status"], kind, value)

        while True:
            try:
                worker.obj = await self._api.modify(call, change)
            except ApiError as error:
                if error.code in (404, 409):
                    return
                _log.warning("status of %s/%s: %s", metadata["namespace"], metadata["name"], error)
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def _remove(self, obj: Obj) -> None:
        metadata = obj["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        while True:
            try:
                await self._api.delete(
                    self._api.call("pods", metadata["namespace"], metadata["name"]), clone(options)
                )
            except ApiError as error:
                if error.code in (404, 409):
                    return
                await asyncio.sleep(RETRY_S)
            else:
                return


def _number(text: str) -> float | None:
    """A number that a user wrote; what is none is as good as absent (a pod must not stop a kubelet)."""
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _containers(worker: _Worker, state: Obj, *, ready: bool) -> list[Obj]:
    return [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": worker.restarts,
            "state": state,
            "lastState": {},
        }
        for container in worker.obj["spec"]["containers"]
    ]


def _running(worker: _Worker, address: str) -> Obj:
    return {
        "phase": "Running",
        "startTime": dig(worker.obj, "status.startTime") or now_text(),
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": _containers(
            worker, {"running": {"startedAt": now_text()}}, ready=True
        ),
        "conditions": [{"type": kind, "status": "True"} for kind in _ALIVE],
    }


def _finished(worker: _Worker, code: int) -> Obj:
    reason = "Completed" if code == 0 else "Error"
    state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": now_text()}}
    gone = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
    return {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": _containers(worker, state, ready=False),
        "conditions": gone,
    }
