"""Distributes equal pods over nodes: which nodes take how many, for a whole gang at once.

The result is that of a loop that places pod after pod on the node with the highest score (ties: the
first by name), given that a node's score changes by its `slope` with each pod it takes:

* slope >= 0 (packing, or indifferent): a node that was best stays best, so nodes are filled up in
  order of score.
* slope < 0 (spreading): pods level the nodes like water. Every (node, n-th pod) has a key; the
  highest `wanted` keys win. Few candidates are laid out as a matrix; many are found by bisecting
  the level.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush

import numpy as np

from services.gang_planner.core.state.columns import Ints

#: Cells up to which laying out all keys is faster than bisecting.
_MATRIX_CELLS_MAX = 4096
#: Pods up to which looking for the best node pod by pod is faster than sorting nodes.
_ONE_BY_ONE_MAX = 16
#: Below every key: a node that is full.
_FULL = np.iinfo(np.int64).min


def distribute(wanted: int, capacity: Ints, score: Ints, slope: Ints | None, rank: Ints) -> Ints:
    """How many of `wanted` equal pods each node takes.

    Args:
        wanted: pods to place, at least 1 and at most the sum of `capacity`.
        capacity: how many each node can take.
        score: points of the first pod on each node.
        slope: change of points per further pod; None: none.
        rank: a distinct number per node, the lower the more preferred among equals.

    Returns:
        Counts, one per node, that add up to `wanted`.
    """
    first, step = _keys(score, slope, rank)
    if wanted <= _ONE_BY_ONE_MAX:
        return _one_by_one(wanted, capacity, first, step)
    if step is None:
        return _fill(wanted, capacity, first)
    return _level(wanted, capacity, first, step)


def in_turn(taken: Ints, score: Ints, slope: Ints | None, rank: Ints) -> Ints:
    """The node of each pod, in the order in which the loop would have placed them.

    Args:
        taken: what `distribute` found for the same scores.
        score: see `distribute`.
        slope: see `distribute`.
        rank: see `distribute`.

    Returns:
        One index per pod.
    """
    first, step = _keys(score, slope, rank)
    used = np.flatnonzero(taken)
    if step is None:
        used = used[np.argsort(-first[used])]
        return np.repeat(used, taken[used])
    counts = taken[used]
    nodes = np.repeat(used, counts)
    nth = np.arange(len(nodes), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    ordered: Ints = nodes[np.argsort(step[nodes] * nth - first[nodes])]
    return ordered


def take_turns(
    wanted: int,
    slots: Ints,
    capacity: Ints,
    score: Ints,
    rank: Ints,
    score_after: Callable[[Ints, int], Ints],
) -> Ints:
    """The node of each of up to `wanted` equal pods, placed one by one on the node with the highest
    score (ties: the first by name).

    Unlike `distribute`, it does not take scores for linear.

    Args:
        wanted: at least 1.
        slots: the nodes.
        capacity: see `distribute`.
        score: see `distribute`.
        rank: see `distribute`.
        score_after: points of the next pod on each of some slots, after a number of pods there.

    Returns:
        One slot per pod.
    """
    first, _ = _keys(score, None, rank)
    span = int(rank.max(initial=0)) + 1
    if len(first) > wanted:
        # A node that is not among the best `wanted` is never the best one.
        best = np.sort(np.argpartition(-first, wanted - 1)[:wanted])
        slots, capacity, rank, first = slots[best], capacity[best], rank[best], first[best]
    #: Keys of each node after 0, 1, … pods.
    levels = [first]
    taken = [0] * len(slots)
    heap = [(-key, at) for at, key in enumerate(first.tolist())]
    heapify(heap)
    turns: list[int] = []
    while heap and len(turns) < wanted:
        _, at = heappop(heap)
        turns.append(at)
        taken[at] += 1
        if taken[at] == capacity[at]:
            continue
        if taken[at] == len(levels):
            level = np.zeros(len(slots), dtype=np.int64)
            more = np.flatnonzero(capacity > taken[at])
            level[more] = score_after(slots[more], taken[at]) * span + (span - 1 - rank[more])
            levels.append(level)
        heappush(heap, (-int(levels[taken[at]][at]), at))
    found: Ints = slots[turns]
    return found


def _keys(score: Ints, slope: Ints | None, rank: Ints) -> tuple[Ints, Ints | None]:
    """The key of each node's first pod, all distinct, and by how much it falls with each further
    one; None: nodes are filled up one after the other.
    """
    span = int(rank.max(initial=0)) + 1
    first = score * span + (span - 1 - rank)
    if slope is None or not bool((slope < 0).any()):
        return first, None
    # A node whose score does not fall is full before the next is touched: the least fall keeps keys
    # distinct.
    return first, np.maximum(-slope, 1) * span


def _one_by_one(wanted: int, capacity: Ints, first: Ints, step: Ints | None) -> Ints:
    """The definition itself: the best node, again and again; without a step until it is full."""
    counts = np.zeros(len(capacity), dtype=np.int64)
    keys = np.where(capacity > 0, first, _FULL)
    while wanted:
        at = int(keys.argmax())
        most = int(capacity[at] - counts[at])
        taken = min(most, wanted) if step is None else 1
        counts[at] += taken
        wanted -= taken
        if taken == most:
            keys[at] = _FULL
        elif step is not None:
            keys[at] -= step[at]
    return counts


def _fill(wanted: int, capacity: Ints, first: Ints) -> Ints:
    """Fill nodes up in order of their keys."""
    counts = np.zeros(len(capacity), dtype=np.int64)
    open_slots = np.flatnonzero(capacity)
    if len(open_slots) > wanted:
        best = np.argpartition(-first[open_slots], wanted - 1)[:wanted]
        open_slots = open_slots[best]
    order = open_slots[np.argsort(-first[open_slots])]
    reached = np.cumsum(capacity[order])
    last = int(np.searchsorted(reached, wanted))
    counts[order[:last]] = capacity[order[:last]]
    counts[order[last]] = wanted - (int(reached[last - 1]) if last else 0)
    return counts


def _level(wanted: int, capacity: Ints, first: Ints, step: Ints) -> Ints:
    """Give pods to the highest keys; only the `wanted` best nodes can win any."""
    counts = np.zeros(len(capacity), dtype=np.int64)
    open_slots = np.flatnonzero(capacity)
    if len(open_slots) > wanted:
        best = np.argpartition(-first[open_slots], wanted - 1)[:wanted]
        open_slots = open_slots[best]
    first, step = first[open_slots], step[open_slots]
    most = np.minimum(capacity[open_slots], wanted)
    if len(open_slots) * int(most.max()) <= _MATRIX_CELLS_MAX:
        counts[open_slots] = _level_by_matrix(wanted, most, first, step)
    else:
        counts[open_slots] = _level_by_bisection(wanted, most, first, step)
    return counts


def _level_by_matrix(wanted: int, most: Ints, first: Ints, step: Ints) -> Ints:
    nth = np.arange(int(most.max()), dtype=np.int64)
    keys = first[:, None] - step[:, None] * nth
    allowed = nth < most[:, None]
    ordered = np.sort(keys[allowed])
    won: Ints = np.count_nonzero((keys >= ordered[-wanted]) & allowed, axis=1).astype(np.int64)
    return won


def _level_by_bisection(wanted: int, most: Ints, first: Ints, step: Ints) -> Ints:
    low = int((first - step * (most - 1)).min())
    high = int(first.max()) + 1
    # At level `low` all are taken, at `high` none; keys are distinct, so some level takes exactly
    # `wanted`, and it does not matter which one is found. What is taken falls nearly evenly with
    # the level, so a straight line between the ends meets it soon; every third probe halves.
    above, below = int(most.sum()) - wanted, wanted
    probes = 0
    while above and high - low > 1:
        probes += 1
        ahead = (high - low) * above // (above + below) if probes % 3 else (high - low) // 2
        middle = min(max(low + ahead, low + 1), high - 1)
        surplus = int(_above(middle, most, first, step).sum()) - wanted
        if surplus >= 0:
            low, above = middle, surplus
        else:
            high, below = middle, -surplus
    return _above(low, most, first, step)


def _above(level: int, most: Ints, first: Ints, step: Ints) -> Ints:
    taken: Ints = np.clip((first - level) // step + 1, 0, most)
    return taken
