"""How long gangs run at most, as users' objects state it: in Tutti's annotation, and in the fields
of other APIs. Pure.

Of all that a gang's group, its pods and the objects above them state, the smallest counts. A value
of another API that cannot be read counts as none there, and so it does here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from shared.contracts import annotations
from shared.dialects.field_checks import natural
from shared.dialects.settings import objection
from shared.dialects.workload_sizes import Workload
from shared.kinds.durations import SECONDS_MAX, seconds_of, slurm_seconds, whole_seconds
from shared.kube.objects import KubeObject, ObjectMeta
from shared.kube.owner_objects import JobTemplate, LimitedJob, MPIJob
from shared.model.objects import RunLimits

#: The label by which Kueue deactivates a workload, in seconds.
KUEUE: Final = "kueue.x-k8s.io/max-exec-time-seconds"
#: The annotation that slurm-bridge makes the time limit of its Slurm job.
SLURM: Final = "slurmjob.slinky.slurm.net/timelimit"


class Source(NamedTuple):
    """A field that states a limit. `objects` and `unit` are for the documentation, which has one
    row for each source (`docs/submitting.md`).
    """

    place: Literal["annotations", "labels", "spec"]
    key: str
    objects: str
    unit: str
    #: The seconds in the text of an annotation or label; None: it cannot be read.
    read: Callable[[str], int | None] = natural

    @property
    def path(self) -> str:
        """As users find it in their manifests."""
        return f"spec.{self.key}" if self.place == "spec" else f"metadata.{self.place}[{self.key}]"


_ANY: Final = "group objects, Jobs, operators' objects, pods and their templates"
#: In the order in which they are looked at: of equal limits the first is named.
SOURCES: Final = (
    Source(
        "annotations", annotations.RUN_LIMIT, _ANY, "`90m`, `4h30m`, or seconds: `5400`", seconds_of
    ),
    Source(
        "annotations",
        annotations.OWNER_RUN_LIMIT,
        "Volcano's PodGroups that Tutti or an operator made. Tutti writes it: the smallest limit "
        "of the objects above the pods",
        "seconds",
        seconds_of,
    ),
    Source(
        "annotations",
        SLURM,
        _ANY,
        "minutes: `90`; `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM`, `D-HH:MM:SS`; `s`, `m`, `h`, `d`, "
        "`w`: `1h30m`. Rounded up to minutes",
        slurm_seconds,
    ),
    Source("labels", KUEUE, _ANY, "seconds"),
    Source(
        "spec",
        "activeDeadlineSeconds",
        "pods and their templates; Jobs of Kubernetes, RayJobs, TrainJobs; the Jobs of a JobSet if "
        "Tutti makes the PodGroup",
        "seconds",
    ),
    Source(
        "spec",
        "runPolicy.activeDeadlineSeconds",
        "MPIJobs, and training-operator's JAXJobs, PaddleJobs, PyTorchJobs, TFJobs, XGBoostJobs",
        "seconds",
    ),
)
#: Those that objects of any kind may have in their metadata.
MARKS: Final = tuple(source for source in SOURCES if source.place != "spec")
#: Annotations that state limits.
NOTES: Final = frozenset(source.key for source in MARKS if source.place == "annotations")
_DEADLINE, _POLICY = (source.path for source in SOURCES if source.place == "spec")


class Stated(NamedTuple):
    """A limit, and the field that states it."""

    seconds: int
    path: str


def stated(metadata: ObjectMeta, deadline_s: int = 0) -> Iterator[Stated]:
    """The limits of an object, in the order of `SOURCES`. `deadline_s` are the seconds in its field
    `spec.activeDeadlineSeconds`; less than 1: none, as if it were absent.
    """
    for source in MARKS:
        marks = metadata.annotations if source.place == "annotations" else metadata.labels
        seconds = source.read(marks[source.key]) if source.key in marks else None
        if seconds:
            yield Stated(seconds, source.path)
    yield from _deadline(deadline_s, _DEADLINE)


def _deadline(seconds: int, path: str) -> Iterator[Stated]:
    if seconds > 0:
        yield Stated(min(seconds, SECONDS_MAX), path)


def run_limit_s(metadata: ObjectMeta, deadline_s: int = 0) -> int:
    """The smallest of `stated`, in seconds; 0: there is none."""
    return min((limit.seconds for limit in stated(metadata, deadline_s)), default=0)


def run_limit_errors(given: Mapping[str, str]) -> tuple[str, ...]:
    """Why Tutti's own annotation cannot be read, as "path: rule"; (): it can be, or is absent."""
    text = given.get(annotations.RUN_LIMIT)
    words = "" if text is None else objection(annotations.RUN_LIMIT, text)
    return (f"{SOURCES[0].path}: {words}",) if words else ()


def stated_by_owner(owner: KubeObject) -> Iterator[Stated]:
    """The limits of an object above pods, which the group has that Tutti makes for them."""
    match owner:
        case Workload() | JobTemplate():
            yield from stated(owner.metadata, owner.spec.active_deadline_seconds)
        case LimitedJob():
            yield from stated(owner.metadata, owner.spec.active_deadline_seconds)
            yield from _deadline(owner.spec.run_policy.active_deadline_seconds, _POLICY)
        case MPIJob():
            yield from stated(owner.metadata)
            yield from _deadline(owner.spec.run_policy.active_deadline_seconds, _POLICY)
        case _:
            yield from stated(owner.metadata)


def annotations_of_owner(owner: KubeObject) -> Mapping[str, str]:
    """The annotations of an object above pods, with the limit that it states by other fields."""
    own = SOURCES[0].path
    others = [limit.seconds for limit in stated_by_owner(owner) if limit.path != own]
    given = owner.metadata.annotations
    return {**given, annotations.OWNER_RUN_LIMIT: str(min(others))} if others else given


def limits_of_queue(given: Mapping[str, str]) -> RunLimits:
    """What a queue's annotations say; such a queue takes no gangs if one of them cannot be read."""

    def seconds(key: str) -> int | None:
        text = given.get(key, "")
        return None if objection(key, text, on_queue=True) else whole_seconds(text)

    enforced = given.get(annotations.RUN_LIMIT_ENFORCED)
    return RunLimits(
        usual_s=seconds(annotations.RUN_LIMIT),
        most_s=seconds(annotations.RUN_LIMIT_MAX),
        notice_s=seconds(annotations.RUN_LIMIT_NOTICE),
        enforced=enforced == "true" if enforced in ("true", "false") else None,
        hold_after_s=seconds(annotations.CAPACITY_HOLD_AFTER),
    )
