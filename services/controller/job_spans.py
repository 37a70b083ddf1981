"""What the Job controller does to start a Job, as spans of its gang's trace: `make group`, until
the PodGroup is there, and `make pods`. What fails is exported once for each reason: it is tried
again and again.

What is created for a Job that has started is not exported: pods are replaced one by one.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from services.controller.core.jobs.planning import Step
from shared.contracts.identity import gang_trace_id
from shared.telemetry.tracing import Tracer, gang_span

#: Jobs of which it is remembered what failed last.
_FAILED_MAX: Final = 4_096
_STARTING: Final = frozenset({"", "Pending"})
_ERROR_CHARACTERS_MAX: Final = 256


class Carried(NamedTuple):
    """One step of a Job, carried out as far as it went. Instants are in ms since the epoch."""

    step: Step
    began_ms: int
    #: When its group was made; 0: it was not.
    grouped_ms: int
    #: UID of its group; "": it has none.
    group_uid: str
    #: What stood in the way; "" when nothing did.
    error: str = ""


class JobSpans:
    """Exports the start of Jobs."""

    def __init__(self, tracer: Tracer, now_ms: Callable[[], int]) -> None:
        self._tracer = tracer
        self._now_ms = now_ms
        #: UIDs of Jobs -> what failed last.
        self._failed: OrderedDict[str, str] = OrderedDict()

    def carried_out(self, carried: Carried) -> None:
        """A step ended just now."""
        step = carried.step
        if not self._tracer.enabled or step.job.status.state.phase not in _STARTING:
            return
        if carried.error and not self._news(step.job.metadata.uid, carried.error):
            return
        if step.make_group is not None:
            self._report("make group", carried, carried.began_ms, carried.grouped_ms)
        if step.make_pods and (step.make_group is None or carried.grouped_ms):
            self._report("make pods", carried, carried.grouped_ms or carried.began_ms, 0)

    def _news(self, uid: str, error: str) -> bool:
        known = self._failed.pop(uid, "")
        self._failed[uid] = error
        if len(self._failed) > _FAILED_MAX:
            self._failed.popitem(last=False)
        return known != error

    def _report(self, name: str, carried: Carried, start_ms: int, end_ms: int) -> None:
        """A part of the step; without an end it is the last one, and what failed is in it."""
        step, job = carried.step, carried.step.job
        # As `core.jobs.groups` and the reader of the group have it: only the first one continues
        # the Job's trace.
        root = carried.group_uid if job.status.version else job.metadata.uid
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
            key=str(carried.began_ms),
            parent=gang_span(trace_id),
            attributes=values,
            error="" if end_ms else carried.error[:_ERROR_CHARACTERS_MAX],
        )
