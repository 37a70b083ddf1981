"""Which pods may be evicted for which gangs: the fixed rules, and the rules that policies add.

In every configuration, a victim is a pod of Tutti on its node. It belongs to another gang that has
started, and it is not being released or evicted. It is not marked `volcano.sh/preemptable: "false"`
(on the pod or its group), its eviction was not refused recently, and it has run for its minimum
time.

*Preemption* evicts pods in the same queue: of gangs with strictly lower priority, or of gangs whose
share of the cluster afterwards is still at least the preemptor's. The first tier with a policy that
sets `entitles` decides between the two; without one, priority decides. *Reclaim* evicts pods of
queues that hold more than they deserve, for a queue that afterwards still holds no more than it
deserves.

Policies can only protect pods: all policies are checked, whatever their tier, and one refusal is
enough. (In Volcano, a later tier can select a victim that an earlier tier protects.)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from services.gang_planner.core.state.gangs import Gang, Member

Kind: TypeAlias = Literal["preempt", "reclaim"]


class Preemptor(NamedTuple):
    """A gang for which pods of other gangs may be evicted."""

    gang: "Gang"
    kind: Kind
    now_ms: int


Title: TypeAlias = Literal["priority", "share"]
"""The measure by which a gang may preempt another gang in its queue."""

_BY_PRIORITY: Final[frozenset[Title]] = frozenset({"priority"})

Allows: TypeAlias = Callable[["Member"], bool]


@dataclass(frozen=True, kw_only=True)
class VictimRules:
    """Restrictions on victims: those of one policy, or of all policies together."""

    #: Each returns whether it permits the eviction of a pod.
    allows: tuple[Allows, ...] = ()
    #: Evictions leave every gang its quorum: only members above it are victims.
    keeps_quorum: bool = False
    #: No eviction violates a PodDisruptionBudget. Without this, only the API server enforces them.
    keeps_budgets: bool = False
    #: A pod is not evicted during its cool-down time after its start.
    keeps_cooldown: bool = False
    #: The measures that they define for preemption; empty: none.
    entitles: frozenset[Title] = frozenset()
    #: Number of ancestors of the victim's queue that must also hold more than they deserve; None:
    #: all that are not ancestors of the reclaiming queue.
    levels: int | None = None
    on_preempt: bool = True
    on_reclaim: bool = True

    def only(self, *, preempt: bool, reclaim: bool) -> "VictimRules | None":
        """The rules restricted to the enabled kinds of eviction; None if neither is enabled."""
        if not (preempt or reclaim):
            return None
        return replace(
            self, on_preempt=self.on_preempt and preempt, on_reclaim=self.on_reclaim and reclaim
        )

    def allow(self, member: "Member") -> bool:
        """Whether every policy permits the eviction of the pod."""
        return all(allows(member) for allows in self.allows)

    @property
    def for_gangs(self) -> "VictimRules":
        """The rules for evictions of whole gangs: no quorum is protected, only priority decides."""
        return replace(self, keeps_quorum=False, entitles=_BY_PRIORITY)


def combined(rules: Iterable[tuple[int, VictimRules]], kind: Kind) -> VictimRules:
    """Combine the (tier, rules) of policies that apply to this kind of eviction."""
    applying = [
        (tier, rule)
        for tier, rule in rules
        if (rule.on_preempt if kind == "preempt" else rule.on_reclaim)
    ]
    each = [rule for _, rule in applying]
    first = min((tier for tier, rule in applying if rule.entitles), default=0)
    titles: set[Title] = {
        title for tier, rule in applying if tier == first for title in rule.entitles
    }
    levels = [rule.levels for rule in each if rule.levels is not None]
    return VictimRules(
        allows=tuple(chain.from_iterable(rule.allows for rule in each)),
        keeps_quorum=any(rule.keeps_quorum for rule in each),
        keeps_budgets=any(rule.keeps_budgets for rule in each),
        keeps_cooldown=any(rule.keeps_cooldown for rule in each),
        entitles=frozenset(titles) or _BY_PRIORITY,
        levels=min(levels, default=None),
    )
