"""The Job controller: reads a Job's objects from caches, plans one step, and performs its writes.

All decisions are made in `core.jobs`. A Command is deleted before it is carried out, so that each
is carried out at most once.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from services.controller.core.events import ControllerEvent
from services.controller.core.jobs.planning import plan
from services.controller.core.jobs.states import unfinished
from services.controller.core.jobs.step import JOB_NAME, JobMemory, LostPod, Observed, SeenPod, Step
from services.controller.core.jobs.succeeded_pods import remembered
from services.controller.job_spans import JobSpans
from services.controller.job_writer import JobWriter, Obstacle, Overtaken
from services.controller.reconciling.controller import Runtime, Wake
from services.controller.reconciling.informer import Informer, key_of, latest
from shared.kinds.command import Command
from shared.kinds.job import ACTIONS, Job
from shared.kinds.job_shape import group_name, queue_name
from shared.kinds.podgroup import PodGroup
from shared.kinds.queue import Queue
from shared.kube.errors import ApiError, NotFound
from shared.kube.objects import PriorityClass
from shared.kube.resources import (
    COMMANDS,
    JOBS_VOLCANO,
    PODGROUPS_VOLCANO,
    PODS,
    PRIORITY_CLASSES,
    QUEUES_VOLCANO,
)

#: Delay after an obstacle that a user has to remove: a missing claim, a quota, a name.
_OBSTACLE_S: Final = 3.0
#: Attempts in one call when the job changes between reading and writing.
_TRIES: Final = 5
#: The shortest interval between writes of counts only: a thousand pods start one after the other.
_COUNTS_EVERY_S: Final = 1.0
_COUNTS_LEAST_S: Final = 0.001
#: The longest delay of counts while other jobs' writes are waiting.
_COUNTS_EVERY_S_MAX: Final = 10.0
#: An obstacle that stays is reported again before API servers delete the Event, after an hour; one
#: whose text changes (a quota that other jobs use), at most once a minute.
_REPORT_EVERY_S: Final = 1_800.0
_REPORT_CHANGE_EVERY_S: Final = 60.0
#: Phases in which a job may lack a group because its queue refused it.
_GROUPLESS: Final = frozenset({"", "Pending", "Restarting"})
#: Why a Command is deleted without having been carried out: the field and the rule.
_NO_JOB: Final = "target.name: there is no Job of this name in the Command's namespace"
_ANOTHER_JOB: Final = "target.uid: the Job of this name is another one"
_NO_ACTION: Final = f"action: of a Job, one of {', '.join(sorted(ACTIONS))}"


class _KnownJob(msgspec.Struct, eq=False):
    """The controller's memory of one job."""

    uid: str
    memory: JobMemory = msgspec.field(default_factory=JobMemory)
    #: The action of a Command that was deleted and is not carried out yet; "" without one.
    command: str = ""
    #: The loop's time when its counts were last written or its pods last created.
    counted_s: float = 0.0
    #: By reason: the last report of each present obstacle.
    reports: dict[str, "_Report"] = {}
    #: UIDs of its terminating pods that had succeeded before their deletion was requested. The
    #: containers of a running pod that is deleted may end with status 0, too.
    succeeded: dict[str, None] = {}


class _Report(NamedTuple):
    """The Event of an obstacle, and the loop's time at which it was recorded."""

    message: str
    at_s: float


