"""One step of a Job's life: what is there in, what is to be done out. Pure.

A step leaves at most one phase. Within it the caller does, in this order: the status if it comes
first, objects and claims, the group, pods, deletions, the status otherwise. What a step asks for
may have been done before.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from services.controller.core.jobs.groups import change_of, group_for
from services.controller.core.jobs.observed_pods import Lost, SeenPod
from services.controller.core.jobs.pod_counts import counted, counts_of, entered, go_duration
from services.controller.core.jobs.pods import Manifest, controlled_resources
from services.controller.core.jobs.requests import (
    Answer,
    Request,
    answer_to,
    is_target,
    requests_of,
    targets_a_part,
)
from services.controller.core.jobs.states import FINAL, KILLS, LEADS_TO, Kill, after_sync
from shared.dialects.job_groups import priority_of
from shared.job_plugins.discovery import with_needed_plugins
from shared.kinds.job import Job, JobPhase, JobStatus, TaskSpec
from shared.kinds.job_shape import completed, pod_name, replicas
from shared.kinds.podgroup import PodGroup

#: A group that has waited for so long is reported, as the status controller does by default.
_PATIENCE_MS: Final = 2_000


class JobMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a job besides its objects. Losing it delays a delayed action, no more."""

    #: Pods that went, and are not answered for.
    lost: tuple[Lost, ...] = ()
    #: Delayed answers: since when they wait.
    since: dict[str, int] = {}
    group_phase: str = ""
    #: What was reported of the group's waiting.
    group_said: str = ""
    #: Since when the group waits; None: it does not.
    group_waits_ms: int | None = None
    #: The state of the queue that was reported to keep the job from beginning again.
    queue_said: str = ""
    #: For which generation of what its objects and its group were brought up to date.
    ensured: str = ""
    #: The job has been looked at since the start.
    met: bool = False


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """A job and what belongs to it, as it is stored."""

    job: Job
    pods: Sequence[SeenPod]
    group: PodGroup | None
    memory: JobMemory
    #: Value of each priority class.
    priorities: Mapping[str, int]
    #: The action of a Command that was just taken.
    command: str = ""
    #: The state of the job's queue; "" when there is none, or it has no state yet.
    queue_state: str = ""


class JobEvent(msgspec.Struct, frozen=True):
    """An Event about the job."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done now."""

    memory: JobMemory
    #: The job, completed: what objects and pods are made from.
    job: Job
    status: JobStatus | None = None
    #: The status is written before anything else is done.
    status_first: bool = False
    #: Only counts differ: writing them may wait a little.
    counts_only: bool = False
    #: Plugins' objects and claims are to be brought up to date.
    ensure_objects: bool = False
    make_group: Manifest | None = None
    change_group: Manifest | None = None
    delete_group: bool = False
    delete_objects: bool = False
    make_pods: tuple[tuple[TaskSpec, int], ...] = ()
    #: Pods to be marked as ours to kill, and deleted unless they are being deleted already.
    mark: tuple[SeenPod, ...] = ()
    delete: tuple[SeenPod, ...] = ()
    events: tuple[JobEvent, ...] = ()
    again_ms: int | None = None


def plan(observed: Observed, now_ms: int) -> Step:
    """The next step of a job that is not being deleted."""
    job = with_needed_plugins(completed(observed.job))
    if not job.status.state.phase:
        status = msgspec.structs.replace(job.status, min_available=job.spec.min_available)
        begun = entered(job, status, "Pending", now_ms)
        return Step(memory=observed.memory, job=job, status=begun, status_first=True)
    return _Planning(observed, job, job.status.state.phase, now_ms).step()


