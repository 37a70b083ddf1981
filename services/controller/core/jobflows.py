"""The plan for one JobFlow: the Jobs to create and delete, and its status. Pure.

It is level-triggered. A step starts when each step that it depends on is Completed. A Job that was
Completed counts as such after its deletion (a ttl does not run a step again); another deleted Job
is created again. Failed is final, and Succeed, too, if Jobs are deleted at the end.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from shared.kinds.job import FINISHED_PHASES, Job
from shared.kinds.jobflow import (
    CREATED_BY_FLOW,
    CREATED_BY_TEMPLATE,
    Flow,
    FlowCondition,
    FlowJobStatus,
    JobFlow,
    JobFlowPhase,
    JobFlowState,
    JobFlowStatus,
    JobRunningHistory,
    JobTemplate,
)
from shared.kinds.metadata import Metadata, controlled_by

_FAILED: Final = frozenset({"Failed", "Terminated"})
#: The most phases of one Job in the flow's status, which a Job that restarts without end must not
#: enlarge without end.
_HISTORIES_MAX: Final = 100


class FlowPlan(msgspec.Struct, frozen=True, kw_only=True):
    status: JobFlowStatus
    #: Steps whose Job is to be created now.
    start: tuple[Flow, ...] = ()
    #: Jobs to delete.
    delete: tuple[Job, ...] = ()

    @property
    def has_finished_jobs(self) -> bool:
        """Whether a Job of the flow has finished."""
        return any(job.state in FINISHED_PHASES for job in self.status.job_status_list)


def job_name(flow: str, step: str) -> str:
    return f"{flow}-{step}"


def plan(flow: JobFlow, jobs: Mapping[str, Job]) -> FlowPlan:
    """Plan the writes that are due for a stored flow and the Jobs that it owns, by name."""
    succeeded = flow.status.state.phase == "Succeed"
    if succeeded and flow.spec.job_retain_policy == "delete":
        # Its Jobs are deleted; then its status stays.
        return FlowPlan(status=flow.status, delete=tuple(jobs[name] for name in sorted(jobs)))
    before = {known.name: known for known in flow.status.job_status_list}
    completed = {name for name, known in before.items() if known.state == "Completed"}
    names = [job_name(flow.metadata.name, step.name) for step in flow.spec.flows]
    job_statuses = tuple(
        _job_status(jobs.get(name), name, before.get(name))
        for name in dict.fromkeys(names)
        if name in jobs or name in completed
    )
    phases = {job.name: job.state for job in job_statuses}
    phase = _phase(flow.status.state.phase, names, phases)
    status = JobFlowStatus(
        pending_jobs=_in_phase(phases, "Pending", ""),
        running_jobs=_in_phase(phases, "Running"),
        failed_jobs=_in_phase(phases, "Failed"),
        completed_jobs=_in_phase(phases, "Completed"),
        terminated_jobs=_in_phase(phases, "Terminated"),
        unknown_jobs=_in_phase(phases, "Aborting", "Aborted", "Restarting"),
        job_status_list=job_statuses,
        conditions=_conditions(flow, jobs, phases),
        state=JobFlowState(phase=phase),
    )
    start: tuple[Flow, ...] = ()
    if phase not in {"Failed", "Succeed"}:
        start = tuple(
            step
            for step, name in zip(flow.spec.flows, names, strict=True)
            if name not in phases and _may_start(flow, step, phases)
        )
    return FlowPlan(status=status, start=start)


def job_of(flow: JobFlow, step: Flow, template: JobTemplate) -> Job:
    namespace = flow.metadata.namespace
    marks = {
        CREATED_BY_TEMPLATE: f"{namespace}.{template.metadata.name}",
        CREATED_BY_FLOW: f"{namespace}.{flow.metadata.name}",
    }
    return Job(
        metadata=Metadata(
            name=job_name(flow.metadata.name, step.name),
            namespace=namespace,
            labels=marks,
            annotations=marks,
            owner_references=(controlled_by(flow),),
        ),
        spec=template.spec,
    )


def _may_start(flow: JobFlow, step: Flow, phases: Mapping[str, str]) -> bool:
    targets = step.depends_on.targets if step.depends_on is not None else ()
    return all(
        phases.get(job_name(flow.metadata.name, target)) == "Completed" for target in targets
    )


def _phase(
    now: JobFlowPhase | str, names: Sequence[str], phases: Mapping[str, str]
) -> JobFlowPhase:
    states = set(phases.values())
    if now == "Failed" or states & _FAILED:
        return "Failed"
    if names and all(phases.get(name) == "Completed" for name in names):
        return "Succeed"
    if now in {"Running", "Succeed"} or states & {"Running", "Completed"}:
        return "Running"
    return "Pending"


def _in_phase(phases: Mapping[str, str], *wanted: str) -> tuple[str, ...]:
    return tuple(sorted(name for name, phase in phases.items() if phase in wanted))


def _job_status(job: Job | None, name: str, known: FlowJobStatus | None) -> FlowJobStatus:
    """A Job's entry in the status; for a deleted Job, the stored entry."""
    if job is None:
        return known or FlowJobStatus(name=name)
    # A Job that was created again under its name has another start.
    same = known is not None and known.start_timestamp == job.metadata.creation_timestamp
    histories = _histories(job, known.running_histories if known is not None and same else ())
    state = job.status.state.phase
    ended = histories[-1].start_timestamp if histories and state in FINISHED_PHASES else None
    return FlowJobStatus(
        name=name,
        state=state,
        start_timestamp=job.metadata.creation_timestamp,
        end_timestamp=ended,
        restart_count=job.status.retry_count,
        running_histories=histories,
    )


def _histories(job: Job, known: tuple[JobRunningHistory, ...]) -> tuple[JobRunningHistory, ...]:
    """The phases of the job in order: those known, and those entered since then.

    A job has one condition for each phase, of the last time that it entered the phase.
    """
    entered = [(history.state, history.start_timestamp) for history in known]
    last = entered[-1][1] if entered else None
    for condition in job.status.conditions:
        at = condition.last_transition_time
        late = last is None or (at is not None and at >= last)
        if late and (condition.status, at) not in entered:
            entered.append((condition.status, at))
    if not entered:
        return ()
    entered = entered[-_HISTORIES_MAX:]
    ends = [*(start for _, start in entered[1:]), None]
    return tuple(
        JobRunningHistory(state=state, start_timestamp=start, end_timestamp=end)
        for (state, start), end in zip(entered, ends, strict=True)
    )


def _conditions(
    flow: JobFlow, jobs: Mapping[str, Job], phases: Mapping[str, str]
) -> dict[str, FlowCondition]:
    conditions: dict[str, FlowCondition] = {}
    for name in sorted(phases):
        job = jobs.get(name)
        if job is not None:
            conditions[name] = FlowCondition(
                phase=job.status.state.phase,
                create_time=job.metadata.creation_timestamp,
                running_duration=job.status.running_duration,
                task_status_count=job.status.task_status_count,
            )
        elif name in flow.status.conditions:
            conditions[name] = flow.status.conditions[name]
    return conditions
