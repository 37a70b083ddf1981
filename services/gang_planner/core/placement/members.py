"""Places members of one role and shape, as many as fit, on the nodes with the best scores.

The result is that of a loop that places pod after pod on the node with the highest score (ties: the
first by name). There are three strategies:

* Members that do not depend on each other are distributed over all nodes at once (`distribute`),
  given that a node's score changes by its `slope` with each pod it takes:
  * slope >= 0 (packing, or indifferent): a node that was best stays best, so nodes are filled up in
    order of score.
  * slope < 0 (spreading): pods level the nodes like water. Every (node, n-th pod) has a key; the
    highest `wanted` keys win. Few candidates are laid out as a matrix; many are found by bisecting
    the level.
* Pods that are alike and not equal have scores that are not linear, and take turns (`take_turns`).
* Members whose terms about other pods may concern each other are placed one by one, where the
  effect of one on the next is not simple (`place_dependent`). So are members with claims that
  decide more than numbers, and those to which a policy gives points for members placed before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from services.gang_planner.core.constraints.inter_pod.rules import (
    Even,
    PairRules,
    PairView,
    most_allowed,
)
from services.gang_planner.core.framework.policy import Place
from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.scoring.inter_pod import Preferences
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.needs import NO_SUB_GANG, NOTHING_SAID, Structure
from services.gang_planner.core.state.pod_shapes import ShapeEntry, stand_in
from shared.model.invariants import required

#: Cells up to which laying out all keys is faster than bisecting.
_MATRIX_CELLS_MAX: Final = 4096
#: Pods up to which looking for the best node pod by pod is faster than sorting nodes.
_ONE_BY_ONE_MAX: Final = 16
#: Below every key: a node that is full.
_FULL: Final = np.iinfo(np.int64).min
#: No candidate: below every key, and its negative is above.
_NONE: Final = -(2**62)
#: Domains that the first pod of a series is tried in, when not all fit into any.
_SERIES_TRIES_MAX: Final = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class MembersRequest:
    """Members to place."""

    #: Records the allocations. The quota and the nodes of its queue bound the number.
    statement: Statement
    role: str
    shape: ShapeEntry
    #: How many at most.
    wanted: int
    #: Slots that are not used; None: all are.
    avoid: Ints | None = None
    #: Fill nodes one after the other, whatever the scores say of further pods.
    packed: bool = False
    #: One flag per slot, only these are used (a topology domain); None: all.
    within: Bools | None = None
    #: Name of their sub-gang.
    part: str = NO_SUB_GANG
    #: What their gang demands of nodes beyond numbers; None: nothing.
    structure: Structure | None = None

    def allocate(self, shape: ShapeEntry, slots: Ints, counts: Ints) -> None:
        """Allocate so many members on each of these nodes."""
        self.statement.allocate(Allocation(self.role, shape, slots, counts, self.part))


class CandidateNodes(NamedTuple):
    """Nodes that may take pods, as parallel arrays."""

    slots: Ints
    #: How many pods each holds.
    capacity: Ints
    score: Ints
    #: Change of the score per pod; None: none.
    slope: Ints | None
    #: A distinct number per node, the lower the more preferred among equals.
    rank: Ints

    def only(self, chosen: Bools) -> "CandidateNodes":
        return CandidateNodes(
            self.slots[chosen],
            self.capacity[chosen],
            self.score[chosen],
            self.slope[chosen] if self.slope is not None else None,
            self.rank[chosen],
        )


def place_members(session: Session, request: MembersRequest) -> int:
    """Allocate as many of the members as fit; returns how many."""
    shape, wanted, policies = request.shape, request.wanted, session.policies
    if shape.alike and policies.place_points:
        # Points depend on the members placed before.
        each = (replace(request, shape=shape, wanted=1) for shape in shape.alike[:wanted])
        return sum(place_members(session, member) for member in each)
    if wanted > 1 and shape.attached and session.node_capacity.one_by_one(shape):
        placed, single = 0, replace(request, wanted=1)
        while placed < wanted and place_members(session, single):
            placed += 1
        return placed
    queue = required(request.statement.queue, request.role, "is placed for no queue")
    wanted = queue.headroom(shape, wanted)
    if wanted <= 0:
        return 0
    within = policies.within(queue, request.within)
    nodes = _candidates(session, request, within)
    if nodes is None:
        return 0
    if shape.alike:
        return _place_alike(session, request, wanted, nodes)
    if policies.place_points:
        place = Place(
            queue,
            request.role,
            shape,
            session.node_capacity,
            request.statement,
            request.structure or NOTHING_SAID,
        )
        score, slope = policies.with_points(
            place, nodes.slots, nodes.score, nodes.slope, packed=request.packed
        )
        nodes = nodes._replace(score=score, slope=slope)
    view = session.pairs.view(shape) if shape.pairwise else None
    if view is None:
        pods = _distributed(nodes, wanted)
    else:
        pods = place_dependent(session.pairs, view, nodes, wanted)
        session.work_left -= pods.work
    if pods.total:
        request.allocate(shape, pods.slots, pods.counts)
    return pods.total


def place_batch(
    session: Session, request: MembersRequest, counts: Sequence[int], order: Ints
) -> Iterator[list[int]]:
    """Allocate members of many gangs at once.

    The caller knows that their queues may have them and use all of `within`, that they fit there,
    and that only the scores of nodes decide where.

    Args:
        session: Its budget is charged.
        request: The members of all gangs.
        counts: How many of them each gang has; gangs get their nodes in the order in which they
            would have been placed one by one.
        order: The place of each slot in the order of topology and names.

    Returns:
        Each gang's slots, in that order.
    """
    nodes = required(
        _candidates(session, request, request.within),
        "a batch",
        "was gathered for nodes that hold none of its members",
    )
    taken = distribute(request.wanted, nodes)
    used = np.flatnonzero(taken)
    request.allocate(request.shape, nodes.slots[used], taken[used])
    turns: Ints = nodes.slots[in_turn(taken, nodes)]
    if max(counts) > 1:
        owners = np.repeat(np.arange(len(counts)), counts)
        turns = turns[np.lexsort((order[turns], owners))]
    listed: list[int] = turns.tolist()
    ends = accumulate(counts)
    return iter([listed[end - count : end] for end, count in zip(ends, counts, strict=True)])


def _candidates(
    session: Session, request: MembersRequest, within: Bools | None
) -> CandidateNodes | None:
    """Nodes that can hold a member, with their scores; None: there are none."""
    shape = request.shape
    counts = session.fits.counts(shape)
    session.work_left -= session.fits.cost(shape) + len(counts)
    slots = np.flatnonzero(counts)
    if request.avoid is not None and len(request.avoid):
        slots = slots[~np.isin(slots, request.avoid)]
    if within is not None:
        slots = slots[within[slots]]
    if not len(slots):
        return None
    score, slope = session.score_cache.of(shape)
    # Without a slope nodes are filled up, which leaves the most nodes to other shapes.
    slope = None if request.packed or slope is None else slope[slots]
    rank = session.node_capacity.nodes.rank()[slots]
    points = score[slots]
    if shape.device_keys:
        points = points + session.policies.claim_points(shape, session.node_capacity, slots)
    return CandidateNodes(slots, counts[slots], points, slope, rank)


def _place_alike(
    session: Session, request: MembersRequest, wanted: int, nodes: CandidateNodes
) -> int:
    """Place up to `wanted` of the pods that the shape stands for, each where it would be placed
    alone after those before it.
    """
    shape = request.shape

    def score_after(slots: Ints, pods: int) -> Ints:
        return session.score_cache.after(shape, slots, pods)

    slots = take_turns(wanted, nodes, score_after)
    order: list[int] = np.argsort(slots, kind="stable").tolist()
    used, counts = np.unique(slots, return_counts=True)
    in_order = stand_in([shape.alike[at] for at in order], shape.counted)
    request.allocate(in_order, used, counts)
    return len(slots)


# ---------------------------------------------------------------- distribution


def distribute(wanted: int, nodes: CandidateNodes) -> Ints:
    """How many of `wanted` equal pods each node takes: one count per node. `wanted` is at least 1
    and at most the sum of their capacities.
    """
    first, step = _keys(nodes)
    capacity = nodes.capacity
    if wanted <= _ONE_BY_ONE_MAX:
        return _one_by_one(wanted, capacity, first, step)
    if step is None:
        return _fill(wanted, capacity, first)
    return _level(wanted, capacity, first, step)


def in_turn(taken: Ints, nodes: CandidateNodes) -> Ints:
    """The index of each pod's node, in the order in which the loop would have placed them. `taken`:
    what `distribute` found.
    """
    first, step = _keys(nodes)
    used = np.flatnonzero(taken)
    if step is None:
        used = used[np.argsort(-first[used])]
        return np.repeat(used, taken[used])
    counts = taken[used]
    each = np.repeat(used, counts)
    nth = np.arange(len(each), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    ordered: Ints = each[np.argsort(step[each] * nth - first[each])]
    return ordered


def take_turns(
    wanted: int, nodes: CandidateNodes, score_after: Callable[[Ints, int], Ints]
) -> Ints:
    """The slot of each of up to `wanted` pods, placed one by one on the node with the highest
    score. Unlike `distribute`, it does not take scores for linear.

    `score_after`: points of the next pod on each of some slots, after a number of pods there.
    """
    slots, capacity, _, _, rank = nodes
    first = _keys_of(nodes)
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
    spots: Ints = slots[turns]
    return spots


def _keys_of(nodes: CandidateNodes) -> Ints:
    """Distinct numbers, the higher the better."""
    span = int(nodes.rank.max(initial=0)) + 1
    keys: Ints = nodes.score * span + (span - 1 - nodes.rank)
    return keys


def _keys(nodes: CandidateNodes) -> tuple[Ints, Ints | None]:
    """The key of each node's first pod, and by how much it falls with each further one; None: nodes
    are filled up one after the other.
    """
    first, slope = _keys_of(nodes), nodes.slope
    if slope is None or not bool((slope < 0).any()):
        return first, None
    span = int(nodes.rank.max(initial=0)) + 1
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


# ------------------------------------------- members that depend on each other


class PodCounts(NamedTuple):
    """How many pods go where; slots are distinct, counts positive."""

    slots: Ints
    counts: Ints
    #: CandidateNodes compared on the way, for the session's budget.
    work: int

    @property
    def total(self) -> int:
        return int(self.counts.sum())


def place_dependent(
    rules: PairRules, view: PairView, nodes: CandidateNodes, wanted: int
) -> PodCounts:
    """Place up to `wanted` pods whose terms about other pods may concern each other: those of the
    view's shape, within the current state of `rules`.

    All are placed at once where the effect of one pod on the next is simple: none (their terms
    select other pods), or that it takes a domain for itself. Otherwise they are placed one by one,
    still by arrays over the candidates; shared state is not changed before the end, so one step
    costs a few comparisons per candidate.
    """
    if rules.first_of_series(view):
        return _place_series(rules, view, nodes, wanted)
    return _place(rules, view, nodes, wanted)


def _place_series(
    rules: PairRules, view: PairView, nodes: CandidateNodes, wanted: int
) -> PodCounts:
    """Place pods that have to be near each other: the first one's domain is that of all, so the
    domains that hold most of them are tried.
    """
    together: Ints = np.zeros(len(nodes.slots), dtype=np.int64)
    for key in view.affinity_keys:
        domains = rules.of_slot(key)[nodes.slots]
        _, together = np.unique(
            together * (int(domains.max(initial=0)) + 1) + domains, return_inverse=True
        )
    fitting = np.bincount(together, weights=np.minimum(nodes.capacity, wanted)).astype(np.int64)
    best: Ints = np.full(len(fitting), _NONE, dtype=np.int64)
    np.maximum.at(best, together, _keys_of(nodes))
    order = np.lexsort((-best, -np.minimum(fitting, wanted)))
    fullest = PodCounts(nodes.slots[:0], nodes.capacity[:0], 0)
    work = 0
    for domain in order[:_SERIES_TRIES_MAX].tolist():
        tried = _place(rules, view, nodes.only(together == domain), wanted)
        work += tried.work
        if tried.total > fullest.total:
            fullest = tried
        if fullest.total >= wanted:
            break
    return fullest._replace(work=work)


def _place(rules: PairRules, view: PairView, nodes: CandidateNodes, wanted: int) -> PodCounts:
    allowed = rules.open_now(view)[nodes.slots]
    nodes = nodes.only(allowed)
    evens = [even for even in view.even if even.own and even.tally is not None]
    preferences = None
    if view.pulls or view.preferred_even:
        preferences = Preferences(rules, view, nodes.slots)
    if evens or len(view.own_apart) > 1 or (preferences is not None and preferences.moving):
        return _Steps(rules, view, nodes, evens, preferences).run(wanted)
    if preferences is not None:
        points = preferences.points(np.ones(len(nodes.slots), dtype=np.bool_))
        nodes = nodes._replace(score=nodes.score + points)
    if view.own_apart:
        nodes = _one_per_domain(rules.of_slot(view.own_apart[0])[nodes.slots], nodes)
    return _distributed(nodes, wanted)


def _distributed(nodes: CandidateNodes, wanted: int) -> PodCounts:
    """Up to `wanted` pods, distributed over the nodes."""
    wanted = min(wanted, int(nodes.capacity.sum()))
    if wanted <= 0:
        return PodCounts(nodes.slots[:0], nodes.capacity[:0], len(nodes.slots))
    taken = distribute(wanted, nodes)
    used = np.flatnonzero(taken)
    return PodCounts(nodes.slots[used], taken[used], len(nodes.slots))


def _one_per_domain(domains: Ints, nodes: CandidateNodes) -> CandidateNodes:
    """The best node of each domain, for one pod; nodes outside of all domains as they are."""
    free: Bools = domains == 0
    nodes = nodes._replace(capacity=np.where(free, nodes.capacity, 1))
    sizes = np.bincount(domains)
    if not len(sizes) or int(sizes[1:].max(initial=0)) <= 1:
        # Every node is a domain of its own.
        return nodes
    order = np.argsort(_keys_of(nodes))
    best: Ints = np.zeros(len(sizes), dtype=np.int64)
    # Of several writes to one place the last one stays: the best node's.
    best[domains[order]] = order
    chosen = free.copy()
    chosen[best[np.flatnonzero(sizes[1:]) + 1]] = True
    return nodes.only(chosen)


class _EvenNow:
    """A spread constraint while pods are placed."""

    def __init__(self, rules: PairRules, view: PairView, even: Even, slots: Ints) -> None:
        counts, self.present = rules.even_counts(view, even)
        self._even = even
        self.counts = counts.copy()
        self.domains = rules.of_slot(even.constraint.topology_key)[slots]
        #: Which candidates the constraint counts pods on.
        self.scoped = rules.scopes.of(view.shape, even.keys, even.constraint).mask[slots]

    def allows(self) -> Bools:
        allowed: Bools = self.counts <= most_allowed(self._even, self.counts, self.present)
        return allowed[self.domains]

    def place(self, candidate: int) -> None:
        if self.scoped[candidate]:
            self.counts[self.domains[candidate]] += 1


class _Steps:
    """Places pods one by one."""

    def __init__(
        self,
        rules: PairRules,
        view: PairView,
        nodes: CandidateNodes,
        evens: list[Even],
        preferences: Preferences | None,
    ) -> None:
        self._nodes = nodes
        self._evens = [_EvenNow(rules, view, even, nodes.slots) for even in evens]
        self._apart = [rules.of_slot(key)[nodes.slots] for key in view.own_apart]
        self._preferences = preferences
        self._capacity = nodes.capacity.copy()
        self._open: Bools = self._capacity > 0
        self._score = nodes.score.copy()
        self._span = int(nodes.rank.max(initial=0)) + 1
        self._by_rank: Ints = self._span - 1 - nodes.rank

    def run(self, wanted: int) -> PodCounts:
        slots = self._nodes.slots
        placed: Ints = np.zeros(len(slots), dtype=np.int64)
        steps = 0
        keys = self._keys(self._open)
        for _ in range(wanted):
            steps += 1
            may = self._open.copy()
            for even in self._evens:
                may &= even.allows()
            if self._preferences is not None:
                keys = self._keys(may)
            open_keys = np.where(may, keys, _NONE)
            best = int(open_keys.argmax()) if len(open_keys) else -1
            if best < 0 or open_keys[best] == _NONE:
                break
            placed[best] += 1
            self._take(best, keys)
        used = np.flatnonzero(placed)
        return PodCounts(slots[used], placed[used], steps * len(slots))

    def _take(self, best: int, keys: Ints) -> None:
        self._capacity[best] -= 1
        if not self._capacity[best]:
            self._open[best] = False
        for even in self._evens:
            even.place(best)
        for domains in self._apart:
            if domains[best]:
                self._open &= domains != domains[best]
        if self._preferences is not None:
            self._preferences.place(best)
        slope = self._nodes.slope
        if slope is not None:
            self._score[best] += slope[best]
            keys[best] += slope[best] * self._span

    def _keys(self, among: Bools) -> Ints:
        score = self._score
        if self._preferences is not None:
            score = score + self._preferences.points(among)
        keys: Ints = score * self._span + self._by_rank
        return keys
