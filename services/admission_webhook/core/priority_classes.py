"""Warnings about priority classes that do not exist."""

from collections.abc import Iterator

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import as_list, as_object, text_at
from services.admission_webhook.core.suggestions import did_you_mean


def of_pod_group(case: Case) -> tuple[str, ...]:
    """About a PodGroup that is created."""
    return missing(case, [text_at(case.candidate, "spec", "priorityClassName")])


def of_job(case: Case) -> tuple[str, ...]:
    """About a Volcano Job that is created, and its pods, which the API server would refuse."""
    spec = as_object(case.candidate.get("spec")) or {}
    tasks = [as_object(task) or {} for task in as_list(spec.get("tasks"))]
    of_tasks = (text_at(task, "template", "spec", "priorityClassName") for task in tasks)
    return missing(case, [text_at(spec, "priorityClassName"), *of_tasks])


def missing(case: Case, names: list[str]) -> tuple[str, ...]:
    """A warning for each of the names that no PriorityClass has."""
    return tuple(_warnings(case, names))


def _warnings(case: Case, names: list[str]) -> Iterator[str]:
    known = case.known.priority_classes
    if known is None or case.operation != "CREATE":
        return
    for name in dict.fromkeys(names):
        if name and name not in known:
            hint = did_you_mean(name, known)
            yield f'tutti: there is no PriorityClass "{name[:63]}"{hint}: create it first'
