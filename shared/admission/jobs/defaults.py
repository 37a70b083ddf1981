"""Default values of a Volcano Job at its creation, as Volcano's webhook sets them.

A field of the wrong type stays as it is: the schema or `validation` refuses it.
"""

from collections.abc import Iterator
from typing import Final

from shared.admission.parts import (
    as_int,
    as_list,
    as_object,
    lacks_number,
    lacks_text,
    member,
)
from shared.admission.review import PatchOperation, added, removed
from shared.admission.rules import Case
from shared.admission.scheduler_names import VOLCANO
from shared.dialects.protocol import JsonObject
from shared.job_plugins.discovery import missing_plugins
from shared.kinds.queue import DEFAULT_QUEUE
from shared.kube.quantities import QuantityError, cpu_milli

_RETRIES: Final = 3


def defaults(case: Case) -> list[PatchOperation]:
    """Queue, scheduler name, retries, names and `minAvailable` of tasks, their sum as the job's
    `minAvailable`, and the plugins that its plugins need.
    """
    spec = as_object(case.candidate.get("spec"))
    if spec is None:
        return []
    return [*_of_job(spec), *_of_tasks(spec)]


def _total_minimum(tasks: object) -> int | None:
    """The sum of all tasks' `minAvailable`; None when one of them cannot be read."""
    total = 0
    for task in as_list(tasks):
        given = as_object(task)
        minimum = None if given is None else _task_minimum(given)
        if minimum is None:
            return None
        total += minimum
    return total


def _task_minimum(task: JsonObject) -> int | None:
    """A task's `minAvailable`, given or by default; None when it cannot be read."""
    given = task.get("minAvailable")
    if given is not None:
        return as_int(given)
    policy = as_object(task.get("partitionPolicy"))
    if policy is not None and not lacks_number(policy, "minPartitions"):
        least, size = as_int(policy.get("minPartitions")), as_int(policy.get("partitionSize"))
        return None if least is None or size is None else least * size
    return 0 if lacks_number(task, "replicas") else as_int(task.get("replicas"))


def _of_job(spec: JsonObject) -> Iterator[PatchOperation]:
    if lacks_text(spec, "queue"):
        yield added(DEFAULT_QUEUE, "spec", "queue")
    if lacks_text(spec, "schedulerName"):
        # `rules` pass a job without a scheduler name only if we serve Volcano's name.
        yield added(VOLCANO, "spec", "schedulerName")
    if lacks_number(spec, "maxRetry"):
        yield added(_RETRIES, "spec", "maxRetry")
    if lacks_number(spec, "minAvailable"):
        total = _total_minimum(spec.get("tasks"))
        if total:
            yield added(total, "spec", "minAvailable")
    for plugin in missing_plugins(as_object(spec.get("plugins")) or {}):
        yield added([], "spec", "plugins", plugin)


def _of_tasks(spec: JsonObject) -> Iterator[PatchOperation]:
    for index, item in enumerate(as_list(spec.get("tasks"))):
        task = as_object(item)
        if task is None:
            continue
        path = ("spec", "tasks", index)
        if lacks_text(task, "name"):
            yield added(f"default{index}", *path, "name")
        if lacks_number(task, "maxRetry"):
            yield added(_RETRIES, *path, "maxRetry")
        minimum = _task_minimum(task)
        if task.get("minAvailable") is None and minimum is not None:
            yield added(minimum, *path, "minAvailable")
        if task.get("topologyPolicy") == "":
            yield removed(*path, "topologyPolicy")  # a typed client omits it
        yield from _numbers(task, path)
        if _needs_cluster_dns(task):
            yield added("ClusterFirstWithHostNet", *path, "template", "spec", "dnsPolicy")


def _numbers(task: JsonObject, path: tuple[str | int, ...]) -> Iterator[PatchOperation]:
    """Resource amounts given as numbers become strings, as Go writes them: the schema accepts no
    fractions.
    """
    spec = as_object(member(task, "template", "spec")) or {}
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(as_list(spec.get(kind))):
            for which in ("requests", "limits"):
                amounts = as_object(member(as_object(container) or {}, "resources", which)) or {}
                for name, value in amounts.items():
                    text = _amount_text(value)
                    if text:
                        where = (*path, "template", "spec", kind, index, "resources", which, name)
                        yield added(text, *where)


def _amount_text(value: object) -> str:
    """The amount as a string; "" for a value that is no number, or no valid amount."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, float):
        return ""
    try:
        thousandths = cpu_milli(value)
    except QuantityError:
        return ""
    whole, rest = divmod(thousandths, 1000)
    return f"{thousandths}m" if rest else str(whole)


def _needs_cluster_dns(task: JsonObject) -> bool:
    spec = as_object(member(task, "template", "spec")) or {}
    return spec.get("hostNetwork") is True and lacks_text(spec, "dnsPolicy")
