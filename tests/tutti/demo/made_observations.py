"""Observations as the demo's observer writes them down, made by hand."""

from tutti.demo.claims import GPU, Job, PodObservation

JOB = Job(uid="job-1", namespace="kubeflow", name="train", size=4)
OTHER = Job(uid="job-2", namespace="kubeflow", name="train2", size=4)
NODES = {f"node-{index}": {"cpu": 4000, "pods": 110, GPU: 1} for index in range(1, 5)}


def seen(job: Job, pod: str, at_s: float, **more: object) -> PodObservation:
    """One pod ("ps-0", "worker-1") of a job at an instant; pending unless given otherwise."""
    role = pod.partition("-")[0]
    fields: dict[str, object] = {
        "at_s": at_s,
        "uid": f"{job.uid}/{pod}",
        "name": f"{job.name}-{pod}",
        "job": job.uid,
        "role": role,
        "requests": {"cpu": 1000, "pods": 1} if role == "ps" else {GPU: 1, "pods": 1},
        **more,
    }
    return PodObservation(**fields)  # type: ignore[arg-type]  # the fields are right by construction


PODS = ("ps-0", "worker-0", "worker-1", "worker-2")


def created(job: Job, at_s: float) -> list[PodObservation]:
    """All pods of a job appear."""
    return [seen(job, pod, at_s) for pod in PODS]


def bound(job: Job, at_s: float, *, step_s: float = 0.001, count: int = 4) -> list[PodObservation]:
    """Pods of a job are bound one after the other; workers on nodes 1 to 3, the ps on node 4."""
    return [
        seen(job, pod, at_s + index * step_s, node=_node(pod)) for index, pod in enumerate(PODS)
    ][:count]


def running(job: Job, at_s: float, *, count: int = 4) -> list[PodObservation]:
    """Pods of a job run."""
    return [seen(job, pod, at_s, node=_node(pod), phase="Running") for pod in PODS][:count]


def ended(job: Job, at_s: float, *, count: int = 3) -> list[PodObservation]:
    """Workers of a job end well."""
    return [seen(job, pod, at_s, node=_node(pod), phase="Succeeded") for pod in PODS[1:]][:count]


def _node(pod: str) -> str:
    return "node-4" if pod == "ps-0" else f"node-{int(pod[-1]) + 1}"
