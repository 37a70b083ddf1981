"""Yardsticks of the Job controller: clients that only send requests, and watch and decide nothing.

`pods_per_s` creates pods alone. `jobs_per_s` sends all that a burst of Jobs was seen to need: the
Job, its status, its group, the group's admission, its pods: what a controller could reach at best.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from services.controller.core.jobs.manifests import group_for, pod_for
from services.controller.reconciling.writes import IN_FLIGHT
from shared.kinds.job import Job
from shared.kinds.job_shape import completed, group_name
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError
from shared.kube.resources import JOBS_VOLCANO, PODGROUPS_VOLCANO, PODS, Resource

NAMESPACE: Final = "default"
#: One deletion of thousands of pods may take the API server longer than it allows itself.
_DELETIONS_MAX: Final = 20


def a_job(name: str, pods: int) -> dict[str, Any]:
    """A Job of one role, whose container says as much as users' do."""
    container = {
        "name": "main",
        "image": "train",
        "command": ["python", "train.py"],
        "env": [{"name": f"SETTING_{number}", "value": "v" * 40} for number in range(20)],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    task = {"name": "worker", "replicas": pods, "minAvailable": pods, "template": template}
    return {
        "apiVersion": JOBS_VOLCANO.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minAvailable": pods, "schedulerName": "volcano", "tasks": [task]},
    }


async def pods_per_s(client: KubeClient, count: int) -> float:
    """Pods created per second by a client that does nothing else; they are deleted again."""
    job = completed(msgspec.convert(a_job("bare", count), Job))
    job = msgspec.structs.replace(
        job, metadata=msgspec.structs.replace(job.metadata, uid=str(uuid.uuid4()))
    )
    began_s = time.monotonic()
    await for_all(lambda index: _make_pod(client, job, index), range(count))
    took_s = time.monotonic() - began_s
    await delete_all(client, PODS)
    return count / took_s


async def jobs_per_s(client: KubeClient, jobs: int, pods: int, statuses: int) -> float:
    """Jobs per second by a client that knows all answers; `statuses` of them are written in all.

    Everything is deleted again.
    """
    began_s = time.monotonic()

    async def play(index: int) -> None:
        reply = await client.create(JOBS_VOLCANO, a_job(f"bare-{index}", pods), namespace=NAMESPACE)
        job = completed(msgspec.json.decode(reply.body, type=Job))
        for number in range((statuses + index) // jobs):
            state = msgspec.structs.replace(job.status.state, phase="Pending")
            status = msgspec.structs.replace(job.status, state=state, pending=number)
            job = msgspec.structs.replace(job, status=status)
            reply = await client.replace(
                JOBS_VOLCANO,
                job.metadata.name,
                job,
                namespace=NAMESPACE,
                subresource="status",
            )
            job = msgspec.json.decode(reply.body, type=Job)
        group = msgspec.json.encode(group_for(job, frozenset(), {}))
        (await client.post(PODGROUPS_VOLCANO.path(NAMESPACE), group)).raise_for_status()
        await admit(client, group_name(job))
        for number in range(pods):
            await _make_pod(client, job, number)

    await for_all(play, range(jobs))
    took_s = time.monotonic() - began_s
    for resource in (PODS, PODGROUPS_VOLCANO, JOBS_VOLCANO):
        await delete_all(client, resource)
    return jobs / took_s


async def admit(client: KubeClient, group: str) -> None:
    """Say that a group may have its pods, as the planner does."""
    patch = {"status": {"phase": "Inqueue"}}
    await client.patch(PODGROUPS_VOLCANO, group, patch, namespace=NAMESPACE)


async def for_all(do: Callable[[int], Awaitable[None]], indices: Sequence[int]) -> None:
    """Do it for all of them, as many at a time as the controller has writers."""
    left = iter(indices)

    async def work() -> None:
        for index in left:
            await do(index)

    async with asyncio.TaskGroup() as group:
        for number in range(IN_FLIGHT):
            group.create_task(work(), name=f"bench-{number}")


async def delete_all(client: KubeClient, resource: Resource) -> None:
    """Delete every object of a kind in the namespace."""
    at_once = {"gracePeriodSeconds": "0", "propagationPolicy": "Background"}
    for _ in range(_DELETIONS_MAX):
        try:
            await client.request(
                "DELETE", resource.path(NAMESPACE), params=at_once, timeout_s=120.0
            )
        except ApiError as error:
            if error.status != 504:
                raise
        else:
            return


async def _make_pod(client: KubeClient, job: Job, index: int) -> None:
    body = msgspec.json.encode(pod_for(job, job.spec.tasks[0], index, []))
    (await client.post(PODS.path(NAMESPACE), body)).raise_for_status()
