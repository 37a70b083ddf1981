"""A scheduler in Volcano's place: creates what its controllers create, binds pod by pod, writes the
same statuses, and reads everything as strictly as a typed client does.
"""

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.nodes import bind_pod

BATCH: Final = "/apis/batch.volcano.sh/v1alpha1"
SCHEDULING: Final = "/apis/scheduling.volcano.sh/v1beta1"
_GROUP_NAME: Final = "scheduling.k8s.io/group-name"


class _Typed(msgspec.Struct, kw_only=True, rename="camel"):
    """A wrong type, and a word that is none of Volcano's, is an error; unknown fields are lost."""


class _Meta(_Typed, kw_only=True):
    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[dict[str, Any]] = []
    finalizers: list[str] = []


class _JobState(_Typed, kw_only=True):
    phase: Literal[
        "",
        "Pending",
        "Aborting",
        "Aborted",
        "Running",
        "Restarting",
        "Completing",
        "Completed",
        "Terminating",
        "Terminated",
        "Failed",
    ] = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class _JobCondition(_Typed, kw_only=True):
    status: str
    last_transition_time: datetime | None = None


class _JobStatus(_Typed, kw_only=True, omit_defaults=True):
    state: _JobState = msgspec.field(default_factory=_JobState)
    min_available: int = 0
    task_status_count: dict[str, dict[str, dict[str, int]]] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str | None = None
    controlled_resources: dict[str, str] = {}
    conditions: list[_JobCondition] = []


class _Job(_Typed, kw_only=True):
    api_version: str
    kind: str
    metadata: _Meta
    spec: dict[str, Any]
    status: _JobStatus = msgspec.field(default_factory=_JobStatus)


class _GroupCondition(_Typed, kw_only=True, omit_defaults=True):
    type: str = ""
    status: Literal["True", "False", "Unknown"]
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class _GroupStatus(_Typed, kw_only=True, omit_defaults=True):
    phase: Literal["", "Pending", "Inqueue", "Running", "Unknown", "Completed"] = ""
    conditions: list[_GroupCondition] = []
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class _GroupSpec(_Typed, kw_only=True, omit_defaults=True):
    min_member: int = 0
    min_task_member: dict[str, int] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: dict[str, str] = {}


class _Group(_Typed, kw_only=True):
    api_version: str
    kind: str
    metadata: _Meta
    spec: _GroupSpec
    status: _GroupStatus = msgspec.field(default_factory=_GroupStatus)


