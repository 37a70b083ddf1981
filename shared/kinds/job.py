"""Job of batch.volcano.sh/v1alpha1: roles of pods that are scheduled together, and what happens
when a part of them ends.
"""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec

from shared.kinds.fields import (
    SUBDOMAIN_PATTERN,
    ClaimTemplate,
    Column,
    Count,
    Description,
    Name,
    NetworkTopology,
    PodTemplate,
    always,
    rules,
)
from shared.kinds.metadata import KindObject
from shared.kube.objects import Int32, KubeStruct
from shared.kube.resources import JOBS_VOLCANO

JobPhase: TypeAlias = Literal[
    "Pending",
    "Aborting",
    "Aborted",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
]
PHASES: Final[tuple[JobPhase, ...]] = get_args(JobPhase)

JobEvent: TypeAlias = Literal[
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
    "TaskFailed",
]
EVENTS: Final[tuple[JobEvent, ...]] = get_args(JobEvent)

#: Events that a user's policy must not name.
INTERNAL_EVENTS: Final = frozenset({"OutOfSync", "CommandIssued", "PodRunning"})

JobAction: TypeAlias = Literal[
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
    "SyncJob",
    "EnqueueJob",
    "SyncQueue",
    "OpenQueue",
    "CloseQueue",
]
ACTIONS: Final[tuple[JobAction, ...]] = get_args(JobAction)

#: Actions that a user's policy must not name.
INTERNAL_ACTIONS: Final = frozenset(
    {"SyncJob", "EnqueueJob", "SyncQueue", "OpenQueue", "CloseQueue"}
)

#: Final phases: a job leaves them only by a Command, and none of its pods keeps running in them.
FINISHED_PHASES: Final = frozenset({"Completed", "Failed", "Terminated"})


class LifecyclePolicy(KubeStruct, frozen=True, kw_only=True):
    """The action for events (`event`, `events`) or for an exit code of a container (`exitCode`)."""

    action: Annotated[str, rules("The action.")] = ""
    event: Annotated[str, rules("The event that triggers the action.", enum=list(EVENTS))] = ""
    events: Annotated[
        tuple[Annotated[str, rules(enum=list(EVENTS))], ...],
        rules("The events that trigger the action."),
    ] = ()
    exit_code: Annotated[
        Int32 | None, rules("The exit code of a container that triggers the action.")
    ] = None
    timeout: Annotated[str, rules("The delay before the action, as a Go duration.")] = ""


class PartitionPolicy(KubeStruct, frozen=True, kw_only=True):
    """Splits the pods of a task into parts, each of which is placed as a whole."""

    total_partitions: Annotated[Int32, rules("The number of parts.", minimum=1, required=True)] = 0
    partition_size: Annotated[
        Int32, rules("The number of pods in each part.", minimum=1, required=True)
    ] = 0
    min_partitions: Annotated[
        Int32, rules("The minimum number of parts that are placed together.", minimum=0, default=0)
    ] = 0
    network_topology: NetworkTopology | None = None


class DependsOn(KubeStruct, frozen=True, kw_only=True):
    """The tasks that must run before the pods of this task are created."""

    name: tuple[str, ...] = ()
    iteration: Annotated[
        str, rules("any: one of these tasks is enough; otherwise all of them must be running.")
    ] = ""


class TaskSpec(KubeStruct, frozen=True, kw_only=True):
    """A task of a job: a number of equal pods."""

    name: Annotated[
        Name, rules("The name of the task, which becomes a part of the names of its pods.")
    ] = ""
    replicas: Annotated[Count, rules("The number of pods of the task.")] = 0
    min_available: Annotated[
        Int32 | None,
        rules(
            "The minimum number of these pods that are placed together.", minimum=0, nullable=True
        ),
    ] = None
    template: Annotated[PodTemplate, rules("The pod, as in any other workload.")] = msgspec.field(
        default_factory=dict
    )
    policies: Annotated[
        tuple[LifecyclePolicy, ...],
        rules("The policies for events of this task; the first one that matches applies."),
    ] = ()
    topology_policy: Annotated[
        str,
        rules(
            "The NUMA topology policy of the task's pods.",
            enum=["none", "best-effort", "restricted", "single-numa-node"],
        ),
    ] = ""
    max_retry: Annotated[
        Count, rules("The number of container restarts that triggers the event TaskFailed.")
    ] = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class VolumeSpec(KubeStruct, frozen=True, kw_only=True):
    """A volume mounted by all containers of the job: an existing claim, or one to create."""

    mount_path: Annotated[
        str,
        rules(
            "The path at which the volume is mounted.",
            min_length=1,
            pattern="^[^:]+$",
            required=True,
        ),
    ] = ""
    volume_claim_name: Annotated[str, rules("The name of an existing PersistentVolumeClaim.")] = ""
    volume_claim: Annotated[ClaimTemplate | None, rules("A claim to create.")] = None


