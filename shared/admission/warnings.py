"""Warnings about pods and pod templates: PriorityClasses that do not exist, gang declarations that
Tutti does not read, and pods of gangs that name kube-scheduler. Pods with an unread declaration are
not bound.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from shared.admission.gang_declarations import is_misdirected, read_declaration
from shared.admission.parts import (
    as_list,
    as_object,
    decoded_member,
    objects_at,
    text_at,
)
from shared.admission.rules import Case
from shared.admission.suggestions import did_you_mean
from shared.dialects.protocol import DEFAULT_SCHEDULER, JsonObject
from shared.dialects.scheduler_choice import name_for_pods

#: Warnings about unread declarations of one object; the templates of a Job mostly have the same.
_UNREAD_MARKS_MAX: Final = 3


def missing_priority_classes(case: Case, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that no PriorityClass has, when an object is created."""
    known = case.known.priority_classes
    if known is None or case.operation != "CREATE":
        return ()
    return tuple(name for name in dict.fromkeys(names) if name and name not in known)


def missing_class_warning(case: Case, name: str) -> str:
    """The warning about a name that no PriorityClass has."""
    near = did_you_mean(name, case.known.priority_classes or ())
    return f'tutti: there is no PriorityClass "{name[:63]}"{near}: create it first'


def misdirected_pods(pods: Iterable[JsonObject], case: Case) -> tuple[str, ...]:
    """A warning about the pods of an object that a user creates, if any of them declares a gang and
    names kube-scheduler.
    """
    if case.operation != "CREATE" or has_controller(case.candidate):
        return ()
    names = (read_declaration(pod)[0] for pod in pods if is_misdirected(pod))
    named = next((membership.group_name for membership in names if membership is not None), None)
    if named is None:
        return ()
    return (
        f'tutti: schedulerName "{DEFAULT_SCHEDULER}" ignores the group {named[:63]}, which the '
        f"pods name, and binds them one by one: set {name_for_pods(case.known.scheduler_names)}",
    )


def has_controller(candidate: JsonObject) -> bool:
    """Whether another object controls it, so that no user reads warnings about it."""
    owners = as_list(decoded_member(as_object(candidate.get("metadata")) or {}, "ownerReferences"))
    return any((as_object(owner) or {}).get("controller") is True for owner in owners)


def unread_marks_of_pod(case: Case) -> tuple[str, ...]:
    """Warnings about a pod, given whole or as its head."""
    if text_at(case.candidate, "spec", "schedulerName") not in case.known.scheduler_names:
        return ()
    return _unread_marks([case.candidate])


def unread_marks_of_job(case: Case) -> tuple[str, ...]:
    """Warnings about the pod templates of a Volcano Job that is created."""
    return _unread_marks(task_templates(case.candidate)) if case.operation == "CREATE" else ()


def task_templates(job: JsonObject) -> list[JsonObject]:
    """The pod templates of a Volcano Job's tasks; {} for a task without one."""
    spec = as_object(job.get("spec")) or {}
    return [as_object(task.get("template")) or {} for _, task in objects_at(spec, "tasks")]


def _unread_marks(pods: Sequence[JsonObject]) -> tuple[str, ...]:
    sentences = {sentence for pod in pods for sentence in read_declaration(pod)[1]}
    return tuple(
        f"tutti: not bound: {sentence}" for sentence in sorted(sentences)[:_UNREAD_MARKS_MAX]
    )
