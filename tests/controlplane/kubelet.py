"""Fake kubelets for a real API server: they admit, run, finish and remove the pods bound to nodes.

One ``FakeKubelet`` plays the kubelets of all nodes. As a real one does, it refuses a pod that does
not fit what its node has left: phase Failed with reason OutOfcpu, OutOfpods, OutOf<resource>,
NodeAffinity (node selector) or NodePorts. So a scheduler that binds too much is detected. Node
affinity, taints and volumes are not checked. A pod that ends by itself carries the annotation
``RUN_SECONDS``. Nodes are Ready when they are created, except those that an autoscaler makes for
kwok (label ``KWOK_NODE``): the kubelets report these as Ready.
"""

import asyncio
import ipaddress
import logging
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Final

from aiohttp import ClientError

from tests.controlplane.client import STRATEGIC_PATCH, ApiError, Object, RawClient
from tests.controlplane.pod_status import (
    failed_status,
    finished_status,
    ready_node_status,
    running_status,
)
from tests.controlplane.requests import Requests, host_ports, node_allocatable, pod_requests

RUN_SECONDS: Final = "tutti.test/run-seconds"
"""Pod annotation: seconds from Running to the end."""

EXIT_CODE: Final = "tutti.test/exit-code"
"""Pod annotation: how its containers end by themselves; 0 (Succeeded) by default."""

STOP_SECONDS: Final = "tutti.test/stop-seconds"
"""Pod annotation: seconds from its deletion to the end of its containers; 0 by default."""

KWOK_NODE: Final = ("kwok.x-k8s.io/node", "fake")
"""Label of nodes that have no kubelet but a simulated one."""

TERMINATED: Final = 143
"""How the containers of a pod end that is deleted: 128 and the number of SIGTERM."""

WORKERS: Final = 16
RETRY_DELAY_S: Final = 0.5
FIRST_ADDRESS: Final = ipaddress.IPv4Address("10.128.0.0")
ENDED: Final = frozenset({"Succeeded", "Failed"})

logger = logging.getLogger(__name__)


