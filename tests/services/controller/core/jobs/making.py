"""Jobs, pods and groups as a test needs them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from services.controller.core.jobs.planning import plan
from services.controller.core.jobs.step import JobMemory, Observed, SeenPod, Step
from shared.kinds.job import Job
from shared.kinds.podgroup import PodGroup

NOW_MS = 1_800_000_000_000


def at(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def a_task(name: str = "x", replicas: int = 2, **fields: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "10m"}}}
    return {
        "name": name,
        "replicas": replicas,
        "template": {"spec": {"containers": [container]}},
        **fields,
    }


def a_job(
    *tasks: dict[str, Any],
    phase: str = "Running",
    why: str = "",
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Job:
    state = {"phase": phase, "reason": why} if phase else {}
    return msgspec.convert(
        {
            "metadata": {
                "name": "a",
                "namespace": "ns",
                "uid": "u-1",
                "generation": 1,
                "creationTimestamp": at(NOW_MS - 60_000),
            },
            "spec": {"tasks": list(tasks) or [a_task()], **spec},
            "status": {"state": state, **(status or {})},
        },
        Job,
    )


def a_pod(
    name: str,
    phase: str = "Running",
    *,
    version: int = 0,
    going: bool = False,
    marked: bool = False,
    exit_code: int | None = None,
    created_ms: int = NOW_MS - 30_000,
    **status: Any,
) -> SeenPod:
    """A pod of job `a`: its name says role and index."""
    _, task, index = name.split("-")
    notes = {
        "volcano.sh/task-spec": task,
        "volcano.sh/task-index": index,
        "volcano.sh/job-version": str(version),
    }
    if marked:
        notes["volcano.sh/controller-out-of-sync"] = "true"
    container: dict[str, Any] = {"ready": phase == "Running"}
    if exit_code is not None:
        container["state"] = {"terminated": {"exitCode": exit_code, "finishedAt": at(NOW_MS)}}
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}-{version}",
        "annotations": notes,
        "creationTimestamp": at(created_ms),
    }
    if going:
        metadata["deletionTimestamp"] = at(NOW_MS)
    return msgspec.convert(
        {
            "metadata": metadata,
            "status": {"phase": phase, "containerStatuses": [container], **status},
        },
        SeenPod,
    )


def a_group(phase: str = "Running", **fields: Any) -> PodGroup:
    return msgspec.convert(
        {"metadata": {"name": "a-u-1", "uid": "g-1"}, "status": {"phase": phase}, **fields},
        PodGroup,
    )


def step(
    job: Job,
    *pods: SeenPod,
    group: PodGroup | None = None,
    memory: JobMemory | None = None,
    command: str = "",
    now_ms: int = NOW_MS,
    grouped: bool = True,
    queue_state: str = "Open",
    priorities: Mapping[str, int] | None = None,
) -> Step:
    """The next step of a job that was met before."""
    observed = Observed(
        job=job,
        pods=pods,
        group=a_group() if group is None and grouped else group,
        memory=memory or JobMemory(planned_before=True),
        priorities=priorities or {},
        command=command,
        queue_state=queue_state,
    )
    return plan(observed, now_ms)


def phase_of(planned: Step) -> str:
    """The phase that is to be written; "" when no status is."""
    return planned.status.state.phase if planned.status is not None else ""
