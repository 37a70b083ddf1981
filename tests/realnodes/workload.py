"""What tests ask of a cluster with Tutti on it: gangs, pods, restarts, warnings."""

import time
from collections.abc import Callable
from typing import Final

from tests.realnodes.cluster import Object, RealCluster, is_ready
from tests.realnodes.control import ToolError
from tests.realnodes.images import tutti_image

NAMESPACE: Final = "kube-system"
RELEASE: Final = "tutti"
_POLL_S: Final = 0.25
_GANG: Final = 4


def submit_gang(cluster: RealCluster, name: str) -> None:
    """Create a Job of four pods, none of which may run without the rest."""
    container = {
        "name": "member",
        "image": tutti_image(),
        "command": ["sleep", "3600"],
        "resources": {"requests": {"cpu": "20m", "memory": "8Mi"}},
    }
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    job: Object = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "tutti",
            "minAvailable": _GANG,
            "tasks": [{"name": "member", "replicas": _GANG, "template": {"spec": pod}}],
        },
    }
    cluster.apply(job)


def delete_gang(cluster: RealCluster, name: str) -> None:
    """Remove it with its pods."""
    cluster.kubectl("delete", "jobs.batch.volcano.sh", name, "--namespace=default")


def bound_members(cluster: RealCluster, name: str) -> int:
    """How many of the gang's pods have a node."""
    chosen = f"--selector=volcano.sh/job-name={name}"
    pods = cluster.listed("pods", "--namespace=default", chosen)
    return sum(1 for pod in pods if pod["spec"].get("nodeName"))


def wait_for_gang(cluster: RealCluster, name: str, timeout_s: float) -> float:
    """Return the seconds until all members were bound."""
    return wait_until(
        lambda: bound_members(cluster, name) == _GANG, timeout_s, f"gang {name} is bound"
    )


def services_pods(cluster: RealCluster) -> list[Object]:
    """The release's pods that run for ever, without those of its Jobs and those that end."""
    chosen = f"--selector=app.kubernetes.io/instance={RELEASE}"
    return [
        pod
        for pod in cluster.listed("pods", f"--namespace={NAMESPACE}", chosen)
        if pod["metadata"].get("ownerReferences", [{}])[0].get("kind") != "Job"
        and "deletionTimestamp" not in pod["metadata"]
    ]


def component(pod: Object) -> str:
    """The part of Tutti that a pod runs."""
    return str(pod["metadata"]["labels"]["app.kubernetes.io/component"])


def placed(cluster: RealCluster) -> dict[str, list[str]]:
    """Each component, and the nodes of its replicas in order."""
    nodes: dict[str, list[str]] = {}
    for pod in services_pods(cluster):
        nodes.setdefault(component(pod), []).append(pod["spec"].get("nodeName", ""))
    return {name: sorted(there) for name, there in sorted(nodes.items())}


def restarts(cluster: RealCluster) -> dict[str, int]:
    """The release's pods of which a container has ended and was started again."""
    counts = {
        pod["metadata"]["name"]: sum(
            one["restartCount"] for one in pod["status"].get("containerStatuses") or ()
        )
        for pod in services_pods(cluster)
    }
    return {name: count for name, count in counts.items() if count}


def failed_mounts(cluster: RealCluster) -> dict[str, int]:
    """How often the kubelet warned that a pod's volume cannot be mounted yet."""
    counts: dict[str, int] = {}
    for event in cluster.listed("events", f"--namespace={NAMESPACE}"):
        if event["reason"] == "FailedMount":
            name = event["involvedObject"]["name"]
            counts[name] = counts.get(name, 0) + int(event.get("count") or 1)
    return counts


def desired(cluster: RealCluster) -> dict[str, int]:
    """Each component, and how many replicas the release asks for."""
    chosen = f"--selector=app.kubernetes.io/instance={RELEASE}"
    return {
        component(one): int(one["spec"]["replicas"])
        for one in cluster.listed("deployments,statefulsets", f"--namespace={NAMESPACE}", chosen)
    }


def not_ready(cluster: RealCluster) -> dict[str, int]:
    """Each component that lacks ready pods, and how many."""
    lacking = desired(cluster)
    for pod in services_pods(cluster):
        lacking[component(pod)] -= is_ready(pod)
    return {name: count for name, count in lacking.items() if count}


def wait_until(probe: Callable[[], bool], timeout_s: float, because: str) -> float:
    """Return the seconds until the probe was true; a refused request counts as not yet.

    Raises:
        AssertionError: It was not in time.
    """
    started_s = time.monotonic()
    last = ""
    while True:
        try:
            if probe():
                return time.monotonic() - started_s
        except ToolError as error:
            last = str(error)
        waited_s = time.monotonic() - started_s
        assert waited_s < timeout_s, f"not within {timeout_s:.0f} s: {because} {last}"
        time.sleep(_POLL_S)
