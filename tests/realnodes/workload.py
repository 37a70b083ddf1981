"""What tests ask of a cluster with Tutti on it: gangs, pods, restarts, warnings."""

import contextlib
import json
import time
from collections.abc import Callable, Iterable
from typing import Final

from tests.realnodes.cluster import Object, RealCluster, is_ready
from tests.realnodes.control import KUBERNETES_GROUPS, ToolError
from tests.realnodes.images import PYTHON

NAMESPACE: Final = "kube-system"
RELEASE: Final = "tutti"
_INSTANCE: Final = "app.kubernetes.io/instance"
_KINDS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_JOBS: Final = "jobs.batch.volcano.sh"
_REVISION: Final = "tutti.dev/schema-revision"
_POLL_S: Final = 0.25
_GANG: Final = 4
#: A resource that nodes have only if a test offers it.
SEAT: Final = "realnodes.test/seat"
#: The kubelet writes its node's status every ten seconds.
_STATUS_S: Final = 60.0
#: Of pods whose gang no controller of ours has made.
GANG_LABEL: Final = "realnodes.test/gang"
#: Of gangs made by a Job: their pods have the Job's name in it.
JOB_LABEL: Final = "volcano.sh/job-name"


def _member_spec(seats: int = 0) -> Object:
    """What the pods of all gangs run: they wait."""
    resources: Object = {"requests": {"cpu": "20m", "memory": "8Mi"}}
    if seats:
        resources["requests"][SEAT] = resources.setdefault("limits", {})[SEAT] = str(seats)
    container = {
        "name": "member",
        "image": PYTHON,
        "command": ["sleep", "3600"],
        "resources": resources,
    }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }


def offer_seats(cluster: RealCluster, of_each_node: int) -> None:
    """Let every node have this many units of `SEAT`."""
    status = json.dumps({"status": {"capacity": {SEAT: str(of_each_node)}}})
    for node in cluster.nodes:
        patch = ("patch", "node", node, "--subresource=status", "--type=merge", "--patch")
        cluster.kubectl(*patch, status)

    def all_offer() -> bool:
        offered = [one["status"]["allocatable"].get(SEAT) for one in cluster.listed("nodes")]
        return offered == [str(of_each_node)] * len(cluster.nodes)

    wait_until(all_offer, _STATUS_S, "the kubelets have taken it over")


def submit_gang(cluster: RealCluster, name: str, minimum: int = _GANG, seats: int = 0) -> None:
    """Create a Job of four pods, none of which may run without the rest.

    Args:
        cluster: Where.
        name: Of the Job.
        minimum: How many pods must run at once.
        seats: Units of `SEAT` that each pod requests.

    Raises:
        ToolError: It was refused, as a minimum above four is by admission.
    """
    template = {"spec": _member_spec(seats)}
    job: Object = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "tutti",
            "minAvailable": minimum,
            "tasks": [{"name": "member", "replicas": _GANG, "template": template}],
        },
    }
    cluster.apply(job)


def submit_kubernetes_gang(cluster: RealCluster, name: str) -> None:
    """Create a gang of four in Kubernetes' own API: a PodGroup and its pods."""
    group: Object = {
        "apiVersion": KUBERNETES_GROUPS,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": _GANG}}},
    }
    pods: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{number}",
                "namespace": "default",
                "labels": {GANG_LABEL: name},
            },
            "spec": {
                **_member_spec(),
                "schedulerName": "tutti",
                "schedulingGroup": {"podGroupName": name},
            },
        }
        for number in range(_GANG)
    ]
    cluster.apply(group, *pods)


def delete_gang(cluster: RealCluster, name: str) -> None:
    """Remove it with its pods."""
    cluster.kubectl("delete", "jobs.batch.volcano.sh", name, "--namespace=default")


def members(cluster: RealCluster, name: str, label: str = JOB_LABEL) -> list[Object]:
    """The gang's pods, which have its name in this label."""
    return cluster.listed("pods", "--namespace=default", f"--selector={label}={name}")


def bound_members(cluster: RealCluster, name: str) -> int:
    """How many of the gang's pods have a node."""
    return sum(1 for pod in members(cluster, name) if pod["spec"].get("nodeName"))


def running_members(cluster: RealCluster, name: str, label: str = JOB_LABEL) -> int:
    """In how many of the gang's pods containers run."""
    return sum(1 for pod in members(cluster, name, label) if pod["status"]["phase"] == "Running")


def wait_for_gang(cluster: RealCluster, name: str, timeout_s: float) -> float:
    """Return the seconds until all members were bound."""
    return wait_until(
        lambda: bound_members(cluster, name) == _GANG, timeout_s, f"gang {name} is bound"
    )


