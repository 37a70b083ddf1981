"""Objects of operators at the top of their pods' owners: the fields that say how many pods there
are, and of which template. Absent fields have the defaults of each kind's API.
"""

import msgspec

from shared.kube.objects import Conditions, Int32, Int64, KubeObject, KubeStruct, PodSpec


class PodTemplate(KubeObject, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()


class JobSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a batch Job."""

    parallelism: Int32 = 1
    completions: Int32 | None = None
    active_deadline_seconds: Int64 = 0
    template: PodTemplate = PodTemplate()


class JobTemplate(KubeObject, frozen=True, kw_only=True):
    spec: JobSpec = JobSpec()


class Dependency(KubeStruct, frozen=True, kw_only=True):
    """`dependsOn[]`: the replicated Job `name` must be Ready or Complete first."""

    name: str = ""
    status: str = ""


class ReplicatedJob(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    replicas: Int32 = 1
    template: JobTemplate = JobTemplate()
    depends_on: tuple[Dependency, ...] = ()


class ReplicatedJobStatus(KubeStruct, frozen=True, kw_only=True):
    """Counts of child Jobs; `ready` ones have all their pods ready or ended."""

    name: str = ""
    ready: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0


class StartupPolicy(KubeStruct, frozen=True, kw_only=True):
    startup_policy_order: str = ""


class JobSetSpec(KubeStruct, frozen=True, kw_only=True):
    suspend: bool = False
    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: StartupPolicy = StartupPolicy()


class JobSetStatus(Conditions, frozen=True, kw_only=True):
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] = ()


class JobSet(KubeObject, frozen=True, kw_only=True):
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


class LeaderWorkerTemplate(KubeStruct, frozen=True, kw_only=True):
    leader_template: PodTemplate | None = None
    worker_template: PodTemplate = PodTemplate()
    #: Pods of one group, the leader included.
    size: Int32 = 1


class LeaderWorkerSetSpec(KubeStruct, frozen=True, kw_only=True):
    replicas: Int32 = 1
    startup_policy: str = ""
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()


class LeaderWorkerSet(KubeObject, frozen=True, kw_only=True):
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


class HeadGroup(KubeStruct, frozen=True, kw_only=True):
    template: PodTemplate = PodTemplate()


class WorkerGroup(KubeStruct, frozen=True, kw_only=True):
    """`workerGroupSpecs[]` of a RayCluster: `replicas` units of `num_of_hosts` pods."""

    suspend: bool = False
    replicas: Int32 | None = None
    min_replicas: Int32 = 0
    max_replicas: Int32 = 2**31 - 1
    num_of_hosts: Int32 = 1
    template: PodTemplate = PodTemplate()


class RayClusterSpec(KubeStruct, frozen=True, kw_only=True):
    suspend: bool = False
    enable_in_tree_autoscaling: bool = False
    head_group_spec: HeadGroup = HeadGroup()
    worker_group_specs: tuple[WorkerGroup, ...] = ()


class RayCluster(KubeObject, frozen=True, kw_only=True):
    spec: RayClusterSpec = RayClusterSpec()


class ReplicaSpec(KubeStruct, frozen=True, kw_only=True):
    replicas: Int32 | None = None
    template: PodTemplate = PodTemplate()


class SchedulingOptions(KubeStruct, frozen=True, kw_only=True):
    """`runPolicy.schedulingPolicy`."""

    min_available: Int32 | None = None


class RunPolicy(KubeStruct, frozen=True, kw_only=True):
    suspend: bool = False
    active_deadline_seconds: Int64 = 0
    scheduling_policy: SchedulingOptions = SchedulingOptions()


class LimitedJobSpec(KubeStruct, frozen=True, kw_only=True):
    active_deadline_seconds: Int64 = 0
    run_policy: RunPolicy = RunPolicy()


class LimitedJob(KubeObject, frozen=True, kw_only=True):
    """A job of an operator of which no more is read than for how long it runs at most."""

    spec: LimitedJobSpec = LimitedJobSpec()


class MPIJobSpec(KubeStruct, frozen=True, kw_only=True):
    run_policy: RunPolicy = RunPolicy()
    mpi_replica_specs: dict[str, ReplicaSpec] = msgspec.field(default_factory=dict)
    launcher_creation_policy: str = ""


class MPIJob(KubeObject, frozen=True, kw_only=True):
    spec: MPIJobSpec = MPIJobSpec()
    status: Conditions = Conditions()


class SparkGpu(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    quantity: Int64 = 0


class SparkPods(KubeStruct, frozen=True, kw_only=True):
    """`driver` or `executor`. Memory is in Spark's notation: "512m"."""

    cores: Int32 = 1
    core_request: str = ""
    memory: str = ""
    memory_overhead: str = ""
    gpu: SparkGpu | None = None
    instances: Int32 = 1
    scheduler_name: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class DynamicAllocation(KubeStruct, frozen=True, kw_only=True):
    enabled: bool = False
    initial_executors: Int32 | None = None
    min_executors: Int32 | None = None


class SparkApplicationSpec(KubeStruct, frozen=True, kw_only=True):
    suspend: bool = False
    type: str = ""
    mode: str = ""
    memory_overhead_factor: str = ""
    driver: SparkPods = SparkPods()
    executor: SparkPods = SparkPods()
    dynamic_allocation: DynamicAllocation = DynamicAllocation()


class SparkApplication(KubeObject, frozen=True, kw_only=True):
    spec: SparkApplicationSpec = SparkApplicationSpec()
