"""Objects at the top of their pods' owners: when their controllers make pods again, and which
labels of a pod name them.

Owner references lead from a pod only to its next owner, and what lies between (a StatefulSet, the
leader's pod, a child Job) is made again with the pods. JobSet and LeaderWorkerSet label every pod
with the object that stays, and with the part of it that the pod is in. `native` brings the kinds.
"""

from sys import intern
from typing import Final

from shared.dialects.protocol import Kind, ReadingContext
from shared.dialects.reference_objects import kind
from shared.kube import reference_objects as around
from shared.kube.resources import (
    JOB_SETS,
    JOBS_BATCH,
    JOBS_VOLCANO,
    LEADER_WORKER_SETS,
    Resource,
)
from shared.model import reference_objects

_JOB_SET: Final = "jobset.sigs.k8s.io/"
_LEADER_WORKER_SET: Final = "leaderworkerset.sigs.k8s.io/"
#: Label with the object's name -> its resource, and the labels that say a pod's part of it.
_LABELS: Final = {
    f"{_JOB_SET}jobset-name": (
        JOB_SETS,
        (f"{_JOB_SET}replicatedjob-name", f"{_JOB_SET}job-index"),
    ),
    f"{_LEADER_WORKER_SET}name": (LEADER_WORKER_SETS, (f"{_LEADER_WORKER_SET}group-index",)),
}
#: Conditions after which no pod is made again, or not before a user wants it.
_ENDED: Final = frozenset(
    {"Complete", "Completed", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended"}
)
#: Phases of a Volcano Job in which its pods are made, and made again.
_LIVING_PHASES: Final = frozenset({"", "Pending", "Running", "Restarting"})
_NAME_CHARACTERS_MAX: Final = 253


def workload_of(labels: dict[str, str]) -> tuple[str, str]:
    """The workload that a pod's labels name (`Workload.name`), and the pod's part of it; "" twice
    where they name none.
    """
    for label, (resource, parts) in _LABELS.items():
        name = labels.get(label)
        if name:
            part = "-".join(labels.get(one, "") for one in parts)
            return _name(resource, name), intern(part[:_NAME_CHARACTERS_MAX])
    return "", ""


def _name(resource: Resource, name: str) -> str:
    return intern(f"{resource.title}/{name[:_NAME_CHARACTERS_MAX]}")


def _read(
    resource: Resource, found: around.Workload, parts: int | None
) -> reference_objects.Workload | None:
    """The object; None when its controller makes no pods, or not again."""
    metadata, status = found.metadata, found.status
    ended = any(one.type in _ENDED and one.status == "True" for one in status.conditions)
    if metadata.deletion_timestamp is not None or found.spec.suspend or ended:
        return None
    if status.state.phase not in _LIVING_PHASES:
        return None
    owner = metadata.controller
    return reference_objects.Workload(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=_name(resource, metadata.name),
        resource_version=metadata.version,
        owner_uid=owner.uid if owner is not None else "",
        parts=parts,
    )


def read_job(found: around.Workload, context: ReadingContext) -> reference_objects.Workload | None:
    """A batch Job: without parallelism it wants no pods."""
    del context
    return None if found.spec.parallelism == 0 else _read(JOBS_BATCH, found, None)


def read_volcano_job(
    found: around.Workload, context: ReadingContext
) -> reference_objects.Workload | None:
    """A Volcano Job."""
    del context
    return _read(JOBS_VOLCANO, found, None)


def read_job_set(
    found: around.Workload, context: ReadingContext
) -> reference_objects.Workload | None:
    """A JobSet."""
    del context
    return _read(JOB_SETS, found, None)


def read_leader_worker_set(
    found: around.Workload, context: ReadingContext
) -> reference_objects.Workload | None:
    """A LeaderWorkerSet: its groups are its parts."""
    del context
    replicas = found.spec.replicas
    return _read(LEADER_WORKER_SETS, found, 1 if replicas is None else replicas)


KINDS: Final[tuple[Kind, ...]] = (
    kind(JOBS_BATCH, "workload", around.Workload, read_job),
    kind(JOBS_VOLCANO, "workload", around.Workload, read_volcano_job),
    kind(JOB_SETS, "workload", around.Workload, read_job_set),
    kind(LEADER_WORKER_SETS, "workload", around.Workload, read_leader_worker_set),
)
