"""What a cycle works on: the node capacity, the policies, and how much work it may still do.

Budgets are counted in work, never in time, so that a cycle cut short is cut at the same place in a
replay.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from services.gang_planner.core.constraints.feasibility import Fits
from services.gang_planner.core.constraints.inter_pod.rules import PairRules
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.framework.policy_set import PolicySet, ScoreCache
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import Structure
from services.gang_planner.core.state.node_capacity import FreeOnUsable, NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry, ShapeTable
from services.gang_planner.core.state.queues import QueueEntry

#: Node columns examined in one cycle: about 200 ms of numpy on a small core.
WORK_MAX: Final = 8_000_000
#: What each action may do, even if gangs that do not fit have used up the work of those before it.
ACTION_WORK: Final = WORK_MAX // 4
#: Bindings decided in one cycle, a single larger gang excepted: the first decision must not wait
#: for the last.
BINDINGS_MAX: Final = 2_000
#: No bound on the pods in flight.
_UNBOUNDED: Final = 1 << 40


class Session:
    """One node capacity under one configuration; cycles share it, questions make their own."""

    def __init__(
        self, node_capacity: NodeCapacity, shapes: ShapeTable, masks: Masks, policies: PolicySet
    ) -> None:
        self.node_capacity = node_capacity
        self.shapes = shapes
        self.policies = policies
        self.pairs = PairRules(node_capacity, shapes.terms, policies.pairwise)
        self.fits = Fits(node_capacity, masks, policies.capacity_filters, self.pairs)
        self.score_cache = ScoreCache(node_capacity, policies)
        self.work_left = WORK_MAX
        self.bindings_left = BINDINGS_MAX
        #: Pods that are decided and not answered, their limit, and how many more there may be.
        self.in_flight = 0
        self.in_flight_max = _UNBOUNDED
        self.admitted = _UNBOUNDED
        self.free_on_usable = FreeOnUsable(node_capacity)
        #: What gangs can use, as worked out in this cycle (`usable_amounts`); None: it is not yet.
        self.usable: list[int] | None = None
        #: What the whole cluster has, by resource row, as of the beginning of the cycle.
        self.totals: list[int] = []

    def on_empty_nodes(self) -> "Session":
        """A session for the same nodes without any pods, as if all were in service, to check what
        they could ever hold.
        """
        nodes = self.node_capacity.nodes
        in_service = nodes.in_service()
        masks = self.fits.masks
        if in_service is not nodes:
            masks = Masks(in_service, masks.filters)
        return Session(self.node_capacity.emptied(), self.shapes, masks, self.policies)

    def begin(self, pods_in_flight: int = 0, in_flight_max: int = 0) -> None:
        """Begin a cycle with full budgets, and with this many pods decided and not bound yet; at
        most `in_flight_max` may be (0: any number).
        """
        self.work_left = WORK_MAX
        self.bindings_left = BINDINGS_MAX
        self.usable = None
        self.pairs.trim()
        self.in_flight = pods_in_flight
        self.in_flight_max = in_flight_max or _UNBOUNDED
        self.admitted = max(self.in_flight_max - self.in_flight, 0)
        self.totals = self.node_capacity.nodes.totals()

    @property
    def exhausted(self) -> bool:
        """Whether this cycle's budget is spent."""
        return self.work_left <= 0 or self.bindings_left <= 0

    def spend(self, bindings: int) -> None:
        """Charge decided bindings to the cycle's budget and to the in-flight limit."""
        self.bindings_left -= bindings
        self.in_flight += bindings
        self.admitted = max(self.in_flight_max - self.in_flight, 0)

    def allowed_nodes(self, queue: QueueEntry, structure: Structure | None) -> Bools | None:
        """Nodes that a gang of this queue and structure may use, one flag per slot; None: all."""
        mask: Bools | None = None
        for requirement in structure.nodes if structure is not None else ():
            holds = self.node_capacity.nodes.holding(requirement)
            mask = holds if mask is None else mask & holds
        return self.policies.within(queue, mask)

    def total(self, shape: ShapeEntry) -> int:
        """How many pods of the shape fit now, alone."""
        self.work_left -= self.fits.cost(shape)
        return self.fits.total(shape)


def in_turns(session: Session, gangs: Iterable[Gang]) -> Iterator[Gang]:
    """The gangs in order, except that those of a namespace that has spent more than is left for all
    others come last. What is spent between two gangs is charged to the first one's namespace.

    Gangs that do not fit cost work in every cycle in which capacity is freed, and those of one
    tenant must not use up that of other tenants.
    """
    spent: Counter[str] = Counter()
    last: list[Gang] = []
    for gang in gangs:
        if spent[gang.namespace] > session.work_left:
            last.append(gang)
            continue
        work_left = session.work_left
        yield gang
        spent[gang.namespace] += work_left - session.work_left
    yield from last
