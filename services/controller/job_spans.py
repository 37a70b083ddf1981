"""Spans of a Job's start in its gang's trace: `make group`, until the PodGroup exists, and `make
pods`.

A failure is exported once for each reason, although it is retried. Writes for a Job that has
started are not exported, since its pods are replaced one by one.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from services.controller.core.jobs.step import Step
from shared.contracts.identity import gang_trace_id, job_trace_root
from shared.telemetry.tracing import Tracer, gang_span

#: Jobs whose last failure is remembered.
_FAILED_MAX: Final = 4_096
_STARTING: Final = frozenset({"", "Pending"})
_ERROR_CHARACTERS_MAX: Final = 256


class JobSpans:
    def __init__(self, tracer: Tracer, now_ms: Callable[[], int]) -> None:
        self._tracer = tracer
        self._now_ms = now_ms
        #: UID of a Job -> its last failure.
        self._failed: OrderedDict[str, str] = OrderedDict()

    def performed(
        self,
        step: Step,
        began_ms: int,
        group_created_ms: int | None,
        group_uid: str,
        error: str = "",
    ) -> None:
        """Export a step that has just ended. Instants are in ms since the epoch.

        Args:
            step: The step.
            began_ms: When its writes began.
            group_created_ms: When it created the group; None: it did not.
            group_uid: UID of the job's group; "" without one.
            error: The obstacle that ended it; "" without one.
        """
        job = step.job
        if not self._tracer.enabled or job.status.state.phase not in _STARTING:
            return
        if error and not self._is_new(job.metadata.uid, error):
            return
        # As in `core.jobs.manifests`: only a Job's first group continues the Job's trace.
        root = group_uid
        if not job.status.version:
            root = job_trace_root(job.metadata.namespace, job.metadata.uid)
        trace_id = gang_trace_id(root, 1) if root else ""
        if not trace_id or not self._tracer.keeps(trace_id):
            return

        def export(name: str, start_ms: int, end_ms: int | None, **counts: int) -> None:
            """A part without an end is the last, to which the error belongs."""
            self._tracer.span(
                name,
                trace_id=trace_id,
                start_ms=start_ms,
                end_ms=end_ms or self._now_ms(),
                key=str(began_ms),
                parent=gang_span(trace_id),
                attributes={"job": job.metadata.key, "version": job.status.version, **counts},
                error="" if end_ms else error[:_ERROR_CHARACTERS_MAX],
            )

        if step.make_group is not None:
            export("make group", began_ms, group_created_ms)
        if step.make_pods and (step.make_group is None or group_created_ms):
            export("make pods", group_created_ms or began_ms, None, pods=len(step.make_pods))

    def _is_new(self, uid: str, error: str) -> bool:
        known = self._failed.pop(uid, "")
        self._failed[uid] = error
        if len(self._failed) > _FAILED_MAX:
            self._failed.popitem(last=False)
        return known != error
