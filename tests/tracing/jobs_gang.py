"""A Volcano Job whose gang's trace is looked at, on whatever cluster."""

from shared.contracts.identity import gang_trace_id, job_trace_root
from tests.controlplane.client import Object, RawClient
from tests.support.faulty_cluster import ORDERS
from tests.support.waiting import eventually

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def job(name: str, pods: int, **spec: object) -> Object:
    """A Job of so many pods, a CPU each, which are one gang."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    task = {
        "name": "worker",
        "replicas": pods,
        "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": pods, "schedulerName": "volcano", "tasks": [task], **spec},
    }


async def submit(api: RawClient, name: str, pods: int) -> str:
    """Create it; returns the id that its gang's first trace must have."""
    made = await api.create(JOBS, job(name, pods))
    metadata = made["metadata"]
    return gang_trace_id(job_trace_root(metadata["namespace"], metadata["uid"]), 1)


async def second_trace(api: RawClient, name: str) -> str:
    """Id of the trace of the second attempt of a Job's gang, as its group says."""

    async def said() -> str | None:
        listed = await api.get(GROUPS)
        (group,) = (one for one in listed["items"] if one["metadata"]["name"].startswith(name))
        if group["status"].get("phase") != "Running":
            return None
        return str(group["metadata"]["annotations"]["tutti.dev/trace-id"])

    found = await eventually(said, timeout_s=20.0, because=f"{name}'s group says that it runs")
    assert found is not None
    return found


async def refuse_once(api: RawClient, pod: str) -> None:
    """Have an embedded cluster refuse one binding of this pod."""
    rule = {"subresource": "binding", "name": pod, "status": 403, "times": 1}
    await api.create(ORDERS, {"rules": [rule]})
