"""The contributions of a policy to a cycle: sort keys, filters, and scores.

A policy never evaluates a single pod on a single node. It provides keys for gangs and queues, and
filters and scores that return arrays over nodes. Keys are compared in the order of the
configuration, all filters apply, and scores are added.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from services.gang_planner.core.constraints.filters import CapacityFilter, NodeFilter
from services.gang_planner.core.constraints.inter_pod.rules import NOTHING_ENABLED, Switches
from services.gang_planner.core.framework.admission import Voter
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRules
from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.scoring import NodeScore
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import Structure
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.past_use import UseRules
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry

GroupKey: TypeAlias = Callable[[Gang, State], tuple[int, ...]]
"""Sort key of a gang: the lowest goes first. All keys of a policy have the same length."""

QueueKey: TypeAlias = Callable[[QueueEntry, Sequence[int], State], tuple[int, ...]]
"""Sort key of a queue: the lowest has the next turn. The second argument is the cluster's total
amounts, by resource row.
"""

QueueShare: TypeAlias = Callable[[QueueEntry], int]
"""The part of its deserved amounts that a queue's subtree holds. Queues are compared level by
level: first by the shares of their ancestors, from the top, then by their own; the smaller share
goes first. A share may only change when a gang is charged to the queue.
"""

Deserve: TypeAlias = Callable[[QueueEntry, int], tuple[int, int | None]]
"""Returns (weight, maximum) of a queue for the resource in a row. Maximum None: the demand of the
queue's gangs, held and waiting.
"""


class Place(NamedTuple):
    """The next batch of members to place: one role and shape, with its context."""

    queue: QueueEntry
    role: str
    shape: ShapeEntry
    node_capacity: NodeCapacity
    #: Members of the gang that this attempt has placed.
    statement: Statement
    #: Topology, sub-gangs and roles of the gang.
    structure: Structure


QueueMask: TypeAlias = Callable[[QueueEntry, NodeTable], Bools | None]
"""Returns one flag per slot: whether gangs of the queue may use the node; None: all."""

PlacePoints: TypeAlias = Callable[[Place], tuple[Ints | None, int] | None]
"""Returns (points per slot, change per further member on the same node). Points None: equal for all
slots. Result None: no preference. It is evaluated again for every batch of members, because each
batch changes its input.
"""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The contributions of one policy; defaults contribute nothing."""

    name: str
    group_key: GroupKey | None = None
    queue_key: QueueKey | None = None
    #: The rank of a gang's user, which changes with time, in place of the first item of
    #: `group_key`; and how past use is recorded for it.
    users_rank: Callable[[Gang, State], int] | None = None
    use_rules: UseRules | None = None
    #: Used instead of `queue_key` if queues are compared level by level.
    queue_share: QueueShare | None = None
    #: Vote on a group that waits for admission.
    enqueue: Voter | None = None
    #: Admission deadline of a group in Unix milliseconds; 0: none.
    due_ms: Callable[[Gang], int] | None = None
    #: Index of the policy's tier; votes are combined tier by tier.
    tier: int = 0
    deserve: Deserve | None = None
    #: Whether queues have parents.
    hierarchical: bool = False
    node_filters: tuple[NodeFilter, ...] = ()
    capacity_filters: tuple[CapacityFilter, ...] = ()
    #: Enabled inter-pod rules and preferences.
    pairwise: Switches = NOTHING_ENABLED
    #: Restrictions on victims.
    victims: VictimRules | None = None
    #: (weight, score).
    scores: tuple[tuple[int, NodeScore], ...] = ()
    #: Nodes that gangs of a queue may use.
    queue_mask: QueueMask | None = None
    #: Preferences that depend on more than the shape.
    place_points: PlacePoints | None = None
    #: Whether the annotations on a gang's roles are read.
    reads_tasks: bool = False


Build: TypeAlias = Callable[[Arguments], Policy]
"""Makes a policy from its arguments; raises `ConfigurationError` for an invalid argument."""
