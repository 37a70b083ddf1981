"""The table of pods, with the status of their containers as kubectl shows it."""

from datetime import UTC, datetime
from typing import Final

from shared.kube.ages import since
from tutti.api.objects import (
    Object,
    condition_of,
    created,
    field,
    name_of,
    namespace_of,
    number,
    text,
)
from tutti.api.output import Column, Layout

_ENDED: Final = frozenset({"Succeeded", "Failed"})


def status(pod: Object) -> str:
    """The pod's status in one word, as kubectl shows it: Running, Init:0/1, ImagePullBackOff…"""
    phase = text(pod, "status.phase")
    if field(pod, "metadata.deletionTimestamp"):
        if text(pod, "status.reason") == "NodeLost":
            return "Unknown"
        if phase not in _ENDED:
            return "Terminating"
    if text(condition_of(pod, "PodScheduled"), "reason") == "SchedulingGated":
        return "SchedulingGated"
    return _initializing(pod) or _running(pod) or text(pod, "status.reason") or phase


def ready(pod: Object) -> str:
    """Ready containers, of all containers and sidecars: `1/2`."""
    sidecars = {text(each, "name") for each in _init_containers(pod) if _stays(each)}
    mains = {text(each, "name") for each in field(pod, "spec.containers", [])}
    count = sum(
        1
        for each in _statuses(pod, "containerStatuses", "initContainerStatuses")
        if text(each, "name") in mains | sidecars
        and field(each, "ready", False)
        and field(each, "state.running") is not None
    )
    return f"{count}/{len(mains) + len(sidecars)}"


def restarts(pod: Object, now: datetime) -> str:
    """The number of restarts, and the last one: `3 (5m ago)`."""
    statuses = _statuses(pod, "containerStatuses", "initContainerStatuses")
    count = sum(number(each, "restartCount") for each in statuses)
    last = max((text(each, "lastState.terminated.finishedAt") for each in statuses), default="")
    return f"{count} ({since(last, now)} ago)" if count and last else str(count)


def layout(everywhere: bool = False) -> Layout:
    """The table; for several namespaces the namespace is the first column."""
    now = datetime.now(UTC)
    namespace = (Column(title="Namespace", value=namespace_of),) if everywhere else ()
    return Layout(
        columns=(
            *namespace,
            Column(title="Name", value=name_of),
            Column(title="Ready", value=ready),
            Column(title="Status", value=status, coloured=True),
            Column(title="Restart", value=lambda pod: restarts(pod, now)),
            Column(title="Age", value=lambda pod: since(created(pod), now)),
            Column(title="Node", wide=True, value=lambda pod: text(pod, "spec.nodeName")),
            Column(title="IP", wide=True, value=lambda pod: text(pod, "status.podIP")),
        ),
        gap=8,
        heads_count=False,
    )


def _initializing(pod: Object) -> str:
    """`Init:…` while init containers run or have failed; otherwise ""."""
    containers = {text(each, "name"): each for each in _init_containers(pod)}
    for index, each in enumerate(_statuses(pod, "initContainerStatuses")):
        if number(each, "state.terminated.exitCode") == 0 and field(each, "state.terminated"):
            continue
        if _stays(containers.get(text(each, "name"), {})) and field(each, "started", False):
            continue
        waiting = text(each, "state.waiting.reason")
        if field(each, "state.terminated"):
            return f"Init:{_ended(each)}"
        if waiting not in {"", "PodInitializing"}:
            return f"Init:{waiting}"
        return f"Init:{index}/{len(containers)}"
    return ""


def _running(pod: Object) -> str:
    """The reason of the first container that waits or has ended; otherwise ""."""
    reason, runs = "", False
    for each in reversed(_statuses(pod, "containerStatuses")):
        if waiting := text(each, "state.waiting.reason"):
            reason = waiting
        elif field(each, "state.terminated"):
            reason = _ended(each)
        else:
            runs = runs or field(each, "state.running") is not None
    if reason == "Completed" and runs:
        return "Running" if text(condition_of(pod, "Ready"), "status") == "True" else "NotReady"
    return reason


def _ended(container: Object) -> str:
    if reason := text(container, "state.terminated.reason"):
        return reason
    if signal := number(container, "state.terminated.signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(container, 'state.terminated.exitCode')}"


def _stays(container: Object) -> bool:
    """Whether an init container is a sidecar."""
    return text(container, "restartPolicy") == "Always"


def _init_containers(pod: Object) -> list[Object]:
    containers: list[Object] = field(pod, "spec.initContainers", [])
    return containers


def _statuses(pod: Object, *kinds: str) -> list[Object]:
    return [each for kind in kinds for each in field(pod, f"status.{kind}", [])]
