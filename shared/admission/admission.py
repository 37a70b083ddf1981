"""The answer to one request: default values, or every violation. All rules are called from here."""

from typing import Final, NamedTuple, cast, get_args

import msgspec

from shared.admission.durations import long_durations
from shared.admission.kinds import BY_RESOURCE
from shared.admission.parts import text_at
from shared.admission.review import AdmissionRequest, Operation, Verdict
from shared.admission.rules import Case, KindRules, ReferenceObjects
from shared.admission.warnings import (
    missing_class_warning,
    missing_priority_classes,
)
from shared.dialects.protocol import JsonObject
from shared.kinds.queue import DEFAULT_QUEUE, ROOT_QUEUE

_OPERATIONS: Final = frozenset(get_args(Operation))
_ALLOWED: Final = Verdict()
QUEUES_UNKNOWN: Final = (
    "tutti: the queues are not known at the moment, so spec.queue was not checked"
)


class Subject(NamedTuple):
    """A request that Tutti is responsible for, with the rules of its kind."""

    rules: KindRules
    case: Case


def subject_of(request: AdmissionRequest, known: ReferenceObjects) -> Subject | None:
    """The request with its rules; None when Tutti is not responsible for the object."""
    rules = BY_RESOURCE.get((request.resource.group, request.resource.resource))
    if rules is None or request.sub_resource or request.operation not in _OPERATIONS:
        return None
    candidate = rules.read(request.object)
    case = Case(
        operation=cast("Operation", request.operation),
        namespace=request.namespace,
        name=request.name or _name_of(candidate),
        candidate=candidate,
        old={} if request.operation == "CREATE" else rules.read(request.old_object),
        known=known,
    )
    return Subject(rules, case) if rules.is_ours(case) or rules.is_relevant(case) else None


def apply_defaults(subject: Subject) -> Verdict:
    """The patch with the default values of an object that is created. Never refuses, not even an
    object that is invalid.
    """
    rules, case = subject
    if rules.defaults is None or case.operation != "CREATE" or not rules.is_ours(case):
        return _ALLOWED
    return Verdict(patch=tuple(rules.defaults(case)))


def validate(subject: Subject) -> Verdict:
    """Every violation of the object, or the warnings about a valid one.

    An update is refused only for violations that the stored object does not have already: a user
    must be able to correct or label an object that was stored while the webhook was absent.
    """
    rules, case = subject
    if case.operation not in rules.operations:
        return _ALLOWED
    ours = rules.is_ours(case)
    errors = rules.violations(case) if ours else []
    if errors and case.operation == "UPDATE":
        stored = msgspec.structs.replace(case, candidate=case.old)
        before = set(rules.violations(stored) if rules.is_ours(stored) else ())
        errors = [error for error in errors if error not in before]
    queues, queue = case.known.queues, rules.queue(case.candidate)
    lacking = queue and queues is not None and not queues.exists(queue)
    if errors:
        # Of all kinds, only deletions of queues are validated.
        is_parent = case.operation == "DELETE" and queues is not None and queues.children(case.name)
        return Verdict(
            errors=tuple(errors),
            missing_queue=queue if lacking else "",
            parent_queue=case.name if is_parent else "",
        )
    named = queue not in {"", DEFAULT_QUEUE, ROOT_QUEUE}
    unchecked = named and queues is None and case.operation == "CREATE"
    missing = missing_priority_classes(case, rules.priority_classes(case)) if ours else ()
    warnings = (
        *((QUEUES_UNKNOWN,) if unchecked else ()),
        *rules.warnings(case),
        *(missing_class_warning(case, name) for name in missing),
        *long_durations(case),
    )
    return Verdict(
        warnings=warnings,
        missing_queue=queue if lacking and warnings else "",
        missing_classes=missing,
    )


def _name_of(candidate: JsonObject) -> str:
    """The name that the author gave; for generateName, a name as the API server would make it."""
    stem = text_at(candidate, "metadata", "generateName")
    return text_at(candidate, "metadata", "name") or (f"{stem}xxxxx" if stem else "")
