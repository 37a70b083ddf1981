"""What the cases about scheduling share: configurations, Jobs of one task, what never happens."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from tests.controlplane.client import Object
from tests.volcano_e2e.cluster import RUNS, Cluster
from tests.volcano_e2e.manifests import job, queue, task

#: What has not happened after this long will not; Volcano's own cases look for a minute.
NEVER_S: Final = 3.0
HIGH, MIDDLE, LOW = "high-priority", "middle-priority", "low-priority"
_PRIORITIES: Final = {HIGH: 100, MIDDLE: 50, LOW: 10}


def conf(
    actions: str = "enqueue, allocate, backfill, reclaim, preempt", quota: str = "proportion"
) -> str:
    """What Volcano's newest runs are configured with, but for these actions and this quota."""
    return f"""\
actions: "{actions}"
tiers:
- plugins:
  - {{name: priority}}
  - {{name: gang, enablePreemptable: false}}
  - {{name: conformance}}
  - {{name: sla}}
- plugins:
  - {{name: overcommit}}
  - {{name: drf, enablePreemptable: false}}
  - {{name: predicates, arguments: {{predicate.DynamicResourceAllocationEnable: "true"}}}}
  - {{name: {quota}}}
  - {{name: nodeorder}}
  - {{name: binpack}}
  - {{name: network-topology-aware}}
"""


#: What their runs of gangpreempt and gangreclaim are configured with.
GANG_EVICT: Final = """\
actions: "allocate, backfill, gangreclaim, gangpreempt"
tiers:
- plugins:
  - {name: priority}
  - {name: gang, enablePreemptable: false}
  - {name: conformance}
  - {name: sla}
  - {name: capacity, enableHierarchy: false}
- plugins:
  - {name: overcommit}
  - {name: drf, enablePreemptable: false}
  - {name: predicates}
  - {name: nodeorder}
  - {name: binpack}
  - {name: network-topology-aware}
"""


def alike(
    name: str,
    count: int,
    *,
    least: int | None = None,
    cpu: str = "1",
    at: str = "",
    priority: str = "",
    of_task: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """A Job of one task.

    Args:
        name: its name.
        count: its pods.
        least: how many of them it needs; None: all.
        cpu: what each asks for; "": nothing.
        at: its queue; "": the default.
        priority: its priority class; "": none.
        of_task: further arguments of `task`.
        spec: further fields of the Job's spec.
    """
    further = {**spec, "minAvailable": count if least is None else least}
    if at:
        further["queue"] = at
    if priority:
        further["priorityClassName"] = priority
    labels = {"volcano.sh/preemptable": "true"}
    one = task(f"{name}-task-0", count, cpu=cpu, **{"labels": labels, **(of_task or {})})
    return job(name, one, **further)


async def priorities(cluster: Cluster) -> None:
    """Make the priority classes."""
    for name, value in _PRIORITIES.items():
        await cluster.priority(name, value)


async def queues(cluster: Cluster, **deserved: int) -> None:
    """Make queues, each deserving so many CPUs; 0: it says nothing."""
    for name, cpus in deserved.items():
        made = queue(name.replace("_", "-"))
        if cpus:
            made["spec"]["deserved"] = {"cpu": str(cpus)}
        await cluster.queue(made)


async def running(cluster: Cluster, made: Object) -> int:
    """How many of a Job's pods run now, or have succeeded."""
    pods = await cluster.pods_of(made)
    return sum(
        pod["status"].get("phase") in RUNS and "deletionTimestamp" not in pod["metadata"]
        for pod in pods
    )


async def never_runs(cluster: Cluster, *jobs: Object) -> None:
    """None of these Jobs' pods gets a node. It passes by waiting: there is no event for what
    does not happen.
    """
    await asyncio.sleep(NEVER_S)
    for made in jobs:
        placed = [pod for pod in await cluster.pods_of(made) if pod["spec"].get("nodeName")]
        assert not placed, [pod["metadata"]["name"] for pod in placed]


async def ungate(cluster: Cluster, *pods: Object) -> None:
    """Take all scheduling gates off these pods."""
    for pod in pods:
        await cluster.replace("Pod", pod["metadata"]["name"], "/spec/schedulingGates", [])


async def phases(cluster: Cluster, at: str) -> dict[str, int]:
    """How many of the namespace's groups in a queue are in which phase."""
    found: dict[str, int] = {}
    for group in await cluster.all_of("PodGroup"):
        if group["spec"].get("queue") == at:
            phase = group.get("status", {}).get("phase", "")
            found[phase] = found.get(phase, 0) + 1
    return found
