"""What a case acts through: one namespace of a cluster that the suite runs on.

Every wait has the deadline `SEEN_S`; Volcano's own wait up to ten minutes.
"""

import asyncio
import contextlib
import sysconfig
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.conformance.cluster_view import kind_of, path
from tests.conformance.process_kubelet import EXIT
from tests.controlplane.client import JSON_PATCH, ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape, create_nodes
from tests.controlplane.requests import node_allocatable, pod_requests, quantity
from tests.support.scheduler_conf import configure
from tests.support.waiting import eventually

SEEN_S: Final = 40.0
RUNS: Final = ("Running", "Succeeded")
_TYPED_S: Final = 60.0


class Cluster:
    """One case's view. What it makes in the namespace, and queues and priority classes that it
    makes here, are gone after the case.
    """

    def __init__(self, api: RawClient, plane: ControlPlane, namespace: str, conf: Path) -> None:
        self.api = api
        self.namespace = namespace
        self.plane = plane
        self._conf = conf
        self._own: list[tuple[str, str]] = []

    # ------------------------------------------------------------------------------ objects

    async def nodes(self, count: int, prefix: str = "worker-", **shape: Any) -> list[str]:
        """Make Ready nodes, 4 CPUs and 16 GiB each by default."""
        return await create_nodes(self.api, count, NodeShape(**shape), prefix=prefix)

    async def create(self, manifest: Object, namespace: str = "") -> Object:
        """Create an object of any kind, in the case's namespace by default.

        Raises:
            ApiError: it was refused.
        """
        kind = kind_of(manifest)
        made = await self.api.create(path(kind, namespace or self.namespace), manifest)
        if kind in {"Queue", "PriorityClass", "HyperNode"}:
            self._own.append((kind, made["metadata"]["name"]))
        return made

    async def get(self, kind: str, name: str, namespace: str = "") -> Object:
        """An object. Raises AssertionError where there is none (yet): for probes."""
        found = await self.find(kind, name, namespace)
        assert found is not None, f"there is no {kind} {name}"
        return found

    async def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """An object, or None."""
        try:
            return await self.api.get(path(kind, namespace or self.namespace, name))
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    async def all_of(self, kind: str, selector: str = "") -> list[Object]:
        """The namespace's objects of a kind (all of the cluster's where it has no namespaces)."""
        query = {"labelSelector": selector} if selector else {}
        found = await self.api.get(path(kind, self.namespace), **query)
        return list(found["items"])

    async def patch(self, kind: str, name: str, body: Object) -> Object:
        """Merge a patch into an object."""
        return await self.api.patch(path(kind, self.namespace, name), body)

    async def replace(self, kind: str, name: str, where: str, value: object) -> Object:
        """Replace one place of an object by a JSON patch, such as ``/spec``."""
        operations: Any = [{"op": "replace", "path": where, "value": value}]
        return await self.api.patch(path(kind, self.namespace, name), operations, JSON_PATCH)

    async def delete(
        self, kind: str, name: str, *, propagation: str = "Background", namespace: str = ""
    ) -> None:
        """Delete an object. Raises ApiError where it is refused or was not there."""
        body: Object = {"propagationPolicy": propagation}
        await self.api.delete(path(kind, namespace or self.namespace, name), body)

    async def is_gone(self, kind: str, name: str, *, timeout_s: float = SEEN_S) -> None:
        """Wait until an object is not there."""

        async def gone() -> bool:
            return await self.find(kind, name) is None

        await eventually(gone, timeout_s=timeout_s, because=f"{kind} {name} is gone")

    async def priority(self, name: str, value: int) -> None:
        """Make a priority class."""
        made = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        await self.create(made)

    async def queue(self, manifest: Object) -> Object:
        """Make a queue, and wait until it is open."""
        await self.create(manifest)
        return await self.queue_is(manifest["metadata"]["name"], "Open")

    async def queue_is(self, name: str, state: str) -> Object:
        """Wait until a queue is in a state."""

        async def there() -> Object:
            found = await self.get("Queue", name)
            assert found.get("status", {}).get("state") == state, found.get("status")
            return found

        return await eventually(there, timeout_s=SEEN_S, because=f"queue {name} is {state}")

    async def close_queue(self, name: str) -> None:
        """Write Closed into a queue's status, as the cases of Volcano end theirs: the whole status
        is sent, with a null where nothing was allocated yet, and again after a conflict.
        """

        async def closed() -> bool:
            found = await self.get("Queue", name)
            found["status"] = {"allocated": None, **found.get("status", {}), "state": "Closed"}
            try:
                await self.api.request("PUT", f"{path('Queue', None, name)}/status", found)
            except ApiError as error:
                if error.status != 409:
                    raise
                return False
            return True

        await eventually(closed, because=f"queue {name} is written Closed")

    async def configure(self, text: str) -> None:
        """Another scheduler configuration, from now until the end of the case."""
        await configure(self._conf, text)

    async def free(self, cpu: str) -> int:
        """How many containers with this request of CPU fit on the nodes now, counted as the cases
        count: node by node, tainted ones left out.
        """
        used: dict[str, int] = {}
        for pod in (await self.api.get("/api/v1/pods"))["items"]:
            node = pod["spec"].get("nodeName")
            if node and not _is_leaving(pod):
                used[node] = used.get(node, 0) + pod_requests(pod).get("cpu", 0)
        nodes = (await self.api.get("/api/v1/nodes"))["items"]
        return sum(
            (node_allocatable(node)["cpu"] - used.get(_name(node), 0)) // quantity("cpu", cpu)
            for node in nodes
            if not node["spec"].get("taints")
        )

    async def taint(self, *taints: Object) -> None:
        """Give all nodes these taints, and no others."""
        for node in (await self.api.get("/api/v1/nodes"))["items"]:
            where = f"/api/v1/nodes/{_name(node)}"
            await self.api.patch(where, {"spec": {"taints": list(taints) or None}})

    # --------------------------------------------------------------------------------- pods

    async def pods_of(self, owner: Object) -> list[Object]:
        """The pods that an object controls, in order of their names."""
        uid = owner["metadata"]["uid"]
        found = [
            pod
            for pod in await self.all_of("Pod")
            if any(
                one["uid"] == uid and one.get("controller")
                for one in pod["metadata"].get("ownerReferences", ())
            )
        ]
        return sorted(found, key=_name)

    async def pods_are(
        self,
        owner: Object,
        count: int,
        *phases: str,
        chosen: Callable[[Object], bool] | None = None,
    ) -> list[Object]:
        """Wait until so many of an object's pods, or more, are in one of the phases."""

        async def there() -> list[Object]:
            pods = [pod for pod in await self.pods_of(owner) if chosen is None or chosen(pod)]
            found = [pod for pod in pods if pod["status"].get("phase", "Pending") in phases]
            assert len(found) >= count, {_name(pod): pod["status"].get("phase") for pod in pods}
            return found

        because = f"{count} pods of {_name(owner)} are {' or '.join(phases)}"
        return await eventually(there, timeout_s=SEEN_S, because=because)

    async def pods_run(self, owner: Object, count: int) -> list[Object]:
        """Wait until so many of an object's pods run, or have succeeded."""
        return await self.pods_are(owner, count, *RUNS)

    async def finish(self, *names: str, exit_code: int = 0) -> None:
        """Let what runs in these pods end, now."""
        for name in names:
            text = f"{exit_code} {asyncio.get_running_loop().time()}"
            await self.patch("Pod", name, {"metadata": {"annotations": {EXIT: text}}})

    # --------------------------------------------------------------------------------- jobs

    async def job_runs(self, job: Object) -> list[Object]:
        """Wait until as many pods run as a Job needs."""
        return await self.pods_run(job, job["spec"]["minAvailable"])

    async def job_is(self, job: Object, phase: str) -> Object:
        """Wait until a Job is in a phase."""

        async def there() -> Object:
            found = await self.get("Job", _name(job), job["metadata"]["namespace"])
            seen = found.get("status", {})
            assert seen.get("state", {}).get("phase") == phase, seen
            return found

        return await eventually(there, timeout_s=SEEN_S, because=f"{_name(job)} is {phase}")

    async def job_passes(self, job: Object, *phases: str) -> None:
        """See a Job in these phases, one after the other, by a watch that begins now. Of each phase
        a state counts whose numbers agree with it (`_agrees`); others in between do not matter.
        """
        left = list(phases)
        seen: list[Object] = []

        async def look() -> None:
            where = path("Job", job["metadata"]["namespace"])
            query = {"fieldSelector": f"metadata.name={_name(job)}"}
            while left:
                async with contextlib.aclosing(self.api.watch(where, **query)) as events:
                    async for _, found in events:
                        status = found.get("status", {})
                        seen.append(status)
                        if status.get("state", {}).get("phase") == left[0] and _agrees(found):
                            left.pop(0)
                        if not left:
                            return

        try:
            async with asyncio.timeout(SEEN_S):
                await look()
        except TimeoutError:
            raise AssertionError(f"not seen: {left}; seen: {seen}") from None

    def group_of(self, job: Object) -> str:
        """Name of a Job's PodGroup."""
        return f"{_name(job)}-{job['metadata']['uid']}"

    async def unschedulable(self, job: Object, *, since: datetime | None = None) -> None:
        """Wait until an event says that a Job's group cannot be scheduled."""
        reasons = ("Unschedulable", "FailedScheduling")
        await self.event(self.group_of(job), *reasons, since=since)

    async def event(
        self, about: str, *reasons: str, words: str = "", since: datetime | None = None
    ) -> Object:
        """Wait for an event with one of the reasons about an object whose name begins so; a
        repeated event counts if it is newer than the given instant.
        """

        async def emitted() -> Object:
            found = [
                event
                for event in await self.all_of("Event")
                if event["involvedObject"]["name"].startswith(about)
                and event["reason"] in reasons
                and words in event["message"]
                and (since is None or _last(event) >= since.replace(microsecond=0))
            ]
            assert found, f"no event {reasons} about {about}"
            return found[0]

        return await eventually(emitted, timeout_s=SEEN_S, because=f"{about}: {reasons}")

    async def job_is_gone(self, job: Object) -> None:
        """Wait until nothing is left of a Job: neither itself, its group, nor a pod."""
        await self.is_gone("Job", _name(job))
        await self.is_gone("PodGroup", self.group_of(job))

        async def no_pods() -> bool:
            return not await self.pods_of(job)

        await eventually(no_pods, timeout_s=SEEN_S, because=f"no pod of {_name(job)} is left")

    # ------------------------------------------------------------------------------ command

    async def vcctl(self, *words: str, program: str = "vcctl", fails: bool = False) -> str:
        """Type a command; what it printed, on either output where it is to fail."""
        command = [str(Path(sysconfig.get_path("scripts")) / program), *words]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"KUBECONFIG": str(self.plane.admin_kubeconfig), "HOME": str(self.plane.dir)},
        )
        async with asyncio.timeout(_TYPED_S):
            out, errors = await process.communicate()
        assert (process.returncode != 0) is fails, (command, out, errors)
        return (out + errors if fails else out).decode()

    # ---------------------------------------------------------------------------------- end

    async def clean(self) -> None:
        """Take away what the case made."""
        for kind in ("CronJob", "JobFlow", "Job", *_WORKLOADS, "PodGroup"):
            with contextlib.suppress(ApiError):
                await self.api.delete(
                    path(kind, self.namespace), {"propagationPolicy": "Background"}
                )
        with contextlib.suppress(ApiError):
            await self.api.delete(path("Namespace", None, self.namespace))

        async def none_left() -> bool:
            await self.api.delete(path("Pod", self.namespace), {"gracePeriodSeconds": 0})
            return not any([await self.all_of(kind) for kind in ("Pod", "Job", "PodGroup")])

        await eventually(none_left, timeout_s=SEEN_S, because="what the case made is gone")
        for kind, name in reversed(self._own):
            await self._removed(kind, name)

    async def _removed(self, kind: str, name: str) -> None:
        if kind == "Queue" and await self.find(kind, name) is not None:
            with contextlib.suppress(ApiError, AssertionError):  # it may be gone by then
                await self.close_queue(name)

        async def gone() -> bool:
            try:
                await self.api.delete(path(kind, None, name))
            except ApiError as error:
                return error.status == 404
            return True

        await eventually(gone, timeout_s=SEEN_S, because=f"{kind} {name} can be deleted")


_WORKLOADS: Final = ("batch/Job", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")


def _name(found: Object) -> str:
    return str(found["metadata"]["name"])


def _is_leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") in {
        "Succeeded",
        "Failed",
    }


def _agrees(job: Object) -> bool:
    """Whether a Job's numbers are those of its phase."""
    status = job["status"]
    pending, running, succeeded, failed, terminating = (
        status.get(key, 0) for key in ("pending", "running", "succeeded", "failed", "terminating")
    )
    match status["state"]["phase"]:
        case "Pending":
            replicas = sum(one["replicas"] for one in job["spec"]["tasks"])
            none = pending + running + succeeded + failed == 0
            return bool(none or replicas - terminating >= status.get("minAvailable", 0))
        case "Terminating" | "Aborting" | "Restarting" | "Completing":
            return bool(terminating > 0)
        case "Terminated" | "Aborted" | "Completed":
            return bool(pending == running == terminating == 0)
        case "Running":
            return bool(running >= job["spec"]["minAvailable"])
        case other:
            raise AssertionError(f"unknown phase {other}")


def _last(event: Object) -> datetime:
    text = event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]
    return datetime.fromisoformat(text).astimezone(UTC)
