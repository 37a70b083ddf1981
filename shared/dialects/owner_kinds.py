"""The kinds of owners whose pods may be one gang, and what their objects say about them. Pure.

Each entry of `OWNER_KINDS` reads one kind, as its operator's API documents it: how many pods of a
role must run together now, and for how many there must be capacity before the first one starts,
since some operators create pods only when other ones are ready.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from shared.dialects.workload_sizes import Workload, has_ended, pods_at_once
from shared.kube.objects import (
    Container,
    KubeObject,
    ObjectMeta,
    PodSpec,
    ResourceList,
    ResourceRequirements,
)
from shared.kube.owner_objects import (
    JobSet,
    JobTemplate,
    LeaderWorkerSet,
    LimitedJob,
    MPIJob,
    PodTemplate,
    RayCluster,
    ReplicatedJob,
    ReplicatedJobStatus,
    SparkApplication,
    SparkPods,
    WorkerGroup,
)
from shared.kube.resources import (
    JOB_SETS,
    JOBS_BATCH,
    LEADER_WORKER_SETS,
    MPI_JOBS,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    SPARK_APPLICATIONS,
    TRAIN_JOBS,
    TRAINING_JOBS,
    Resource,
)

#: Spark's notation of memory; without a unit it is MiB.
_SPARK_MEMORY: Final = re.compile(r"([0-9]{1,12})([kmgtp]?)b?", re.ASCII)
_SPARK_UNITS: Final = {"k": 10, "": 20, "m": 20, "g": 30, "t": 40, "p": 50}
#: Spark's memory beside the heap: at least this, and this part of it by the application's type.
_SPARK_OVERHEAD_MIN: Final = 384 << 20
_SPARK_OVERHEAD: Final = {"Python": 0.4, "R": 0.4}
_SPARK_OVERHEAD_JVM: Final = 0.1


class Part(NamedTuple):
    """Equal pods of an owner.

    `least` of them must run together; `expected` of them count in the gang's `minResources`.
    `job` is the template of the Job between owner and pods, if there is one.
    """

    role: str
    least: int
    expected: int
    template: PodTemplate
    job: JobTemplate = JobTemplate()


class OwnerKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of owner.

    Attributes:
        resource: The kind. An owner reference may name another version of it.
        decoded: The struct that its objects are decoded into.
        parts: The gang's parts; None: the kind only passes on what its owner asks for.
        is_suspended: Whether the object wants no pods at present.
        has_ended: Whether it makes no pods again.
        name_label: Label of its pods that holds its name; "": there is none.
        part_label: Label of its pods with the number of their gang, for a kind whose object has
            several gangs; "": all its pods are one gang.
        direct_pods: Whether its gang has only the pods that it owns itself.
        gangs: With `part_label`: the number of its gangs, which are numbered from 0.
    """

    resource: Resource
    decoded: type[KubeObject]
    parts: Callable[[Any], list[Part]] | None = None
    is_suspended: Callable[[Any], bool] = lambda _owner: False
    has_ended: Callable[[Any], bool] = lambda _owner: False
    name_label: str = ""
    part_label: str = ""
    gangs: Callable[[Any], int] = lambda _owner: 1
    direct_pods: bool = False


def _of_job_set(job_set: JobSet) -> list[Part]:
    """Each replicated Job is a role. One that waits for another has no pods yet: its minimum is 0
    until JobSet creates it. Its pods are expected if it waits for the other's pods to be ready, and
    not if it waits for their end. The minimum of a replicated Job that has ended is 0.
    """
    jobs = job_set.spec.replicated_jobs
    status = {counts.name: counts for counts in job_set.status.replicated_jobs_status}
    replicas = {job.name: job.replicas for job in jobs}
    in_order = job_set.spec.startup_policy.startup_policy_order == "InOrder"
    parts: list[Part] = []
    #: Replicated Jobs that wait for the end of others, or for such a Job.
    later: set[str] = set()
    for index, job in enumerate(jobs):
        before = [(dependency.name, dependency.status) for dependency in job.depends_on]
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


