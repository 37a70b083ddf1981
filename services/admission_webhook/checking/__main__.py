"""Validates stored objects as if each were created now, with the defaults that the webhook sets.

`python -m services.admission_webhook.checking`: a `Question` as JSON in, `Objection`s out.
"""

import sys
from collections.abc import Sequence

import jsonpatch
import msgspec

from shared.admission import admission
from shared.admission.parts import as_object
from shared.admission.queue_tree import QueueTree
from shared.admission.review import (
    AdmissionRequest,
    GroupVersionResource,
    PatchOperation,
)
from shared.admission.rules import ReferenceObjects
from shared.dialects import volcano
from shared.dialects.kubebatch_fields import read_queue
from shared.dialects.protocol import JsonObject
from shared.kube import objects as kube
from shared.kube.decoding import without_nulls
from shared.kube.resources import QUEUES_VOLCANO
from shared.model.objects import Queue


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    plural: str
    body: JsonObject


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Objects to validate; the queues among them exist for all of them."""

    scheduler_names: tuple[str, ...]
    objects: tuple[StoredObject, ...]


class Objection(msgspec.Struct, frozen=True, kw_only=True):
    """The violations of one object; `index` is its position in the question."""

    index: int
    errors: tuple[str, ...]


def objections(question: Question) -> list[Objection]:
    """The objects that would be refused if they were created now, with all violations."""
    known = ReferenceObjects(
        scheduler_names=question.scheduler_names, queues=QueueTree(_queues(question.objects))
    )
    found: list[Objection] = []
    for index, stored in enumerate(question.objects):
        errors = _errors(stored, known)
        if errors:
            found.append(Objection(index=index, errors=errors))
    return found


def _errors(stored: StoredObject, known: ReferenceObjects) -> tuple[str, ...]:
    as_created = _subject(stored, stored.body, known)
    if as_created is None:
        return ()
    body = _patched(stored.body, admission.apply_defaults(as_created).patch)
    with_defaults = _subject(stored, body, known)
    if with_defaults is None:
        return ()
    return tuple(error.text for error in admission.validate(with_defaults).errors)


def _subject(
    stored: StoredObject, body: JsonObject, known: ReferenceObjects
) -> admission.Subject | None:
    metadata = as_object(body.get("metadata")) or {}
    request = AdmissionRequest(
        uid="check",
        resource=GroupVersionResource(group=stored.group, resource=stored.plural),
        name=str(metadata.get("name", "")),
        namespace=str(metadata.get("namespace", "")),
        operation="CREATE",
        object=msgspec.Raw(msgspec.json.encode(body)),
    )
    return admission.subject_of(request, known)


def _patched(body: JsonObject, patch: Sequence[PatchOperation]) -> JsonObject:
    """A copy with the webhook's own patch applied."""
    patched: JsonObject = jsonpatch.apply_patch(body, msgspec.to_builtins(patch))
    return patched


def _queues(objects: Sequence[StoredObject]) -> list[Queue]:
    found: list[Queue] = []
    for stored in objects:
        if (stored.group, stored.plural) != (QUEUES_VOLCANO.group, QUEUES_VOLCANO.plural):
            continue
        try:
            queue = msgspec.convert(without_nulls(stored.body), kube.Queue)
        except msgspec.ValidationError:
            # The queue's own objection has the reason.
            continue
        found.append(read_queue(queue, dialect=volcano.NAME))
    return found


def main() -> int:
    """Answer the one question on standard input; returns the exit status."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    sys.stdout.buffer.write(msgspec.json.encode(objections(question)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
