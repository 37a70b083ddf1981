"""The input for the plan of one step of a Job (`Observed`, `JobMemory`), and the step (`Step`)."""

from collections.abc import Mapping, Sequence

import msgspec

from services.controller.core.events import ControllerEvent
from services.controller.core.jobs.observed_pods import LostPod, SeenPod
from services.controller.core.jobs.pods import Manifest
from shared.kinds.job import Job, JobStatus, TaskSpec
from shared.kinds.podgroup import PodGroup


class JobMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's memory of a job. Losing it only delays actions with a timeout."""

    #: Pods that were lost, and whose loss no policy has been applied to.
    lost: tuple[LostPod, ...] = ()
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
