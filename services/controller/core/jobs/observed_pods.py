"""A Job's pods as the Job controller reads them: labels, phase, and how containers ended."""

from datetime import datetime
from typing import Final

from shared.contracts.annotations import TASK_INDEX, TASK_SPEC
from shared.dialects.numbers import natural
from shared.kinds.fields import KindStruct
from shared.kinds.metadata import Metadata

JOB_NAME: Final = "volcano.sh/job-name"
JOB_VERSION: Final = "volcano.sh/job-version"
#: On pods that the Job controller itself is deleting: what becomes of them is no event.
OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"

ALIVE: Final = frozenset({"", "Pending", "Running", "Unknown"})


class Terminated(KindStruct, frozen=True, kw_only=True):
    """`state.terminated`."""

    exit_code: int = 0
    finished_at: datetime | None = None


class ContainerState(KindStruct, frozen=True, kw_only=True):
    """`containerStatuses[].state`."""

    terminated: Terminated | None = None


class ContainerStatus(KindStruct, frozen=True, kw_only=True):
    """`containerStatuses[]`."""

    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PodCondition(KindStruct, frozen=True, kw_only=True):
    """`conditions[]`."""

    type: str = ""
    status: str = ""
    reason: str = ""


class PodStatus(KindStruct, frozen=True, kw_only=True):
    """`status`."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class SeenPod(KindStruct, frozen=True, kw_only=True):
    """A pod, as far as its Job's controller looks at it."""

    metadata: Metadata = Metadata()
    status: PodStatus = PodStatus()

    @property
    def task(self) -> str:
        """The role it was made for."""
        return self.metadata.annotations.get(TASK_SPEC, "")

    @property
    def index(self) -> int:
        """Its index in the role; -1 when a user changed it to nonsense."""
        return _number(self.metadata.annotations.get(TASK_INDEX, ""))

    @property
    def version(self) -> int:
        """The Job's version that it was made under."""
        return _number(self.metadata.annotations.get(JOB_VERSION, ""))

    @property
    def marked(self) -> bool:
        """Whether the Job controller meant it to go."""
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
        """Whether our binder takes it back with its whole gang: no fault of the Job's."""
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
        """How its first container ended; 0 when it did not. Volcano looks at no other."""
        first = self.status.container_statuses[:1]
        ended = first[0].state.terminated if first else None
        return 0 if ended is None else ended.exit_code

    @property
    def finished_ms(self) -> int | None:
        """When its last container ended, as far as is known."""
        ends = [
            one.state.terminated.finished_at.timestamp()
            for one in self.status.container_statuses
            if one.state.terminated is not None and one.state.terminated.finished_at is not None
        ]
        return int(max(ends) * 1000) if ends else None

    @property
    def restarts(self) -> int:
        """How often its containers were started again."""
        statuses = (*self.status.init_container_statuses, *self.status.container_statuses)
        return sum(one.restart_count for one in statuses)


class Lost(KindStruct, frozen=True, kw_only=True):
    """A pod that went without our doing."""

    name: str
    uid: str
    task: str
    index: int
    version: int
    at_ms: int


def _number(text: str) -> int:
    number = natural(text)
    return -1 if number is None else number
