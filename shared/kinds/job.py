"""Job of batch.volcano.sh/v1alpha1: roles of pods that are scheduled together, and what happens
when a part of them ends.
"""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec

from shared.kinds.description import Column, Description
from shared.kinds.fields import (
    SUBDOMAIN_PATTERN,
    ClaimTemplate,
    Count,
    Int32,
    KindStruct,
    Name,
    NetworkTopology,
    PodTemplate,
    always,
    rules,
)
from shared.kinds.metadata import Metadata

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


class LifecyclePolicy(KindStruct, frozen=True, kw_only=True):
    """What to do (`action`) when something happens (`event`, `events` or `exitCode`)."""

    action: Annotated[str, rules("What to do.")] = ""
    event: Annotated[str, rules("When to do it.", enum=list(EVENTS))] = ""
    events: Annotated[
        tuple[Annotated[str, rules(enum=list(EVENTS))], ...], rules("When to do it: any of these.")
    ] = ()
    exit_code: Annotated[
        Int32 | None, rules("When to do it: a container ended with this code.")
    ] = None
    timeout: Annotated[str, rules("How long to wait before, as a Go duration.")] = ""


class PartitionPolicy(KindStruct, frozen=True, kw_only=True):
    """Splits the pods of a role into parts that each need room at once."""

    total_partitions: Annotated[Int32, rules("How many parts.", minimum=1, required=True)] = 0
    partition_size: Annotated[Int32, rules("Pods in each.", minimum=1, required=True)] = 0
    min_partitions: Annotated[
        Int32, rules("How many parts must be placed together.", minimum=0, default=0)
    ] = 0
    network_topology: NetworkTopology | None = None


class DependsOn(KindStruct, frozen=True, kw_only=True):
    """Roles that must be up before this one's pods are made."""

    name: tuple[str, ...] = ()
    iteration: Annotated[str, rules("any: one of them is enough; otherwise all must be up.")] = ""


class TaskSpec(KindStruct, frozen=True, kw_only=True):
    """A role of a job: equal pods."""

    name: Annotated[Name, rules("The role's name; it becomes part of its pods' names.")] = ""
    replicas: Annotated[Count, rules("How many pods the role has.")] = 0
    min_available: Annotated[
        Int32 | None, rules("How many of them must be placed together.", minimum=0, nullable=True)
    ] = None
    template: Annotated[PodTemplate, rules("The pod, as in any other workload.")] = msgspec.field(
        default_factory=dict
    )
    policies: Annotated[
        tuple[LifecyclePolicy, ...],
        rules("What to do when something happens to the role; the first match counts."),
    ] = ()
    topology_policy: Annotated[
        str,
        rules(
            "How the role's CPUs must lie on a node's NUMA nodes.",
            enum=["none", "best-effort", "restricted", "single-numa-node"],
        ),
    ] = ""
    max_retry: Annotated[Count, rules("Container restarts until the event TaskFailed.")] = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class VolumeSpec(KindStruct, frozen=True, kw_only=True):
    """A volume that all containers of the job share: an existing claim, or one to make."""

    mount_path: Annotated[
        str, rules("Where it is mounted.", min_length=1, pattern="^[^:]+$", required=True)
    ] = ""
    volume_claim_name: Annotated[str, rules("An existing claim.")] = ""
    volume_claim: Annotated[ClaimTemplate | None, rules("A claim to make.")] = None


class JobSpec(KindStruct, frozen=True, kw_only=True):
    """What is to run, and what happens when a part of it ends."""

    scheduler_name: Annotated[
        str, rules("Given to pods whose template names no scheduler.", max_length=63)
    ] = ""
    min_available: Annotated[Count, rules("How many pods must be placed together.")] = 0
    volumes: tuple[VolumeSpec, ...] = ()
    tasks: Annotated[tuple[TaskSpec, ...], rules("The roles of the job.", min_items=1)] = ()
    policies: Annotated[
        tuple[LifecyclePolicy, ...],
        rules("What to do when something happens to any role; the first match counts."),
    ] = ()
    plugins: Annotated[
        dict[str, tuple[str, ...]], rules("Job plugins by name, each with its flags.")
    ] = msgspec.field(default_factory=dict)
    running_estimate: Annotated[str, rules("Stored for the user; no controller reads it.")] = ""
    queue: Annotated[
        str,
        rules(
            "The queue that the job is charged to.",
            max_length=253,
            pattern=SUBDOMAIN_PATTERN,
            default="default",
        ),
    ] = ""
    max_retry: Annotated[
        Int32,
        rules("How often the job may be restarted before it is Failed.", minimum=0, default=3),
    ] = 0
    ttl_seconds_after_finished: Annotated[
        Int32 | None, rules("How long a finished job is kept.", minimum=0)
    ] = None
    priority_class_name: Annotated[
        str, rules("The priority class of the job and of pods that name none.")
    ] = ""
    min_success: Annotated[
        Int32 | None,
        rules("How many pods must succeed for the job to be Completed.", minimum=1),
    ] = None
    network_topology: NetworkTopology | None = None


class JobState(KindStruct, frozen=True, kw_only=True):
    """Where a job stands; phase "" before a controller has touched it."""

    phase: Annotated[JobPhase | Literal[""], rules(enum=list(PHASES))] = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class TaskState(KindStruct, frozen=True, kw_only=True):
    """A role's pods, counted by phase."""

    phase: dict[str, Int32] = msgspec.field(default_factory=dict)


class JobCondition(KindStruct, frozen=True, kw_only=True):
    """A phase that the job was in, and when it entered it last."""

    status: Annotated[str, rules(enum=list(PHASES))] = ""
    last_transition_time: datetime | None = None


class JobStatus(KindStruct, frozen=True, kw_only=True):
    """What became of a job."""

    state: JobState = JobState()
    min_available: Count = 0
    task_status_count: dict[str, TaskState] = msgspec.field(default_factory=dict)
    pending: Count = 0
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0
    terminating: Count = 0
    unknown: Count = 0
    version: Annotated[Int32, rules("How often pods were killed; they carry it.")] = 0
    retry_count: Annotated[Count, rules("How often the job was restarted.")] = 0
    running_duration: str = ""
    controlled_resources: Annotated[
        dict[str, str], rules("What plugins and volumes made for the job.")
    ] = msgspec.field(default_factory=dict)
    conditions: tuple[JobCondition, ...] = ()


class Job(KindStruct, frozen=True, kw_only=True):
    """Job is a set of roles whose pods are scheduled together."""

    api_version: str = always("batch.volcano.sh/v1alpha1")
    kind: str = always("Job")
    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


JOB: Final = Description(
    struct=Job,
    group="batch.volcano.sh",
    version="v1alpha1",
    kind="Job",
    plural="jobs",
    short_names=("vcjob", "vj"),
    columns=(
        Column("STATUS", "string", ".status.state.phase"),
        Column("minAvailable", "integer", ".status.minAvailable"),
        Column("RUNNINGS", "integer", ".status.running"),
        Column("AGE", "date", ".metadata.creationTimestamp"),
        Column("QUEUE", "string", ".spec.queue", priority=1),
    ),
)