class _Planning:
    """The working state of one call of `plan`."""

    def __init__(self, observed: Observed, job: Job, phase: JobPhase, now_ms: int) -> None:
        self.pods = observed.pods
        self.group = observed.group
        self.command = observed.command
        self.priorities = observed.priorities
        self.queue_state = observed.queue_state
        self.job = job
        self.phase: JobPhase = phase
        self.now_ms = now_ms
        self.again_ms: int | None = None
        self.events: list[JobEvent] = []
        self.lost = _lost(observed, job)
        self.since = observed.memory.since
        self.memory = observed.memory

    def step(self) -> Step:
        answer = self._choose()
        if answer is not None:
            self.events.append(
                JobEvent("Normal", "ExecuteAction", f"Start to execute action {answer.action} ")
            )
            kill = KILLS[self.phase].get(answer.action)
            if kill is not None:
                return self._kill(kill, answer)
        if self.phase in LEADS_TO:
            return self._wind_down(LEADS_TO[self.phase])
        if self.phase == "Restarting":
            return self._restart(answer)
        return self._sync()

    # What happened.

    def _choose(self) -> Answer | None:
        """The answer to be carried out now; those that have to wait are remembered."""
        if self.command:
            return Answer(request=Request(event="CommandIssued"), action=self.command)
        if self.phase in LEADS_TO:
            self.lost, self.since = (), {}
            return None
        unknown = self.group is not None and self.group.status.phase == "Unknown"
        news = unknown and self.memory.group_phase != "Unknown"
        waits: dict[str, int] = {}
        lost: list[Lost] = []
        chosen = None
        for request in requests_of(self.job, self.pods, self.lost, group_unknown=unknown):
            answer = answer_to(self.job, request)
            if answer is None or (request.event == "Unknown" and not news):
                continue
            if self._later(answer) or self._waits(answer, waits) or chosen is not None:
                lost += [one for one in self.lost if one.uid == request.pod_uid]
            else:
                chosen = answer
        self.lost, self.since = tuple(lost), waits
        return chosen

    def _later(self, answer: Answer) -> bool:
        """Whether the job has to begin again before it can do this."""
        if self.phase != "Restarting" or answer.action in KILLS["Restarting"]:
            return False
        part = targets_a_part(self.job.status.state.reason)
        return not (part and targets_a_part(answer.action))

    def _waits(self, answer: Answer, waits: dict[str, int]) -> bool:
        """Whether it is too early for the answer; then its time is noted."""
        if answer.delay_ms is None:
            return False
        key = answer.key
        since_ms = self.since.get(key)
        if since_ms is None:
            given_ms = answer.request.since_ms
            since_ms = self.now_ms if given_ms is None else min(given_ms, self.now_ms)
        left_ms = since_ms + answer.delay_ms - self.now_ms
        if left_ms <= 0:
            return False
        if key not in self.since:
            words = f"Execute action {answer.action} after {go_duration(answer.delay_ms)}"
            self.events.append(JobEvent("Normal", "ExecuteAction", words))
        waits[key] = since_ms
        self._again(left_ms)
        return True

    def _again(self, in_ms: int) -> None:
        self.again_ms = in_ms if self.again_ms is None else min(self.again_ms, in_ms)

    # Leaving a phase by a kill.

    def _kill(self, kill: Kill, answer: Answer) -> Step:
        status = self.job.status
        targets: tuple[SeenPod, ...] = ()
        if kill.part:
            targets = self._targets(answer)
            self.lost = tuple(one for one in self.lost if not self._meant(answer, one))
        else:
            self.lost, self.since = (), {}
            status = msgspec.structs.replace(status, version=status.version + 1)
        if kill.retry:
            status = msgspec.structs.replace(status, retry_count=status.retry_count + 1)
        status = entered(self.job, status, kill.to, self.now_ms, why=answer.action)
        # Counted as going in the write that begins it: they may all be gone before the next one,
        # and a client that watches for the phase expects to see it.
        going = {pod.metadata.name for pod in self._condemned(status, targets)}
        status = counted(status, counts_of(self.pods, going))
        return self._step(status=status, status_first=True, mark=targets)

    def _condemned(self, status: JobStatus, targets: tuple[SeenPod, ...]) -> Iterator[SeenPod]:
        """The pods that the phase which a kill led to is about to delete."""
        if targets:
            return iter(targets)
        if status.state.phase == "Restarting":
            part = targets_a_part(status.state.reason)
            return (pod for pod in self.pods if self._doomed(pod, status, part=part))
        return (pod for pod in self.pods if pod.alive)

    def _targets(self, answer: Answer) -> tuple[SeenPod, ...]:
        request, action = answer.request, answer.action
        return tuple(
            pod
            for pod in self.pods
            if not pod.marked and is_target(self.job, action, request, pod.task, pod.index)
        )

    def _meant(self, answer: Answer, gone: Lost) -> bool:
        return is_target(self.job, answer.action, answer.request, gone.task, gone.index)

    # Restarting.

    def _restart(self, answer: Answer | None) -> Step:
        """Kill what is to go, then fail, or begin again once enough of it has gone."""
        status, spec = self.job.status, self.job.spec
        part = targets_a_part(status.state.reason)
        if status.retry_count >= spec.max_retry and status.state.reason != "ResumeJob":
            failed = msgspec.structs.replace(status, version=status.version + 1)
            return self._step(
                status=entered(self.job, failed, "Failed", self.now_ms), status_first=True
            )
        targets = self._targets(answer) if part and answer is not None else ()
        doomed = [pod for pod in self.pods if self._doomed(pod, status, part=part)]
        going = {pod.metadata.name for pod in (*doomed, *targets)}
        counts = counts_of(self.pods, going)
        enough = replicas(self.job) - counts.terminating >= status.min_available
        clean = part or (self.group is None and not status.controlled_resources)
        status = counted(status, counts)
        if enough and not clean:
            status = msgspec.structs.replace(status, controlled_resources={})
        elif enough and not self._kept_out():
            status = entered(self.job, status, "Pending", self.now_ms)
        return self._step(
            status=status,
            mark=targets,
            delete=tuple(pod for pod in doomed if not pod.terminating),
            delete_group=enough and not clean and self.group is not None,
            delete_objects=enough and not clean,
        )

    def _kept_out(self) -> bool:
        """Whether the job has to wait for its queue: it needs a group, and no group may enter a
        queue that is not open. Said once for each state of the queue.
        """
        out = self.group is None and self.queue_state not in ("", "Open")
        said = self.queue_state if out else ""
        if said and said != self.memory.queue_said:
            words = (
                "Failed to create PodGroup, err: can only submit PodGroup to queue with state "
                f"`Open`, queue `{self.job.spec.queue}` status is `{said}`."
            )
            self.events.append(JobEvent("Warning", "PodGroupError", words))
        self.memory = msgspec.structs.replace(self.memory, queue_said=said)
        return out

    @staticmethod
    def _doomed(pod: SeenPod, status: JobStatus, *, part: bool) -> bool:
        """Whether a restart kills the pod. A resumed job continues with what had ended."""
        if part:
            return pod.marked
        kept = not pod.alive and status.state.reason == "ResumeJob"
        return pod.version < status.version and not kept

    # Phases in which no pod lives on.

    def _wind_down(self, to: JobPhase) -> Step:
        doomed = tuple(pod for pod in self.pods if pod.alive and not pod.terminating)
        counts = counts_of(self.pods, {pod.metadata.name for pod in doomed})
        status = counted(self.job.status, counts)
        if self.command and self.phase in FINAL:
            # Volcano's versions count this, too, and its users watch them to see a command taken.
            status = msgspec.structs.replace(status, version=status.version + 1)
        ended = counts.terminating == 0
        if ended:
            status = msgspec.structs.replace(status, controlled_resources={})
            if to != self.phase:
                status = entered(self.job, status, to, self.now_ms)
        return self._step(
            status=status,
            delete=doomed,
            delete_group=ended and self.group is not None,
            delete_objects=ended and bool(self.job.status.controlled_resources),
        )

    # Pending and Running.

    def _sync(self) -> Step:
        job = self.job
        wanted = {
            pod_name(job.metadata.name, task.name, index): (task, index)
            for task in job.spec.tasks
            for index in range(task.replicas)
        }
        there = {pod.metadata.name: pod for pod in self.pods}
        surplus = [pod for name, pod in there.items() if name not in wanted]
        waiting = waiting_roles(job, self.pods)
        missing = [
            at for name, at in wanted.items() if name not in there and at[0].name not in waiting
        ]
        ensured = f"{job.metadata.generation}/{job.status.version}/{','.join(sorted(waiting))}"
        stale = ensured != self.memory.ensured
        group = change = None
        if self.group is None and (self.phase == "Pending" or missing):
            # A running job whose group was deleted needs none until it lacks a pod.
            group = group_for(job, waiting, self.priorities)
        elif self.group is not None and stale:
            change = change_of(self.group, group_for(job, waiting, self.priorities))
        admitted = self.group is not None and self.group.status.phase not in ("", "Pending")
        doomed = tuple(pod for pod in self.pods if self._straggles(pod) and not pod.terminating)
        counts = counts_of(
            [pod for pod in self.pods if pod.metadata.name in wanted],
            {pod.metadata.name for pod in doomed},
        )
        counts = msgspec.structs.replace(counts, terminating=counts.terminating + len(surplus))
        minima = sum(task.min_available or 0 for task in job.spec.tasks)
        phase = after_sync(job, counts, len(wanted), minima)
        status = msgspec.structs.replace(
            counted(job.status, counts),
            min_available=job.spec.min_available,
            controlled_resources=controlled_resources(job),
        )
        if phase != self.phase:
            if phase in FINAL:
                status = msgspec.structs.replace(status, version=status.version + 1)
            status = entered(job, status, phase, self.now_ms)
        if self.group is not None:
            self._report_of(self.group)
        self.memory = msgspec.structs.replace(self.memory, ensured=ensured)
        return self._step(
            status=status,
            ensure_objects=stale or group is not None,
            make_group=group,
            change_group=change,
            make_pods=self._in_order(missing) if admitted else (),
            mark=tuple(pod for pod in surplus if not pod.marked),
            delete=doomed,
        )

    def _in_order(
        self, missing: Sequence[tuple[TaskSpec, int]]
    ) -> tuple[tuple[TaskSpec, int], ...]:
        """Roles of higher priority first: a gang is bound as soon as enough of it is there."""
        return tuple(sorted(missing, key=lambda at: -priority_of(self.job, at[0], self.priorities)))

    def _straggles(self, pod: SeenPod) -> bool:
        """Whether a pod is to go that a kill left: marked, or made too late for it to be seen."""
        return pod.marked or (pod.alive and 0 <= pod.version < self.job.status.version)

    def _report_of(self, group: PodGroup) -> None:
        """Say on the job why its group waits, when that is news and has lasted: most groups wait
        for the moment only that their pods take to be made and bound.
        """
        true = [one for one in group.status.conditions if one.status == "True"]
        newest = max(true, key=lambda one: str(one.last_transition_time or ""), default=None)
        said = "" if newest is None or newest.type == "Scheduled" else newest.message
        memory = self.memory
        if not said:
            memory = msgspec.structs.replace(memory, group_said="", group_waits_ms=None)
        elif said != memory.group_said:
            since_ms = self.now_ms if memory.group_waits_ms is None else memory.group_waits_ms
            left_ms = since_ms + _PATIENCE_MS - self.now_ms
            if left_ms > 0:
                self._again(left_ms)
                memory = msgspec.structs.replace(memory, group_waits_ms=since_ms)
            else:
                where = f"{self.job.metadata.namespace}:{self.job.metadata.name}"
                words = f"PodGroup {where} unschedulable, reason: {said}"
                self.events.append(JobEvent("Warning", "PodGroupPending", words))
                memory = msgspec.structs.replace(memory, group_waits_ms=since_ms, group_said=said)
        self.memory = memory

    def _step(
        self,
        *,
        status: JobStatus,
        status_first: bool = False,
        ensure_objects: bool = False,
        make_group: Manifest | None = None,
        change_group: Manifest | None = None,
        delete_group: bool = False,
        delete_objects: bool = False,
        make_pods: tuple[tuple[TaskSpec, int], ...] = (),
        mark: tuple[SeenPod, ...] = (),
        delete: tuple[SeenPod, ...] = (),
    ) -> Step:
        old = self.job.status
        memory = msgspec.structs.replace(
            self.memory,
            lost=self.lost,
            since=self.since,
            group_phase=self.group.status.phase if self.group is not None else "",
            met=True,
        )
        return Step(
            memory=memory,
            job=self.job,
            status=None if status == old else status,
            status_first=status_first,
            counts_only=status.state == old.state and status.version == old.version,
            ensure_objects=ensure_objects,
            make_group=make_group,
            change_group=change_group,
            delete_group=delete_group,
            delete_objects=delete_objects,
            make_pods=make_pods,
            mark=mark,
            delete=delete,
            events=tuple(self.events),
            again_ms=self.again_ms,
        )


