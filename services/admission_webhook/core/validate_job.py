"""What a Volcano Job must be: its tasks, their minima, and a queue that takes it.

All rules about minAvailable are here; the rest of Volcano's Job validation (policies, plugins,
volumes, pod templates, what an update may change) is not.

Messages hold the words that Volcano's users look for in theirs.
"""

import re
from collections import Counter
from typing import Final, NamedTuple

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import as_int
from services.admission_webhook.core.queue_tree import ROOT
from shared.dialects.checking import Findings, shown
from shared.dialects.protocol import FieldError, JsonObject

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class _Task(NamedTuple):
    path: str
    name: str
    replicas: int
    minimum: int | None


def validate(case: Case) -> list[FieldError]:
    """Every violation of a Job that is created or updated. Its queue is looked at only when it is
    created: afterwards the job is in it, whatever became of it.
    """
    findings = Findings()
    spec = findings.section(case.candidate, "spec")
    findings.integer(spec, "spec.minAvailable", minimum=0)
    findings.text(spec, "spec.schedulerName")
    tasks = _tasks(findings, spec)
    if not spec.get("tasks"):
        findings.add("spec.tasks", "Required value: No task specified in job spec")
    elif isinstance(spec["tasks"], list):
        _check_minima(findings, spec, tasks, case)
    if case.operation == "CREATE":
        _check_queue(findings, spec, case)
    return findings.errors


def _tasks(findings: Findings, spec: JsonObject) -> list[_Task]:
    """The tasks that can be read; what is wrong with single fields is noted."""
    tasks: list[_Task] = []
    for path, task in findings.items(spec, "spec.tasks"):
        name = findings.text(task, f"{path}.name") or ""
        if name and not (len(name) <= 63 and _LABEL.fullmatch(name)):
            findings.add(
                f"{path}.name",
                f"Invalid value: {shown(name)}: must be a lowercase RFC 1123 label",
            )
        findings.integer(task, f"{path}.replicas", minimum=0)
        findings.integer(task, f"{path}.minAvailable", minimum=0)
        replicas = max(0, as_int(task.get("replicas")) or 0)
        tasks.append(_Task(path, name, replicas, as_int(task.get("minAvailable"))))
    return tasks


def _check_minima(findings: Findings, spec: JsonObject, tasks: list[_Task], case: Case) -> None:
    for task in tasks:
        if task.minimum is not None and task.minimum > task.replicas:
            findings.add(
                f"{task.path}.minAvailable",
                f"Invalid value: {task.minimum}: 'minAvailable' is greater than 'replicas' "
                f"in task: {task.name}, job: {case.name}",
            )
    for name, count in Counter(task.name for task in tasks if task.name).items():
        if count > 1:
            again = [task.path for task in tasks if task.name == name][1:]
            for path in again:
                findings.add(f"{path}.name", f"Duplicate value: duplicated task name {name}")
    total = sum(task.replicas for task in tasks)
    least = as_int(spec.get("minAvailable"))
    if least is not None and least > total:
        findings.add(
            "spec.minAvailable",
            f"Invalid value: {least}: "
            f"job 'minAvailable' should not be greater than total replicas in tasks ({total})",
        )


def _check_queue(findings: Findings, spec: JsonObject, case: Case) -> None:
    queue = findings.text(spec, "spec.queue")
    if not queue:
        return
    if len(queue) > 253 or not _SUBDOMAIN.fullmatch(queue):
        findings.add(
            "spec.queue",
            f"Invalid value: {shown(queue)}: must be a lowercase RFC 1123 subdomain",
        )
        return
    objection = _queue_objection(queue, case)
    if objection:
        findings.add("spec.queue", f"Invalid value: {shown(queue)}: {objection}")


def _queue_objection(queue: str, case: Case) -> str:
    if queue == ROOT:
        return "can not submit job to root queue"
    queues = case.known.queues
    if queues is None:
        return ""
    if not queues.exists(queue):
        return f'unable to find job queue: queue.scheduling.volcano.sh "{queue}" not found'
    children = len(queues.children(queue))
    if children:
        return f"can only submit job to leaf queue, queue `{queue}` has {children} child queues"
    return queues.objection(queue, "job")
