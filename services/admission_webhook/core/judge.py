"""The verdict on one request: defaults, or every violation. The only door to the rules."""

from typing import Final, NamedTuple, cast, get_args

import msgspec

from services.admission_webhook.core.case import Case, ReferenceObjects
from services.admission_webhook.core.kinds import BY_RESOURCE, Guarded
from services.admission_webhook.core.parts import text_at
from services.admission_webhook.core.queue_tree import DEFAULT, ROOT
from services.admission_webhook.core.review import (
    AdmissionRequest,
    Operation,
    Verdict,
)
from shared.dialects.protocol import FieldError, JsonObject

_OPERATIONS: Final = frozenset(get_args(Operation))
_ALLOWED: Final = Verdict()
QUEUES_UNKNOWN: Final = (
    "tutti: the queues are not known at the moment, so spec.queue was not checked"
)


class Subject(NamedTuple):
    """A request that is for us: what is asked about, and the rules for it."""

    guarded: Guarded
    case: Case


def subject(request: AdmissionRequest, known: ReferenceObjects) -> Subject | None:
    """What the request is about; None when it is nothing of ours."""
    guarded = BY_RESOURCE.get((request.resource.group, request.resource.resource))
    if guarded is None or request.sub_resource or request.operation not in _OPERATIONS:
        return None
    candidate = guarded.read(request.object)
    case = Case(
        operation=cast("Operation", request.operation),
        namespace=request.namespace,
        name=request.name or _name_of(candidate),
        candidate=candidate,
        old={} if request.operation == "CREATE" else guarded.read(request.old_object),
        known=known,
    )
    return Subject(guarded, case) if guarded.is_ours(case) else None


def knowing(asked: Subject, known: ReferenceObjects) -> Subject:
    """The same subject, judged by newer knowledge."""
    return Subject(asked.guarded, msgspec.structs.replace(asked.case, known=known))


def defaults(asked: Subject) -> Verdict:
    """The defaults that an object gets when it is created; nothing is refused here, also not what
    is broken.
    """
    guarded, case = asked
    if guarded.mutate is None or case.operation != "CREATE":
        return _ALLOWED
    return Verdict(patch=tuple(guarded.mutate(case)))


def violations(asked: Subject) -> Verdict:
    """Every violation of the object.

    An update is refused only for violations that the stored object does not have already: a user
    who mends or labels an object that was stored unchecked must be able to.
    """
    guarded, case = asked
    if case.operation not in guarded.operations:
        return _ALLOWED
    errors = guarded.validate(case)
    if errors and case.operation == "UPDATE":
        before = set(guarded.validate(msgspec.structs.replace(case, candidate=case.old)))
        errors = [error for error in errors if error not in before]
    return _verdict(errors, guarded, case)


def _verdict(errors: list[FieldError], guarded: Guarded, case: Case) -> Verdict:
    queues, queue = case.known.queues, guarded.queue(case.candidate)
    if not errors:
        named = queue not in {"", DEFAULT, ROOT}
        unchecked = named and queues is None and case.operation == "CREATE"
        told = (QUEUES_UNKNOWN,) if unchecked else ()
        return Verdict(warnings=(*told, *guarded.warn(case)))
    lacking = queue and queues is not None and not queues.exists(queue)
    return Verdict(errors=tuple(errors), missing_queue=queue if lacking else "")


def _name_of(candidate: JsonObject) -> str:
    """The name as its author gave it; with generateName, one as the API server may make of it."""
    stem = text_at(candidate, "metadata", "generateName")
    return text_at(candidate, "metadata", "name") or (f"{stem}xxxxx" if stem else "")
