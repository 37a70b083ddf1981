"""Dominant resource fairness: orders gangs by their dominant share, the largest part of any
cluster resource that they hold; the smallest share goes first. To reach its minimum, a gang may
preempt gangs whose share afterwards is still at least its own (flag `enablePreemptable`), unless a
policy of an earlier tier decides which gangs may preempt, as `priority` does.

With `enableHierarchy`, queues take turns by the annotations `volcano.sh/hierarchy` and
`volcano.sh/hierarchy-weights`: at each level, the subtree with the smallest dominant share per
weight goes first.
"""

from collections.abc import Sequence
from typing import Final

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRules
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.columns import add_amounts, dominant_share
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import ROOT, QueueEntry

#: Paths are compared up to this depth.
_LEVELS: Final = 8


def build(arguments: Arguments) -> Policy:
    """Flag `enableHierarchy`."""
    hierarchical = arguments.flag("enableHierarchy")
    return Policy(
        name="drf",
        group_key=_group_key,
        queue_key=_queue_key if hierarchical else None,
        victims=VictimRules(entitles=frozenset({"share"}), on_reclaim=False),
    )


def _group_key(gang: Gang, state: State) -> tuple[int, ...]:
    if not gang.held:
        return (0,)
    return (dominant_share(state.shapes.sums(gang.held.items()), state.nodes.totals()),)


def _queue_key(queue: QueueEntry, totals: Sequence[int], state: State) -> tuple[int, ...]:
    """Dominant share per weight of the subtree at each level of the queue's path."""
    levels: list[int] = []
    path, weights = _path(queue), _weights(queue)
    for depth in range(1, min(len(path), _LEVELS) + 1):
        held: dict[int, int] = {}
        for entry in state.queues.entries.values():
            if _path(entry)[:depth] == path[:depth]:
                add_amounts(held, entry.used.items())
        levels.append(dominant_share(held, totals) // weights[depth - 1])
    return (*levels, *([-1] * (_LEVELS - len(levels))))


def _path(queue: QueueEntry) -> tuple[str, ...]:
    """Names on a queue's path below the root; without the annotation, only the queue's name."""
    text = queue.queue.hierarchy if queue.queue is not None else ""
    names = tuple(name for name in text.split("/") if name)
    if names[:1] == (ROOT,):
        names = names[1:]
    return names or (queue.name,)


def _weights(queue: QueueEntry) -> tuple[int, ...]:
    """One weight per name of the path; 1 where it is missing or not a whole number."""
    path = _path(queue)
    text = queue.queue.hierarchy_weights if queue.queue is not None else ""
    given = [part for part in text.split("/") if part]
    whole = queue.queue.hierarchy if queue.queue is not None else ""
    if whole.lstrip("/").split("/")[0] == ROOT:
        given = given[1:]
    weights = [max(int(part), 1) if part.isascii() and part.isdigit() else 1 for part in given]
    return (*weights, *([1] * len(path)))[: len(path)]
