"""A Volcano Job whose gang's trace is looked at, on whatever cluster."""

from shared.contracts.identity import gang_trace_id
from tests.controlplane.client import Object, RawClient

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
    return gang_trace_id(str(made["metadata"]["uid"]), 1)
