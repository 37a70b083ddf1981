"""The objects above pods and groups: their topmost workload, and the name that users know.

A pod refers to its next owner only, and a group to its own. The objects above them are followed in
what CLUSTER has: pods, and the workloads (Jobs, JobSets, …), each of which has the name of its own
owner, of whatever kind.

A user chooses the UIDs in owner references, and the API server does not check them. As in
Kubernetes' garbage collection, an owner is in the namespace of the object that refers to it, or in
none: an object of another namespace with this UID is no owner.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec

from shared.model.object_table import Table
from shared.model.objects import Labels, Owner, Pod
from shared.model.reference_objects import Workload

#: Maximum number of owners above a pod's owner that are followed; operators nest fewer.
_DEPTH_MAX: Final = 8
#: Pods above a pod that are followed: a Spark driver is above its executors, a leader above its
#: workers.
_PODS_MAX: Final = 3
#: apiVersion and kind of Jobs: their controllers make no successors of pods that have succeeded.
KUBERNETES_JOB: Final = "batch/v1", "Job"
VOLCANO_JOB: Final = "batch.volcano.sh/v1alpha1", "Job"
#: The Deployment controller appends the value of this label to its own name.
_HASH: Final = "pod-template-hash"

_labels: Final = msgspec.msgpack.Decoder(Labels).decode

PodOf = Callable[[str], Pod | None]
"""Returns the pod with a UID; None: it is not known."""

Workloads: TypeAlias = Table[Workload]


def maker_of(pod: Pod) -> tuple[str, str]:
    """Kind of the object whose controller makes the pod, after its apiVersion; "": none does."""
    return (pod.owner.api_version, pod.owner.kind) if pod.owner is not None else ("", "")


def topmost(workloads: Workloads, workload: Workload) -> Workload:
    """The last known workload above this one, or itself."""
    for _ in range(_DEPTH_MAX):
        above = _workload(workloads, workload.owner_uid, workload.namespace)
        if above is None:
            break
        workload = above
    return workload


def workload_of(workloads: Workloads, pod: Pod) -> Workload | None:
    """The topmost existing workload that creates this pod; None: none is known."""
    if pod.workload:
        # The owners between them are deleted with the pods.
        named = workloads.by_name.get((pod.namespace, pod.workload))
        return None if named is None else topmost(workloads, named)
    if pod.owner is None:
        return None
    owner = _workload(workloads, pod.owner.uid, pod.namespace)
    return None if owner is None else topmost(workloads, owner)


def owner_title(
    workloads: Workloads,
    pod_of: PodOf,
    owner: Owner | None,
    namespace: str,
    members: Iterable[Pod],
) -> str:
    """The object that the user of a gang created, as "jobset/train": kind and name of the topmost
    known owner of its group, whose own `owner` is given, else of its first member that has an
    owner; "": none has one. `namespace`: of the group.
    """
    pod = next((member for member in members if member.owner is not None), None)
    if owner is None and pod is not None:
        return _of_pod(workloads, pod_of, pod)
    return _of_owner(workloads, pod_of, owner, namespace, pod) if owner is not None else ""


def _of_pod(workloads: Workloads, pod_of: PodOf, pod: Pod) -> str:
    """The title of the topmost known owner of a pod; "": it has none."""
    for _ in range(_PODS_MAX):
        workload = workload_of(workloads, pod)
        if workload is not None and workload.title:
            return workload.title
        if pod.owner is None:
            return f"pod/{pod.name}"
        above = pod_of(pod.owner.uid)
        if above is None or above.namespace != pod.namespace:
            return _name(pod.owner, pod)
        pod = above
    return f"pod/{pod.name}"


def _of_owner(
    workloads: Workloads, pod_of: PodOf, owner: Owner, namespace: str, pod: Pod | None
) -> str:
    """The title of the topmost known object above a group's owner. `pod`: one of its members."""
    workload = _workload(workloads, owner.uid, namespace)
    if workload is not None:
        return topmost(workloads, workload).title or _name(owner, pod)
    above = pod_of(owner.uid)
    if above is None or above.namespace != namespace:
        return _name(owner, pod)
    return _of_pod(workloads, pod_of, above)


def _workload(workloads: Workloads, uid: str, namespace: str) -> Workload | None:
    """The workload to which an object in this namespace refers as its owner; None: it is not known,
    or is in another namespace.
    """
    owner = workloads.get(uid)
    return owner if owner is not None and owner.namespace in ("", namespace) else None


def _name(owner: Owner, pod: Pod | None) -> str:
    """Kind and name of an owner; of a Deployment instead of its ReplicaSet, as the labels of their
    `pod` show.
    """
    kind, name = owner.kind.lower(), owner.name
    if kind == "replicaset" and pod is not None and pod.labels:
        suffix = f"-{dict(_labels(pod.labels)).get(_HASH, '')}"
        if len(suffix) > 1 and name.endswith(suffix):
            return f"deployment/{name.removesuffix(suffix)}"
    return f"{kind}/{name}"
