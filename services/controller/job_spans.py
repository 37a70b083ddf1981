"""Spans of a Job's start in its gang's trace: `make group`, until the PodGroup exists, and `make
pods`.

A failure is exported once for each reason, although it is retried. Writes for a Job that has
started are not exported, since its pods are replaced one by one.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from services.controller.core.jobs.step import Step
from shared.contracts.identity import gang_trace_id, job_trace_root
from shared.telemetry.tracing import Tracer, gang_span

#: Jobs whose last failure is remembered.
_FAILED_MAX: Final = 4_096
_STARTING: Final = frozenset({"", "Pending"})
_ERROR_CHARACTERS_MAX: Final = 256


class PerformedStep(NamedTuple):
    """One step of a Job after its writes. Instants are in ms since the epoch."""

    step: Step
    began_ms: int
    #: When this step created the group; None: it did not.
    group_created_ms: int | None
    #: UID of the job's group; "" without one.
    group_uid: str
    #: The obstacle that ended the step; "" without one.
    error: str = ""


class JobSpans:
    def __init__(self, tracer: Tracer, now_ms: Callable[[], int]) -> None:
        self._tracer = tracer
        self._now_ms = now_ms
        #: UID of a Job -> its last failure.
        self._failed: OrderedDict[str, str] = OrderedDict()

    def performed(self, performed: PerformedStep) -> None:
        """Export a step that has just ended."""
        step = performed.step
        if not self._tracer.enabled or step.job.status.state.phase not in _STARTING:
            return
        if performed.error and not self._is_new(step.job.metadata.uid, performed.error):
            return
        if step.make_group is not None:
            self._report("make group", performed, performed.began_ms, performed.group_created_ms)
        if step.make_pods and (step.make_group is None or performed.group_created_ms):
            start_ms = performed.group_created_ms or performed.began_ms
            self._report("make pods", performed, start_ms, None)

    def _is_new(self, uid: str, error: str) -> bool:
        known = self._failed.pop(uid, "")
        self._failed[uid] = error
        if len(self._failed) > _FAILED_MAX:
            self._failed.popitem(last=False)
        return known != error

    def _report(
        self, name: str, performed: PerformedStep, start_ms: int, end_ms: int | None
    ) -> None:
        """Export a part of the step. One without an end is the last, to which the error belongs."""
        step, job = performed.step, performed.step.job
        # As in `core.jobs.manifests`: only a Job's first group continues the Job's trace.
        root = performed.group_uid
        if not job.status.version:
            root = job_trace_root(job.metadata.namespace, job.metadata.uid)
        if not root:
            return
        trace_id = gang_trace_id(root, 1)
        if not self._tracer.keeps(trace_id):
            return
        values: dict[str, str | int] = {
            "job": job.metadata.key,
            "version": job.status.version,
        }
        if name == "make pods":
            values["pods"] = len(step.make_pods)
        self._tracer.span(
            name,
            trace_id=trace_id,
            start_ms=start_ms,
            end_ms=end_ms or self._now_ms(),
            key=str(performed.began_ms),
            parent=gang_span(trace_id),
            attributes=values,
            error="" if end_ms else performed.error[:_ERROR_CHARACTERS_MAX],
        )