def _of_replicated_job(
    job: ReplicatedJob, status: ReplicatedJobStatus | None, waits: bool, is_later: bool
) -> Part:
    ended = status is not None and 0 < job.replicas <= status.succeeded
    count = 0 if ended else max(0, job.replicas) * pods_at_once(job.template.spec)
    least, expected = 0 if waits else count, 0 if is_later else count
    return Part(job.name, least, expected, job.template.spec.template, job.template)


def _of_leader_worker_set(workload: LeaderWorkerSet) -> list[Part]:
    """One group of pods: with `LeaderReady` the workers are created when the leader runs."""
    template = workload.spec.leader_worker_template
    workers = max(0, template.size - 1)
    leader = template.leader_template or template.worker_template
    now = 0 if workload.spec.startup_policy == "LeaderReady" else workers
    return [
        Part("leader", 1, 1, leader),
        Part("worker", now, workers, template.worker_template),
    ]


def _of_ray_cluster(cluster: RayCluster) -> list[Part]:
    """The head and all workers; with autoscaling the fewest workers that it keeps, because the
    autoscaler adds others singly.
    """
    head = Part("head", 1, 1, cluster.spec.head_group_spec.template)
    scales = cluster.spec.enable_in_tree_autoscaling
    workers = [
        (0 if group.suspend else _ray_units(group, scales) * group.num_of_hosts, group)
        for group in cluster.spec.worker_group_specs
    ]
    return [
        head,
        *(Part("worker", max(0, count), max(0, count), group.template) for count, group in workers),
    ]


def _ray_units(group: WorkerGroup, scales: bool) -> int:
    """The number of replicas, as KubeRay limits it."""
    least = min(group.min_replicas, group.max_replicas)
    if scales or group.replicas is None:
        return least
    return max(least, min(group.replicas, group.max_replicas))


def _of_mpi_job(mpi_job: MPIJob) -> list[Part]:
    """Launcher and workers. The launcher may be created only when all workers are ready. With
    `minAvailable` as many workers as are missing to it are extras.
    """
    launcher = mpi_job.spec.mpi_replica_specs.get("Launcher")
    worker = mpi_job.spec.mpi_replica_specs.get("Worker")
    parts: list[Part] = []
    if launcher is not None:
        now = 0 if mpi_job.spec.launcher_creation_policy == "WaitForWorkersReady" else 1
        parts.append(Part("launcher", now, 1, launcher.template))
    if worker is not None:
        count = max(0, worker.replicas or 0)
        least = mpi_job.spec.run_policy.scheduling_policy.min_available
        if least is not None:
            count = max(0, min(count, least - len(parts)))
        parts.append(Part("worker", count, count, worker.template))
    return parts


def _of_spark_application(application: SparkApplication) -> list[Part]:
    """The driver creates the executors: it is the minimum, and there must be capacity for all. In
    client mode it is no pod.
    """
    spec = application.spec
    dynamic = spec.dynamic_allocation
    count = spec.executor.instances
    if dynamic.enabled:
        given = (dynamic.initial_executors, dynamic.min_executors)
        count = max((number for number in given if number is not None), default=count)
    count = max(0, count)
    executor = _spark_pod(spec.executor, application)
    if spec.mode == "client":
        return [Part("executor", min(1, count), count, executor)]
    return [
        Part("driver", 1, 1, _spark_pod(spec.driver, application)),
        Part("executor", 0, count, executor),
    ]


def _spark_pod(pods: SparkPods, application: SparkApplication) -> PodTemplate:
    """The requests of a driver or an executor; memory that cannot be read is left out."""
    requests: ResourceList = {"cpu": pods.core_request or str(pods.cores)}
    heap, overhead = _spark_bytes(pods.memory or "1g"), _spark_bytes(pods.memory_overhead)
    if heap is not None:
        if overhead is None:
            overhead = max(_SPARK_OVERHEAD_MIN, int(heap * _spark_factor(application)))
        requests["memory"] = str(heap + overhead)
    if pods.gpu is not None and pods.gpu.name and pods.gpu.quantity > 0:
        requests[pods.gpu.name] = str(pods.gpu.quantity)
    main = Container(resources=ResourceRequirements(requests=requests))
    spec = PodSpec(scheduler_name=pods.scheduler_name, containers=(main,))
    return PodTemplate(metadata=ObjectMeta(annotations=pods.annotations), spec=spec)


