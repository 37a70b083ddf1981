"""The queues that files are converted to, and the rules of Volcano that they must obey. Pure.

A queue's deserved amounts are at most its capability, its guarantee is at most its deserved
amounts, and the sums of both over its children are at most its own. Other projects have no such
rules, so amounts are changed where they are broken, and the change is listed.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from shared.kinds.queue import NAME_CHARACTERS_MAX, ROOT_QUEUE, queue_name
from shared.kube.quantities import format_quantity
from shared.kube.resources import QUEUES_VOLCANO
from tutti.api.objects import new_object

T = TypeVar("T")

Json = dict[str, Any]
Amounts = dict[str, int]
"""Resource -> amount, cpu in milli-CPU."""

#: Volcano's webhook refuses deeper trees.
_DEPTH_MAX: Final = 5


class Queue(msgspec.Struct, kw_only=True):
    """One queue; `losses` lists what it cannot express, in sentences."""

    name: str
    #: The object that it was: "ClusterQueue team-a". It identifies the queue.
    source: str
    #: `source` of its parent; None: it is below root.
    parent: str | None = None
    #: The parent's name, once `settle` has set it; "": it is below root.
    parent_name: str = ""
    weight: int = 1
    priority: int | None = None
    fifo: bool = False
    deserved: Amounts = msgspec.field(default_factory=dict)
    capability: Amounts = msgspec.field(default_factory=dict)
    guarantee: Amounts = msgspec.field(default_factory=dict)
    #: Whether `capability` also limits resources to the sum of its children's deserved amounts.
    is_pool: bool = False
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    losses: list[str] = msgspec.field(default_factory=list)

    def manifest(self) -> Json:
        """The Volcano Queue."""
        spec: Json = {"weight": self.weight}
        if self.parent_name:
            spec["parent"] = self.parent_name
        if self.priority is not None:
            spec["priority"] = self.priority
        if self.fifo:
            spec["dequeueStrategy"] = "fifo"
        for field in ("deserved", "capability"):
            amounts: Amounts = getattr(self, field)
            if amounts:
                spec[field] = written(amounts)
        if self.guarantee:
            spec["guarantee"] = {"resource": written(self.guarantee)}
        metadata: Json = {"name": self.name}
        if self.annotations:
            metadata["annotations"] = self.annotations
        return new_object(QUEUES_VOLCANO, metadata, spec=spec)


class Conversion(msgspec.Struct, kw_only=True):
    """All queues, and what belongs to none of them."""

    queues: list[Queue] = msgspec.field(default_factory=list)
    losses: list[str] = msgspec.field(default_factory=list)


def written(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts as quantities."""
    return {name: format_quantity(name, quantity) for name, quantity in sorted(amounts.items())}


def read_form(document: Json, form: type[T], source: str) -> T:
    """The members that are read, with their types. Raises ValueError with the member's path."""
    try:
        return msgspec.convert(document, form)
    except msgspec.ValidationError as error:
        raise ValueError(f"{source}: {error}") from None


def settle(conversion: Conversion) -> None:
    """Make names, the tree and amounts obey Volcano's rules; each change is listed.

    Raises:
        ValueError: Two queues have one name, or a queue is its own ancestor.
    """
    by_source: dict[str, Queue] = {}
    for queue in conversion.queues:
        if by_source.setdefault(queue.source, queue) is not queue:
            raise ValueError(f"{queue.source} is there twice")
    _rename(conversion)
    _reparent(conversion, by_source)
    children: dict[str | None, list[Queue]] = {}
    for queue in conversion.queues:
        children.setdefault(queue.parent, []).append(queue)
        queue.parent_name = by_source[queue.parent].name if queue.parent is not None else ""
    ordered = list(_below(None, children))
    for queue in conversion.queues:
        if queue not in ordered:
            raise ValueError(f"{queue.source}: is its own ancestor")
    conversion.queues = ordered
    for queue in reversed(ordered):
        _collect(queue, children.get(queue.source, []))
    for queue in children.get(None, []):
        _limit(queue, {}, children)
    for queue in reversed(ordered):
        _guarantee(queue, children.get(queue.source, []))


