"""Judges manifests before they exist: would admission refuse them, and which gangs do they ask for?

The one answer that `tutti fits`, a `Fit` of the API (kubectl, the client, the console, assistants),
`tutti explain-dialect`, an `Explanation` and `tutti migrate` give. It is made of the webhook's own
rules, of the schemas that the API server validates with, and of the readers of the dialects.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, get_args

import jsonpatch
import msgspec

from shared.admission import admission
from shared.admission.gang_annotations import NO_GROUP
from shared.admission.kinds import RULES
from shared.admission.names import SUBDOMAIN_MAX, subdomain
from shared.admission.parts import as_object, invalid, is_list, is_object, text_at
from shared.admission.queue_tree import QueueTree
from shared.admission.review import AdmissionRequest, GroupVersionResource
from shared.admission.rules import ReferenceObjects
from shared.admission.scheduler_names import job_scheduler
from shared.contracts.annotations import QUEUE_NAME, RUN_LIMIT_MAX
from shared.contracts.fit_rules import broken_rule
from shared.contracts.questions import (
    AskedQueue,
    EarlierGang,
    EqualPods,
    FitRequest,
    LedgerAnswer,
)
from shared.dialects.kubebatch_fields import read_queue
from shared.dialects.manifests import Expanded, InvalidManifest, expand, flattened
from shared.dialects.protocol import VOLCANO, JsonObject
from shared.dialects.run_limits import limits_of_queue
from shared.kinds.queue import DEFAULT_QUEUE
from shared.kinds.queue import Queue as StoredQueue
from shared.kube.resources import JOBS_VOLCANO, QUEUES_VOLCANO, Resource
from shared.model.bounded_text import shortened
from shared.model.objects import Pod, PodGroup, Queue, QueueState
from shared.schemas.strict_fields import field_errors

#: Gangs that are asked about together: each is a question of its own, which places those before it.
GANGS_MAX: Final = 50
#: Errors of one object, and of all; no user reads more than these. An error may repeat a value.
_ERRORS_OF_OBJECT_MAX: Final = 20
_ERRORS_MAX: Final = 50
_ERROR_BYTES_MAX: Final = 500
_RESOURCES: Final[Mapping[tuple[str, str], Resource]] = {
    (rules.resource.group, rules.resource.kind): rules.resource for rules in RULES
}
_STATES: Final[tuple[QueueState, ...]] = get_args(QueueState)
_NO_GANG: Final = "declares no gang: it must have a workload, a pod or a group of pods"


class Refused(ValueError):
    """Manifests that would be refused, or that declare no gang; `errors` name place and rule."""

    def __init__(self, errors: Sequence[str]) -> None:
        self.errors = tuple(_bounded(errors))
        super().__init__("; ".join(self.errors))


class KnownQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue of the cluster, as far as manifests are judged by it."""

    name: str
    parent: str = ""
    state: QueueState = ""
    #: Its annotation `RUN_LIMIT_MAX`; "": it has none.
    run_limit_max: str = ""


class Asked(NamedTuple):
    """What manifests ask for."""

    #: One question for each gang, in their order. Each names the gangs before it, which get their
    #: capacity first.
    gangs: list[FitRequest]
    #: The warnings of admission, each with the place of its object.
    warnings: Sequence[str]


class Admitted(NamedTuple):
    """An object as admission would store it."""

    #: With its defaults.
    made: JsonObject
    #: Every error that would refuse it.
    errors: Sequence[str] = ()
    #: The warnings about a valid one.
    warnings: Sequence[str] = ()


def queue_tree(queues: Iterable[KnownQueue], documents: Iterable[JsonObject] = ()) -> QueueTree:
    """The queues of a cluster, with those that the manifests themselves create."""
    known = {
        queue.name: Queue(
            uid=queue.name,
            dialect=VOLCANO,
            name=queue.name,
            resource_version=0,
            parent=queue.parent,
            state=queue.state,
            settings=((RUN_LIMIT_MAX, queue.run_limit_max),),
            run_limits=limits_of_queue({RUN_LIMIT_MAX: queue.run_limit_max}),
        )
        for queue in queues
    }
    for queue in declared_queues(documents):
        known.setdefault(queue.name, queue)
    return QueueTree(known.values())


def known_queues(ledger: LedgerAnswer) -> tuple[KnownQueue, ...]:
    """The existing queues of a ledger."""
    return tuple(
        KnownQueue(
            name=queue.name,
            parent=queue.parent,
            state=queue.state if queue.state in _STATES else "Unknown",
            run_limit_max=queue.run_limit_max,
        )
        for queue in ledger.queues
        if queue.exists
    )


