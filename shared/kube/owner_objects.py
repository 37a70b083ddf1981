"""Objects of operators at the top of their pods' owners: the fields that say how many pods there
are, and of which template. Absent fields have the defaults of each kind's API.
"""

from shared.kube.objects import Int32, KubeObject, KubeStruct, PodSpec


class PodTemplate(KubeObject, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()


class JobSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a batch Job."""

    parallelism: Int32 = 1
    completions: Int32 | None = None
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


class JobSetStatus(KubeStruct, frozen=True, kw_only=True):
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
