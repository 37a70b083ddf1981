"""What would let a waiting gang start at once: the smallest single changes, each proved by planning
it on a copy of the planner that nothing else uses.

A change of the group keeps the gang's turn. For a change of its pods, or of its queue, its user
creates it again: then it is the youngest, and the proof says that it starts even so.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import msgspec

from services.gang_planner.core.forecast.present import Present
from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.instants import duration
from services.gang_planner.core.state.taints import first_untolerated
from services.gang_planner.core.state.titles import title_of
from shared.contracts.questions import Suggestion, SuggestionKind
from shared.model.objects import Node, Resources, Shape, Taint, Toleration

#: Of what is tried one after the other: queues, taints, kinds of nodes, gangs that may end.
_TRIED_MAX: Final = 8
_NODES_MAX: Final = 2_048
#: Changes of which other gangs may have the use.
_FREES: Final = frozenset({"end", "nodes"})
#: A reservation is planned once in this time.
_PLANNED_MS: Final = 1_000
_MINUTE_MS: Final = 60_000
#: Requests become smaller in these steps, in percent.
_STEP: Final = 5
_HOSTNAME: Final = "kubernetes.io/hostname"
#: Taints that Kubernetes sets for a while, and for a reason.
_CONDITION: Final = "node.kubernetes.io/"


class Change(NamedTuple):
    """One change, and how to make it where nothing else is planned."""

    kind: SuggestionKind
    words: str
    make: Callable[[Present, Gang], None]


Trial: TypeAlias = Callable[[Change], bool]
"""Whether the gang starts at once with a change, planned on a copy of its own."""


def suggestions_for(gang: Gang, present: Present, trial: Trial) -> Iterator[Suggestion]:
    """The changes that let the gang start, in the order of what they cost its user."""
    searches = (
        *(_run_limit, _topology, _queue, _node_rules, _toleration),
        *(_minimum, _requests, _end, _nodes),
    )
    for search in searches:
        change = search(gang, present, trial)
        if change is not None:
            yield Suggestion(kind=change.kind, change=change.words)


def starts_with(change: Change, present: Present, gang: Gang) -> bool:
    """Whether the gang starts with the change; the present is changed. Capacity that was freed goes
    to gangs before it first, and their reservations are planned again.
    """
    change.make(present, gang)
    for later_ms in (0, _PLANNED_MS) if change.kind in _FREES else (0,):
        present.decide(present.now_ms + later_ms)
        again = present.state.gangs.gangs.get(gang.key)
        if again is not None and again.gang_id in present.starts:
            return True
    return False


def _first(changes: Iterable[Change], trial: Trial) -> Change | None:
    return next(filter(trial, islice(changes, _TRIED_MAX)), None)


def _least(low: int, high: int, change: Callable[[int], Change], trial: Trial) -> Change | None:
    """The change with the least number from `low` to `high` that suffices, if larger ones do."""
    if low > high or not trial(change(high)):
        return None
    while low < high:
        middle = (low + high) // 2
        if trial(change(middle)):
            high = middle
        else:
            low = middle + 1
    return change(high)


# ------------------------------------------------------------------ of the group


def _run_limit(gang: Gang, _: Present, trial: Trial) -> Change | None:
    delay = gang.bucket.would_delay if gang.bucket is not None else None
    limit_ms = delay.most_ms // _MINUTE_MS * _MINUTE_MS if delay is not None else 0
    if not limit_ms:
        return None
    words = f"with a run limit of at most {duration(limit_ms)}"
    make = partial(Present.regroup, run_limit_s=limit_ms // 1_000)
    return _first([Change("runLimit", words, make)], trial)


def _minimum(gang: Gang, _: Present, trial: Trial) -> Change | None:
    least = gang.min_member
    if gang.group is None or gang.group.sub_groups or gang.role_minima:
        return None

    def change(fewer: int) -> Change:
        words = f"with a minimum of {_count(least - fewer, 'member')} instead of {least}"
        return Change("minimum", words, partial(Present.regroup, min_member=least - fewer))

    return _least(1, least - 1, change, trial)


# ------------------------------------------------------- of what is created again


def _queue(gang: Gang, present: Present, trial: Trial) -> Change | None:
    others = (
        name
        for name, entry in sorted(present.state.queues.entries.items())
        if entry is not gang.queue and entry.queue is not None and not entry.has_children
    )
    return _first(
        (
            Change(
                "queue",
                f"in queue {name}, if its namespace may use it",
                partial(Present.create_again, queue=name),
            )
            for name in others
        ),
        trial,
    )


def _topology(gang: Gang, _: Present, trial: Trial) -> Change | None:
    topology = gang.group.topology if gang.group is not None else None
    if topology is None or topology.mode != "hard":
        return None
    softer = msgspec.structs.replace(topology, mode="soft")
    make = partial(Present.create_again, topology=softer)
    return _first([Change("topology", "with a soft network topology, not a hard one", make)], trial)


def _node_rules(gang: Gang, present: Present, trial: Trial) -> Change | None:
    shapes = present.shapes_of(gang)
    if not any(shape.node_selector or shape.node_affinity is not None for shape in shapes):
        return None
    make = partial(Present.create_again, reshape=_anywhere)
    words = "without its node selector and its required node affinity"
    return _first([Change("nodeRules", words, make)], trial)


def _anywhere(shape: Shape) -> Shape:
    return msgspec.structs.replace(shape, node_selector=(), node_affinity=None)


def _toleration(gang: Gang, present: Present, trial: Trial) -> Change | None:
    own = {shape.tolerations for shape in present.shapes_of(gang)}
    taints = Counter(
        taint
        for node in present.nodes()
        for tolerations in own
        if (taint := first_untolerated(tolerations, node.taints)) is not None
    )
    lasting = (taint for taint, _ in taints.most_common() if not taint.key.startswith(_CONDITION))
    return _first(map(_tolerated, lasting), trial)


def _tolerated(taint: Taint) -> Change:
    toleration = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)

    def tolerant(shape: Shape) -> Shape:
        return msgspec.structs.replace(shape, tolerations=(*shape.tolerations, toleration))

    value = f"={taint.value}" if taint.value else ""
    words = f"with a toleration of the taint {taint.key}{value}:{taint.effect}"
    return Change("tolerations", words, partial(Present.create_again, reshape=tolerant))


def _requests(gang: Gang, present: Present, trial: Trial) -> Change | None:
    shapes = present.shapes_of(gang)
    resources = sorted({name for shape in shapes for name, _ in shape.requests} - {"pods"})
    changes = (_smaller(resource, shapes, trial) for resource in islice(resources, _TRIED_MAX))
    return next(filter(None, changes), None)


def _smaller(resource: str, shapes: list[Shape], trial: Trial) -> Change | None:
    """The change to the largest amount of a resource with which the gang starts."""

    def change(steps: int) -> Change:
        percent = 100 - _STEP * steps

        def less(shape: Shape) -> Shape:
            requests = tuple(
                (name, _part(amount, percent) if name == resource else amount)
                for name, amount in shape.requests
            )
            return msgspec.structs.replace(shape, requests=requests)

        amounts = sorted({dict(shape.requests).get(resource, 0) for shape in shapes})
        words = f"with {percent} % of its requests of {resource}"
        if len(amounts) == 1:
            most = in_words(resource, _part(amounts[0], percent))
            words = f"with {most} for each pod instead of {in_words(resource, amounts[0])}"
        return Change("requests", words, partial(Present.create_again, reshape=less))

    return _least(1, 100 // _STEP - 1, change, trial)


def _part(amount: int, percent: int) -> int:
    """Whole units: devices cannot be shared."""
    return amount * percent // 100


# ---------------------------------------------------------------- of the cluster


def _end(gang: Gang, present: Present, trial: Trial) -> Change | None:
    """A gang of the same namespace that ends: others are not its user's to end, or to know."""
    running = sorted(
        (
            other
            for other in present.state.gangs.gangs.values()
            if other.namespace == gang.namespace and other.have() and other is not gang
        ),
        key=lambda other: (len(other.members), other.key),
    )
    return _first(
        (
            Change(
                "end",
                f"when {title_of(present.state, other)} ends",
                partial(_ended, other),
            )
            for other in running
        ),
        trial,
    )


def _ended(other: Gang, present: Present, _: Gang) -> None:
    present.end(other)


def _nodes(_gang: Gang, present: Present, trial: Trial) -> Change | None:
    kinds: dict[tuple[object, ...], Node] = {}
    for node in present.nodes():
        labels = tuple(label for label in node.labels if label[0] != _HOSTNAME)
        if node.ready and not node.unschedulable:
            kinds.setdefault((node.allocatable, labels, node.taints), node)
    changes = (_more(node, trial) for node in islice(kinds.values(), _TRIED_MAX))
    return next(filter(None, changes), None)


def _more(node: Node, trial: Trial) -> Change | None:
    def change(count: int) -> Change:
        words = f"with {_count(count, 'more node')} like {node.name} ({_listed(node.allocatable)})"
        return Change("nodes", words, partial(_added, node, count))

    few = _least(1, 16, change, trial)
    return few or _least(17, _NODES_MAX, change, trial)


def _added(node: Node, count: int, present: Present, _: Gang) -> None:
    present.add_nodes(node, count)


def _listed(allocatable: Resources) -> str:
    return listed([in_words(name, amount) for name, amount in allocatable if name != "pods"])


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
