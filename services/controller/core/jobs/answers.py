"""The answer that a Job gives next to the events of its pods, group and Commands. Pure.

Each request (an event) gets the answer that the policies name. One answer is given in a step; an
answer with a timeout waits for its time, and one that a restarting job cannot give yet waits for
the restart.
"""

import msgspec

from services.controller.core.events import ControllerEvent
from services.controller.core.jobs.observed_pods import LostPod, lost_pods
from services.controller.core.jobs.pod_counts import go_duration
from services.controller.core.jobs.requests import (
    Answer,
    Request,
    answer_to,
    requests_of,
    targets_a_part,
)
from services.controller.core.jobs.states import KILLS, LEADS_TO
from services.controller.core.jobs.step import Observed
from shared.kinds.job import Job, JobPhase


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to give now, and the memory of the remaining answers."""

    #: None: only a sync.
    answer: Answer | None = None
    #: Lost pods whose answer still waits.
    lost: tuple[LostPod, ...] = ()
    #: As `JobMemory.waiting_since_ms`.
    waiting_since_ms: dict[str, int] = {}
    events: tuple[ControllerEvent, ...] = ()
    #: Milliseconds until the next waiting answer is due; None: none waits.
    again_ms: int | None = None


def choose_answer(observed: Observed, job: Job, phase: JobPhase, now_ms: int) -> Choice:
    """Choose among the answers to all requests; a Command is answered before all of them.

    Args:
        observed: The job's objects and memory.
        job: The job with its defaults.
        phase: Its phase.
        now_ms: The instant.
    """
    memory = observed.memory
    lost = lost_pods(job, observed.pods, memory.lost, first_look=not memory.planned_before)
    if observed.command:
        answer = Answer(request=Request(event="CommandIssued"), action=observed.command)
        return Choice(answer=answer, lost=lost, waiting_since_ms=memory.waiting_since_ms)
    if phase in LEADS_TO:
        return Choice()
    group = observed.group
    group_unknown = group is not None and group.status.phase == "Unknown"
    turned_unknown = group_unknown and memory.group_phase != "Unknown"
    timers = _Timers(memory.waiting_since_ms, now_ms)
    unanswered: list[LostPod] = []
    chosen: Answer | None = None
    for request in requests_of(job, observed.pods, lost, group_unknown=group_unknown):
        answer_now = answer_to(job, request)
        if answer_now is None or (request.event == "Unknown" and not turned_unknown):
            continue
        waits = _waits_for_restart(job, phase, answer_now) or timers.wait(answer_now)
        if waits or chosen is not None:
            unanswered += [one for one in lost if one.uid == request.pod_uid]
        else:
            chosen = answer_now
    return Choice(
        answer=chosen,
        lost=tuple(unanswered),
        waiting_since_ms=timers.waiting_since_ms,
        events=tuple(timers.events),
        again_ms=timers.again_ms,
    )


def _waits_for_restart(job: Job, phase: JobPhase, answer: Answer) -> bool:
    """Whether the job has to leave Restarting before it can perform the action."""
    if phase != "Restarting" or answer.action in KILLS["Restarting"]:
        return False
    return not (targets_a_part(job.status.state.reason) and targets_a_part(answer.action))


class _Timers:
    """The timeouts of answers."""

    def __init__(self, before: dict[str, int], now_ms: int) -> None:
        self._before = before
        self._now_ms = now_ms
        self.waiting_since_ms: dict[str, int] = {}
        self.events: list[ControllerEvent] = []
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
