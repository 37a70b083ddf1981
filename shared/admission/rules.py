"""The input of a rule (`Case`), and the set of rules of one kind (`KindRules`)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from shared.admission.queue_tree import QueueTree
from shared.admission.resource_groups import ResourceGroups
from shared.admission.review import Operation, PatchOperation, plain_object
from shared.dialects.ceilings import Ceilings
from shared.dialects.discovery import dialect_of
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.resources import Resource
from shared.model.invariants import required


class ReferenceObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects and settings that rules read besides the review."""

    #: The scheduler names that Tutti serves.
    scheduler_names: tuple[str, ...]
    #: None while the queues are unknown; rules that need them are then skipped.
    queues: QueueTree | None = None
    #: From the admission configuration file.
    resource_groups: ResourceGroups = ()
    #: Namespace -> the queue of its PodGroups that name none; only namespaces that name a queue.
    namespace_queues: Mapping[str, str] = {}
    #: Names of the PriorityClasses; None while they are unknown.
    priority_classes: frozenset[str] | None = None
    #: The planner's, to warn with.
    ceilings: Ceilings = Ceilings()


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on one object.

    `candidate` would be stored, `old` is stored now; {} where there is none. Their members may be
    of any JSON type.
    """

    operation: Operation
    namespace: str
    name: str
    candidate: JsonObject
    old: JsonObject
    known: ReferenceObjects


Conditions = tuple[tuple[str, str], ...]
"""Match conditions: CEL expressions with their names."""


class KindRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for one resource."""

    resource: Resource
    #: Default values, for objects that are created; None: this kind has none.
    defaults: Callable[[Case], list[PatchOperation]] | None = None
    #: Every violation of an object; all are reported at once.
    violations: Callable[[Case], list[FieldError]] = lambda _: []
    #: Operations on which the object is validated.
    operations: tuple[Operation, ...] = ("CREATE",)
    #: Whether Tutti is responsible for the object. Objects of other schedulers are allowed unread.
    is_ours: Callable[[Case], bool] = lambda _: True
    #: Whether another object is worth warnings: it ought to be ours.
    is_relevant: Callable[[Case], bool] = lambda _: False
    read: Callable[[msgspec.Raw], JsonObject] = plain_object
    #: Match conditions for the given scheduler names: the API server sends only matching objects.
    #: An API server without CEL sends all of them; therefore both repeat the condition.
    conditions: Callable[[tuple[str, ...]], Conditions] = lambda _: ()
    #: Match condition of the mutating webhook for the given resource groups; None: `conditions`
    #: apply. "" leaves the kind out of the mutating webhook.
    membership: Callable[[ResourceGroups], str] | None = None
    #: Name of the queue that must exist, or has to when its Jobs are created; "" where the object
    #: names none.
    queue: Callable[[JsonObject], str] = lambda _: ""
    #: Names of the PriorityClasses that an object of ours uses, "" among them.
    priority_classes: Callable[[Case], Iterable[str]] = lambda _: ()
    #: Further warnings about a valid object.
    warnings: Callable[[Case], tuple[str, ...]] = lambda _: ()
    #: Nothing of the object is validated: a dry run gets the planner's advice, a creation gets
    #: `warnings`.
    is_advisory: bool = False


def violations_of_dialect(resource: Resource) -> Callable[[Case], list[FieldError]]:
    """The violations that the resource's dialect itself finds."""
    dialect = required(dialect_of(resource), f"dialect of {resource.title}")
    return lambda case: dialect.validate(resource.kind, case.candidate)


def quoted(names: tuple[str, ...]) -> str:
    """The names as members of a CEL list. They are DNS names, so none contains a quote."""
    return ", ".join(f"'{name}'" for name in names)


def string_literal(regular_expression: str) -> str:
    """A regular expression as a CEL string."""
    return "'" + regular_expression.replace("\\", "\\\\") + "'"


CHANGES_THE_SPEC: Final = (
    "has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec)"
)
"""CEL that is true of an update that changes the spec."""


def only_changes_of_spec(_scheduler_names: tuple[str, ...]) -> Conditions:
    """Match conditions that skip updates of status and metadata, which controllers write often."""
    return (("changes-the-spec", f"request.operation == 'CREATE' || {CHANGES_THE_SPEC}"),)
