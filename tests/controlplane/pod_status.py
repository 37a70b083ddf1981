"""The statuses a kubelet writes, as strategic merge patches of a pod's or node's status."""

import datetime as dt

from tests.controlplane.client import Object

HOST_IP = "127.0.0.1"


def running_status(pod: Object, address: str) -> Object:
    """Everything started and ready."""
    now = _now()
    return {
        "phase": "Running",
        "startTime": now,
        "hostIP": HOST_IP,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions("True", now),
        "containerStatuses": [
            _container(container, ready=True, state={"running": {"startedAt": now}})
            for container in pod["spec"]["containers"]
        ],
    }


def finished_status(pod: Object, exit_code: int) -> Object:
    """All containers ended with this exit code."""
    now = _now()
    terminated = {
        "exitCode": exit_code,
        "reason": "Completed" if exit_code == 0 else "Error",
        "startedAt": pod["status"].get("startTime", now),
        "finishedAt": now,
    }
    return {
        "phase": "Succeeded" if exit_code == 0 else "Failed",
        "conditions": _conditions("False", now),
        "containerStatuses": [
            _container(container, ready=False, state={"running": None, "terminated": terminated})
            for container in pod["spec"]["containers"]
        ],
    }


def failed_status(reason: str, message: str) -> Object:
    """Refused by the kubelet; nothing was started."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": _now(),
    }


def ready_node_status() -> Object:
    """A node that takes pods."""
    now = _now()
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    return {"conditions": [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}]}


def _container(container: Object, *, ready: bool, state: Object) -> Object:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "restartCount": 0,
        "ready": ready,
        "started": ready,
        "state": state,
    }


def _conditions(ready: str, now: str) -> list[Object]:
    values = {"Initialized": "True", "Ready": ready, "ContainersReady": ready}
    return [
        {"type": kind, "status": value, "lastTransitionTime": now} for kind, value in values.items()
    ]


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