def _rename(conversion: Conversion) -> None:
    """Give every queue a name that Kubernetes allows, and that no other queue has."""
    taken = {ROOT_QUEUE}
    for queue in conversion.queues:
        name = queue_name(queue.name) or "queue"
        while name in taken:
            name = f"{name[: NAME_CHARACTERS_MAX - 2]}-x"
        taken.add(name)
        if name != queue.name:
            queue.losses.append(f"its name is {name} now")
        queue.name = name


def _reparent(conversion: Conversion, by_source: Mapping[str, Queue]) -> None:
    """Replace parents that are not in the files, and those of queues that are too deep."""
    for queue in conversion.queues:
        if queue.parent is not None and queue.parent not in by_source:
            queue.losses.append(
                f"its parent, {queue.parent}, is not in the files: it is below root"
            )
            queue.parent = None
    for queue in conversion.queues:
        above = _ancestors(queue, by_source)
        if len(above) + 1 > _DEPTH_MAX:
            parent = above[1 - _DEPTH_MAX]
            queue.parent = parent.source
            queue.losses.append(
                f"its level is below the {_DEPTH_MAX} that Volcano allows: {parent.name} is its "
                "parent now"
            )


def _ancestors(queue: Queue, by_source: Mapping[str, Queue]) -> list[Queue]:
    """Nearest first; ends at a cycle."""
    above: list[Queue] = []
    parent = by_source.get(queue.parent or "")
    while parent is not None and parent is not queue and parent not in above:
        above.append(parent)
        parent = by_source.get(parent.parent or "")
    return above


def _below(parent: str | None, children: Mapping[str | None, list[Queue]]) -> Iterator[Queue]:
    """Each queue before its children."""
    for queue in children.get(parent, []):
        yield queue
        yield from _below(queue.source, children)


def _sum(children: list[Queue], field: str) -> Amounts:
    total: Amounts = {}
    for child in children:
        amounts: Amounts = getattr(child, field)
        for name, quantity in amounts.items():
            total[name] = total.get(name, 0) + quantity
    return total


def _collect(queue: Queue, children: list[Queue]) -> None:
    """Let a parent deserve what its children deserve."""
    total = _sum(children, "deserved")
    if queue.is_pool:
        for name, quantity in total.items():
            queue.deserved[name] = queue.deserved.get(name, 0) + quantity
        return
    raised = {
        name: quantity for name, quantity in total.items() if quantity > queue.deserved.get(name, 0)
    }
    if raised and any(name in queue.deserved for name in raised):
        queue.losses.append(f"deserves what its children deserve together: {_words(raised)}")
    queue.deserved |= raised


def _limit(
    queue: Queue, above: Mapping[str, int], children_of: Mapping[str | None, list[Queue]]
) -> None:
    """Bound a queue's capability by its ancestors', its deserved amounts by its capability, and
    those of its children by its own.
    """
    if queue.is_pool:
        queue.capability = {**queue.deserved, **queue.capability}
    cut = {
        name: above[name]
        for name, quantity in queue.capability.items()
        if name in above and quantity > above[name]
    }
    if cut:
        queue.losses.append(f"its capability is that of its parent: {_words(cut)}")
        queue.capability |= cut
    limits = {**above, **queue.capability}
    over = {
        name: limits[name]
        for name, quantity in queue.deserved.items()
        if name in limits and quantity > limits[name]
    }
    if over:
        queue.losses.append(f"deserves no more than its limit: {_words(over)}")
        queue.deserved |= over
    children = children_of.get(queue.source, [])
    for name, total in _sum(children, "deserved").items():
        most = queue.deserved.get(name, 0)
        if total <= most:
            continue
        for child in children:
            if name in child.deserved:
                child.deserved[name] = child.deserved[name] * most // total
        queue.losses.append(
            f"its children deserve {format_quantity(name, total)} {name} together, it has "
            f"{format_quantity(name, most)}: each is reduced in proportion"
        )
    for child in children:
        _limit(child, limits, children_of)


def _guarantee(queue: Queue, children: list[Queue]) -> None:
    """Bound a guarantee by the deserved amounts; let a parent guarantee what its children do."""
    for name, quantity in _sum(children, "guarantee").items():
        queue.guarantee[name] = max(quantity, queue.guarantee.get(name, 0))
    queue.guarantee = {
        name: min(quantity, queue.deserved.get(name, 0))
        for name, quantity in queue.guarantee.items()
        if min(quantity, queue.deserved.get(name, 0))
    }


def _words(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{quantity} {name}" for name, quantity in written(amounts).items())