class JobSpec(KubeStruct, frozen=True, kw_only=True):
    """The tasks of a job, and the policies for their events."""

    scheduler_name: Annotated[
        str, rules("The scheduler of pods whose template names none.", max_length=63)
    ] = ""
    min_available: Annotated[
        Count, rules("The minimum number of pods that are placed together.")
    ] = 0
    volumes: tuple[VolumeSpec, ...] = ()
    tasks: Annotated[tuple[TaskSpec, ...], rules("The tasks of the job.", min_items=1)] = ()
    policies: Annotated[
        tuple[LifecyclePolicy, ...],
        rules("The policies for events of any task; the first one that matches applies."),
    ] = ()
    plugins: Annotated[
        dict[str, tuple[str, ...]], rules("The job plugins by name, each with its arguments.")
    ] = msgspec.field(default_factory=dict)
    running_estimate: Annotated[str, rules("Stored; no controller reads it.")] = ""
    queue: Annotated[
        str,
        rules(
            "The queue whose share the job uses.",
            max_length=253,
            pattern=SUBDOMAIN_PATTERN,
            default="default",
        ),
    ] = ""
    max_retry: Annotated[
        Int32,
        rules("The number of restarts after which the job becomes Failed.", minimum=0, default=3),
    ] = 0
    ttl_seconds_after_finished: Annotated[
        Int32 | None,
        rules("The number of seconds after which a finished job is deleted.", minimum=0),
    ] = None
    priority_class_name: Annotated[
        str, rules("The priority class of the job, and of its pods that name none.")
    ] = ""
    min_success: Annotated[
        Int32 | None,
        rules("The number of pods that must succeed for the job to become Completed.", minimum=1),
    ] = None
    network_topology: NetworkTopology | None = None


class JobState(KubeStruct, frozen=True, kw_only=True):
    """The phase of a job; empty before the controller has processed it."""

    phase: Annotated[JobPhase | Literal[""], rules(enum=list(PHASES))] = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class TaskState(KubeStruct, frozen=True, kw_only=True):
    """The number of a task's pods in each phase."""

    phase: dict[str, Int32] = msgspec.field(default_factory=dict)


class JobCondition(KubeStruct, frozen=True, kw_only=True):
    """A phase in which the job was, and the last time it entered it."""

    status: Annotated[str, rules(enum=list(PHASES))] = ""
    last_transition_time: datetime | None = None


class JobStatus(KubeStruct, frozen=True, kw_only=True):
    """The status of a job."""

    state: JobState = JobState()
    min_available: Count = 0
    task_status_count: dict[str, TaskState] = msgspec.field(default_factory=dict)
    pending: Count = 0
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0
    terminating: Count = 0
    unknown: Count = 0
    version: Annotated[
        Int32,
        rules(
            "The version of the job, which is also on its pods. It grows whenever pods are killed."
        ),
    ] = 0
    retry_count: Annotated[Count, rules("The number of restarts of the job so far.")] = 0
    running_duration: str = ""
    controlled_resources: Annotated[
        dict[str, str], rules("The objects that plugins and volumes created for the job.")
    ] = msgspec.field(default_factory=dict)
    conditions: tuple[JobCondition, ...] = ()


class Job(KindObject, frozen=True, kw_only=True):
    """Job is a set of tasks whose pods are scheduled together."""

    api_version: str = always("batch.volcano.sh/v1alpha1")
    kind: str = always("Job")
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


JOB: Final = Description(
    struct=Job,
    resource=JOBS_VOLCANO,
    short_names=("vcjob", "vj"),
    columns=(
        Column("STATUS", "string", ".status.state.phase"),
        Column("minAvailable", "integer", ".status.minAvailable"),
        Column("RUNNINGS", "integer", ".status.running"),
        Column("AGE", "date", ".metadata.creationTimestamp"),
        Column("QUEUE", "string", ".spec.queue", priority=1),
    ),
)
