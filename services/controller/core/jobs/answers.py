"""Events of a Job (`Request`), the actions that its policies prescribe (`Answer`), and the answer
to give next (`choose_answer`). Pure.

Requests are derived from the objects: an existing failed pod of the newest version has no answer
yet, since each answer deletes it, marks it, or makes its version old. Pods that are gone leave no
trace; the caller remembers them (`lost`).

One answer is given in a step; an answer with a timeout waits for its time, and one that a
restarting job cannot give yet waits for the restart.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from services.controller.core.events import ControllerEvent
from services.controller.core.jobs.states import KILLS, LEADS_TO, go_duration
from services.controller.core.jobs.step import NO_NUMBER, LostPod, Observed, SeenPod, lost_pods
from shared.kinds.durations import duration_ms
from shared.kinds.job import Job, JobPhase, LifecyclePolicy, TaskSpec
from shared.kinds.job_shape import partition_of, task_named

#: Actions of policies with an effect beyond a sync. Behind an exit code, the webhook accepts every
#: other action, too.
_EFFECTIVE: Final = frozenset(KILLS["Running"])
_TARGETED: Final = frozenset({"RestartTask", "RestartPod", "RestartPartition"})
_TASK_MAX_RETRY: Final = 3


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and the object that it is about."""

    event: str
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    index: int = NO_NUMBER
    exit_code: int = 0
    #: The event's instant; None: that of its first observation.
    since_ms: int | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The action for a request: at once, or after a timeout."""

    request: Request
    action: str
    delay_ms: int | None = None

    @property
    def key(self) -> str:
        """The key under which an answer with a timeout is remembered."""
        return f"{self.request.event} {self.request.pod_uid or self.request.task} {self.action}"


def requests_of(
    job: Job, pods: Sequence[SeenPod], lost: Sequence[LostPod], *, group_unknown: bool
) -> Iterator[Request]:
    """All events without an answer, in the order of their precedence.

    Failed pods come before lost pods: a kubelet reports a deleted pod as failed before it is gone.
    """
    version = job.status.version
    current = [pod for pod in pods if pod.version >= version and not pod.marked]
    for pod in current:
        if pod.status.phase == "Failed" and not pod.released:
            yield _of_pod("PodFailed", pod, pod.finished_ms)
    for gone in lost:
        if gone.version >= version:
            yield Request(
                event="PodEvicted",
                task=gone.task,
                pod=gone.name,
                pod_uid=gone.uid,
                index=gone.index,
                since_ms=gone.at_ms,
            )
    for task in job.spec.tasks:
        yield from _of_task(task, [pod for pod in current if pod.task == task.name], pods)
    if group_unknown:
        yield Request(event="Unknown")
    for pod in current:
        if pod.status.phase == "Pending" and not pod.terminating:
            yield _of_pod("PodPending", pod, pod.metadata.created_ms)


def _of_pod(event: str, pod: SeenPod, since_ms: int | None) -> Request:
    return Request(
        event=event,
        task=pod.task,
        pod=pod.metadata.name,
        pod_uid=pod.metadata.uid,
        index=pod.index,
        exit_code=pod.exit_code if event == "PodFailed" else 0,
        since_ms=since_ms,
    )


def _of_task(
    task: TaskSpec, current: Sequence[SeenPod], pods: Sequence[SeenPod]
) -> Iterator[Request]:
    succeeded = sum(
        pod.task == task.name and pod.index < task.replicas and pod.status.phase == "Succeeded"
        for pod in pods
    )
    if current and 0 < task.replicas <= succeeded:
        yield Request(event="TaskCompleted", task=task.name)
    limit = task.max_retry or _TASK_MAX_RETRY
    restarts = sum(pod.restarts for pod in current if pod.alive)
    if 0 < limit <= restarts:
        yield Request(event="TaskFailed", task=task.name)


def answer_to(job: Job, request: Request) -> Answer | None:
    """The action of the first policy that matches, the task's before the job's; None: only a
    sync.
    """
    task = task_named(job, request.task)
    for policy in (*(task.policies if task is not None else ()), *job.spec.policies):
        if not _matches(policy, request):
            continue
        delay_ms = duration_ms(policy.timeout) if policy.timeout else None
        if policy.action not in _EFFECTIVE:
            return None
        return Answer(request=request, action=policy.action, delay_ms=delay_ms or None)
    return None


def _matches(policy: LifecyclePolicy, request: Request) -> bool:
    events = (policy.event, *policy.events) if policy.event else policy.events
    named = request.event in events or "*" in events
    # Each pod is pending at first; only with a timeout is that an event.
    if named and (request.event != "PodPending" or policy.timeout):
        return True
    return policy.exit_code not in (None, 0) and policy.exit_code == request.exit_code


def is_target(job: Job, action: str, request: Request, task: str, index: int) -> bool:
    """Whether an action on a part of the job includes the pod of that task and index."""
    if not request.task or task != request.task:
        return False
    if action == "RestartTask":
        return True
    if action == "RestartPod":
        return index == request.index
    spec = task_named(job, task)
    if spec is None:
        return False
    part = partition_of(spec, request.index)
    return part is not None and partition_of(spec, index) == part


def targets_a_part(action: str) -> bool:
    """Whether an action restarts only a part of the job."""
    return action in _TARGETED


class Choice:
    """The answer to give now, and the memory of the remaining answers."""

    def __init__(self, waited_since_ms: dict[str, int], now_ms: int) -> None:
        self._before = waited_since_ms
        self._now_ms = now_ms
        #: None: only a sync.
        self.answer: Answer | None = None
        #: Lost pods whose answer still waits.
        self.lost: tuple[LostPod, ...] = ()
        #: As `JobMemory.waiting_since_ms`.
        self.waiting_since_ms: dict[str, int] = {}
        self.events: list[ControllerEvent] = []
        #: Milliseconds until the next waiting answer is due; None: none waits.
        self.again_ms: int | None = None

    def wait(self, answer: Answer) -> bool:
        """Whether the answer's timeout is not over; then it is noted."""
        if answer.delay_ms is None:
            return False
        since_ms = self._before.get(answer.key)
        if since_ms is None:
            given_ms = answer.request.since_ms
            since_ms = self._now_ms if given_ms is None else min(given_ms, self._now_ms)
        left_ms = since_ms + answer.delay_ms - self._now_ms
        if left_ms <= 0:
            return False
        if answer.key not in self._before:
            message = f"Execute action {answer.action} after {go_duration(answer.delay_ms)}"
            self.events.append(ControllerEvent("Normal", "ExecuteAction", message))
        self.waiting_since_ms[answer.key] = since_ms
        self.again_ms = left_ms if self.again_ms is None else min(self.again_ms, left_ms)
        return True