class FakeKubelet:
    """``run`` it in a task; it follows nodes and pods until it is cancelled."""

    def __init__(self, client: RawClient, *, start_delay_s: float = 0.0) -> None:
        self._client = client
        self._start_delay_s = start_delay_s
        self._nodes: dict[str, Object] = {}
        self._pods: dict[str, Object] = {}
        self._admitted: dict[str, Requests] = {}
        self._admitted_on: dict[str, set[str]] = defaultdict(set)
        self._starts_at_s: dict[str, float] = {}
        self._stops_at_s: dict[str, float] = {}
        self._timed: set[str] = set()
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._new_nodes: asyncio.Queue[str] = asyncio.Queue()
        self._ending: dict[str, int] = {}
        self._ips = 0

    async def run(self) -> None:
        """Play the kubelets until cancelled; pods that were not handled yet stay as they are."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow("/api/v1/nodes", self._see_node), name="kubelet-nodes")
            query = {"fieldSelector": "spec.nodeName!="}
            pods = self._follow("/api/v1/pods", self.see_pod, **query)
            group.create_task(pods, name="kubelet-pods")
            group.create_task(self._report_nodes(), name="kubelet-new-nodes")
            for index in range(WORKERS):
                group.create_task(self._work(), name=f"kubelet-worker-{index}")

    def finish(self, uid: str, *, exit_code: int = 0) -> None:
        """Let the containers of a running pod end with this exit code."""
        self._ending[uid] = exit_code
        self._enqueue(uid)

    async def _follow(self, path: str, see: Callable[[str, Object], None], **query: str) -> None:
        """List, then watch; whatever ends the watch, list again and report what has gone."""
        known: dict[str, Object] = {}
        while True:
            try:
                listed = await self._client.get(path, **query)
                current = {item["metadata"]["uid"]: item for item in listed["items"]}
                for uid in known.keys() - current.keys():
                    see("DELETED", known[uid])
                known = current
                for item in current.values():
                    see("ADDED", item)
                version = listed["metadata"]["resourceVersion"]
                async for kind, item in self._client.watch(path, resourceVersion=version, **query):
                    uid = item["metadata"]["uid"]
                    known.pop(uid, None) if kind == "DELETED" else known.update({uid: item})
                    see(kind, item)
            except (ApiError, ClientError, TimeoutError) as error:
                logger.info("%s: listing again after: %s", path, error)
                await asyncio.sleep(RETRY_DELAY_S)

    def _see_node(self, kind: str, node: Object) -> None:
        name = node["metadata"]["name"]
        if kind == "DELETED":
            self._nodes.pop(name, None)
            return
        is_new = name not in self._nodes
        self._nodes[name] = node
        if is_new and _awaits_kubelet(node):
            self._new_nodes.put_nowait(name)
        if is_new:  # pods may have been bound to it before it was there
            for uid, pod in self._pods.items():
                if pod["spec"]["nodeName"] == name:
                    self._enqueue(uid)

    async def _report_nodes(self) -> None:
        """Report new nodes of kwok as Ready."""
        while True:
            name = await self._new_nodes.get()
            path = f"/api/v1/nodes/{name}/status"
            try:
                await self._client.patch(path, {"status": ready_node_status()}, STRATEGIC_PATCH)
            except (ApiError, ClientError, TimeoutError) as error:
                if isinstance(error, ApiError) and error.status == 404:
                    continue
                logger.info("node %s: trying again after: %s", name, error)
                loop = asyncio.get_running_loop()
                loop.call_later(RETRY_DELAY_S, self._new_nodes.put_nowait, name)

    def see_pod(self, kind: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._pods.pop(uid, None)
            self._release(pod)
            return
        self._pods[uid] = pod
        phase = _phase(pod)
        if phase in ENDED:
            self._release(pod)
        elif phase == "Running":
            self._take(pod)  # for those that an earlier kubelet started
            self._end_later(pod)
        self._enqueue(uid)

    def _enqueue(self, uid: str) -> None:
        if uid not in self._queued:
            self._queued.add(uid)
            self._queue.put_nowait(uid)

    async def _work(self) -> None:
        while True:
            uid = await self._queue.get()
            self._queued.discard(uid)
            try:
                await self._sync(uid)
            except (ApiError, ClientError, TimeoutError) as error:
                if isinstance(error, ApiError) and error.status in {404, 409}:
                    continue  # it is gone, or another of that name took its place
                logger.info("pod %s: trying again after: %s", uid, error)
                asyncio.get_running_loop().call_later(RETRY_DELAY_S, self._enqueue, uid)

    async def _sync(self, uid: str) -> None:
        """Take the one next step of a pod, if there is one."""
        pod = self._pods.get(uid)
        if pod is None or pod["spec"]["nodeName"] not in self._nodes:
            return
        if pod["metadata"].get("deletionTimestamp"):
            if self._has_stopped(pod):
                await self._remove(pod)
            return
        match _phase(pod):
            case "Pending":
                await self._start(pod)
            case "Running" if uid in self._ending:
                await self._patch_status(pod, finished_status(pod, self._ending[uid]))

    async def _start(self, pod: Object) -> None:
        """Admit the pod or refuse it, and start it once its delay is over."""
        uid, loop = pod["metadata"]["uid"], asyncio.get_running_loop()
        if uid not in self._admitted:
            refusal = self._refusal(pod)
            if refusal is not None:
                await self._patch_status(pod, failed_status(*refusal))
                return
            self._take(pod)
            self._starts_at_s[uid] = loop.time() + self._start_delay_s
        if loop.time() < self._starts_at_s[uid]:
            loop.call_at(self._starts_at_s[uid], self._enqueue, uid)
            return
        self._ips += 1
        address = str(FIRST_ADDRESS + self._ips)
        await self._patch_status(pod, running_status(pod, address))

    def _take(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self._admitted:
            self._admitted[uid] = pod_requests(pod)
            self._admitted_on[pod["spec"]["nodeName"]].add(uid)

    def _release(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        self._admitted_on[pod["spec"]["nodeName"]].discard(uid)
        self._timed.discard(uid)
        for of_living in (self._admitted, self._starts_at_s, self._stops_at_s, self._ending):
            of_living.pop(uid, None)

    def _refusal(self, pod: Object) -> tuple[str, str] | None:
        """Return (reason, message) if the pod's node cannot take it beside those it admitted."""
        node_name = pod["spec"]["nodeName"]
        node = self._nodes[node_name]
        neighbours = self._admitted_on[node_name]
        labels = node["metadata"].get("labels", {})
        if any(labels.get(k) != v for k, v in pod["spec"].get("nodeSelector", {}).items()):
            return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match selector"
        taken = {port for uid in neighbours for port in host_ports(self._pods[uid])}
        if taken & host_ports(pod):
            return "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports"
        allocatable = node_allocatable(node)
        for resource, requested in pod_requests(pod).items():
            used = sum(self._admitted[uid].get(resource, 0) for uid in neighbours)
            capacity = allocatable.get(resource, 0)
            if requested > 0 and used + requested > capacity:
                amounts = f"requested: {requested}, used: {used}, capacity: {capacity}"
                return (
                    f"OutOf{resource}",
                    f"Node didn't have enough resource: {resource}, {amounts}",
                )
        return None

    def _end_later(self, pod: Object) -> None:
        uid, annotations = pod["metadata"]["uid"], pod["metadata"].get("annotations", {})
        if RUN_SECONDS not in annotations or uid in self._timed:
            return
        self._timed.add(uid)
        exit_code = int(annotations.get(EXIT_CODE, "0"))
        finish = partial(self.finish, uid, exit_code=exit_code)
        asyncio.get_running_loop().call_later(float(annotations[RUN_SECONDS]), finish)

    def _has_stopped(self, pod: Object) -> bool:
        """Whether a deleted pod's containers have ended; it is queued again for that time."""
        delay_s = float(pod["metadata"].get("annotations", {}).get(STOP_SECONDS, "0"))
        if not delay_s or _phase(pod) in ENDED:
            return True
        uid, loop = pod["metadata"]["uid"], asyncio.get_running_loop()
        if uid not in self._stops_at_s:
            self._stops_at_s[uid] = loop.time() + delay_s
            loop.call_at(self._stops_at_s[uid], self._enqueue, uid)
        return loop.time() >= self._stops_at_s[uid]

    async def _remove(self, pod: Object) -> None:
        """End the pod's containers, and remove the pod unless a finalizer keeps it."""
        if pod["metadata"].get("finalizers") and _phase(pod) not in ENDED:
            await self._patch_status(pod, finished_status(pod, TERMINATED))
            return
        precondition = {"uid": pod["metadata"]["uid"]}
        body: Object = {"gracePeriodSeconds": 0, "preconditions": precondition}
        await self._client.delete(_path(pod), body)

    async def _patch_status(self, pod: Object, status: Object) -> None:
        body: Object = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self._client.patch(f"{_path(pod)}/status", body, STRATEGIC_PATCH)


def _awaits_kubelet(node: Object) -> bool:
    key, value = KWOK_NODE
    conditions = node.get("status", {}).get("conditions", ())
    is_kwok = node["metadata"].get("labels", {}).get(key) == value
    return is_kwok and not any(one["type"] == "Ready" for one in conditions)


def _phase(pod: Object) -> str:
    return str(pod["status"].get("phase", "Pending"))


def _path(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
