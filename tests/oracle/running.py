"""The same question to a running kube-scheduler: a drawn cluster is written to a real API server,
then the pod for the default scheduler, whose answer is read from the pod's condition.

Its caches follow several watches. A marker node is written last, and only a marker pod may use it:
when that pod is bound, the scheduler has seen all nodes. The marker pod fills its node, which from
then on is part of the cluster like any other. Pods come in one watch, the one in question last.
"""

import asyncio
import re
from collections import Counter
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from tests.controlplane.client import ApiError, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.oracle.scheduler import Cluster
from tests.support.waiting import eventually

Json = dict[str, Any]
NAMESPACES: Final = {"team": {"kind": "dev"}, "other": {"kind": "prod"}}
#: What the API server says of objects that could never be stored, and of classes that are missing.
_REFUSED: Final = frozenset({403, 422})
_RUNTIME: Final = "heavy"
_LAST: Final = "last"
_COUNTED: Final = re.compile(r"0/\d+ nodes are available: (.*?)(?:\.(?: |$)|; |$)")
_REASON: Final = re.compile(r"(?:^|, )(\d+) ((?:(?!, \d+ ).)+)")
#: A pod is judged at once; this is for a machine that does many other things.
_JUDGED_WITHIN_S: Final = 60.0


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the asked pod."""

    #: The cluster and the pod as they were stored, with what admission filled in.
    cluster: Cluster
    pod: Json
    #: Where it was bound; "": nowhere.
    node: str
    #: The message of its condition PodScheduled.
    message: str


class RunningScheduler:
    """Asks one question at a time; a context manager."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._client = RawClient(control_plane.admin_kubeconfig)
        self._runner = asyncio.Runner()
        self._asked = 0

    def __enter__(self) -> Self:
        self._runner.run(self._prepare())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._runner.run(self._client.__aexit__(kind, error, traceback))
        self._runner.close()

    def judge(self, cluster: Cluster, pod: Json) -> Said | None:
        """Write the cluster again, then ask. None: the API server would not store the pod.

        Raises:
            AssertionError: the scheduler said nothing within a minute.
        """
        return self._runner.run(self._judge(cluster, pod))

    async def _prepare(self) -> None:
        await self._client.__aenter__()
        for name, labels in NAMESPACES.items():
            body = {"metadata": {"name": name, "labels": labels}}
            await self._client.create("/api/v1/namespaces", body)
        overhead = {"podFixed": {"cpu": "250m", "memory": "64Mi"}}
        runtime = {"metadata": {"name": _RUNTIME}, "handler": "none", "overhead": overhead}
        await self._client.create("/apis/node.k8s.io/v1/runtimeclasses", runtime)

    async def _judge(self, cluster: Cluster, pod: Json) -> Said | None:
        await self._clear()
        for node in cluster["nodes"]:
            await self._create("/api/v1/nodes", node)
        for other in cluster["pods"]:
            await self._pod(other)
        self._asked += 1
        await self._client.create("/api/v1/nodes", _last_node(str(self._asked)))
        last = await self._pod(_last_pod(str(self._asked)))
        assert last is not None
        await eventually(lambda: self._bound(last), timeout_s=_JUDGED_WITHIN_S)
        stored: Cluster = {
            plural: (await self._client.get(f"/api/v1/{plural}"))["items"]
            for plural in ("nodes", "pods", "namespaces")
        }
        asked = await self._pod(pod)
        if asked is None:
            return None
        judged = await eventually(
            lambda: self._judged_pod(asked),
            timeout_s=_JUDGED_WITHIN_S,
            because="kube-scheduler's word",
        )
        node = judged["spec"].get("nodeName", "")
        return Said(cluster=stored, pod=asked, node=node, message=_condition(judged))

    async def _clear(self) -> None:
        for namespace in NAMESPACES:
            path = f"/api/v1/namespaces/{namespace}/pods"
            await self._client.delete(path, {"gracePeriodSeconds": 0})
        await self._client.delete("/api/v1/nodes")

    async def _pod(self, pod: Json) -> Json | None:
        """Create it as a user would who has a runtime class for its overhead."""
        spec = {**pod["spec"], "schedulerName": "default-scheduler"}
        if spec.pop("overhead", None):
            spec["runtimeClassName"] = _RUNTIME
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        return await self._create(path, {**pod, "spec": spec})

    async def _create(self, path: str, body: Json) -> Json | None:
        """None: what was drawn is no valid object."""
        given = body["metadata"].items()
        metadata = {key: value for key, value in given if key not in {"uid", "resourceVersion"}}
        try:
            return await self._client.create(path, {**body, "metadata": metadata})
        except ApiError as error:
            if error.status not in _REFUSED:
                raise
            return None

    async def _bound(self, pod: Json) -> bool:
        return bool((await self._read(pod))["spec"].get("nodeName"))

    async def _judged_pod(self, pod: Json) -> Json:
        """The pod when something became of it; empty before."""
        now = await self._read(pod)
        return now if now["spec"].get("nodeName") or _condition(now) else {}

    async def _read(self, pod: Json) -> Json:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        return await self._client.get(path)


def counts(sentence: str) -> Counter[str]:
    """Nodes by reason, of kube-scheduler's message or of our sentence: `0/3 nodes are available: 1
    Insufficient cpu, …`.
    """
    found = _COUNTED.search(sentence)
    assert found is not None, f"no counts in {sentence!r}"
    return Counter({text: int(number) for number, text in _REASON.findall(found[1])})


def _condition(pod: Json) -> str:
    for one in pod["status"].get("conditions", ()):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return str(one["message"])
    return ""


def _last_node(number: str) -> Json:
    amounts = {"cpu": "1", "memory": "1Gi", "pods": "1"}
    return {
        "metadata": {"name": _LAST, "labels": {"asked": number}},
        "spec": {"taints": [{"key": "last", "effect": "NoSchedule"}]},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _last_pod(number: str) -> Json:
    return {
        "metadata": {"name": _LAST, "namespace": "team", "labels": {}},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "nodeSelector": {"asked": number},
            "tolerations": [{"operator": "Exists"}],
        },
    }
