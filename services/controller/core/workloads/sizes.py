"""How many pods of a workload are a gang.

`scheduling.volcano.sh/group-min-member` on the pods' direct owner declares it, as in Volcano, else
`scheduling.k8s.io/group-min-member` on the pods that it makes, as in kube-batch; without either
each pod stands for itself. Two things Volcano lets deadlock for ever do not here: a ReplicaSet
is no larger a gang than it has pods at the moment (a rolling update makes the new one's pods one by
one), and a StatefulSet that makes a pod only once the one before is ready is no gang at all.

A Kubernetes Job is a gang as a whole, of as many pods as run at once, where its annotation
`tutti.dev/gang: all` says so, or its queue's.
"""

from collections.abc import Mapping
from typing import Final

from shared.contracts import annotations
from shared.dialects.numbers import natural
from shared.kube.objects import KubeStruct, ObjectMeta

#: The value of `annotations.GANG`: all pods that run at once.
ALL: Final = "all"


class Selector(KubeStruct, frozen=True, kw_only=True):
    """Which pods are a workload's, as far as it is looked at."""

    match_labels: Mapping[str, str] = {}


class Template(KubeStruct, frozen=True, kw_only=True):
    """What a workload's pods are made from, as far as it is looked at."""

    metadata: ObjectMeta = ObjectMeta()


class WorkloadSpec(KubeStruct, frozen=True, kw_only=True):
    """The sizes of a workload, of whatever kind."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    pod_management_policy: str = ""
    selector: Selector | None = None
    template: Template = Template()


class WorkloadStatus(KubeStruct, frozen=True, kw_only=True):
    """What there is of it."""

    replicas: int = 0


class Workload(KubeStruct, frozen=True, kw_only=True):
    """A ReplicaSet, StatefulSet, DaemonSet or Job, as far as it is looked at."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


def gang_size(
    kind: str,
    owner: Workload | None,
    queue_notes: Mapping[str, str],
    pod_notes: Mapping[str, str],
) -> int:
    """The size of the gang that the pods of `owner` are.

    Args:
        kind: The owner's kind; "" for pods without one, each of which stands for itself.
        owner: None where its kind is not read, or it is gone.
        queue_notes: Annotations of the pods' queue.
        pod_notes: Annotations of one of its pods, or of the template that they are made from.
    """
    if not kind:
        return 1
    notes = owner.metadata.annotations if owner is not None else {}
    # 0 for what is no positive number, as Volcano takes it.
    declared = natural(notes.get(annotations.OWNER_MIN_MEMBER, "")) or 0
    declared = declared or natural(pod_notes.get(annotations.GROUP_MIN_MEMBER, "")) or 0
    if owner is None:
        return declared or 1
    match kind:
        case "Job":
            return declared or _whole(owner.spec, notes.get(annotations.GANG), queue_notes)
        case "ReplicaSet":
            return max(1, min(declared, _replicas(owner.spec)))
        case "StatefulSet" if owner.spec.pod_management_policy != "Parallel":
            return 1
        case "StatefulSet":
            return max(1, min(declared, _replicas(owner.spec)))
        case _:
            return declared or 1


def _whole(spec: WorkloadSpec, mode: str | None, queue_notes: Mapping[str, str]) -> int:
    """The Job's own word counts, if it has one; then its queue's."""
    if (queue_notes.get(annotations.GANG, "") if mode is None else mode) != ALL:
        return 1
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    most = parallelism if spec.completions is None else min(parallelism, spec.completions)
    return max(1, most)


def _replicas(spec: WorkloadSpec) -> int:
    return 1 if spec.replicas is None else spec.replicas
