"""The size of the gang that a workload's pods form. Pure.

`scheduling.volcano.sh/group-min-member` on the pods' direct owner declares it, as in Volcano, else
`scheduling.k8s.io/group-min-member` on its pods, as in kube-batch. Without both, each pod is a gang
of its own. Two cases that deadlock in Volcano do not deadlock here: the gang of a ReplicaSet is at
most as large as its present number of replicas (a rolling update creates the new one's pods one by
one), and a StatefulSet that creates a pod only when the previous one is ready forms no gang.

A Kubernetes Job with the annotation `tutti.dev/gang: all` is one gang of all pods that run at the
same time. A queue with this annotation and a namespace with a label of this name ask for it for all
Jobs without the annotation. `owned_gangs` reads the same on operators' objects.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from shared.contracts import annotations
from shared.dialects.field_checks import natural
from shared.kube.objects import (
    Condition,
    Conditions,
    Int32,
    KubeObject,
    LabelSelector,
    ObjectMeta,
)
from shared.kube.owner_objects import JobSpec
from shared.kube.resources import (
    DAEMON_SETS,
    JOBS_BATCH,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)

#: Owners that are read as a `Workload`, by API version and kind: all of Kubernetes itself.
WORKLOADS: Final[dict[tuple[str, str], Resource]] = {
    (resource.api_version, resource.kind): resource
    for resource in (REPLICATION_CONTROLLERS, REPLICA_SETS, DAEMON_SETS, STATEFUL_SETS, JOBS_BATCH)
}
#: Conditions of a Job, JobSet or MPIJob that has ended: it makes no pods again.
_ENDED: Final = frozenset({"Complete", "Completed", "Succeeded", "Failed"})
#: Value of `annotations.GANG`: all pods that run at the same time.
ALL: Final = "all"


class WorkloadSpec(JobSpec, frozen=True, kw_only=True):
    replicas: Int32 | None = None
    suspend: bool = False
    pod_management_policy: str = ""
    selector: LabelSelector | None = None


class WorkloadStatus(Conditions, frozen=True, kw_only=True):
    replicas: Int32 = 0
    succeeded: Int32 = 0


class Workload(KubeObject, frozen=True, kw_only=True):
    """The parts that are read of an object of `WORKLOADS`. (A ReplicationController's selector has
    another form: it is left out.)
    """

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


def is_workload(api_version: str, kind: str) -> bool:
    """Whether a kind of owner is one whose declaration and template are read."""
    return (api_version, kind) in WORKLOADS


def has_ended(conditions: Iterable[Condition]) -> bool:
    """Whether a Job, JobSet or MPIJob with these conditions makes no pods again."""
    return any(condition.type in _ENDED and condition.status == "True" for condition in conditions)


def is_asked_by_default(queue: ObjectMeta, namespace: ObjectMeta) -> bool:
    """Whether objects of this queue and namespace that do not say otherwise are one gang each."""
    return ALL in (queue.annotations.get(annotations.GANG), namespace.labels.get(annotations.GANG))


def gang_size(
    kind: str,
    owner: Workload | None,
    asked_by_default: bool,
    pod_annotations: Mapping[str, str],
) -> int:
    """The size of the gang that the pods of `owner` form.

    Args:
        kind: The owner's kind; "" for a pod without an owner, which is a gang of its own.
        owner: The workload; None when its kind is not read, or it is deleted.
        asked_by_default: Whether `is_asked_by_default` holds for its queue and namespace.
        pod_annotations: Annotations of one of its pods, or of their template.
    """
    if not kind:
        return 1
    given = owner.metadata.annotations if owner is not None else {}
    # As in Volcano, a value that is no positive number counts as 0.
    declared = natural(given.get(annotations.OWNER_MIN_MEMBER, "")) or 0
    declared = declared or natural(pod_annotations.get(annotations.GROUP_MIN_MEMBER, "")) or 0
    if owner is None:
        return declared or 1
    match kind:
        case "Job":
            return declared or _whole(owner.spec, given.get(annotations.GANG), asked_by_default)
        case "StatefulSet" if owner.spec.pod_management_policy != "Parallel":
            return 1
        case "ReplicaSet" | "StatefulSet":
            return max(1, min(declared, _replicas(owner.spec)))
        case _:
            return declared or 1


def _whole(spec: WorkloadSpec, mode: str | None, asked_by_default: bool) -> int:
    """The Job's own annotation has precedence over the default."""
    if not (asked_by_default if mode is None else mode == ALL):
        return 1
    return max(1, pods_at_once(spec))


def pods_at_once(job: JobSpec) -> int:
    """The number of pods of a Job that run at the same time."""
    parallelism = max(0, job.parallelism)
    return parallelism if job.completions is None else min(parallelism, max(0, job.completions))


def _replicas(spec: WorkloadSpec) -> int:
    return 1 if spec.replicas is None else spec.replicas
