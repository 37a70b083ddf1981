"""Queues of Volcano: defaults, the dialect's rules, and their position in the tree of queues.

Messages use the words of Volcano's messages, which its users search for. One rule of Volcano's is
left out, because the webhook reads no pods: a parent queue must not run pods itself.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from shared.admission.parts import as_object, invalid, lacks_number, text_at, violation
from shared.admission.queue_tree import DEPTH_MAX, QueueTree
from shared.admission.review import PatchOperation, added
from shared.admission.rules import Case, KindRules, violations_of_dialect
from shared.admission.suggestions import did_you_mean
from shared.dialects.field_checks import Findings, amount_of
from shared.dialects.kubebatch_fields import HIERARCHY
from shared.dialects.protocol import FieldError, JsonObject
from shared.kinds.queue import DEFAULT_QUEUE, ROOT_QUEUE
from shared.kube.quantities import format_quantity
from shared.kube.resources import QUEUES_VOLCANO
from shared.model.objects import Resources

_PROTECTED: Final = ("capability", "deserved", "guarantee")
_HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"


class _Amounts(msgspec.Struct, frozen=True):
    """The amounts in a queue's spec, in our units."""

    capability: dict[str, int]
    deserved: dict[str, int]
    guarantee: dict[str, int]


def _defaults(case: Case) -> list[PatchOperation]:
    """Weight 1 (an explicit 0 counts as absent), reclaimable, and the hierarchy below `root`."""
    spec = case.candidate.get("spec")
    given = as_object(spec)
    if spec is None:
        return [added({"weight": 1, "reclaimable": True}, "spec")]
    if given is None:
        return []
    patch: list[PatchOperation] = []
    if lacks_number(given, "weight"):
        patch.append(added(1, "spec", "weight"))
    if given.get("reclaimable") is None:
        patch.append(added(True, "spec", "reclaimable"))
    return [*patch, *_default_hierarchy(case.candidate)]


def _default_hierarchy(queue: JsonObject) -> Iterator[PatchOperation]:
    """Both annotations get a prefix when the path does not start at `root`, as in Volcano."""
    path = text_at(queue, "metadata", "annotations", HIERARCHY)
    weights = text_at(queue, "metadata", "annotations", _HIERARCHY_WEIGHTS)
    if not (path and weights):
        return
    if path != ROOT_QUEUE and not path.startswith(f"{ROOT_QUEUE}/"):
        yield added(f"{ROOT_QUEUE}/{path}", "metadata", "annotations", HIERARCHY)
        yield added(f"1/{weights}", "metadata", "annotations", _HIERARCHY_WEIGHTS)


def _violations(case: Case) -> list[FieldError]:
    """For an operation of any kind, a deletion included."""
    if case.operation == "DELETE":
        return list(_deletion_errors(case.name, case.known.queues))
    errors = violations_of_dialect(QUEUES_VOLCANO)(case)
    spec = Findings().section(case.candidate, "spec")
    if case.operation == "UPDATE" and case.name == ROOT_QUEUE:
        errors += _root_errors(spec, Findings().section(case.old, "spec"))
    if case.known.queues is not None:
        errors += _tree_errors(case.name, spec, case.known.queues)
        errors += _path_errors(case, case.known.queues)
    return errors


def _deletion_errors(name: str, queues: QueueTree | None) -> Iterator[FieldError]:
    if name in {DEFAULT_QUEUE, ROOT_QUEUE}:
        yield violation("metadata.name", f"`{name}` queue can not be deleted")
        return
    children = queues.children(name) if queues is not None else []
    if children:
        names = ", ".join(child.name for child in children[:20])
        rule = f"can not be deleted because it has {len(children)} child queues: {names}"
        yield violation("metadata.name", f"queue {name} {rule}")


