"""The objects of a cluster, kept current by watches, and where each kind is in the API."""

import asyncio
from typing import Final

from aiohttp import ClientError

from tests.conformance.recordings import Object
from tests.controlplane.client import ApiError, RawClient

#: API path -> (kind, plural, namespaced). Kubernetes' own Job is "batch/Job".
_APIS: Final = {
    "/api/v1": (
        ("Pod", "pods"),
        ("Service", "services"),
        ("ConfigMap", "configmaps"),
        ("Secret", "secrets"),
        ("PersistentVolumeClaim", "persistentvolumeclaims"),
        ("Namespace", "namespaces"),
        ("Node", "nodes"),
        ("Event", "events"),
        ("ReplicationController", "replicationcontrollers"),
        ("LimitRange", "limitranges"),
        ("ResourceQuota", "resourcequotas"),
    ),
    "/apis/apps/v1": (
        ("Deployment", "deployments"),
        ("ReplicaSet", "replicasets"),
        ("StatefulSet", "statefulsets"),
        ("DaemonSet", "daemonsets"),
    ),
    "/apis/batch/v1": (("batch/Job", "jobs"),),
    "/apis/networking.k8s.io/v1": (("NetworkPolicy", "networkpolicies"),),
    "/apis/scheduling.k8s.io/v1": (("PriorityClass", "priorityclasses"),),
    "/apis/batch.volcano.sh/v1alpha1": (("Job", "jobs"), ("CronJob", "cronjobs")),
    "/apis/bus.volcano.sh/v1alpha1": (("Command", "commands"),),
    "/apis/scheduling.volcano.sh/v1beta1": (("PodGroup", "podgroups"), ("Queue", "queues")),
    "/apis/flow.volcano.sh/v1alpha1": (("JobFlow", "jobflows"), ("JobTemplate", "jobtemplates")),
    "/apis/topology.volcano.sh/v1alpha1": (("HyperNode", "hypernodes"),),
}
CLUSTER_WIDE: Final = frozenset({"Namespace", "Node", "PriorityClass", "Queue", "HyperNode"})
_PLACES: Final = {kind: (api, plural) for api, kinds in _APIS.items() for kind, plural in kinds}
#: A watch whose kind is not served (yet), or whose connection broke, is tried again.
_RETRY_S: Final = 0.3


def kind_of(found: Object) -> str:
    """Kind as the recordings write it."""
    ours = found["apiVersion"] != "batch/v1"
    return str(found["kind"]) if ours else f"batch/{found['kind']}"


def path(kind: str, namespace: str | None = None, name: str | None = None) -> str:
    """Path of a collection, or of one object in it."""
    api, plural = _PLACES[kind]
    inside = f"/namespaces/{namespace}" if namespace and kind not in CLUSTER_WIDE else ""
    return f"{api}{inside}/{plural}{f'/{name}' if name else ''}"


class ClusterView:
    """What watches have shown; `run` it in a task, and wait for `synced`."""

    def __init__(self, api: RawClient, kinds: tuple[str, ...]) -> None:
        self._api = api
        self._kinds = kinds
        self._found: dict[str, dict[str, Object]] = {}

    @property
    def synced(self) -> bool:
        """Whether every kind has been listed."""
        return len(self._found) == len(self._kinds)

    def of(self, kind: str) -> list[Object]:
        """All objects of a kind, oldest first."""
        found = self._found.get(kind, {}).values()
        return sorted(
            found, key=lambda o: (o["metadata"]["creationTimestamp"], o["metadata"]["name"])
        )

    async def run(self) -> None:
        """Keep current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind in self._kinds:
                group.create_task(self._follow(kind), name=f"view-{kind}")

    async def _follow(self, kind: str) -> None:
        where = path(kind)
        while True:
            try:
                listed = await self._api.get(where)
                found = {item["metadata"]["uid"]: item for item in listed["items"]}
                self._found[kind] = found
                version = listed["metadata"]["resourceVersion"]
                async for event, item in self._api.watch(where, resourceVersion=version):
                    uid = item["metadata"]["uid"]
                    if event == "DELETED":
                        found.pop(uid, None)
                    else:
                        found[uid] = item
            except ApiError as error:
                if error.status == 404:  # not installed on this cluster
                    self._found[kind] = {}
            except (ClientError, TimeoutError):
                pass  # as the API server's end of a watch: list again
            await asyncio.sleep(_RETRY_S)
