"""Violations of a Volcano Job: in its tasks, their pods, policies, plugins, volumes and queue.

Messages use the words of Volcano's messages, which its users search for. Volcano stops at the first
violation; here all are returned.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from shared.admission import names
from shared.admission.job_flows import find_ring
from shared.admission.jobs.pod_template import template_errors
from shared.admission.jobs.policies import (
    invalid_duration,
    is_duration,
    policy_errors,
)
from shared.admission.parts import (
    as_int,
    as_list,
    as_object,
    forbidden,
    invalid,
    is_list,
    is_object,
    not_found,
    objects_at,
    required,
    text_at,
    violation,
)
from shared.admission.rules import Case
from shared.admission.run_limits import above_maximum, malformed_limit, refused_limit
from shared.admission.suggestions import Hints, did_you_mean
from shared.dialects.field_checks import Findings, shown
from shared.dialects.protocol import FieldError, JsonObject
from shared.job_plugins.discovery import registered_plugins
from shared.job_plugins.mpi import master_of
from shared.kinds.job_shape import PODS_MAX
from shared.kinds.queue import DEFAULT_QUEUE, ROOT_QUEUE
from shared.kube.quantities import QuantityError, cpu_milli

_NOT_ACYCLIC: Final = (
    "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"
)
_FREE: Final = ("minAvailable", "priorityClassName", "tasks", "volumes", "plugins")
_FREE_IN_TASKS: Final = ("replicas", "minAvailable")
FROZEN: Final = (
    "job updates may not change fields other than `minAvailable`, "
    "`tasks[*].replicas under spec` and `PriorityClassName`"
)
_MPI: Final = "mpi"


class _Task(NamedTuple):
    path: str
    name: str
    replicas: int
    minimum: int | None
    given: JsonObject


def violations(case: Case) -> list[FieldError]:
    """Every violation of a Job that is created or updated.

    The queue is checked at the creation only: afterwards the job is in it in any state of the
    queue. Pods, policies, plugins and volumes, too, since no update may change them.
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
    findings.errors += malformed_limit(case.candidate)
    findings.errors += refused_limit(case, text_at(spec, "queue"))
    if case.operation == "UPDATE":
        findings.errors += update_errors(spec, Findings().section(case.old, "spec"))
        return findings.errors
    hints = Hints()
    for task in tasks:
        findings.errors += _task_errors(task, case, hints)
    findings.errors += policy_errors(spec, "spec", hints)
    estimate = findings.text(spec, "spec.runningEstimate")
    if estimate and not is_duration(estimate):
        findings.errors.append(invalid_duration("spec.runningEstimate", estimate))
    findings.errors += plugin_errors(spec, hints)
    findings.errors += _volume_errors(spec)
    findings.errors += _dependency_errors(tasks, hints)
    if case.name and (objection := names.qualified(case.name)):
        message = f"create job with name {case.name[:100]} validate failed [{objection}]"
        findings.add("metadata.name", message)
    _check_queue(findings, spec, case)
    return findings.errors


def _tasks(findings: Findings, spec: JsonObject) -> list[_Task]:
    """The tasks that can be read; violations of single fields are added to `findings`."""
    tasks: list[_Task] = []
    for path, task in findings.items(spec, "spec.tasks"):
        name = findings.text(task, f"{path}.name") or ""
        if name and (objection := names.label(name)):
            findings.errors.append(invalid(f"{path}.name", name, objection))
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
            findings.add(f"{task.path}.name", f"Duplicate value: duplicated task name {task.name}")
        elif task.name:
            taken.add(task.name)
    total = sum(task.replicas for task in tasks)
    if total > PODS_MAX:
        findings.add(
            "spec.tasks",
            f"Invalid value: {total}: replicas must not add up to more than {PODS_MAX} pods",
        )
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
        rule = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology"
        yield violation(f"{path}.networkTopology", f"{rule} simultaneously")


