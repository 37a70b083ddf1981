"""Objects of the cases: Jobs and their tasks, queues, and what they are made of."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.conformance.process_kubelet import image_name
from tests.controlplane.client import Object

NGINX: Final = "nginx:1.14"
BUSYBOX: Final = "busybox:1.24"
#: The cases keep it short, or a restart would take as long as a container's grace.
GRACE_S: Final = 3


def container(
    image: str, line: str = "", *, requests: Mapping[str, str] | None = None, **further: Any
) -> Object:
    """A container named as its image, which runs a shell line or what the image does."""
    name = image_name({"image": image})
    made: Object = {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", **further}
    made["resources"] = {"requests": dict(requests or {}), **further.get("resources", {})}
    if line:
        made |= {"command": ["/bin/sh"], "args": ["-c", line]}
    return made


def task(
    name: str,
    replicas: int,
    *,
    image: str = NGINX,
    line: str = "",
    cpu: str = "",
    restart: str = "OnFailure",
    pod: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    ports: Sequence[Object] = (),
    **further: Any,
) -> Object:
    """A task of a Job.

    Args:
        name: its name.
        replicas: how many pods.
        image: what its container runs, unless there is a line.
        line: a shell line.
        cpu: what its container requests, and nothing else.
        restart: the pods' restart policy.
        pod: further fields of the pods' spec, which win.
        labels: of the pods.
        annotations: of the pods.
        ports: of the container.
        further: further fields of the task, such as ``policies``.
    """
    asked = {"cpu": cpu} if cpu else {}
    made = container(image, line, requests=asked, **({"ports": list(ports)} if ports else {}))
    spec: Object = {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": GRACE_S,
        "containers": [made],
        **(pod or {}),
    }
    metadata = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    template = {"metadata": metadata, "spec": spec}
    return {"name": name, "replicas": replicas, "template": template, **further}


def job(
    name: str,
    *tasks: Object,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A Job; all its pods are its minimum unless `minAvailable` is given."""
    least = sum(one["replicas"] for one in tasks)
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": least,
            "tasks": list(tasks),
            **spec,
        },
    }


def policy(action: str, *events: str, exit_code: int | None = None, **further: Any) -> Object:
    """A life-cycle policy: what follows an event, several of them, or an exit code."""
    made: Object = {"action": action, **further}
    if exit_code is not None:
        made["exitCode"] = exit_code
    if len(events) == 1:
        made["event"] = events[0]
    elif events:
        made["events"] = list(events)
    return made


def queue(name: str, *, weight: int = 1, parent: str = "", **spec: Any) -> Object:
    """A queue; `capability`, `deserved`, `guarantee` and the like as its spec has them."""
    made = {"weight": weight, **({"parent": parent} if parent else {}), **spec}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": made,
    }
