"""What a Volcano Job must be: its tasks, their minima and pods, policies, plugins, volumes, and a
queue that takes it; and what an update may change.

Messages hold the words that Volcano's users look for in theirs. Where Volcano stops at the first
violation, all are returned here.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from services.admission_webhook.core import names
from services.admission_webhook.core.case import Case
from services.admission_webhook.core.dependencies import ring
from services.admission_webhook.core.job_plugins import plugin_errors
from services.admission_webhook.core.job_policies import is_duration, policy_errors
from services.admission_webhook.core.job_updates import update_errors
from services.admission_webhook.core.parts import as_int, as_list, as_object, text_at
from services.admission_webhook.core.pod_template import template_errors
from services.admission_webhook.core.queue_tree import ROOT
from services.admission_webhook.core.suggestions import Hints, did_you_mean
from shared.dialects.field_checks import Findings, shown
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.quantities import QuantityError, cpu_milli

_NOT_ACYCLIC: Final = (
    "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"
)


class _Task(NamedTuple):
    path: str
    name: str
    replicas: int
    minimum: int | None
    given: JsonObject


def validate(case: Case) -> list[FieldError]:
    """Every violation of a Job that is created or updated.

    Its queue is looked at only when it is created: afterwards the job is in it, whatever became of
    it. So are its pods, policies, plugins and volumes: no update may change them.
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
    findings.errors += _topology_errors(spec, "spec")
    for task in tasks:
        findings.errors += _partition_errors(task, case)
    if case.operation == "UPDATE":
        findings.errors += update_errors(spec, Findings().section(case.old, "spec"))
        return findings.errors
    hints = Hints()
    for task in tasks:
        findings.errors += _task_errors(task, case, hints)
    findings.errors += policy_errors(spec, "spec", hints)
    estimate = findings.text(spec, "spec.runningEstimate")
    if estimate and not is_duration(estimate):
        told = f'Invalid value: {shown(estimate)}: time: invalid duration "{estimate[:100]}"'
        findings.add("spec.runningEstimate", told)
    findings.errors += plugin_errors(spec, hints)
    findings.errors += _volume_errors(spec)
    findings.errors += _dependency_errors(tasks, hints)
    if case.name and (objection := names.qualified(case.name)):
        told = f"create job with name {case.name[:100]} validate failed [{objection}]"
        findings.add("metadata.name", told)
    _check_queue(findings, spec, case)
    return findings.errors


def _tasks(findings: Findings, spec: JsonObject) -> list[_Task]:
    """The tasks that can be read; what is wrong with single fields is noted."""
    tasks: list[_Task] = []
    for path, task in findings.items(spec, "spec.tasks"):
        name = findings.text(task, f"{path}.name") or ""
        if name and (objection := names.label(name)):
            findings.add(f"{path}.name", f"Invalid value: {shown(name)}: {objection}")
        findings.integer(task, f"{path}.replicas", minimum=0)
        findings.integer(task, f"{path}.minAvailable", minimum=0)
        replicas = max(0, as_int(task.get("replicas")) or 0)
        tasks.append(_Task(path, name, replicas, as_int(task.get("minAvailable")), task))
    return tasks


def _check_minima(findings: Findings, spec: JsonObject, tasks: list[_Task], case: Case) -> None:
    creating = case.operation == "CREATE"
    for task in tasks:
        if task.minimum is not None and task.minimum > task.replicas:
            order = (
                "'minAvailable' is greater than 'replicas'"
                if creating
                else "'minAvailable' must be <= 'replicas'"
            )
            findings.add(
                f"{task.path}.minAvailable",
                f"Invalid value: {task.minimum}: {order} in task: {task.name}, job: {case.name}",
            )
    taken: set[str] = set()
    for task in tasks:
        if task.name in taken:
            told = f"Duplicate value: duplicated task name {task.name}"
            findings.add(f"{task.path}.name", told)
        elif task.name:
            taken.add(task.name)
    total = sum(task.replicas for task in tasks)
    least = as_int(spec.get("minAvailable"))
    if least is not None and least > total:
        modal = "should" if creating else "must"
        findings.add(
            "spec.minAvailable",
            f"Invalid value: {least}: job 'minAvailable' {modal} not be greater than "
            f"total replicas in tasks ({total})",
        )


def _topology_errors(parent: JsonObject, path: str) -> Iterator[FieldError]:
    topology = as_object(parent.get("networkTopology")) or {}
    if topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
        yield FieldError(
            path=f"{path}.networkTopology",
            message="must not specify 'highestTierAllowed' and 'highestTierName' "
            "in networkTopology simultaneously",
        )


def _partition_errors(task: _Task, case: Case) -> Iterator[FieldError]:
    policy = as_object(task.given.get("partitionPolicy"))
    if policy is None:
        return
    path = f"{task.path}.partitionPolicy"
    total, size = as_int(policy.get("totalPartitions")), as_int(policy.get("partitionSize"))
    least = as_int(policy.get("minPartitions")) or 0
    whose = f"in task: {task.name}, job: {case.name}"
    yield from _topology_errors(policy, path)
    if total is None or size is None or total <= 0 or size <= 0:
        told = f"'TotalPartitions' and 'PartitionSize' must be greater than 0 {whose}"
        yield FieldError(path=path, message=told)
        return
    if task.replicas != total * size:
        told = f"'Replicas' are not equal to TotalPartitions*PartitionSize {whose}"
        yield FieldError(path=path, message=told)
    if least > 0 and task.minimum is not None and task.minimum != least * size:
        told = f"'MinAvailable' is not equal to MinPartitions*PartitionSize {whose}"
        yield FieldError(path=path, message=told)