def declared_queues(documents: Iterable[JsonObject]) -> Iterator[Queue]:
    """The queues among the objects; one that cannot be read has an error of its own."""
    for document in documents:
        if _resource_of(document) != QUEUES_VOLCANO:
            continue
        try:
            yield read_queue(msgspec.convert(document, StoredQueue), dialect=VOLCANO)
        except msgspec.ValidationError:
            continue


def questions(
    documents: Iterable[Any],
    *,
    namespace: str,
    scheduler_names: Iterable[str],
    queues: Iterable[KnownQueue] | None,
) -> Asked:
    """The gangs of parsed manifests.

    Args:
        documents: The manifests.
        namespace: For objects without one.
        scheduler_names: Scheduler names that Tutti serves.
        queues: Those of the cluster; None: they are unknown, and not checked.

    Raises:
        Refused: Admission would refuse an object, Tutti would not schedule its pods, or there is
            no gang to ask about.
    """
    names = tuple(scheduler_names)
    try:
        placed = [
            (where, in_namespace(document, namespace)) for where, document in flattened(documents)
        ]
        objects = [document for _, document in placed]
        known = ReferenceObjects(
            scheduler_names=names,
            queues=None if queues is None else queue_tree(queues, objects),
        )
        errors: list[str] = []
        warnings: list[str] = []
        admitted: list[tuple[str, JsonObject]] = []
        for (where, document), twice in zip(placed, repeated(placed), strict=True):
            judged = admit(document, known)
            of_group = (text for text in judged.warnings if text.startswith(NO_GROUP))
            errors_of_object = (
                *judged.errors,
                *(text.removeprefix(NO_GROUP) for text in of_group),
                *twice,
                *unserved(document, names),
            )
            errors += (f"{where}: {error}" for error in errors_of_object)
            warnings += (
                f"{where}: {warning.removeprefix('tutti: ')}" for warning in judged.warnings
            )
            admitted.append((where, judged.made))
        if errors:
            raise Refused(errors)
        expanded = expand(admitted, namespace=namespace, scheduler_names=names)
    except (InvalidManifest, RecursionError) as error:
        raise Refused([str(error)]) from None
    gangs = _asked_together(expanded, declared_queues(objects), _declared_namespaces(objects))
    return Asked(gangs, _bounded(warnings))


def admit(document: JsonObject, known: ReferenceObjects, *, with_fields: bool = True) -> Admitted:
    """What admission makes of an object's creation. `with_fields`: also the errors of its schema,
    which an object of a cluster has passed.
    """
    subject = _subject(document, known)
    patch = admission.apply_defaults(subject).patch if subject is not None else ()
    made: JsonObject = (
        jsonpatch.apply_patch(document, msgspec.to_builtins(patch)) if patch else document
    )
    # As in the API server: the schema is that of the object with its defaults, which make texts of
    # fractions, and the rules are asked about no object that breaks it.
    errors = [*field_errors(made), *_name_errors(document)] if with_fields else []
    if errors:
        return Admitted(document, errors[:_ERRORS_OF_OBJECT_MAX])
    subject = _subject(made, known)
    if subject is None:
        return Admitted(made)
    verdict = admission.validate(subject)
    errors = [error.text for error in verdict.errors[:_ERRORS_OF_OBJECT_MAX]]
    return Admitted(made, errors, verdict.warnings)


def repeated(placed: Iterable[tuple[str, JsonObject]]) -> Iterator[tuple[str, ...]]:
    """Of each object, the error that an earlier one is the same: () for most."""
    first: dict[tuple[str, ...], str] = {}
    for where, document in placed:
        group = text_at(document, "apiVersion").rpartition("/")[0]
        name = text_at(document, "metadata", "name")
        key = (group, text_at(document, "kind"), text_at(document, "metadata", "namespace"), name)
        same = first.setdefault(key, where) if name else where
        error = f'metadata.name: Duplicate value: "{name[:63]}": {same} has it'
        yield () if same is where else (error,)


def _name_errors(document: JsonObject) -> Iterator[str]:
    name, stem = (
        text_at(document, "metadata", "name"),
        text_at(document, "metadata", "generateName"),
    )
    if not name and not stem:
        yield "metadata.name: Required value: name or generateName is required"
    elif _resource_of(document) is not None:
        # Other kinds have other rules: names of ClusterRoles contain colons.
        path = "metadata.name" if name else "metadata.generateName"
        objection = subdomain(name or f"{stem[: SUBDOMAIN_MAX - 5]}xxxxx")
        if objection:
            yield invalid(path, name or stem, objection).text


def unserved(document: JsonObject, scheduler_names: Sequence[str]) -> Iterator[str]:
    """Scheduler names in the object that Tutti does not serve. Where there is none, an operator or
    the webhook may set one later.
    """
    named = set(_scheduler_names_in(document.get("spec")))
    if _resource_of(document) == JOBS_VOLCANO:
        named.add(job_scheduler(document))
    served = ", ".join(scheduler_names)
    for name in sorted(named - set(scheduler_names)):
        yield f"schedulerName {name[:63]} is not served by Tutti, which serves {served}"


