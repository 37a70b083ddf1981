"""The next step of a Job: from the observed objects to the writes. Pure.

A step leaves at most one phase. Its writes are performed in this order: the status if it comes
first, objects and claims, the group, pods, deletions, else the status. Each of them may have been
performed before. A failed creation ends the creations; deletions and the status follow.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from services.controller.core.events import ControllerEvent
from services.controller.core.jobs.answers import Answer, choose_answer, is_target, targets_a_part
from services.controller.core.jobs.manifests import change_of, controlled_resources, group_for
from services.controller.core.jobs.states import (
    FINAL,
    KILLS,
    LEADS_TO,
    Kill,
    after_sync,
    counted,
    counts_of,
    entered,
)
from services.controller.core.jobs.step import LostPod, Observed, SeenPod, Step
from services.controller.core.jobs.succeeded_pods import gone_succeeded
from shared.dialects.job_groups import priority_of
from shared.job_plugins.discovery import with_needed_plugins
from shared.kinds.job import Job, JobPhase, JobStatus
from shared.kinds.job_shape import PODS_MAX, completed, pod_name, replicas
from shared.kinds.podgroup import PodGroup

#: A group's waiting is reported after this time, as by the status controller.
_REPORT_AFTER_MS: Final = 2_000


def plan(observed: Observed, now_ms: int) -> Step:
    """The next step of a job that is not being deleted."""
    job = with_needed_plugins(completed(observed.job))
    if replicas(job) > PODS_MAX:
        return _refused(observed, job)
    if not job.status.state.phase:
        status = msgspec.structs.replace(job.status, min_available=job.spec.min_available)
        begun = entered(job, status, "Pending", now_ms)
        return Step(memory=observed.memory, job=job, status=begun, status_first=True)
    phase = job.status.state.phase
    succeeded = gone_succeeded(observed, job, phase)
    whole = msgspec.structs.replace(observed, pods=(*observed.pods, *succeeded))
    return _Planning(whole, succeeded, job, phase, now_ms).step()


def _refused(observed: Observed, job: Job) -> Step:
    """The step of a job with too many pods: nothing, and an Event for each number of pods."""
    count = replicas(job)
    ensured = f"refused/{count}"
    message = f"spec.tasks: replicas add up to {count}, and Tutti creates at most {PODS_MAX} pods"
    event = ControllerEvent("Warning", "JobTooLarge", message)
    return Step(
        memory=msgspec.structs.replace(observed.memory, ensured=ensured),
        job=job,
        events=(event,) if observed.memory.ensured != ensured else (),
    )


class _Planning:
    """The state of one call of `plan`."""

    def __init__(
        self,
        observed: Observed,
        succeeded: tuple[SeenPod, ...],
        job: Job,
        phase: JobPhase,
        now_ms: int,
    ) -> None:
        """`observed` includes the pods `succeeded`, which are gone."""
        self.observed = observed
        self.pods = observed.pods
        self.succeeded = succeeded
        self.group = observed.group
        self.job = job
        self.phase: JobPhase = phase
        self.now_ms = now_ms
        self.again_ms: int | None = None
        self.events: list[ControllerEvent] = []
        self.lost: tuple[LostPod, ...] = ()
        self.waiting_since_ms: dict[str, int] = {}
        self.memory = observed.memory

    def step(self) -> Step:
        choice = choose_answer(self.observed, self.job, self.phase, self.now_ms)
        self.lost, self.waiting_since_ms = choice.lost, choice.waiting_since_ms
        self.events.extend(choice.events)
        self._again(choice.again_ms)
        if choice.answer is not None:
            message = f"Start to execute action {choice.answer.action} "
            self.events.append(ControllerEvent("Normal", "ExecuteAction", message))
        return self._completed(self._next(choice.answer))

    def _next(self, answer: Answer | None) -> Step:
        """The writes of the step, and its status."""
        kill = None if answer is None else KILLS.get(self.phase, {}).get(answer.action)
        if answer is not None and kill is not None:
            return self._kill(kill, answer)
        if self.phase in LEADS_TO:
            return self._wind_down(LEADS_TO[self.phase])
        if self.phase == "Restarting":
            return self._restart(answer)
        return self._sync()

    def _again(self, in_ms: int | None) -> None:
        if in_ms is not None:
            self.again_ms = in_ms if self.again_ms is None else min(self.again_ms, in_ms)

    # Leaving a phase by a kill.

    def _kill(self, kill: Kill, answer: Answer) -> Step:
        status = self.job.status
        targets: tuple[SeenPod, ...] = ()
        if kill.part:
            targets = self._targets(answer)
            self.lost = tuple(
                pod
                for pod in self.lost
                if not is_target(self.job, answer.action, answer.request, pod.task, pod.index)
            )
        else:
            self.lost, self.waiting_since_ms = (), {}
            status = msgspec.structs.replace(status, version=status.version + 1)
        targets = self._run_again(targets, whole=answer.action == "RestartJob")
        if kill.retry:
            status = msgspec.structs.replace(status, retry_count=status.retry_count + 1)
        status = entered(self.job, status, kill.to, self.now_ms, why=answer.action)
        # The write that enters the phase counts them as terminating: they may all be gone before
        # the next write, and a client that watches the phase expects to see them.
        going = {pod.metadata.name for pod in self._condemned(status, targets)}
        status = counted(status, counts_of(self.pods, going))
        return Step(
            memory=self.memory, job=self.job, status=status, status_first=True, mark=targets
        )

    def _run_again(self, pods: tuple[SeenPod, ...], *, whole: bool) -> tuple[SeenPod, ...]:
        """Forget that pods which are gone have succeeded: these, or all of the job's. Returns those
        of `pods` that exist.
        """
        gone = {pod.metadata.uid for pod in self.succeeded}
        again = gone if whole else gone & {pod.metadata.uid for pod in pods}
        self.succeeded = tuple(pod for pod in self.succeeded if pod.metadata.uid not in again)
        self.pods = tuple(pod for pod in self.pods if pod.metadata.uid not in again)
        return tuple(pod for pod in pods if pod.metadata.uid not in gone)

    def _condemned(self, status: JobStatus, targets: tuple[SeenPod, ...]) -> Iterator[SeenPod]:
        """The pods that the phase which the kill enters will delete."""
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

    # Restarting.

    def _restart(self, answer: Answer | None) -> Step:
        """Fail when no retry is left; else delete the doomed pods, and start again once enough of
        them are gone.
        """
        status, spec = self.job.status, self.job.spec
        part = targets_a_part(status.state.reason)
        if status.retry_count >= spec.max_retry and status.state.reason != "ResumeJob":
            failed = msgspec.structs.replace(status, version=status.version + 1)
            return Step(
                memory=self.memory,
                job=self.job,
                status=entered(self.job, failed, "Failed", self.now_ms),
                status_first=True,
            )
        targets = self._targets(answer) if part and answer is not None else ()
        targets = self._run_again(targets, whole=False)
        doomed = [pod for pod in self.pods if self._doomed(pod, status, part=part)]
        going = {pod.metadata.name for pod in (*doomed, *targets)}
        counts = counts_of(self.pods, going)
        enough = replicas(self.job) - counts.terminating >= status.min_available
        clean = part or (self.group is None and not status.controlled_resources)
        status = counted(status, counts)
        if enough and not clean:
            status = msgspec.structs.replace(status, controlled_resources={})
        elif enough and not self._waits_for_queue():
            status = entered(self.job, status, "Pending", self.now_ms)
        return Step(
            memory=self.memory,
            job=self.job,
            status=status,
            mark=targets,
            delete=tuple(pod for pod in doomed if not pod.terminating),
            delete_group=enough and not clean and self.group is not None,
            delete_objects=enough and not clean,
        )

    def _waits_for_queue(self) -> bool:
        """Whether the job waits for its queue: it needs a group, and a queue that is not open
        accepts none. Reported once for each state of the queue.
        """
        closed = self.group is None and self.observed.queue_state not in ("", "Open")
        state = self.observed.queue_state if closed else ""
        if state and state != self.memory.queue_reported:
            message = (
                "Failed to create PodGroup, err: can only submit PodGroup to queue with state "
                f"`Open`, queue `{self.job.spec.queue}` status is `{state}`."
            )
            self.events.append(ControllerEvent("Warning", "PodGroupError", message))
        self.memory = msgspec.structs.replace(self.memory, queue_reported=state)
        return closed

    @staticmethod
    def _doomed(pod: SeenPod, status: JobStatus, *, part: bool) -> bool:
        """Whether a restart deletes the pod. A resumed job keeps the pods that have ended."""
        if part:
            return pod.marked
        kept = not pod.alive and status.state.reason == "ResumeJob"
        return pod.version < status.version and not kept

    # Phases in which all pods end.

    def _wind_down(self, to: JobPhase) -> Step:
        doomed = tuple(pod for pod in self.pods if pod.alive and not pod.terminating)
        counts = counts_of(self.pods, {pod.metadata.name for pod in doomed})
        status = counted(self.job.status, counts)
        if self.observed.command and self.phase in FINAL:
            # As in Volcano, whose users watch the version to see that a Command was taken.
            status = msgspec.structs.replace(status, version=status.version + 1)
        ended = counts.terminating == 0
        if ended:
            status = msgspec.structs.replace(status, controlled_resources={})
            if to != self.phase:
                status = entered(self.job, status, to, self.now_ms)
        return Step(
            memory=self.memory,
            job=self.job,
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
            # A running job whose group was deleted needs a group only when it lacks a pod.
            group = group_for(job, waiting, self.observed.priorities)
        elif self.group is not None and stale:
            change = change_of(self.group, group_for(job, waiting, self.observed.priorities))
        admitted = self.group is not None and self.group.status.phase not in ("", "Pending")
        if admitted:
            # Roles of higher priority first: a gang is bound as soon as enough of its pods exist.
            missing.sort(key=lambda at: -priority_of(job, at[0], self.observed.priorities))
        doomed = tuple(
            pod for pod in self.pods if self._outlived_a_kill(pod) and not pod.terminating
        )
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
            self._report_waiting(self.group)
        self.memory = msgspec.structs.replace(self.memory, ensured=ensured)
        return Step(
            memory=self.memory,
            job=self.job,
            status=status,
            ensure_objects=stale or group is not None,
            make_group=group,
            change_group=change,
            make_pods=tuple(missing) if admitted else (),
            mark=tuple(pod for pod in surplus if not pod.marked),
            delete=doomed,
        )

    def _outlived_a_kill(self, pod: SeenPod) -> bool:
        """Whether a kill left the pod: it is marked, or was created too late to be seen by it."""
        return pod.marked or (pod.alive and 0 <= pod.version < self.job.status.version)

    def _report_waiting(self, group: PodGroup) -> None:
        """Report on the job why its group waits, once for each reason and after a delay: most
        groups wait only for the moment in which their pods are created and bound.
        """
        true = [condition for condition in group.status.conditions if condition.status == "True"]
        newest = max(
            true, key=lambda condition: str(condition.last_transition_time or ""), default=None
        )
        reason = "" if newest is None or newest.type == "Scheduled" else newest.message
        memory = self.memory
        if not reason:
            memory = msgspec.structs.replace(memory, group_reported="", group_waits_ms=None)
        elif reason != memory.group_reported:
            since_ms = self.now_ms if memory.group_waits_ms is None else memory.group_waits_ms
            left_ms = since_ms + _REPORT_AFTER_MS - self.now_ms
            if left_ms > 0:
                self._again(left_ms)
                memory = msgspec.structs.replace(memory, group_waits_ms=since_ms)
            else:
                where = f"{self.job.metadata.namespace}:{self.job.metadata.name}"
                message = f"PodGroup {where} unschedulable, reason: {reason}"
                self.events.append(ControllerEvent("Warning", "PodGroupPending", message))
                memory = msgspec.structs.replace(
                    memory, group_waits_ms=since_ms, group_reported=reason
                )
        self.memory = memory

    def _completed(self, draft: Step) -> Step:
        """The step with its memory and events; a status that equals the stored one is left out."""
        old, group = self.job.status, self.group
        status = old if draft.status is None else draft.status
        memory = msgspec.structs.replace(
            self.memory,
            lost=self.lost,
            succeeded=self.succeeded,
            waiting_since_ms=self.waiting_since_ms,
            group_phase=group.status.phase if group is not None else "",
            planned_before=True,
        )
        return msgspec.structs.replace(
            draft,
            memory=memory,
            status=None if status == old else status,
            counts_only=status.state == old.state and status.version == old.version,
            events=tuple(self.events),
            again_ms=self.again_ms,
        )


def waiting_roles(job: Job, pods: Sequence[SeenPod]) -> frozenset[str]:
    """Roles whose pods may not be created yet, because roles that they depend on are not running. A
    role with a pod does not wait any more.
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