def _spark_bytes(text: str) -> int | None:
    matched = _SPARK_MEMORY.fullmatch(text.strip().lower())
    return int(matched[1]) << _SPARK_UNITS[matched[2]] if matched is not None else None


def _spark_factor(application: SparkApplication) -> float:
    try:
        given = float(application.spec.memory_overhead_factor)
    except ValueError:
        given = -1.0
    if 0 <= given <= 1:
        return given
    return _SPARK_OVERHEAD.get(application.spec.type, _SPARK_OVERHEAD_JVM)


OWNER_KINDS: Final = (
    OwnerKind(resource=JOBS_BATCH, decoded=Workload),
    OwnerKind(
        resource=JOB_SETS,
        decoded=JobSet,
        parts=_of_job_set,
        is_suspended=lambda owner: owner.spec.suspend,
        has_ended=lambda owner: has_ended(owner.status.conditions),
        name_label="jobset.sigs.k8s.io/jobset-name",
    ),
    OwnerKind(
        resource=LEADER_WORKER_SETS,
        decoded=LeaderWorkerSet,
        parts=_of_leader_worker_set,
        name_label="leaderworkerset.sigs.k8s.io/name",
        part_label="leaderworkerset.sigs.k8s.io/group-index",
        gangs=lambda owner: owner.spec.replicas,
    ),
    OwnerKind(resource=TRAIN_JOBS, decoded=LimitedJob),
    OwnerKind(
        resource=RAY_CLUSTERS,
        decoded=RayCluster,
        parts=_of_ray_cluster,
        is_suspended=lambda owner: owner.spec.suspend,
        name_label="ray.io/cluster",
        # Its clean-up Job runs when the other pods are gone.
        direct_pods=True,
    ),
    OwnerKind(resource=RAY_JOBS, decoded=LimitedJob),
    OwnerKind(resource=RAY_SERVICES, decoded=KubeObject),
    OwnerKind(
        resource=MPI_JOBS,
        decoded=MPIJob,
        parts=_of_mpi_job,
        is_suspended=lambda owner: owner.spec.run_policy.suspend,
        has_ended=lambda owner: has_ended(owner.status.conditions),
        name_label="training.kubeflow.org/job-name",
    ),
    # A Spark driver owns its executors.
    OwnerKind(resource=PODS, decoded=KubeObject),
    OwnerKind(
        resource=SPARK_APPLICATIONS,
        decoded=SparkApplication,
        parts=_of_spark_application,
        is_suspended=lambda owner: owner.spec.suspend,
        name_label="sparkoperator.k8s.io/app-name",
    ),
)

#: Kinds whose operators make the PodGroups: of their objects only the run limits are read.
LIMITED_KINDS: Final = tuple(
    OwnerKind(resource=resource, decoded=LimitedJob) for resource in TRAINING_JOBS
)
_BY_KIND: Final = {(kind.resource.group, kind.resource.kind): kind for kind in OWNER_KINDS}


def owner_kind(api_version: str, kind: str) -> OwnerKind | None:
    """The entry of a kind, in whichever version; None: it is not in the table."""
    return _BY_KIND.get((api_version.rpartition("/")[0], kind))


def limiting_kind(api_version: str, kind: str) -> OwnerKind | None:
    """The entry of a kind whose objects may state the run limit of a PodGroup that their operator
    makes; None: it is not known.
    """
    of_operator = (each for each in LIMITED_KINDS if each.resource.api_version == api_version)
    return next(
        (each for each in of_operator if each.resource.kind == kind), owner_kind(api_version, kind)
    )
