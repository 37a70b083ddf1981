"""The input for the plan of one step of a Job: its pods as its controller reads them (`SeenPod`),
its lost pods (`LostPod`), all its objects (`Observed`, `JobMemory`); and the step (`Step`). Pure.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from services.controller.core.events import ControllerEvent
from shared.contracts.annotations import TASK_INDEX, TASK_SPEC
from shared.dialects.field_checks import natural
from shared.job_plugins.plugin import Manifest
from shared.kinds.job import Job, JobStatus, TaskSpec
from shared.kinds.job_shape import pod_name
from shared.kinds.metadata import Metadata
from shared.kinds.podgroup import PodGroup
from shared.kube.objects import KubeStruct

JOB_NAME: Final = "volcano.sh/job-name"
JOB_VERSION: Final = "volcano.sh/job-version"
#: On pods that the Job controller deletes: their end is no event for policies.
OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"

#: Index or version of a pod whose annotation is no number.
NO_NUMBER: Final = -1

ALIVE: Final = frozenset({"", "Pending", "Running", "Unknown"})


class Terminated(KubeStruct, frozen=True, kw_only=True):
    exit_code: int = 0
    finished_at: datetime | None = None


class ContainerState(KubeStruct, frozen=True, kw_only=True):
    terminated: Terminated | None = None


class ContainerStatus(KubeStruct, frozen=True, kw_only=True):
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PodCondition(KubeStruct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class PodStatus(KubeStruct, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class SeenPod(KubeStruct, frozen=True, kw_only=True):
    """The parts of a pod that its Job's controller reads."""

    metadata: Metadata = Metadata()
    status: PodStatus = PodStatus()

    @property
    def task(self) -> str:
        return self.metadata.annotations.get(TASK_SPEC, "")

    @property
    def index(self) -> int:
        """Its index in the task; NO_NUMBER when a user has made the annotation invalid."""
        return _number(self.metadata.annotations.get(TASK_INDEX, ""))

    @property
    def version(self) -> int:
        """The Job's version at its creation; NO_NUMBER for an invalid annotation."""
        return _number(self.metadata.annotations.get(JOB_VERSION, ""))

    @property
    def marked(self) -> bool:
        """Whether the Job controller has marked it before deleting it."""
        return self.metadata.annotations.get(OUT_OF_SYNC, "") == "true"

    @property
    def terminating(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.status.phase in ALIVE

    @property
    def released(self) -> bool:
        """Whether a binder releases it with its whole gang, which is no failure of the Job."""
        return any(
            condition.type == "DisruptionTarget" and condition.reason == "GangReleased"
            for condition in self.status.conditions
        )

    @property
    def ready(self) -> bool:
        """Whether all of its containers are ready."""
        return all(container.ready for container in self.status.container_statuses)

    @property
    def exit_code(self) -> int:
        """The exit code of its first container, 0 while that runs. Volcano reads no other
        container's.
        """
        first = self.status.container_statuses[:1]
        ended = first[0].state.terminated if first else None
        return 0 if ended is None else ended.exit_code

    @property
    def finished_ms(self) -> int | None:
        """When its last container ended; None when that is unknown."""
        ends = [
            container.state.terminated.finished_at.timestamp()
            for container in self.status.container_statuses
            if container.state.terminated is not None
            and container.state.terminated.finished_at is not None
        ]
        return int(max(ends) * 1000) if ends else None

    @property
    def restarts(self) -> int:
        """The number of restarts of its containers."""
        statuses = (*self.status.init_container_statuses, *self.status.container_statuses)
        return sum(container.restart_count for container in statuses)


class LostPod(KubeStruct, frozen=True, kw_only=True):
    """A pod that is gone although the controller did not delete it."""

    name: str
    uid: str
    task: str
    index: int
    version: int
    at_ms: int


def lost_pods(
    job: Job, pods: Sequence[SeenPod], remembered: Sequence[LostPod], *, first_look: bool
) -> tuple[LostPod, ...]:
    """The lost pods: those remembered, except pods that exist again and run. At the first look also
    pods that the status counts and that do not exist.
    """
    running = {pod.metadata.name for pod in pods if pod.status.phase == "Running"}
    lost = tuple(pod for pod in remembered if pod.name not in running)
    status = job.status
    # The pods of a job in another phase may have been released or restarted.
    if not first_look or status.state.phase != "Running":
        return lost
    there = {pod.metadata.name for pod in pods}
    counted = sum(sum(state.phase.values()) for state in status.task_status_count.values())
    known = {pod.name for pod in lost}
    gone = counted + status.terminating - len(there) - len(known)
    missing = [
        LostPod(name=name, uid=name, task=task.name, index=index, version=status.version, at_ms=0)
        for task in job.spec.tasks
        for index in range(task.replicas)
        if (name := pod_name(job.metadata.name, task.name, index)) not in there | known
    ]
    return (*lost, *missing[: max(0, gone)])


def _number(text: str) -> int:
    number = natural(text)
    return NO_NUMBER if number is None else number


class JobMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's memory of a job. Losing it only delays actions with a timeout."""

    #: Pods that were lost, and whose loss no policy has been applied to.
    lost: tuple[LostPod, ...] = ()
    #: Pods that have succeeded and are gone; see `succeeded_pods`.
    succeeded: tuple[SeenPod, ...] = ()
    #: Answers with a timeout, by `Answer.key`: the instant from which it counts.
    waiting_since_ms: dict[str, int] = {}
    #: The group's phase at the last step.
    group_phase: str = ""
    #: The reported reason why the group waits; "" when none is reported.
    group_reported: str = ""
    #: The instant since which the group waits; None: it does not wait.
    group_waits_ms: int | None = None
    #: The reported state of the queue that keeps the job from starting again.
    queue_reported: str = ""
    #: Generation, version and waiting roles for which objects and group were last updated.
    ensured: str = ""
    #: Whether this process has planned a step of the job before.
    planned_before: bool = False


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """A job with the objects that belong to it, as they are stored."""

    job: Job
    pods: Sequence[SeenPod]
    group: PodGroup | None
    memory: JobMemory
    #: Value of each PriorityClass.
    priorities: Mapping[str, int]
    #: The action of a Command that was just deleted for it; "" without one.
    command: str = ""
    #: The state of the job's queue; "" without a queue, or while it has no state.
    queue_state: str = ""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The writes to perform now. Each may have been performed before."""

    memory: JobMemory
    #: The job with its defaults: objects and pods are made from it.
    job: Job
    status: JobStatus | None = None
    #: Whether the status is written before everything else.
    status_first: bool = False
    #: Whether only counts have changed, whose write may be delayed.
    counts_only: bool = False
    #: Whether plugins' objects and claims are to be updated.
    ensure_objects: bool = False
    make_group: Manifest | None = None
    change_group: Manifest | None = None
    delete_group: bool = False
    delete_objects: bool = False
    make_pods: tuple[tuple[TaskSpec, int], ...] = ()
    #: Pods to mark as killed by the controller, and to delete unless they are terminating.
    mark: tuple[SeenPod, ...] = ()
    delete: tuple[SeenPod, ...] = ()
    events: tuple[ControllerEvent, ...] = ()
    #: Milliseconds until the next step is to be planned; None: at the next change.
    again_ms: int | None = None
