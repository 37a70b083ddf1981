"""What a policy can contribute to a cycle: keys that order, rules that keep nodes out, preferences
among nodes.

A policy never sees one pod beside one node: it returns keys for gangs and queues, and objects that
answer with arrays. Tiers combine contributions: keys are compared in the order of the
configuration, filters all apply, scores add up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from services.gang_planner.core.constraints.filters import CapacityFilter, NodeFilter
from services.gang_planner.core.constraints.inter_pod.switches import NOTHING, Switches
from services.gang_planner.core.framework.admission import Voter
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRule
from services.gang_planner.core.framework.node_preferences import (
    PlacePointsFactory,
    QueueMaskFactory,
)
from services.gang_planner.core.scoring import NodeScore
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.queues import QueueEntry

if TYPE_CHECKING:
    from services.gang_planner.core.state.planner_state import State

GroupKey: TypeAlias = Callable[[Gang], tuple[int, ...]]
"""Of two gangs the one with the lower key goes first; always as many items."""

QueueKey: TypeAlias = Callable[[QueueEntry, Sequence[int]], tuple[int, ...]]
"""Of two queues the one with the lower key has the next turn. Given the cluster's total amounts, by
resource row.
"""

QueueShare: TypeAlias = Callable[[QueueEntry], int]
"""How much of its part a queue and all below it hold. Turns are taken level by level: what the
ancestors hold is compared first, from the top, then what the queues hold themselves; less goes
first. It may only change when something is charged to the queue.
"""

GroupKeyFactory: TypeAlias = Callable[["State"], GroupKey]
"""Makes a key that looks at the planner's tables; called once per configuration."""

QueueKeyFactory: TypeAlias = Callable[["State"], QueueKey]
"""As `GroupKeyFactory`."""

Deserve: TypeAlias = Callable[[QueueEntry, int], tuple[int, int | None]]
"""By which weight a queue shares a resource, given its row, and how much of it at most; None: as
much as its gangs hold and wait for.
"""

NodeFilterFactory: TypeAlias = Callable[["State"], NodeFilter]
"""Makes a filter that looks at the planner's tables; called once per configuration."""

CapacityFilterFactory: TypeAlias = Callable[["State"], CapacityFilter]
"""As `NodeFilterFactory`."""

NodeScoreFactory: TypeAlias = Callable[["State"], NodeScore]
"""As `NodeFilterFactory`."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One policy's contributions; absent ones are left out.

    A factory stands for a filter or score that needs the planner's tables: `PolicySet.bind` calls
    it. Filters and scores themselves are never callable.
    """

    name: str
    group_key: GroupKey | None = None
    queue_key: QueueKey | None = None
    #: Instead of a key, where turns are taken level by level.
    queue_share: QueueShare | None = None
    #: Keys that look at the planner's tables, instead of the two above.
    group_key_of: GroupKeyFactory | None = None
    queue_key_of: QueueKeyFactory | None = None
    #: What it says of a group that wants to be admitted.
    enqueue: Voter | None = None
    #: When a group has waited long enough, in ms; 0: it has no deadline.
    due_ms: Callable[[Gang], int] | None = None
    #: Number of the tier that names it: votes are combined tier by tier.
    tier: int = 0
    deserve: Deserve | None = None
    #: Whether parents of queues count.
    hierarchical: bool = False
    node_filters: tuple[NodeFilter | NodeFilterFactory, ...] = ()
    capacity_filters: tuple[CapacityFilter | CapacityFilterFactory, ...] = ()
    #: What is judged and preferred of terms between pods.
    pairwise: Switches = NOTHING
    #: The gangs that it protects from eviction.
    victims: VictimRule | None = None
    #: (weight, score).
    scores: tuple[tuple[int, NodeScore | NodeScoreFactory], ...] = ()
    #: Nodes that gangs of a queue may use.
    queue_mask: QueueMaskFactory | None = None
    #: Preferences that a shape alone does not decide.
    place_points: PlacePointsFactory | None = None
    #: Whether annotations about a gang's roles count.
    reads_tasks: bool = False


Build: TypeAlias = Callable[[Arguments], Policy]
"""Makes a policy from its arguments; raises `ConfigurationError` for a wrong one."""