def _task_errors(task: _Task, case: Case, hints: Hints) -> Iterator[FieldError]:
    """What is looked at when a Job is created."""
    index = int(task.path.rpartition("[")[2][:-1])
    yield from policy_errors(task.given, task.path, hints)
    if case.name and task.name:
        pod = f"{case.name}-{task.name}-{index}"
        if objection := names.qualified(pod):
            told = f"create pod with name {pod[:150]} validate failed [{objection}]"
            yield FieldError(path=f"{task.path}.name", message=told)
    template = as_object(task.given.get("template")) or {}
    for found in template_errors(template):
        # The place in Volcano's words, which its users look for, and in ours, which is right.
        words = f"spec.task[{index}].{found.path}: {found.message}"
        path = f"{task.path}.{found.path}"
        yield FieldError(path=path, message=found.message, words=words)
    if text_at(task.given, "topologyPolicy") not in {"", "none"}:
        yield from _whole_cpu_errors(as_object(template.get("spec")) or {}, task, index)


def _whole_cpu_errors(spec: JsonObject, task: _Task, index: int) -> Iterator[FieldError]:
    """CPUs on NUMA nodes are given whole: each container asks for a whole number of them."""
    containers = [*as_list(spec.get("containers")), *as_list(spec.get("initContainers"))]
    for number, item in enumerate(containers):
        resources = as_object((as_object(item) or {}).get("resources")) or {}
        asked = as_object(resources.get("requests") or resources.get("limits")) or {}
        try:
            whole = "cpu" in asked and cpu_milli(str(asked["cpu"])) % 1000 == 0
        except QuantityError:
            whole = False
        if not whole:
            told = f"the cpu request isn't an integer in spec.task[{index}] container[{number}]"
            yield FieldError(path=f"{task.path}.topologyPolicy", message=told)


def _volume_errors(spec: JsonObject) -> Iterator[FieldError]:
    taken: set[str] = set()
    for index, item in enumerate(as_list(spec.get("volumes"))):
        volume = as_object(item) or {}
        path = f"spec.volumes[{index}]"
        mount, claim = text_at(volume, "mountPath"), text_at(volume, "volumeClaimName")
        if mount in taken:
            told = f"Duplicate value: duplicated mountPath: {mount[:200]}"
            yield FieldError(path=f"{path}.mountPath", message=told)
        taken.add(mount)
        makes = volume.get("volumeClaim") is not None
        if makes and claim:
            told = (
                "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
                "If you want to create a new PVC, you do not need to specify VolumeClaimName"
            )
            yield FieldError(path=path, message=told)
        elif not makes and not claim:
            told = "Required value: either VolumeClaim or VolumeClaimName must be specified"
            yield FieldError(path=path, message=told)
        elif claim and (objection := names.subdomain(claim)):
            told = f"invalid VolumeClaimName {claim[:100]} : [{objection}]"
            yield FieldError(path=f"{path}.volumeClaimName", message=told)


def _dependency_errors(tasks: list[_Task], hints: Hints) -> Iterator[FieldError]:
    needs: dict[str, list[str]] = {}
    for task in tasks:
        needs[task.name] = _needed(task)
    for task in tasks:
        path = f"{task.path}.dependsOn.name"
        wanted = _needed(task)
        for name in sorted({one for one in wanted if one not in needs}):
            near = hints.near(name, needs)
            told = f"Not found: {shown(name)}: no such task{near}: {_NOT_ACYCLIC}"
            yield FieldError(path=path, message=told)
        if len(set(wanted)) < len(wanted):
            told = f"Duplicate value: a task is named twice: {_NOT_ACYCLIC}"
            yield FieldError(path=path, message=told)
    circle = ring(needs)
    if circle:
        told = f"Invalid value: {' -> '.join(circle[:20])}: {_NOT_ACYCLIC}"
        yield FieldError(path="spec.tasks", message=told)


def _needed(task: _Task) -> list[str]:
    depends = as_object(task.given.get("dependsOn")) or {}
    return [one for one in as_list(depends.get("name")) if isinstance(one, str)]


def _check_queue(findings: Findings, spec: JsonObject, case: Case) -> None:
    queue = findings.text(spec, "spec.queue")
    if not queue:
        return
    objection = names.subdomain(queue) or _queue_objection(queue, case)
    if objection:
        findings.add("spec.queue", f"Invalid value: {shown(queue)}: {objection}")


def _queue_objection(queue: str, case: Case) -> str:
    if queue == ROOT:
        return "can not submit job to root queue"
    queues = case.known.queues
    if queues is None:
        return ""
    if not queues.exists(queue):
        near = did_you_mean(queue, queues.names())
        return f'unable to find job queue: queue.scheduling.volcano.sh "{queue}" not found{near}'
    children = len(queues.children(queue))
    if children:
        return f"can only submit job to leaf queue, queue `{queue}` has {children} child queues"
    return queues.objection(queue, "job")
