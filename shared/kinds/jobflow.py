"""JobFlow and JobTemplate of flow.volcano.sh/v1alpha1: Jobs that start after other Jobs."""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec

from shared.kinds.fields import Column, Description, always, rules
from shared.kinds.job import JobSpec, TaskState
from shared.kinds.metadata import KindObject
from shared.kube.objects import Int32, Int64, KubeStruct
from shared.kube.resources import JOBFLOWS, JOBTEMPLATES

JobFlowPhase: TypeAlias = Literal["Pending", "Running", "Succeed", "Failed", "Terminating"]
PHASES: Final[tuple[JobFlowPhase, ...]] = get_args(JobFlowPhase)

#: Labels and annotations of a flow's Jobs: "<namespace>.<name>" of the template and of the flow.
CREATED_BY_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
CREATED_BY_FLOW: Final = "volcano.sh/createdByJobFlow"


class HttpHeader(KubeStruct, frozen=True, kw_only=True):
    """An HTTP header that the probe sends."""

    name: Annotated[str, rules(required=True)] = ""
    value: Annotated[str, rules(required=True)] = ""


class HttpGet(KubeStruct, frozen=True, kw_only=True):
    """An HTTP probe."""

    task_name: str = ""
    path: str = ""
    port: Int64 = 0
    http_header: HttpHeader | None = None


class TcpSocket(KubeStruct, frozen=True, kw_only=True):
    """A TCP probe."""

    task_name: str = ""
    port: Annotated[Int64, rules(required=True)] = 0


class TaskStatus(KubeStruct, frozen=True, kw_only=True):
    """A probe of a task's phase."""

    task_name: str = ""
    phase: str = ""


class Probe(KubeStruct, frozen=True, kw_only=True):
    """Stored and not evaluated. A step starts when the Jobs of its targets are Completed."""

    http_get_list: tuple[HttpGet, ...] = ()
    tcp_socket_list: tuple[TcpSocket, ...] = ()
    task_status_list: tuple[TaskStatus, ...] = ()


class FlowDependsOn(KubeStruct, frozen=True, kw_only=True):
    """The steps whose Jobs must be Completed before this one starts."""

    targets: Annotated[tuple[str, ...], rules("The names of steps of the same JobFlow.")] = ()
    probe: Probe | None = None


class FlowPatch(KubeStruct, frozen=True, kw_only=True):
    """Stored and not applied; the Job is created exactly as in its template."""

    # No service reads it, and its pod schema would be a quarter of the API server's cost for
    # Tutti's CRDs.
    job_spec: Annotated[JobSpec | None, rules(shallow=True)] = None


class Flow(KubeStruct, frozen=True, kw_only=True):
    """One step of the flow: a Job created from the JobTemplate of the same name."""

    name: Annotated[str, rules("The name of the JobTemplate.", min_length=1, required=True)] = ""
    depends_on: FlowDependsOn | None = None
    patch: FlowPatch | None = None


class JobFlowSpec(KubeStruct, frozen=True, kw_only=True):
    """The steps of a flow, and whether their Jobs are kept."""

    flows: tuple[Flow, ...] = ()
    job_retain_policy: Annotated[
        str,
        rules(
            "Whether the Jobs are deleted or retained when all have succeeded.",
            enum=["retain", "delete"],
        ),
    ] = ""


class JobRunningHistory(KubeStruct, frozen=True, kw_only=True):
    """A phase in which a Job of the flow was."""

    start_timestamp: datetime | None = None
    end_timestamp: datetime | None = None
    state: str = ""


class FlowJobStatus(KubeStruct, frozen=True, kw_only=True):
    """The status of one Job of a flow."""

    name: str = ""
    state: str = ""
    start_timestamp: datetime | None = None
    end_timestamp: datetime | None = None
    restart_count: Int32 = 0
    running_histories: tuple[JobRunningHistory, ...] = ()


class FlowCondition(KubeStruct, frozen=True, kw_only=True):
    """A summary of a Job's status."""

    phase: str = ""
    create_time: datetime | None = None
    running_duration: str = ""
    task_status_count: dict[str, TaskState] = msgspec.field(default_factory=dict)


class JobFlowState(KubeStruct, frozen=True, kw_only=True):
    """The phase of a flow; empty before the controller has processed it."""

    phase: Annotated[JobFlowPhase | Literal[""], rules(enum=list(PHASES))] = ""


class JobFlowStatus(KubeStruct, frozen=True, kw_only=True):
    """The status of a flow. The spelling of `unknown_jobs` on the wire is Volcano's."""

    pending_jobs: tuple[str, ...] = ()
    running_jobs: tuple[str, ...] = ()
    failed_jobs: tuple[str, ...] = ()
    completed_jobs: tuple[str, ...] = ()
    terminated_jobs: tuple[str, ...] = ()
    unknown_jobs: tuple[str, ...] = msgspec.field(default=(), name="unKnowJobs")
    job_status_list: tuple[FlowJobStatus, ...] = ()
    conditions: dict[str, FlowCondition] = msgspec.field(default_factory=dict)
    state: JobFlowState = JobFlowState()


class JobFlow(KindObject, frozen=True, kw_only=True):
    """JobFlow is a set of Jobs, which start after the Jobs that they depend on are Completed."""

    api_version: str = always("flow.volcano.sh/v1alpha1")
    kind: str = always("JobFlow")
    spec: JobFlowSpec = JobFlowSpec()
    status: JobFlowStatus = JobFlowStatus()


class JobTemplateStatus(KubeStruct, frozen=True, kw_only=True):
    """The Jobs that were created from a template."""

    job_depends_on_list: Annotated[tuple[str, ...], rules("The names of the Jobs.")] = ()


class JobTemplate(KindObject, frozen=True, kw_only=True):
    """JobTemplate is the spec of Jobs that JobFlows create."""

    api_version: str = always("flow.volcano.sh/v1alpha1")
    kind: str = always("JobTemplate")
    spec: JobSpec = JobSpec()
    status: JobTemplateStatus = JobTemplateStatus()


JOB_FLOW: Final = Description(
    struct=JobFlow,
    resource=JOBFLOWS,
    short_names=("jf",),
    columns=(
        Column("Status", "string", ".status.state.phase"),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
JOB_TEMPLATE: Final = Description(
    struct=JobTemplate,
    resource=JOBTEMPLATES,
    short_names=("jt",),
)
