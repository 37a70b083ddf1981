"""PodGroups of each dialect: a default queue, the dialect's rules, and a queue that is open."""

from collections.abc import Callable

from shared.admission.parts import as_object, invalid, lacks_text, text_at
from shared.admission.review import PatchOperation, added
from shared.admission.rules import (
    CHANGES_THE_SPEC,
    Case,
    Conditions,
    KindRules,
    violations_of_dialect,
)
from shared.admission.run_limits import malformed_limit, refused_limit
from shared.admission.suggestions import did_you_mean
from shared.dialects.field_checks import Findings
from shared.dialects.protocol import FieldError, JsonObject
from shared.dialects.run_limits import MARKS, Source
from shared.kinds.queue import DEFAULT_QUEUE
from shared.kube.resources import (
    PODGROUPS_INCUBATOR,
    PODGROUPS_SIGS,
    PODGROUPS_VOLCANO,
    Resource,
)


def _queue_of_namespace(case: Case) -> list[PatchOperation]:
    """The queue that the namespace names (annotation `scheduling.volcano.sh/queue-name`), for a
    group in no queue or in `default`, which the schema sets for a group that names none.

    "" is left for Volcano's schema to refuse. A group without spec declares nothing.
    """
    spec = as_object(case.candidate.get("spec"))
    if spec is None:
        return []
    queue = spec.get("queue")
    named = case.known.namespace_queues.get(case.namespace)
    if named is not None and queue in {None, DEFAULT_QUEUE}:
        return [added(named, "spec", "queue")]
    return [added(DEFAULT_QUEUE, "spec", "queue")] if queue is None else []


def _default_queue(case: Case) -> list[PatchOperation]:
    """`default` for kube-batch's groups, whose clients write "" for no queue."""
    spec = as_object(case.candidate.get("spec"))
    lacks_queue = spec is not None and lacks_text(spec, "queue")
    return [added(DEFAULT_QUEUE, "spec", "queue")] if lacks_queue else []


def _queue(candidate: JsonObject) -> str:
    return text_at(candidate, "spec", "queue")


def _violations_kube_batch(resource: Resource) -> Callable[[Case], list[FieldError]]:
    """Of the queues only Volcano's are known, so that a maximum of another one does not count."""
    of_dialect = violations_of_dialect(resource)
    return lambda case: [*of_dialect(case), *refused_limit(case, _queue(case.candidate))]


def _violations_volcano(case: Case) -> list[FieldError]:
    """Of an update, only the run limit is checked, as Volcano validates creations only."""
    of_limit = refused_limit(case, _queue(case.candidate))
    if case.operation == "UPDATE":
        return [*malformed_limit(case.candidate), *of_limit]
    findings = Findings()
    findings.errors += violations_of_dialect(PODGROUPS_VOLCANO)(case)
    queues = case.known.queues
    queue = _queue(case.candidate)
    if queues is not None and queue:
        if queues.exists(queue):
            objection = queues.objection(queue, "PodGroup")
        else:
            objection = (
                f'unable to find queue: queue.scheduling.volcano.sh "{queue[:100]}" not found'
                f"{did_you_mean(queue, queues.names())}"
            )
        if objection:
            findings.errors.append(invalid("spec.queue", queue, objection))
    return [*findings.errors, *of_limit]


def _conditions(_scheduler_names: tuple[str, ...]) -> Conditions:
    """Match conditions for the PodGroups of all three groups: creations, changes of a mark that
    states a run limit, and for kube-batch those of the spec.
    """

    def value(mark: Source, whole: str) -> str:
        marks = f"{whole}.metadata.{mark.place}"
        return f"(has({marks}) && '{mark.key}' in {marks} ? {marks}['{mark.key}'] : '')"

    of_limits = (f"{value(mark, 'oldObject')} != {value(mark, 'object')}" for mark in MARKS)
    of_kube_batch = f"request.resource.group != '{PODGROUPS_VOLCANO.group}'"
    expression = (
        f"request.operation == 'CREATE' || {' || '.join(of_limits)} || "
        f"({of_kube_batch} && ({CHANGES_THE_SPEC}))"
    )
    return (("changes-the-spec-or-the-run-limit", expression),)


def _priority_classes(case: Case) -> tuple[str, ...]:
    return (text_at(case.candidate, "spec", "priorityClassName"),)


RULES = (
    *(
        KindRules(
            resource=resource,
            defaults=_default_queue,
            violations=_violations_kube_batch(resource),
            priority_classes=_priority_classes,
            operations=("CREATE", "UPDATE"),
            conditions=_conditions,
        )
        for resource in (PODGROUPS_INCUBATOR, PODGROUPS_SIGS)
    ),
    KindRules(
        resource=PODGROUPS_VOLCANO,
        defaults=_queue_of_namespace,
        violations=_violations_volcano,
        priority_classes=_priority_classes,
        operations=("CREATE", "UPDATE"),
        conditions=_conditions,
        queue=_queue,
    ),
)
