"""The gang that all pods of an operator's object form, read from the object. Pure.

For pods that no group object and no annotation makes a gang, and whose owner, or an object above
it, asks for one by `tutti.dev/gang: all`. `OWNER_KINDS` has one entry for each kind. Each entry
gives the parts of the gang: how many pods of a role must run together now, and for how many pods
there must be capacity before the first one starts, since some operators create pods only when other
ones are ready.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from shared.contracts import annotations
from shared.dialects.protocol import JsonObject
from shared.dialects.workload_sizes import ALL, Workload
from shared.kube.objects import KubeObject, ObjectMeta, PodSpec
from shared.kube.owner_objects import JobSet, JobSpec, LeaderWorkerSet, ReplicatedJob
from shared.kube.pod_usage import Usage, add, usage_of, written
from shared.kube.quantities import QuantityError
from shared.kube.resources import (
    JOB_SETS,
    JOBS_BATCH,
    LEADER_WORKER_SETS,
    Resource,
)

#: Owners above a pod that are read: operators nest fewer.
STEPS_MAX: Final = 5
#: Names of the groups that Tutti makes begin so.
PREFIX: Final = "podgroup-"
#: A larger number in an object is not believed; the planner refuses such gangs by name.
_PODS_MAX: Final = 1_000_000


class Part(NamedTuple):
    """Equal pods of an owner.

    `least` of them must run together; `expected` of them count in the gang's `minResources`.
    """

    role: str
    least: int
    expected: int
    spec: PodSpec


class OwnerKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of owner.

    Attributes:
        resource: The kind. An owner reference may name another version of it.
        decoded: The struct that its objects are decoded into.
        parts: The gang's parts; None: the kind only passes on what its owner asks for.
        is_suspended: Whether the object wants no pods at present.
        name_label: Label of its pods that holds its name; "": there is none.
        part_label: Label of its pods with the number of their gang, for a kind whose object has
            several gangs; "": all its pods are one gang.
        gangs: With `part_label`: the number of its gangs, which are numbered from 0.
    """

    resource: Resource
    decoded: type[KubeObject]
    parts: Callable[[Any], list[Part]] | None = None
    is_suspended: Callable[[Any], bool] = lambda _owner: False
    name_label: str = ""
    part_label: str = ""
    gangs: Callable[[Any], int] = lambda _owner: 1


class Owned(NamedTuple):
    """An object above a pod, with its kind."""

    kind: OwnerKind
    found: KubeObject


def gang_owner(owners: Sequence[Owned], queue: Mapping[str, str]) -> Owned | None:
    """The owner all of whose pods are one gang, or one gang for each of its parts; None: no owner
    asks for that.

    Args:
        owners: The objects above the pods, from the direct owner up.
        queue: The annotations of the pods' queue, which count if no owner has its own.
    """
    asked: int | None = None
    stated = [one.found.metadata.annotations.get(annotations.GANG) for one in owners]
    if ALL in stated:
        asked = len(stated) - 1 - stated[::-1].index(ALL)
    elif set(stated) <= {None} and queue.get(annotations.GANG) == ALL:
        asked = len(owners) - 1
    if asked is None:
        return None
    return next((one for one in reversed(owners[: asked + 1]) if one.kind.parts is not None), None)


def group_name(owned: Owned, pod: ObjectMeta) -> str:
    """The name of the group of this pod: the same for all generations of its pods. "": the pod does
    not have the label that numbers its gang.
    """
    name = f"{PREFIX}{owned.found.metadata.uid}"
    if not owned.kind.part_label:
        return name
    part = pod.labels.get(owned.kind.part_label, "")
    return f"{name}-{part}" if part else ""


def is_wanted(owned: Owned, name: str) -> bool:
    """Whether the owner has pods for the group of this name at present."""
    if owned.kind.is_suspended(owned.found):
        return False
    if not owned.kind.part_label:
        return True
    part = name.removeprefix(f"{PREFIX}{owned.found.metadata.uid}-")
    return not part.isdecimal() or int(part) < owned.kind.gangs(owned.found)