def _partition_errors(task: _Task, case: Case) -> Iterator[FieldError]:
    policy = as_object(task.given.get("partitionPolicy"))
    if policy is None:
        return
    path = f"{task.path}.partitionPolicy"
    total, size = as_int(policy.get("totalPartitions")), as_int(policy.get("partitionSize"))
    least = as_int(policy.get("minPartitions")) or 0
    where = f"in task: {task.name}, job: {case.name}"
    yield from _topology_errors(policy, path)
    if total is None or size is None or total <= 0 or size <= 0:
        message = f"'TotalPartitions' and 'PartitionSize' must be greater than 0 {where}"
        yield violation(path, message)
        return
    if task.replicas != total * size:
        yield violation(path, f"'Replicas' are not equal to TotalPartitions*PartitionSize {where}")
    if least > 0 and task.minimum is not None and task.minimum != least * size:
        yield violation(path, f"'MinAvailable' is not equal to MinPartitions*PartitionSize {where}")


def _task_errors(task: _Task, case: Case, hints: Hints) -> Iterator[FieldError]:
    """Violations that are checked at the creation only."""
    index = int(task.path.rpartition("[")[2][:-1])
    yield from policy_errors(task.given, task.path, hints)
    if case.name and task.name:
        pod = f"{case.name}-{task.name}-{index}"
        if objection := names.qualified(pod):
            message = f"create pod with name {pod[:150]} validate failed [{objection}]"
            yield violation(f"{task.path}.name", message)
    template = as_object(task.given.get("template")) or {}
    for error in template_errors(template):
        # The words have Volcano's path, which its users search for; `path` is the correct one.
        words = f"spec.task[{index}].{error.path}: {error.message}"
        path = f"{task.path}.{error.path}"
        yield FieldError(path=path, message=error.message, words=words)
    queue, where = text_at(case.candidate, "spec", "queue"), f"{task.path}.template."
    yield from malformed_limit(template, where)
    yield from above_maximum(template, queue or DEFAULT_QUEUE, case.known.queues, where)
    if text_at(task.given, "topologyPolicy") not in {"", "none"}:
        yield from _whole_cpu_errors(as_object(template.get("spec")) or {}, task, index)


def _whole_cpu_errors(spec: JsonObject, task: _Task, index: int) -> Iterator[FieldError]:
    """Containers with a NUMA policy get whole CPUs, so each has to request a whole number."""
    containers = [*as_list(spec.get("containers")), *as_list(spec.get("initContainers"))]
    for number, item in enumerate(containers):
        resources = as_object((as_object(item) or {}).get("resources")) or {}
        requests = as_object(resources.get("requests") or resources.get("limits")) or {}
        try:
            whole = "cpu" in requests and cpu_milli(str(requests["cpu"])) % 1000 == 0
        except QuantityError:
            whole = False
        if not whole:
            message = f"the cpu request isn't an integer in spec.task[{index}] container[{number}]"
            yield violation(f"{task.path}.topologyPolicy", message)


def _volume_errors(spec: JsonObject) -> Iterator[FieldError]:
    taken: set[str] = set()
    for path, volume in objects_at(spec, "spec.volumes"):
        mount, claim = text_at(volume, "mountPath"), text_at(volume, "volumeClaimName")
        if mount in taken:
            message = f"Duplicate value: duplicated mountPath: {mount[:200]}"
            yield violation(f"{path}.mountPath", message)
        taken.add(mount)
        has_template = volume.get("volumeClaim") is not None
        if has_template and claim:
            message = (
                "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
                "If you want to create a new PVC, you do not need to specify VolumeClaimName"
            )
            yield violation(path, message)
        elif not has_template and not claim:
            yield required(path, "either VolumeClaim or VolumeClaimName must be specified")
        elif claim and (objection := names.subdomain(claim)):
            message = f"invalid VolumeClaimName {claim[:100]} : [{objection}]"
            yield violation(f"{path}.volumeClaimName", message)