def waiting_roles(job: Job, pods: Sequence[SeenPod]) -> frozenset[str]:
    """Roles whose pods may not be made yet, because those that they depend on are not up.

    A role that has a pod already is not held up any more.
    """
    begun = {pod.task for pod in pods}
    up: dict[str, int] = {}
    for pod in pods:
        if pod.status.phase == "Succeeded" or (pod.status.phase == "Running" and pod.ready):
            up[pod.task] = up.get(pod.task, 0) + 1
    minima = {task.name: task.min_available or 0 for task in job.spec.tasks}
    waiting: list[str] = []
    for task in job.spec.tasks:
        needed = task.depends_on
        if needed is None or not needed.name or task.name in begun:
            continue
        ready = [up.get(name, 0) >= minima.get(name, 0) for name in needed.name]
        enough = any(ready) if needed.iteration == "any" else all(ready)
        if not enough:
            waiting.append(task.name)
    return frozenset(waiting)


def _lost(observed: Observed, job: Job) -> tuple[Lost, ...]:
    """Pods that went and are not answered for: those remembered, without those that came back and
    run; and at the first look those that were counted in the status and are not there.
    """
    running = {pod.metadata.name for pod in observed.pods if pod.status.phase == "Running"}
    remembered = tuple(one for one in observed.memory.lost if one.name not in running)
    status = job.status
    # A job that is not Running may have been released, or be restarting: no fault of its pods.
    if observed.memory.met or status.state.phase != "Running":
        return remembered
    there = {pod.metadata.name for pod in observed.pods}
    counted_pods = sum(sum(one.phase.values()) for one in status.task_status_count.values())
    known = {one.name for one in remembered}
    gone = counted_pods + status.terminating - len(there) - len(known)
    missing = [
        Lost(name=name, uid=name, task=task.name, index=index, version=status.version, at_ms=0)
        for task in job.spec.tasks
        for index in range(task.replicas)
        if (name := pod_name(job.metadata.name, task.name, index)) not in there | known
    ]
    return (*remembered, *missing[: max(0, gone)])
