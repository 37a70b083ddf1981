"""The controller of JobFlows, and of the lists of created Jobs in JobTemplates.

A client that creates one of them and updates it with the answer gets a conflict if a status was
written in between, and Volcano's users do so. The first status therefore waits a moment.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from services.controller.core.events import ControllerEvent, EventType
from services.controller.core.jobflows import FlowPlan, job_name, job_of, plan
from services.controller.reconciling.controller import Runtime, Wake
from services.controller.reconciling.informer import Informer, latest
from services.controller.reconciling.writes import Outcome
from shared.kinds.job import Job
from shared.kinds.jobflow import (
    CREATED_BY_TEMPLATE,
    Flow,
    JobFlow,
    JobFlowStatus,
    JobTemplate,
    JobTemplateStatus,
)
from shared.kube.errors import KubeError
from shared.kube.resources import JOBFLOWS, JOBS_VOLCANO, JOBTEMPLATES

#: Prefix of a template's key; no namespace has a colon in its name.
_TEMPLATE: Final = "template:"
#: Longer than a program takes from a creation to its first update; users can wait so long for a
#: status.
_FIRST_STATUS_S: Final = 2.0


class JobFlowReconciler:
    """A flow's key is its "namespace/name"; a template's has a prefix."""

    name = "jobflow"

    def __init__(self, runtime: Runtime) -> None:
        self._writes = runtime.writes
        self._events = runtime.events
        self._flows = runtime.informers.of(JOBFLOWS, JobFlow)
        self._templates = runtime.informers.of(JOBTEMPLATES, JobTemplate)
        self._jobs = runtime.informers.of(JOBS_VOLCANO, Job)
        self._wake: Wake = lambda _key: None
        #: The loop's time at which an object without a status was seen first, by UID.
        self._seen_s: dict[str, float] = {}

    def watches(self, wake: Wake) -> Iterable[Informer[Any]]:
        self._wake = wake
        self._flows.on_change(self._flow_changed)
        self._templates.on_change(self._template_changed)
        self._jobs.on_change(self._job_changed)
        return self._flows, self._templates, self._jobs

    def keys(self) -> Iterable[str]:
        yield from self._flows.keys()
        yield from (_TEMPLATE + template.metadata.key for template in self._templates.all())

    async def reconcile(self, key: str) -> float | None:
        """Create the Jobs that may start, and write the status."""
        if key.startswith(_TEMPLATE):
            return await self._list_jobs(key.removeprefix(_TEMPLATE))
        flow = self._flows.get(key)
        if flow is None or flow.metadata.deletion_timestamp is not None:
            return None
        jobs = {job.metadata.name: job for job in self._jobs_of(flow)}
        decided = plan(flow, jobs)
        refused = await self._start(flow, decided)
        wait_s = 0.0
        # A step that has finished is remembered by the status only.
        if flow.status == JobFlowStatus() and not decided.has_finished_jobs:
            wait_s = self._first_status_wait_s(flow.metadata.uid)
        if not wait_s:
            await self._write_status(flow, decided)
        for job in decided.delete:
            await self._writes.delete(JOBS_VOLCANO, job.metadata)
        if refused is not None:
            raise refused
        return wait_s or None

    async def _start(self, flow: JobFlow, decided: FlowPlan) -> KubeError | None:
        """Create Jobs. Returns the last refusal; the other Jobs are created nevertheless."""
        refused: KubeError | None = None
        for step in decided.start:
            try:
                await self._create(flow, step)
            except KubeError as error:
                refused = error
                self._report(flow, "Warning", "FailedCreate", f"job of step {step.name}: {error}")
        return refused

    async def _create(self, flow: JobFlow, step: Flow) -> None:
        template = self._templates.get(f"{flow.metadata.namespace}/{step.name}")
        if template is None:
            self._report(flow, "Warning", "FailedCreate", f"no JobTemplate is named {step.name}")
            return
        job = job_of(flow, step, template)
        made = await self._writes.create(JOBS_VOLCANO, job, namespace=flow.metadata.namespace)
        name = job.metadata.name
        if made.done:
            self._jobs.learn(made.body)
            self._report(flow, "Normal", "Created", f"create a job named {name}!")
        elif made.outcome is Outcome.EXISTS:
            known = self._jobs.get(f"{flow.metadata.namespace}/{name}")
            if known is not None and known.metadata.deletion_timestamp is None:
                self._report(flow, "Warning", "FailedCreate", f"another job is named {name}")

    def _first_status_wait_s(self, uid: str) -> float:
        """Seconds for which the first status of an object has to wait."""
        now_s = asyncio.get_running_loop().time()
        return max(0.0, self._seen_s.get(uid, now_s) + _FIRST_STATUS_S - now_s)

    def _jobs_of(self, flow: JobFlow) -> list[Job]:
        return self._jobs.owned_by(flow.metadata.uid, namespace=flow.metadata.namespace)

    async def _write_status(self, flow: JobFlow, decided: FlowPlan) -> None:
        if decided.status == flow.status:
            return
        changed = msgspec.structs.replace(flow, status=decided.status)
        self._flows.learn((await self._writes.replace_status(JOBFLOWS, changed)).body)

    async def _list_jobs(self, key: str) -> float | None:
        """Write the list of a template's Jobs, or return the seconds for which it has to wait."""
        template = self._templates.get(key)
        if template is None:
            return None
        mark = f"{template.metadata.namespace}.{template.metadata.name}"
        made = sorted(
            job.metadata.name
            for job in self._jobs.all()
            if job.metadata.namespace == template.metadata.namespace
            and job.metadata.labels.get(CREATED_BY_TEMPLATE) == mark
        )
        status = JobTemplateStatus(job_depends_on_list=tuple(made))
        if status == template.status:
            return None
        if template.status == JobTemplateStatus():
            wait_s = self._first_status_wait_s(template.metadata.uid)
            if wait_s:
                return wait_s
        changed = msgspec.structs.replace(template, status=status)
        self._templates.learn((await self._writes.replace_status(JOBTEMPLATES, changed)).body)
        return None

    def _report(self, flow: JobFlow, type_: EventType, reason: str, message: str) -> None:
        self._events.record(JOBFLOWS, flow.metadata, ControllerEvent(type_, reason, message))

    def _note(self, uid: str, *, has_status: bool) -> None:
        """Note when an object without a status was seen first; forget one that is gone or has a
        status.
        """
        if has_status:
            self._seen_s.pop(uid, None)
        else:
            self._seen_s.setdefault(uid, asyncio.get_running_loop().time())

    def _flow_changed(self, old: JobFlow | None, new: JobFlow | None) -> None:
        has_status = new is None or new.status != JobFlowStatus()
        self._note(latest(old, new).metadata.uid, has_status=has_status)
        if new is not None:
            self._wake(new.metadata.key)

    def _template_changed(self, old: JobTemplate | None, new: JobTemplate | None) -> None:
        has_status = new is None or new.status != JobTemplateStatus()
        self._note(latest(old, new).metadata.uid, has_status=has_status)
        if new is None:
            return
        self._wake(_TEMPLATE + new.metadata.key)
        # Flows may wait for this template.
        name, namespace = new.metadata.name, new.metadata.namespace
        for flow in self._flows.all():
            wanted = any(step.name == name for step in flow.spec.flows)
            if wanted and flow.metadata.namespace == namespace:
                job = f"{namespace}/{job_name(flow.metadata.name, name)}"
                if self._jobs.get(job) is None:
                    self._wake(flow.metadata.key)

    def _job_changed(self, old: Job | None, new: Job | None) -> None:
        job = latest(old, new)
        owner = job.metadata.controller
        namespace = job.metadata.namespace
        if owner is not None and owner.kind == JOBFLOWS.kind:
            self._wake(f"{namespace}/{owner.name}")
        elif new is None:
            self._wake_flows_with_job(namespace, job.metadata.name)
        # As in Volcano, a template's list is updated only when a Job is created.
        mark = job.metadata.labels.get(CREATED_BY_TEMPLATE, "")
        if old is None and mark.startswith(f"{namespace}."):
            self._wake(f"{_TEMPLATE}{namespace}/{mark.removeprefix(f'{namespace}.')}")

    def _wake_flows_with_job(self, namespace: str, name: str) -> None:
        """Wake flows that may wait for another owner's Job of this name to be deleted."""
        for flow in self._flows.all():
            names = (job_name(flow.metadata.name, step.name) for step in flow.spec.flows)
            if flow.metadata.namespace == namespace and name in names:
                self._wake(flow.metadata.key)
