"""What a queue must be: what its dialect says, and for Volcano's its place in the tree of queues.

Messages hold the words that Volcano's users look for in theirs. Not looked at, because the cluster
stream does not contain it: pods that a parent runs.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import text_at
from services.admission_webhook.core.queue_tree import DEFAULT, DEPTH_MAX, ROOT, QueueTree
from services.admission_webhook.core.suggestions import did_you_mean
from shared.dialects import incubator, sigs, volcano
from shared.dialects.field_checks import Findings, amount_of, shown
from shared.dialects.kubebatch_fields import HIERARCHY
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.quantities import format_quantity
from shared.model.objects import Queue

_PROTECTED: Final = ("capability", "deserved", "guarantee")


class _Amounts(msgspec.Struct, frozen=True):
    """The amounts of a queue as they would be stored, in our units."""

    capability: dict[str, int]
    deserved: dict[str, int]
    guarantee: dict[str, int]


def validate_incubator(case: Case) -> list[FieldError]:
    """A Queue of scheduling.incubator.k8s.io."""
    return incubator.validate("Queue", case.candidate)


def validate_sigs(case: Case) -> list[FieldError]:
    """A Queue of scheduling.sigs.dev."""
    return sigs.validate("Queue", case.candidate)


def validate_volcano(case: Case) -> list[FieldError]:
    """A Queue of scheduling.volcano.sh that is created, updated or deleted."""
    if case.operation == "DELETE":
        return list(_deletion_errors(case.name, case.known.queues))
    errors = list(volcano.validate("Queue", case.candidate))
    spec = Findings().section(case.candidate, "spec")
    if case.operation == "UPDATE" and case.name == ROOT:
        errors += _root_errors(spec, Findings().section(case.old, "spec"))
    if case.known.queues is not None:
        errors += _tree_errors(case.name, spec, case.known.queues)
        errors += _path_errors(case, case.known.queues)
    return errors


def parent_of(queue: JsonObject) -> str:
    """The parent that a queue names; "" when it names none."""
    return text_at(queue, "spec", "parent")


def _deletion_errors(name: str, queues: QueueTree | None) -> Iterator[FieldError]:
    if name in {DEFAULT, ROOT}:
        yield FieldError(path="metadata.name", message=f"`{name}` queue can not be deleted")
        return
    children = queues.children(name) if queues is not None else []
    if children:
        names = ", ".join(child.name for child in children[:20])
        yield FieldError(
            path="metadata.name",
            message=f"queue {name} can not be deleted because it has "
            f"{len(children)} child queues: {names}",
        )


def _root_errors(spec: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    for field in _PROTECTED:
        if (spec.get(field) or {}) != (old.get(field) or {}):
            yield FieldError(
                path=f"spec.{field}",
                message="root queue's resource attributes (capability, deserved, guarantee) "
                "cannot be modified",
            )


def _tree_errors(name: str, spec: JsonObject, queues: QueueTree) -> Iterator[FieldError]:
    parent = spec.get("parent")
    if isinstance(parent, str) and parent not in {"", ROOT, name}:
        yield from _place_errors(name, parent, queues)
        yield from _below_errors(name, parent, spec, queues)
    if name != ROOT:
        mine = _amounts(spec)
        children = queues.children(name)
        yield from _sum_errors(f"queue {name}", "deserved", _deserved(children), mine.deserved)
        yield from _sum_errors(f"queue {name}", "guarantee", _guarantee(children), mine.guarantee)


def _path_errors(case: Case, queues: QueueTree) -> Iterator[FieldError]:
    """The path of hierarchical DRF may repeat or extend another queue's, but not be a part of it:
    a queue with jobs is a leaf.
    """
    path = text_at(case.candidate, "metadata", "annotations", HIERARCHY)
    if not path:
        return
    for name in sorted(queues.names()):
        other = queues.get(name)
        if other is not None and name != case.name and other.hierarchy.startswith(f"{path}/"):
            yield FieldError(
                path="metadata.annotations",
                message=f"Invalid value: {shown(path)}: {path[:100]} is not allowed to be in the "
                f"sub path of {other.hierarchy[:100]} of queue {name}",
            )
            return


def _place_errors(name: str, parent: str, queues: QueueTree) -> Iterator[FieldError]:
    if not queues.exists(parent):
        yield FieldError(
            path="spec.parent",
            message=f"Invalid value: {shown(parent)}: failed to get parent queue {parent[:100]} of "
            f'queue {name}: queue.scheduling.volcano.sh "{parent[:100]}" not found'
            f"{did_you_mean(parent, queues.names())}",
        )
    above = [queue.name for queue in queues.ancestors(parent)]
    if name in above:
        way = " -> ".join([name, *above[: above.index(name) + 1]])
        yield FieldError(
            path="spec.parent",
            message=f"Invalid value: {shown(parent)}: "
            f"queue {name} would be its own ancestor: {way}",
        )
    elif len(above) + 1 > DEPTH_MAX:
        yield FieldError(
            path="spec.parent",
            message=f"Invalid value: {shown(parent)}: "
            f"queue {name} exceeds the maximum allowed depth of {DEPTH_MAX}",
        )


def _below_errors(
    name: str, parent: str, spec: JsonObject, queues: QueueTree
) -> Iterator[FieldError]:
    """Against the queues above it, and together with the queues beside it."""
    mine = _amounts(spec)
    for key, amount in mine.capability.items():
        limit = next(
            (
                dict(above.capability)[key]
                for above in queues.ancestors(parent)
                if _caps(above, key)
            ),
            None,
        )
        if limit is not None and amount > limit:
            yield FieldError(
                path=f"spec.capability.{key}",
                message=f"queue {name} capability[{key}]={spec['capability'][key]} exceeds "
                f"its ancestor's capability={format_quantity(key, limit)}",
            )
    above = queues.get(parent)
    if above is None:
        return
    beside = queues.children(parent, without=name)
    whose = f"parent queue {parent}"
    deserved = _deserved(beside) + Counter(mine.deserved)
    guarantee = _guarantee(beside) + Counter(mine.guarantee)
    yield from _sum_errors(whose, "deserved", deserved, dict(above.deserved))
    yield from _sum_errors(whose, "guarantee", guarantee, dict(above.guarantee))


def _amounts(spec: JsonObject) -> _Amounts:
    """What can be read of them; what cannot has been noted by the dialect."""
    ignored = Findings()
    guarantee = ignored.section(spec, "spec.guarantee")
    return _Amounts(
        capability=ignored.quantities(spec, "spec.capability", amount_of),
        deserved=ignored.quantities(spec, "spec.deserved", amount_of),
        guarantee=ignored.quantities(guarantee, "spec.guarantee.resource", amount_of),
    )


def _caps(queue: Queue, key: str) -> bool:
    return any(name == key for name, _ in queue.capability)


def _deserved(queues: list[Queue]) -> Counter[str]:
    total: Counter[str] = Counter()
    for queue in queues:
        total.update(dict(queue.deserved))
    return total


def _guarantee(queues: list[Queue]) -> Counter[str]:
    total: Counter[str] = Counter()
    for queue in queues:
        total.update(dict(queue.guarantee))
    return total


def _sum_errors(
    whose: str, what: str, total: Counter[str], limits: dict[str, int]
) -> Iterator[FieldError]:
    """A key that the limits lack counts as 0, as in Volcano."""
    over = [key for key, amount in sorted(total.items()) if amount > limits.get(key, 0)]
    if over:
        sums = ", ".join(f"{key} {format_quantity(key, total[key])}" for key in over)
        most = ", ".join(f"{key} {format_quantity(key, limits.get(key, 0))}" for key in over)
        yield FieldError(
            path=f"spec.{what}",
            message=f"{whose} validation failed: "
            f"sum of children's {what} ({sums}) exceeds parent's {what} limit ({most})",
        )