def _dependency_errors(tasks: list[_Task], hints: Hints) -> Iterator[FieldError]:
    needs: dict[str, list[str]] = {}
    for task in tasks:
        needs[task.name] = _needed(task)
    for task in tasks:
        path = f"{task.path}.dependsOn.name"
        wanted = _needed(task)
        for name in sorted({name for name in wanted if name not in needs}):
            near = hints.near(name, needs)
            yield not_found(path, name, f"no such task{near}: {_NOT_ACYCLIC}")
        if len(set(wanted)) < len(wanted):
            yield violation(path, f"Duplicate value: a task is named twice: {_NOT_ACYCLIC}")
    ring = find_ring(needs)
    if ring:
        yield violation("spec.tasks", f"Invalid value: {' -> '.join(ring[:20])}: {_NOT_ACYCLIC}")


def _needed(task: _Task) -> list[str]:
    depends = as_object(task.given.get("dependsOn")) or {}
    return [name for name in as_list(depends.get("name")) if isinstance(name, str)]


def _check_queue(findings: Findings, spec: JsonObject, case: Case) -> None:
    queue = findings.text(spec, "spec.queue")
    if not queue:
        return
    objection = names.subdomain(queue) or _queue_objection(queue, case)
    if objection:
        findings.errors.append(invalid("spec.queue", queue, objection))


def _queue_objection(queue: str, case: Case) -> str:
    if queue == ROOT_QUEUE:
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


def update_errors(spec: JsonObject, old: JsonObject) -> list[FieldError]:
    """Every field of the spec that changed and must not change."""
    tasks, were = as_list(spec.get("tasks")), as_list(old.get("tasks"))
    if len(tasks) != len(were):
        return [forbidden("spec.tasks", "job updates may not add or remove tasks")]
    changed = _changed(spec, old, "spec", _FREE)
    for index, (task, was) in enumerate(zip(tasks, were, strict=True)):
        changed += _changed(
            as_object(task) or {}, as_object(was) or {}, f"spec.tasks[{index}]", _FREE_IN_TASKS
        )
    if _plugins(spec) != _plugins(old):
        changed.append("spec.plugins")
    if _volumes(spec) != _volumes(old):
        changed.append("spec.volumes")
    return [forbidden(path, FROZEN) for path in changed]


def _changed(new: JsonObject, old: JsonObject, path: str, free: tuple[str, ...]) -> list[str]:
    keys = sorted((new.keys() | old.keys()) - set(free))
    return [
        f"{path}.{key}" for key in keys if _normalized(new.get(key)) != _normalized(old.get(key))
    ]


def _plugins(spec: JsonObject) -> dict[str, list[Any]]:
    """The flags of each plugin; null counts as no flags."""
    return {name: as_list(flags) for name, flags in (as_object(spec.get("plugins")) or {}).items()}


def _volumes(spec: JsonObject) -> list[Any]:
    """The volumes without the claim names that the Job controller has written."""
    volumes = [dict(as_object(volume) or {}) for volume in as_list(spec.get("volumes"))]
    for volume in volumes:
        if volume.get("volumeClaim") is not None:
            volume.pop("volumeClaimName", None)
    return [_normalized(volume) for volume in volumes]


def _normalized(value: Any) -> Any:
    """The value without members that are null, {} or [], which count as absent."""
    if is_object(value):
        members = {key: _normalized(item) for key, item in value.items()}
        return {key: item for key, item in members.items() if item is not None} or None
    if is_list(value):
        return [_normalized(item) for item in value] or None
    return value


def plugin_errors(spec: JsonObject, hints: Hints) -> Iterator[FieldError]:
    """Unknown plugins, and `mpi` without a task for its master."""
    plugins = as_object(spec.get("plugins")) or {}
    known = registered_plugins()
    for name in plugins:
        if name not in known:
            near = hints.near(name, known)
            message = (
                f"Unsupported value: {shown(name)}: unable to find job plugin: {name[:63]}{near}"
            )
            yield violation(f"spec.plugins.{name[:63]}", message)
    if _MPI in plugins:
        flags = [flag for flag in as_list(plugins[_MPI]) if isinstance(flag, str)]
        master = master_of(flags)
        if all(text_at(task, "name") != master for _, task in objects_at(spec, "tasks")):
            yield violation(f"spec.plugins.{_MPI}", "The specified mpi master task was not found")