def choose_answer(observed: Observed, job: Job, phase: JobPhase, now_ms: int) -> Choice:
    """Choose among the answers to all requests of a job (with its defaults); a Command is answered
    before all of them.
    """
    memory = observed.memory
    choice = Choice(memory.waiting_since_ms, now_ms)
    lost = lost_pods(job, observed.pods, memory.lost, first_look=not memory.planned_before)
    if observed.command:
        request = Request(event="CommandIssued")
        choice.answer = Answer(request=request, action=observed.command)
        choice.lost, choice.waiting_since_ms = lost, memory.waiting_since_ms
        return choice
    if phase in LEADS_TO:
        return choice
    group = observed.group
    group_unknown = group is not None and group.status.phase == "Unknown"
    turned_unknown = group_unknown and memory.group_phase != "Unknown"
    for request in requests_of(job, observed.pods, lost, group_unknown=group_unknown):
        answer_now = answer_to(job, request)
        if answer_now is None or (request.event == "Unknown" and not turned_unknown):
            continue
        waits = _waits_for_restart(job, phase, answer_now) or choice.wait(answer_now)
        if waits or choice.answer is not None:
            choice.lost += tuple(pod for pod in lost if pod.uid == request.pod_uid)
        else:
            choice.answer = answer_now
    return choice


def _waits_for_restart(job: Job, phase: JobPhase, answer: Answer) -> bool:
    """Whether the job has to leave Restarting before it can perform the action."""
    if phase != "Restarting" or answer.action in KILLS["Restarting"]:
        return False
    return not (targets_a_part(job.status.state.reason) and targets_a_part(answer.action))