def group_sizes(owned: Owned) -> JsonObject:
    """The fields of the group's spec that follow its owner: `minMember`, and where they are known
    `minTaskMember` and `minResources`. {} if the owner creates no pods now.
    """
    parts = owned.kind.parts(owned.found) if owned.kind.parts is not None else []
    least = sum(part.least for part in parts)
    if least == 0:
        return {}
    sizes: JsonObject = {"minMember": min(least, _PODS_MAX)}
    if len(parts) > 1 and all(part.role for part in parts):
        sizes["minTaskMember"] = {part.role: min(part.least, _PODS_MAX) for part in parts}
    total: Usage = {}
    try:
        for part in parts:
            if part.expected:
                add(total, usage_of(part.spec), min(part.expected, _PODS_MAX))
    except QuantityError:
        return sizes  # the API server refuses the pods with the reason
    return {**sizes, "minResources": written(total)}


def _at_once(job: JobSpec) -> int:
    """The number of pods of a Job that run at the same time."""
    parallelism = max(0, job.parallelism)
    return parallelism if job.completions is None else min(parallelism, max(0, job.completions))


def _of_job_set(found: JobSet) -> list[Part]:
    """Each replicated Job is a role. One that waits for another has no pods yet: its minimum is 0
    until JobSet creates it. Its pods are expected if it waits for the other's pods to be ready, and
    not if it waits for their end. The minimum of a replicated Job that has ended is 0.
    """
    jobs = found.spec.replicated_jobs
    status = {one.name: one for one in found.status.replicated_jobs_status}
    replicas = {one.name: one.replicas for one in jobs}
    in_order = found.spec.startup_policy.startup_policy_order == "InOrder"
    parts: list[Part] = []
    #: Replicated Jobs that wait for the end of others, or for such a Job.
    later: set[str] = set()
    for index, job in enumerate(jobs):
        before = [(one.name, one.status) for one in job.depends_on]
        if in_order and index:
            before.append((jobs[index - 1].name, "Ready"))
        waits = False
        for name, until in before:
            counts = status.get(name)
            ended = counts.succeeded if counts is not None else 0
            ready = counts.ready + counts.failed if counts is not None else 0
            reached = ended if until == "Complete" else ended + ready
            if counts is None or reached < replicas.get(name, 0):
                waits = True
                if until == "Complete" or name in later:
                    later.add(job.name)
        parts.append(_of_replicated_job(job, status.get(job.name), waits, job.name in later))
    return parts


def _of_replicated_job(job: ReplicatedJob, status: Any, waits: bool, is_later: bool) -> Part:
    ended = status is not None and 0 < job.replicas <= status.succeeded
    count = 0 if ended else max(0, job.replicas) * _at_once(job.template.spec)
    return Part(
        job.name, 0 if waits else count, 0 if is_later else count, job.template.spec.template.spec
    )


def _of_leader_worker_set(found: LeaderWorkerSet) -> list[Part]:
    """One group of pods: with `LeaderReady` the workers are created when the leader runs."""
    template = found.spec.leader_worker_template
    workers = max(0, template.size - 1)
    leader = template.leader_template or template.worker_template
    now = 0 if found.spec.startup_policy == "LeaderReady" else workers
    return [
        Part("leader", 1, 1, leader.spec),
        Part("worker", now, workers, template.worker_template.spec),
    ]


OWNER_KINDS: Final = (
    OwnerKind(resource=JOBS_BATCH, decoded=Workload),
    OwnerKind(
        resource=JOB_SETS,
        decoded=JobSet,
        parts=_of_job_set,
        is_suspended=lambda found: found.spec.suspend,
        name_label="jobset.sigs.k8s.io/jobset-name",
    ),
    OwnerKind(
        resource=LEADER_WORKER_SETS,
        decoded=LeaderWorkerSet,
        parts=_of_leader_worker_set,
        name_label="leaderworkerset.sigs.k8s.io/name",
        part_label="leaderworkerset.sigs.k8s.io/group-index",
        gangs=lambda found: found.spec.replicas,
    ),
)

_BY_KIND: Final = {(one.resource.group, one.resource.kind): one for one in OWNER_KINDS}


def owner_kind(api_version: str, kind: str) -> OwnerKind | None:
    """The entry of a kind, in whichever version; None: it is not in the table."""
    return _BY_KIND.get((api_version.rpartition("/")[0], kind))