class JobReconciler:
    """Reconciles Jobs; a key is "namespace/name"."""

    name = "job"

    def __init__(
        self, runtime: Runtime, scheduler_names: Iterable[str], spans: JobSpans | None = None
    ) -> None:
        """Reconcile jobs that name one of these schedulers, or none."""
        self._runtime = runtime
        self._spans = spans
        self._ours = frozenset(scheduler_names) | {""}
        self._known: dict[str, _KnownJob] = {}
        #: By key of a job: its Commands by UID.
        self._waiting_commands: dict[str, dict[str, Command]] = {}
        self._jobs = runtime.informers.of(JOBS_VOLCANO, Job)
        self._pods = runtime.informers.of(PODS, SeenPod, label_selector=JOB_NAME)
        self._groups = runtime.informers.of(PODGROUPS_VOLCANO, PodGroup)
        self._commands = runtime.informers.of(COMMANDS, Command)
        self._classes = runtime.informers.of(PRIORITY_CLASSES, PriorityClass)
        self._queues = runtime.informers.of(QUEUES_VOLCANO, Queue)
        self._wake: Wake = lambda _key: None

    def watches(self, wake: Wake) -> Iterable[Informer[Any]]:
        self._wake = wake
        self._jobs.on_change(self._job_changed)
        self._pods.on_change(self._pod_changed)
        self._groups.on_change(self._group_changed)
        self._commands.on_change(self._command_changed)
        self._queues.on_change(self._queue_changed)
        return self._jobs, self._pods, self._groups, self._commands, self._classes, self._queues

    def keys(self) -> Iterable[str]:
        return list(self._jobs.keys())

    async def reconcile(self, key: str) -> float | None:
        """Plan and perform one step of a job; see `core.jobs`."""
        job = self._jobs.get(key)
        if job is None:
            self._known.pop(key, None)
            return await self._delete_commands(key)
        if job.metadata.deletion_timestamp is not None:
            return None
        if job.spec.scheduler_name not in self._ours:
            return None
        known = self._known.get(key)
        if known is None or known.uid != job.metadata.uid:
            known = self._known[key] = _KnownJob(job.metadata.uid)
        known.command = known.command or await self._take_command(key, job)
        writer = JobWriter(self._runtime, self._jobs, self._pods, self._groups, job)
        for _ in range(_TRIES):
            try:
                return await self._step(key, job, known, writer)
            except Overtaken:
                fresh = await writer.read_again()
                if fresh is None or fresh.metadata.uid != job.metadata.uid:
                    return None
                job = fresh
        return _OBSTACLE_S

    async def _step(self, key: str, job: Job, known: _KnownJob, writer: JobWriter) -> float | None:
        queue = self._queues.get(queue_name(job))
        observed = Observed(
            job=job,
            pods=self._pods.owned_by(job.metadata.uid, namespace=job.metadata.namespace),
            group=self._groups.get(f"{job.metadata.namespace}/{group_name(job)}"),
            memory=known.memory,
            priorities={
                priority_class.metadata.name: priority_class.value
                for priority_class in self._classes.all()
            },
            command=known.command,
            queue_state=queue.status.state if queue is not None else "",
        )
        before = known.memory
        step = plan(observed, time.time_ns() // 1_000_000)
        waits_s = self._counts_wait_s(known)
        late = step.status is not None and step.counts_only and waits_s > 0
        if step.status is not None and step.status_first:
            await writer.write_status(step.status)
        self._report(job, *step.events)
        known.command = ""
        failures = await self._perform(writer, step)
        # A status is of the observed pods, whichever writes have failed.
        if step.status is not None and not step.status_first and not late:
            status = unfinished(job.status, step.status) if failures else step.status
            if status != job.status:
                await writer.write_status(status)
            known.counted_s = _now_s()
        if step.make_pods and not failures:
            # Their count as pending is mostly outdated within a second.
            known.counted_s = _now_s()
        known.memory = _with_gone(step.memory, before, known.memory)
        if failures:
            known.memory = msgspec.structs.replace(known.memory, ensured=before.ensured)
        obstacles = [failure for failure in failures if isinstance(failure, Obstacle)]
        self._report_obstacles(job, known, obstacles)
        for failure in failures:
            if isinstance(failure, ApiError):
                raise failure
        return _soonest(
            None if step.again_ms is None else step.again_ms / 1000,
            waits_s if late else None,
            _OBSTACLE_S if obstacles else None,
            0.0 if self._waiting_commands.get(key) else None,
        )

    def _counts_wait_s(self, known: _KnownJob) -> float:
        """Seconds for which a status with changed counts only has to wait."""
        age_s = _now_s() - known.counted_s
        if age_s < _COUNTS_EVERY_S:
            # At least as much as the clock can resolve.
            return max(_COUNTS_EVERY_S - age_s, _COUNTS_LEAST_S)
        busy = age_s < _COUNTS_EVERY_S_MAX and self._runtime.writes.all_taken
        return _COUNTS_EVERY_S if busy else 0.0

    async def _perform(self, writer: JobWriter, step: Step) -> tuple[Obstacle | ApiError, ...]:
        """Perform all writes but the status; return the failures."""
        began_ms = time.time_ns() // 1_000_000
        writer.group_created_ms = None
        failures = await writer.carry_out(step)
        if self._spans is not None:
            obstacles = (str(failure) for failure in failures if isinstance(failure, Obstacle))
            error = next(obstacles, "")
            self._spans.performed(step, began_ms, writer.group_created_ms, writer.group_uid, error)
        return failures

    def _report_obstacles(self, job: Job, known: _KnownJob, obstacles: Iterable[Obstacle]) -> None:
        """Report obstacles that are new, have another text, or were reported long ago."""
        now_s = _now_s()
        reports: dict[str, _Report] = {}
        for obstacle in obstacles:
            message, last = str(obstacle), known.reports.get(obstacle.reason)
            if last is None or now_s - last.at_s >= _report_every_s(last.message == message):
                last = _Report(message, now_s)
                self._report(job, ControllerEvent("Warning", obstacle.reason, message))
            reports[obstacle.reason] = last
        known.reports = reports

    def _report(self, job: Job, *events: ControllerEvent) -> None:
        self._runtime.events.record(JOBS_VOLCANO, job.metadata, *events)

    async def _take_command(self, key: str, job: Job) -> str:
        """Delete the oldest Command about this job and return its action; "" without one."""
        commands = sorted(
            self._waiting_commands.get(key, {}).values(),
            key=lambda command: (command.metadata.created_ms, command.metadata.name),
        )
        for command in commands:
            target = command.target
            # A Command for a former job of the same name, or for none, has no effect.
            is_for_job = target is not None and target.uid in ("", job.metadata.uid)
            if not is_for_job or command.action not in ACTIONS:
                why = _ANOTHER_JOB if not is_for_job else _NO_ACTION
                await self._runtime.refuse(command, why)
                self._forget_command(key, command)
                continue
            taken = await self._runtime.writes.delete(COMMANDS, command.metadata)
            self._forget_command(key, command)
            if not taken.done:
                continue
            message = (
                f"Start to execute command {command.action}, and clean it up to make sure "
                "executed not more than once."
            )
            self._report(job, ControllerEvent("Normal", "CommandIssued", message))
            return "" if command.action == "SyncJob" else command.action
        return ""

    async def _delete_commands(self, key: str) -> float | None:
        """Delete the Commands about a job that does not exist, since no other controller would."""
        commands = self._waiting_commands.get(key)
        if not commands:
            return None
        namespace, _, name = key.partition("/")
        try:
            await self._runtime.client.request("GET", JOBS_VOLCANO.path(namespace, name))
        except NotFound:
            for command in list(commands.values()):
                await self._runtime.refuse(command, _NO_JOB)
                self._forget_command(key, command)
            return None
        # Created a moment ago: the watch will report it.
        return _OBSTACLE_S

    # Changes that wake a job.

    def _job_changed(self, old: Job | None, new: Job | None) -> None:
        self._wake_or_forget(key_of(latest(old, new)))

    def _wake_or_forget(self, key: str) -> None:
        """Wake a job, or discard its memory, which is outdated once another replica has the key."""
        if self._wake(key) is False:
            self._known.pop(key, None)

    def _pod_changed(self, old: SeenPod | None, new: SeenPod | None) -> None:
        pod = latest(old, new)
        owner = pod.metadata.controller
        if owner is None or owner.kind != "Job" or not owner.api_version.startswith("batch.volc"):
            return
        key = f"{pod.metadata.namespace}/{owner.name}"
        known = self._known.get(key)
        # Also during the first step, which was planned with this pod.
        if known is not None and known.uid == owner.uid:
            _follow(known, old, new)
        self._wake_or_forget(key)

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        group = latest(old, new)
        owner = group.metadata.controller
        if owner is not None and owner.kind == "Job":
            self._wake(f"{group.metadata.namespace}/{owner.name}")

    def _command_changed(self, old: Command | None, new: Command | None) -> None:
        command = latest(old, new)
        if command.target is None or command.target.kind != "Job":
            return
        key = f"{command.metadata.namespace}/{command.target.name}"
        if new is None:
            self._forget_command(key, command)
            return
        self._waiting_commands.setdefault(key, {})[command.metadata.uid] = command
        self._wake(key)

    def _queue_changed(self, old: Queue | None, new: Queue | None) -> None:
        """Wake the jobs that wait for a queue when it opens."""
        if new is None or new.status.state != "Open":
            return
        if old is not None and old.status.state == "Open":
            return
        for key in list(self._jobs.keys()):
            job = self._jobs.get(key)
            if (
                job is not None
                and queue_name(job) == new.metadata.name
                and job.status.state.phase in _GROUPLESS
            ):
                self._wake(key)

    def _forget_command(self, key: str, command: Command) -> None:
        commands = self._waiting_commands.get(key, {})
        commands.pop(command.metadata.uid, None)
        if not commands:
            self._waiting_commands.pop(key, None)


def _report_every_s(same: bool) -> float:
    """The interval between reports of an obstacle with the same text, or with another."""
    return _REPORT_EVERY_S if same else _REPORT_CHANGE_EVERY_S


def _follow(known: _KnownJob, old: SeenPod | None, new: SeenPod | None) -> None:
    """Remember which pods had succeeded when they were deleted, and which are gone that the
    controller did not delete.
    """
    if old is None:
        return
    uid = old.metadata.uid
    if old.status.phase == "Succeeded" and not old.terminating:
        known.succeeded[uid] = None
    if new is not None and new.terminating:
        return
    has_succeeded = known.succeeded.pop(uid, 0) is None
    if new is None and not old.marked:
        known.memory = _without(known.memory, old, has_succeeded=has_succeeded)


def _without(memory: JobMemory, pod: SeenPod, *, has_succeeded: bool) -> JobMemory:
    """The memory after a pod is gone. One that has succeeded is not lost."""
    if has_succeeded:
        return msgspec.structs.replace(memory, succeeded=(*memory.succeeded, remembered(pod)))
    if pod.released:
        return memory
    lost = LostPod(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        task=pod.task,
        index=pod.index,
        version=pod.version,
        at_ms=time.time_ns() // 1_000_000,
    )
    return msgspec.structs.replace(memory, lost=(*memory.lost, lost))


def _with_gone(planned: JobMemory, before: JobMemory, now: JobMemory) -> JobMemory:
    """The planned memory with the pods that have gone during the writes."""
    lost = tuple(pod for pod in now.lost if pod not in before.lost)
    succeeded = tuple(pod for pod in now.succeeded if pod not in before.succeeded)
    return msgspec.structs.replace(
        planned, lost=(*planned.lost, *lost), succeeded=(*planned.succeeded, *succeeded)
    )


def _soonest(*delays_s: float | None) -> float | None:
    return min((delay_s for delay_s in delays_s if delay_s is not None), default=None)


def _now_s() -> float:
    """The loop's time, by which delayed keys are queued."""
    return asyncio.get_running_loop().time()