def _root_errors(spec: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    for field in _PROTECTED:
        if (spec.get(field) or {}) != (old.get(field) or {}):
            subject = "root queue's resource attributes (capability, deserved, guarantee)"
            yield violation(f"spec.{field}", f"{subject} cannot be modified")


def _tree_errors(name: str, spec: JsonObject, queues: QueueTree) -> Iterator[FieldError]:
    parent = spec.get("parent")
    if isinstance(parent, str) and parent not in {"", ROOT_QUEUE, name}:
        yield from _position_errors(name, parent, queues)
        yield from _limit_errors(name, parent, spec, queues)
    if name != ROOT_QUEUE:
        amounts, children, subject = _amounts(spec), queues.children(name), f"queue {name}"
        deserved = _total(child.deserved for child in children)
        guarantee = _total(child.guarantee for child in children)
        yield from _sum_errors(subject, "deserved", deserved, amounts.deserved)
        yield from _sum_errors(subject, "guarantee", guarantee, amounts.guarantee)


def _path_errors(case: Case, queues: QueueTree) -> Iterator[FieldError]:
    """The path of hierarchical DRF may equal or extend another queue's path, but not be a prefix of
    it: a queue with jobs is a leaf.
    """
    path = text_at(case.candidate, "metadata", "annotations", HIERARCHY)
    if not path:
        return
    for name in sorted(queues.names()):
        other = queues.get(name)
        if other is not None and name != case.name and other.hierarchy.startswith(f"{path}/"):
            above = f"the sub path of {other.hierarchy[:100]} of queue {name}"
            rule = f"{path[:100]} is not allowed to be in {above}"
            yield invalid("metadata.annotations", path, rule)
            return


def _position_errors(name: str, parent: str, queues: QueueTree) -> Iterator[FieldError]:
    if not queues.exists(parent):
        yield invalid(
            "spec.parent",
            parent,
            f"failed to get parent queue {parent[:100]} of queue {name}: "
            f'queue.scheduling.volcano.sh "{parent[:100]}" not found'
            f"{did_you_mean(parent, queues.names())}",
        )
    above = [queue.name for queue in queues.ancestors(parent)]
    if name in above:
        way = " -> ".join([name, *above[: above.index(name) + 1]])
        yield invalid("spec.parent", parent, f"queue {name} would be its own ancestor: {way}")
    elif len(above) + 1 > DEPTH_MAX:
        rule = f"queue {name} exceeds the maximum allowed depth of {DEPTH_MAX}"
        yield invalid("spec.parent", parent, rule)


def _limit_errors(
    name: str, parent: str, spec: JsonObject, queues: QueueTree
) -> Iterator[FieldError]:
    """Violations of the limits above the queue, alone and together with its siblings."""
    amounts = _amounts(spec)
    limits = [dict(above.capability) for above in queues.ancestors(parent)]
    for key, amount in amounts.capability.items():
        limit = next((capability[key] for capability in limits if key in capability), None)
        if limit is not None and amount > limit:
            subject = f"queue {name} capability[{key}]={spec['capability'][key]}"
            rule = f"exceeds its ancestor's capability={format_quantity(key, limit)}"
            yield violation(f"spec.capability.{key}", f"{subject} {rule}")
    above = queues.get(parent)
    if above is None:
        return
    siblings = queues.children(parent, without=name)
    subject = f"parent queue {parent}"
    deserved = _total(sibling.deserved for sibling in siblings) + Counter(amounts.deserved)
    guarantee = _total(sibling.guarantee for sibling in siblings) + Counter(amounts.guarantee)
    yield from _sum_errors(subject, "deserved", deserved, dict(above.deserved))
    yield from _sum_errors(subject, "guarantee", guarantee, dict(above.guarantee))


def _amounts(spec: JsonObject) -> _Amounts:
    """The amounts that can be read. The dialect's rules report amounts that cannot."""
    ignored = Findings()
    guarantee = ignored.section(spec, "spec.guarantee")
    return _Amounts(
        capability=ignored.quantities(spec, "spec.capability", amount_of),
        deserved=ignored.quantities(spec, "spec.deserved", amount_of),
        guarantee=ignored.quantities(guarantee, "spec.guarantee.resource", amount_of),
    )


def _total(amounts: Iterable[Resources]) -> Counter[str]:
    total: Counter[str] = Counter()
    for resources in amounts:
        total.update(dict(resources))
    return total


def _sum_errors(
    subject: str, field: str, total: Counter[str], limits: dict[str, int]
) -> Iterator[FieldError]:
    """A resource without a limit counts as limited to 0, as in Volcano."""
    over = [key for key, amount in sorted(total.items()) if amount > limits.get(key, 0)]
    if over:
        sums = ", ".join(f"{key} {format_quantity(key, total[key])}" for key in over)
        most = ", ".join(f"{key} {format_quantity(key, limits.get(key, 0))}" for key in over)
        rule = f"sum of children's {field} ({sums}) exceeds parent's {field} limit ({most})"
        yield violation(f"spec.{field}", f"{subject} validation failed: {rule}")


RULES = KindRules(
    resource=QUEUES_VOLCANO,
    defaults=_defaults,
    violations=_violations,
    operations=("CREATE", "UPDATE", "DELETE"),
    queue=lambda candidate: text_at(candidate, "spec", "parent"),
)