def _scheduler_names_in(value: object) -> Iterator[str]:
    if is_list(value):
        for item in value:
            yield from _scheduler_names_in(item)
    elif is_object(value):
        for name, item in value.items():
            if name == "schedulerName" and isinstance(item, str) and item:
                yield item
            else:
                yield from _scheduler_names_in(item)


def _declared_namespaces(documents: Iterable[JsonObject]) -> dict[str, str]:
    """The namespaces among the objects, with the queues that they name; "": none."""
    return {
        text_at(document, "metadata", "name"): text_at(
            document, "metadata", "annotations", QUEUE_NAME
        )
        for document in documents
        if document.get("apiVersion") == "v1" and document.get("kind") == "Namespace"
    }


def _in_queue(group: PodGroup, namespaces: Mapping[str, str]) -> PodGroup:
    """The group as the webhook would create it: in the queue that its namespace names, if it is in
    no queue or in `default`, which the schema sets for a group that names none.
    """
    if group.dialect not in {VOLCANO, ""} or group.queue not in {"", DEFAULT_QUEUE}:
        return group
    queue = namespaces.get(group.namespace, "")
    return msgspec.structs.replace(group, queue=queue, queue_of_namespace=True)


def _asked_together(
    expanded: Expanded, queues: Iterable[Queue], namespaces: Mapping[str, str]
) -> list[FitRequest]:
    asked = expanded.questions
    if not asked:
        raise Refused([f"{_named(expanded.passed_over)}{_NO_GANG}"])
    if len(asked) > GANGS_MAX:
        raise Refused([f"must declare at most {GANGS_MAX} gangs, and declares {len(asked)}"])
    declared = tuple(
        AskedQueue(name=queue.name, parent=queue.parent, capability=queue.capability)
        for queue in queues
    )
    earlier: list[EarlierGang] = []
    requests: list[FitRequest] = []
    for request in asked:
        question = msgspec.structs.replace(
            request,
            group=_in_queue(request.group, namespaces),
            earlier=tuple(earlier),
            queues=declared,
            complete=True,
            namespaces=tuple(namespaces),
        )
        broken = broken_rule(question)
        if broken:
            raise Refused([f"{request.group.namespace}/{request.group.name}: {broken}"])
        requests.append(question)
        alike = tuple(_equal_pods(request.pods, f"earlier/{len(earlier)}/"))
        earlier.append(EarlierGang(group=question.group, pods=alike))
    return requests


def _equal_pods(pods: Iterable[Pod], prefix: str) -> Iterator[EqualPods]:
    """Neighbouring pods that differ in their names only; their UIDs get a prefix."""

    def without_names(pod: Pod) -> Pod:
        return msgspec.structs.replace(pod, uid="", name="", index=0)

    for _, alike in groupby(pods, key=without_names):
        first, *more = alike
        named = msgspec.structs.replace(first, uid=f"{prefix}{first.uid}")
        yield EqualPods(pod=named, count=1 + len(more))


def _subject(document: JsonObject, known: ReferenceObjects) -> admission.Subject | None:
    resource = _resource_of(document)
    if resource is None:
        return None
    request = AdmissionRequest(
        uid="judged",
        resource=GroupVersionResource(group=resource.group, resource=resource.plural),
        name=text_at(document, "metadata", "name"),
        namespace=text_at(document, "metadata", "namespace"),
        operation="CREATE",
        object=msgspec.Raw(msgspec.json.encode(document)),
    )
    return admission.subject_of(request, known)


def _resource_of(document: JsonObject) -> Resource | None:
    """The resource of an object of a kind with rules."""
    group = text_at(document, "apiVersion").rpartition("/")[0]
    return _RESOURCES.get((group, text_at(document, "kind")))


def in_namespace(document: JsonObject, namespace: str) -> JsonObject:
    """The object with this namespace if it has none; metadata that is no object stays as it is."""
    metadata = document.get("metadata", {})
    given = as_object(metadata)
    if given is None or given.get("namespace"):
        return document
    return {**document, "metadata": {**given, "namespace": namespace}}


def _named(places: Sequence[str]) -> str:
    return f"{', '.join(places[:3])}{' and others' if len(places) > 3 else ''}: " if places else ""


def _bounded(errors: Iterable[str]) -> list[str]:
    unique = list(dict.fromkeys(shortened(error, _ERROR_BYTES_MAX) for error in errors))
    left = len(unique) - _ERRORS_MAX
    return [*unique[:_ERRORS_MAX], *([f"and {left} more"] if left > 0 else [])]