class OtherScheduler:
    """Acts in one namespace, on request."""

    def __init__(self, api: RawClient, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._jobs = f"{BATCH}/namespaces/{namespace}/jobs"
        self._groups = f"{SCHEDULING}/namespaces/{namespace}/podgroups"

    async def serves(self) -> None:
        """It has made the queue that Volcano makes."""
        queue: Object = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "default"},
            "spec": {"weight": 1},
        }
        try:
            await self._api.create(f"{SCHEDULING}/queues", queue)
        except ApiError as error:
            if error.status != 409:
                raise

    async def submits(self, name: str, replicas: int, cpu: str = "1") -> None:
        """A user's Job, and what the other scheduler's controllers make of it."""
        job = await self._api.create(self._jobs, _job(name, replicas, cpu))
        group = f"{name}-{job['metadata']['uid']}"
        await self._api.create(self._groups, _group(group, job, replicas))
        # The kind has no status subresource.
        await self._api.patch(f"{self._groups}/{group}", {"status": {"phase": "Inqueue"}})
        state = {"phase": "Pending", "lastTransitionTime": _now()}
        status = {"minAvailable": replicas, "pending": replicas, "state": state}
        await self._api.patch(f"{self._jobs}/{name}/status", {"status": status})
        for index in range(replicas):
            await self._api.create(self._pods, _pod(job, group, index))

    async def binds(self, job: str, *indices: int) -> None:
        """Bind pod by pod, whether the remaining members can be bound or not."""
        for index in indices:
            pod = await self._api.get(f"{self._pods}/{job}-worker-{index}")
            await bind_pod(self._api, pod, "node-0")

    async def reads_and_writes_back(self) -> dict[str, str]:
        """Read every Job and PodGroup typed, and write each status whole, as an update of a typed
        client does; returns phases of Jobs by name.

        Raises:
            msgspec.ValidationError: Something is not what it can read.
        """
        counts = await self._phases()
        phases: dict[str, str] = {}
        for found in (await self._api.get(self._jobs))["items"]:
            job = msgspec.convert({**_HEAD_JOB, **found}, _Job)
            running = counts[job.metadata.name]["Running"]
            job.status.running = running
            job.status.pending = counts[job.metadata.name]["Pending"]
            phases[job.metadata.name] = job.status.state.phase
            await self._update(f"{self._jobs}/{job.metadata.name}/status", job)
        for found in (await self._api.get(self._groups))["items"]:
            group = msgspec.convert({**_HEAD_GROUP, **found}, _Group)
            await self._update(f"{self._groups}/{group.metadata.name}", group)
        return phases

    async def phases(self) -> dict[str, str]:
        """Phases of Jobs by name, as they are written now."""
        jobs = (await self._api.get(self._jobs))["items"]
        return {
            job["metadata"]["name"]: job.get("status", {}).get("state", {}).get("phase", "")
            for job in jobs
        }

    async def uids(self) -> dict[str, str]:
        """UIDs of all pods and PodGroups by name."""
        groups: list[Object] = (await self._api.get(self._groups))["items"]
        found = [*await self._listed(), *groups]
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}

    async def running(self) -> dict[str, int]:
        """How many pods of each Job run."""
        return {job: count["Running"] for job, count in (await self._phases()).items()}

    async def restarts(self) -> int:
        """Restarts of all containers of all pods."""
        statuses = [
            status
            for pod in await self._listed()
            for status in pod["status"].get("containerStatuses", [])
        ]
        return sum(status["restartCount"] for status in statuses)

    async def group_of(self, job: str) -> str:
        """Path of a Job's PodGroup."""
        groups: list[Object] = (await self._api.get(self._groups))["items"]
        names = [one["metadata"]["name"] for one in groups]
        (name,) = [name for name in names if name.startswith(f"{job}-")]
        return f"{self._groups}/{name}"

    async def leaves_nothing(self) -> None:
        """Delete what no controller here would collect."""
        for path in (self._jobs, self._groups):
            await self._api.delete(path)

    async def _listed(self) -> list[Object]:
        found: list[Object] = (await self._api.get(self._pods))["items"]
        return found

    async def _phases(self) -> dict[str, Counter[str]]:
        counts: dict[str, Counter[str]] = {}
        for pod in await self._listed():
            job = pod["metadata"]["labels"]["volcano.sh/job-name"]
            counts.setdefault(job, Counter())[pod["status"]["phase"]] += 1
        return counts

    async def _update(self, path: str, one: _Job | _Group) -> None:
        await self._api.request("PUT", path, msgspec.to_builtins(one))


_HEAD_JOB: Final = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
_HEAD_GROUP: Final = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}


def _job(name: str, replicas: int, cpu: str) -> Object:
    """As Volcano's admission would have stored it."""
    container = {
        "name": "main",
        "image": "registry.example/none",
        "resources": {"requests": {"cpu": cpu}},
    }
    task = {
        "name": "worker",
        "replicas": replicas,
        "minAvailable": replicas,
        "maxRetry": 3,
        "template": {"spec": {"containers": [container], "restartPolicy": "OnFailure"}},
    }
    spec = {
        "schedulerName": "volcano",
        "minAvailable": replicas,
        "queue": "default",
        "maxRetry": 3,
        "tasks": [task],
    }
    return {**_HEAD_JOB, "metadata": {"name": name}, "spec": spec}


def _owned(job: Object) -> list[Object]:
    reference = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return [reference]


def _group(name: str, job: Object, least: int) -> Object:
    spec = {"minMember": least, "minTaskMember": {"worker": least}, "queue": "default"}
    return {
        **_HEAD_GROUP,
        "metadata": {"name": name, "ownerReferences": _owned(job)},
        "spec": spec,
    }


def _pod(job: Object, group: str, index: int) -> Object:
    name = job["metadata"]["name"]
    shared = {
        "volcano.sh/task-index": str(index),
        "volcano.sh/task-spec": "worker",
        "volcano.sh/job-name": name,
        "volcano.sh/queue-name": "default",
    }
    notes = {
        **shared,
        _GROUP_NAME: group,
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/template-uid": f"{name}-worker",
    }
    labels = {**shared, "volcano.sh/job-namespace": job["metadata"]["namespace"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-worker-{index}",
            "labels": labels,
            "annotations": notes,
            "ownerReferences": _owned(job),
        },
        "spec": {
            **job["spec"]["tasks"][0]["template"]["spec"],
            "schedulerName": "volcano",
        },
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
