"""A Job's pods as its controller reads them (`SeenPod`), and pods that were lost (`LostPod`).
Pure.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from shared.contracts.annotations import TASK_INDEX, TASK_SPEC
from shared.dialects.numbers import natural
from shared.kinds.fields import KindStruct
from shared.kinds.job import Job
from shared.kinds.job_shape import pod_name
from shared.kinds.metadata import Metadata

JOB_NAME: Final = "volcano.sh/job-name"
JOB_VERSION: Final = "volcano.sh/job-version"
#: On pods that the Job controller deletes: their end is no event for policies.
OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"

#: Index or version of a pod whose annotation is no number.
NO_NUMBER: Final = -1

ALIVE: Final = frozenset({"", "Pending", "Running", "Unknown"})


class Terminated(KindStruct, frozen=True, kw_only=True):
    exit_code: int = 0
    finished_at: datetime | None = None


class ContainerState(KindStruct, frozen=True, kw_only=True):
    terminated: Terminated | None = None


class ContainerStatus(KindStruct, frozen=True, kw_only=True):
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PodCondition(KindStruct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class PodStatus(KindStruct, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class SeenPod(KindStruct, frozen=True, kw_only=True):
    """The parts of a pod that its Job's controller reads."""

    metadata: Metadata = Metadata()
    status: PodStatus = PodStatus()

    @property
    def task(self) -> str:
        """The task that it was created for."""
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
            one.type == "DisruptionTarget" and one.reason == "GangReleased"
            for one in self.status.conditions
        )

    @property
    def ready(self) -> bool:
        """Whether all of its containers are ready."""
        return all(one.ready for one in self.status.container_statuses)

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
            one.state.terminated.finished_at.timestamp()
            for one in self.status.container_statuses
            if one.state.terminated is not None and one.state.terminated.finished_at is not None
        ]
        return int(max(ends) * 1000) if ends else None

    @property
    def restarts(self) -> int:
        """The number of restarts of its containers."""
        statuses = (*self.status.init_container_statuses, *self.status.container_statuses)
        return sum(one.restart_count for one in statuses)


class LostPod(KindStruct, frozen=True, kw_only=True):
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
    lost = tuple(one for one in remembered if one.name not in running)
    status = job.status
    # The pods of a job in another phase may have been released or restarted.
    if not first_look or status.state.phase != "Running":
        return lost
    there = {pod.metadata.name for pod in pods}
    counted = sum(sum(one.phase.values()) for one in status.task_status_count.values())
    known = {one.name for one in lost}
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