def services_pods(cluster: RealCluster) -> list[Object]:
    """The release's pods that run for ever, without those of its Jobs and those that end."""
    chosen = f"--selector={_INSTANCE}={RELEASE}"
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


def previous_logs(cluster: RealCluster, pods: Iterable[str]) -> str:
    """How the containers of these pods ended that were started again, for messages."""
    ends: list[str] = []
    for pod in pods:
        where = (pod, f"--namespace={NAMESPACE}")
        status = cluster.kubectl("get", "pod", *where, "--output=jsonpath={.status}")
        for container in json.loads(status)["containerStatuses"]:
            ended = container.get("lastState", {}).get("terminated")
            if ended:
                ends.append(f"{pod}/{container['name']}: {ended}")
                with contextlib.suppress(ToolError):
                    last = ("--previous", "--tail=15", f"--container={container['name']}")
                    ends.append(cluster.kubectl("logs", *where, *last))
    return "\n".join(ends)


def killed_by_probes(cluster: RealCluster) -> dict[str, int]:
    """The release's pods that did not answer the kubelet in time, and how often it started a
    container again for that: on a machine with too much to do it may happen to any of them."""
    counts: dict[str, int] = {}
    for event in cluster.listed("events", f"--namespace={NAMESPACE}"):
        if event["reason"] == "Killing" and "failed liveness probe" in event["message"]:
            name = event["involvedObject"]["name"]
            counts[name] = counts.get(name, 0) + int(event.get("count") or 1)
    return counts


def failed_jobs(cluster: RealCluster) -> dict[str, int]:
    """The release's pods of Jobs of which a container failed, and how often."""
    chosen = f"--selector={_INSTANCE}={RELEASE}"
    counts = {
        pod["metadata"]["name"]: sum(
            one["restartCount"] for one in pod["status"].get("containerStatuses") or ()
        )
        + (pod["status"]["phase"] == "Failed")
        for pod in cluster.listed("pods", f"--namespace={NAMESPACE}", chosen)
        if pod["metadata"].get("ownerReferences", [{}])[0].get("kind") == "Job"
    }
    return {name: count for name, count in counts.items() if count}


def pending_reasons(cluster: RealCluster, name: str) -> list[str]:
    """The reasons that the PodGroup of a Job has for waiting now."""
    return [
        condition.get("reason", "")
        for group in cluster.listed("podgroups.scheduling.volcano.sh", "--namespace=default")
        if group["metadata"]["name"].startswith(f"{name}-")
        for condition in (group.get("status") or {}).get("conditions") or ()
        if (condition["type"], condition["status"]) == ("Unschedulable", "True")
    ]


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
    chosen = f"--selector={_INSTANCE}={RELEASE}"
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


def owned_objects(cluster: RealCluster) -> set[tuple[str, str]]:
    """Kind and name of every object of a release of Tutti, by its name or its label: not the kinds
    that it installed, and no Events, which end by themselves."""
    printed = cluster.kubectl("api-resources", "--verbs=list", "--output=name")
    kinds = {kind for kind in printed.split() if not kind.startswith("events")} - {_KINDS}
    return {
        (one["kind"], one["metadata"]["name"])
        for one in cluster.listed(",".join(sorted(kinds)))
        if RELEASE in one["metadata"]["name"]
        or (one["metadata"].get("labels") or {}).get(_INSTANCE) == RELEASE
    }


def installed_kinds(cluster: RealCluster) -> set[str]:
    """The names of the CRDs that Tutti has installed."""
    return {
        one["metadata"]["name"]
        for one in cluster.listed("crd")
        if _REVISION in (one["metadata"].get("annotations") or {})
    }


def remove_everything(cluster: RealCluster) -> None:
    """Delete all gangs, uninstall the release if there is one, and delete what that keeps, by the
    commands of the documents; the kinds, too."""
    kinds = ["pods", "podgroups.scheduling.k8s.io"]
    installed = installed_kinds(cluster)
    if _JOBS in installed:
        kinds.append(_JOBS)
    cluster.kubectl("delete", ",".join(kinds), "--all", "--namespace=default", "--wait=false")
    cluster.helm(
        *("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--ignore-not-found"),
        *("--wait", "--timeout=120s"),
    )
    kept = ("secret,pvc", f"--selector={_INSTANCE}={RELEASE}")
    cluster.kubectl("delete", *kept, f"--namespace={NAMESPACE}")
    if installed:
        cluster.kubectl("delete", "crd", *sorted(installed))


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
