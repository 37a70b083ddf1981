"""The kinds of Kubernetes itself: pods, nodes, priority classes, Jobs, and the objects that the
planner looks up.

Pods are read by `pods`, the objects that are looked up by `reference_objects`, `storage` and
`devices`; this file adds nodes and priority classes. There is no group object with a status.
"""

from sys import intern
from typing import Final

from shared.dialects import devices, reference_objects, storage
from shared.dialects.pods import read_pod, read_undecodable_pod
from shared.dialects.protocol import Dialect, Kind, PodKeys, cluster_identity
from shared.dialects.reference_objects import (
    labels,
    read_workload,
    readable_amounts,
    workload_kind,
)
from shared.kube import objects as kube
from shared.kube import reference_objects as looked_up
from shared.kube.decoding import Undecodable
from shared.kube.resources import JOBS_BATCH, NODES, PODS, PRIORITY_CLASSES
from shared.model import objects as model
from shared.model.reference_objects import Workload


def read_node(node: kube.Node) -> model.Node:
    """A node; a malformed amount of a resource counts as none of it."""
    metadata = node.metadata
    ready = [condition.status for condition in node.status.conditions if condition.type == "Ready"]
    return model.Node(
        **cluster_identity(metadata),
        labels=labels(metadata),
        allocatable=readable_amounts(node.status.allocatable),
        taints=node.spec.taints,
        unschedulable=node.spec.unschedulable,
        # As in kube-scheduler, only taints keep pods off a node without the condition Ready.
        ready="True" in ready if ready else True,
        images=tuple(
            sorted(
                {
                    intern(name): image.size_bytes
                    for image in node.status.images
                    for name in image.names
                }.items()
            )
        )
        if node.status.images
        else (),
    )


def read_undecodable_node(undecodable: Undecodable) -> model.Node:
    """A node that cannot be read takes no pods, but those on it are still on an existing node."""
    metadata = undecodable.metadata
    return model.Node(
        **cluster_identity(metadata),
        unschedulable=True,
        ready=False,
    )


def read_priority_class(priority_class: kube.PriorityClass) -> model.PriorityClass:
    return model.PriorityClass(
        **cluster_identity(priority_class.metadata),
        value=priority_class.value,
        global_default=priority_class.global_default,
        preempts=priority_class.preemption_policy != "Never",
    )


def read_undecodable_priority_class(undecodable: Undecodable) -> model.PriorityClass:
    """A class that cannot be read is known by name, with the value that an unknown class has: 0."""
    return model.PriorityClass(
        **cluster_identity(undecodable.metadata),
    )


def read_job(workload: looked_up.Workload) -> Workload | None:
    """A Job of `batch`; None when it creates no pods again, or wants none (parallelism 0)."""
    return None if workload.spec.parallelism == 0 else read_workload(JOBS_BATCH, workload)


DIALECT: Final = Dialect(
    name="native",
    precedence=90,
    kinds=(
        Kind(
            resource=PODS,
            neutral="pod",
            decoded=kube.Pod,
            read=read_pod,
            read_undecodable=read_undecodable_pod,
            in_context=True,
        ),
        Kind(
            resource=NODES,
            neutral="node",
            decoded=kube.Node,
            read=read_node,
            read_undecodable=read_undecodable_node,
        ),
        Kind(
            resource=PRIORITY_CLASSES,
            neutral="priorityclass",
            decoded=kube.PriorityClass,
            read=read_priority_class,
            read_undecodable=read_undecodable_priority_class,
        ),
        *reference_objects.KINDS,
        *storage.KINDS,
        *devices.KINDS,
        workload_kind(JOBS_BATCH, read_job),
    ),
    index=PodKeys(
        labels=("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
    ),
)
