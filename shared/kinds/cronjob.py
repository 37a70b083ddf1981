"""CronJob of batch.volcano.sh/v1alpha1: creates Jobs on a schedule."""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec

from shared.kinds.fields import Description, always, rules
from shared.kinds.job import JobSpec
from shared.kinds.metadata import KindObject
from shared.kube.objects import Int32, Int64, KubeStruct
from shared.kube.resources import CRONJOBS_VOLCANO

ConcurrencyPolicy: TypeAlias = Literal["Allow", "Forbid", "Replace"]
CONCURRENCY_POLICIES: Final[tuple[ConcurrencyPolicy, ...]] = get_args(ConcurrencyPolicy)

#: Annotation of a CronJob's Jobs: the scheduled instant, RFC 3339 in the CronJob's zone.
SCHEDULED_TIMESTAMP: Final = "volcano.sh/cronjob-scheduled-timestamp"


class TemplateMetadata(KubeStruct, frozen=True, kw_only=True):
    """The labels and annotations of the created Jobs. Other metadata is stored and not applied."""

    name: str = ""
    namespace: str = ""
    finalizers: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class CronJobTemplate(KubeStruct, frozen=True, kw_only=True):
    """The template of the Jobs that are created."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: JobSpec = JobSpec()


class CronJobSpec(KubeStruct, frozen=True, kw_only=True):
    """The schedule, and the number of finished Jobs to keep."""

    schedule: Annotated[
        str, rules("A cron schedule of five fields, or a macro such as @hourly.", required=True)
    ] = ""
    time_zone: Annotated[str | None, rules("The time zone of the schedule, by its IANA name.")] = (
        None
    )
    starting_deadline_seconds: Annotated[
        Int64 | None,
        rules(
            "The number of seconds by which a Job may start late. A later one is skipped.",
            minimum=0,
            format=None,
        ),
    ] = None
    concurrency_policy: Annotated[
        str,
        rules(
            "Whether a Job may start while the last one still runs.",
            enum=list(CONCURRENCY_POLICIES),
            default="Allow",
        ),
    ] = ""
    suspend: Annotated[bool, rules("Whether the creation of Jobs is suspended.", default=False)] = (
        False
    )
    job_template: Annotated[CronJobTemplate, rules(required=True)] = CronJobTemplate()
    successful_jobs_history_limit: Annotated[
        Int32 | None, rules("The number of Completed Jobs to keep.", minimum=0, default=3)
    ] = None
    failed_jobs_history_limit: Annotated[
        Int32 | None, rules("The number of Failed Jobs to keep.", minimum=0, default=1)
    ] = None


class ObjectReference(KubeStruct, frozen=True, kw_only=True):
    """v1 ObjectReference."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class CronJobStatus(KubeStruct, frozen=True, kw_only=True):
    """The running Jobs, and the times of the last ones."""

    active: Annotated[
        tuple[Annotated[ObjectReference, rules(map_type="atomic")], ...],
        rules("The Jobs that have not finished.", list_type="atomic"),
    ] = ()
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(KindObject, frozen=True, kw_only=True):
    """CronJob creates Jobs on a schedule."""

    api_version: str = always("batch.volcano.sh/v1alpha1")
    kind: str = always("CronJob")
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


CRON_JOB: Final = Description(
    struct=CronJob,
    resource=CRONJOBS_VOLCANO,
    short_names=("cronvcjob", "cronvj"),
)
