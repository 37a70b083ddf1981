"""Turns a trace and a cluster into the plan of a simulation: the gangs, and what their pods ask
for.

A job of whole nodes is a gang of one pod for each node, a job of CPUs or GPUs one of as few pods as
nodes can hold, or of as many as the nodes on which it ran. Where nodes are interchangeable the
whole cluster may be one node, and a gang one pod: then a pod stands for all nodes of its job.
"""

import math
from collections import Counter
from typing import Final, NamedTuple

import msgspec

from shared.contracts.simulation import SimulatedJob, SimulationPlan
from shared.model.objects import Node, Queue, Shape
from tutti.simulate.machine import InvalidCluster, Machine
from tutti.simulate.trace import InvalidTrace, Trace, TraceJob, TraceOptions, Unit

_QUEUE: Final = "default"
#: Pods for each job, in the mean, beyond which jobs of CPUs are simulated on one node.
_PODS_PER_JOB_MAX: Final = 4
_MEMBERS_MAX: Final = 3_000_000


class Planned(NamedTuple):
    """What is simulated, and what a report says about it."""

    plan: SimulationPlan
    #: The job of the trace at each position of the plan.
    jobs: list[TraceJob]
    #: Units (nodes, CPUs, GPUs) of the cluster.
    capacity: int
    pooled: bool
    #: Of the trace, with stretched arrivals.
    load: float
    left_out: dict[str, int]


def make_plan(trace: Trace, machine: Machine, options: TraceOptions) -> Planned:
    """Make a plan without a configuration. Raises InvalidTrace or InvalidCluster."""
    usable = [
        node
        for node in machine.nodes
        if not node.unschedulable
        and not any(taint.effect != "PreferNoSchedule" for taint in node.taints)
    ]
    resource, unit = _resource(trace.unit, usable, options.gpu)
    units = [dict(node.allocatable).get(resource, 0) // unit for node in usable]
    capacity, per_node = sum(units), max(units, default=0)
    if not capacity:
        raise InvalidCluster(f"must have nodes without taints with {resource}")
    left_out = dict(trace.left_out)
    jobs = _fitting(trace, capacity, left_out, options)
    jobs, load = _stretched(jobs, capacity, options.load)
    pooled = _is_pooled(trace.unit, jobs, per_node, options.pool)
    if pooled:
        allocatable = ((resource, capacity * unit), ("pods", len(jobs) + capacity))
        usable = [
            Node(
                uid="pool", name="pool", resource_version=1, allocatable=tuple(sorted(allocatable))
            )
        ]
        per_node = capacity
    elif sum(_pods(job, per_node) for job in jobs) > _MEMBERS_MAX:
        raise InvalidTrace(
            f"must have at most {_MEMBERS_MAX:,} pods; --pool yes makes one of a job"
        )
    plan = SimulationPlan(
        configuration="",
        nodes=tuple(usable),
        queues=queues_of(machine.queues, {_queue_of(job, options.queue_by) for job in jobs}),
        priority_classes=machine.priority_classes,
        jobs=tuple(
            SimulatedJob(
                name=f"job-{place}",
                arrival_ms=round(job.arrival_s * 1000),
                run_ms=round(job.run_s * 1000),
                limit_s=math.ceil(job.limit_s),
                queue=_queue_of(job, options.queue_by),
                priority=job.priority,
                members=_members(job, 1 if pooled else _pods(job, per_node), resource, unit),
            )
            for place, job in enumerate(jobs)
        ),
    )
    return Planned(plan, jobs, capacity, pooled, load, left_out)


def _resource(unit: Unit, nodes: list[Node], gpu: str) -> tuple[str, int]:
    """The resource that counts, and its amount for one unit of a job's size."""
    if unit == "cpu":
        return "cpu", 1000
    if unit == "gpu":
        names = {name for node in nodes for name, value in node.allocatable if value}
        gpus = sorted(name for name in names if (name == gpu if gpu else "gpu" in name))
        if len(gpus) != 1:
            listed = ", ".join(gpus) or "none"
            raise InvalidCluster(f"must have one resource of GPUs, has {listed}; --gpu names it")
        return gpus[0], 1
    cpus = {dict(node.allocatable).get("cpu", 0) for node in nodes} - {0}
    if cpus and 2 * min(cpus) > max(cpus):
        return "cpu", min(cpus)
    raise InvalidCluster("must have nodes of one size for jobs of whole nodes; try --size-by cpu")


def _fitting(
    trace: Trace, capacity: int, left_out: dict[str, int], options: TraceOptions
) -> list[TraceJob]:
    """The jobs that are not larger than the cluster."""
    jobs = [job for job in trace.jobs if job.size <= capacity]
    larger = len(trace.jobs) - len(jobs)
    if larger and options.strict:
        job = next(job for job in trace.jobs if job.size > capacity)
        rule = f"must have at most the {capacity:,} {trace.unit}s of the cluster"
        raise InvalidTrace(f"job {job.name}: {rule}, has {job.size:,}")
    if larger:
        left_out["larger than the cluster"] = larger
    if not jobs:
        raise InvalidTrace(f"must have a job of at most {capacity:,} {trace.unit}s")
    return jobs


def _stretched(
    jobs: list[TraceJob], capacity: int, load: float | None
) -> tuple[list[TraceJob], float]:
    """The jobs with their arrivals stretched or compressed to a load, and the load."""
    span_s = jobs[-1].arrival_s - jobs[0].arrival_s
    work = sum(job.size * job.run_s for job in jobs)
    if not span_s:
        if load is not None:
            raise InvalidTrace("must have jobs that arrive at two instants for --load")
        return jobs, 0.0
    natural = work / capacity / span_s
    if load is None:
        return jobs, natural
    factor = natural / load
    return [
        msgspec.structs.replace(job, arrival_s=round(job.arrival_s * factor, 3)) for job in jobs
    ], load


def _is_pooled(unit: Unit, jobs: list[TraceJob], per_node: int, pool: str) -> bool:
    if pool != "auto":
        return pool == "yes"
    if unit == "gpu":
        # Whether a node has enough free GPUs is what matters.
        return False
    pods = sum(_pods(job, per_node) for job in jobs)
    return unit == "node" or per_node == 1 or pods > _PODS_PER_JOB_MAX * len(jobs)


def _pods(job: TraceJob, per_node: int) -> int:
    """The number of its pods, each of at most a node."""
    return min(job.size, max(job.nodes, -(-job.size // per_node)))


def _members(job: TraceJob, pods: int, resource: str, unit: int) -> tuple[tuple[int, bytes], ...]:
    """Its size in parts that are as equal as possible."""
    part, larger = divmod(job.size, pods)
    counts = Counter({part + 1: larger, part: pods - larger})
    return tuple(
        (count, _shape(resource, units * unit)) for units, count in counts.items() if count
    )


def _shape(resource: str, wanted: int) -> bytes:
    requests = tuple(sorted(((resource, wanted), ("pods", 1))))
    return msgspec.msgpack.encode(Shape(requests=requests))


def _queue_of(job: TraceJob, queue_by: str) -> str:
    if queue_by == "user":
        return f"user-{job.user}"
    return (job.queue if queue_by == "queue" else "") or _QUEUE


def queues_of(known: tuple[Queue, ...], names: set[str]) -> tuple[Queue, ...]:
    """The queues of the cluster, and open ones of equal weight for the names that have none."""
    absent = sorted(names - {queue.name for queue in known})
    return known + tuple(
        Queue(uid=f"queue-{name}", dialect="volcano", name=name, resource_version=1, state="Open")
        for name in absent
    )
