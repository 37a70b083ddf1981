"""Which pods may be evicted for which gangs: what always holds, and what policies add.

Always: a victim is ours, on its node, of another gang that has started and is neither released nor
evicted already, not marked `volcano.sh/preemptable: "false"` (on the pod or its group), not refused
lately, and has run for its minimum. To *preempt* takes in the same queue: from gangs of strictly
lower priority, or from gangs that then still hold no smaller share of the cluster, as the first
tier says in which a policy says either (`entitles`); priority, when none does. To *reclaim* takes
from queues that hold more than they deserve, for a queue that then still holds no more than it
deserves.

Policies only protect: each is asked, wherever its tier, and one refusal is enough. (In Volcano a
victim that one tier protects can be had through the next.)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from services.gang_planner.core.state.gangs import Gang, Member

Kind: TypeAlias = Literal["preempt", "reclaim"]


class Preemptor(NamedTuple):
    """A gang for which pods of others may be evicted."""

    gang: "Gang"
    kind: Kind
    now_ms: int


Title: TypeAlias = Literal["priority", "share"]
"""What entitles a gang to the capacity of another one in its queue."""

_BY_PRIORITY: Final[frozenset[Title]] = frozenset({"priority"})

Allows: TypeAlias = Callable[["Member"], bool]


@dataclass(frozen=True, kw_only=True)
class VictimRule:
    """What a policy demands of victims."""

    #: Whether it lets a pod be evicted; None: it does not look at single pods.
    allows: Allows | None = None
    #: No gang is brought below its quorum: only members above it are victims.
    keeps_quorum: bool = False
    #: No PodDisruptionBudget is violated; without it the API server refuses, which may know better.
    keeps_budgets: bool = False
    #: A pod is protected for its cool-down time after its start.
    keeps_cooldown: bool = False
    #: By what it says which gangs may preempt which.
    entitles: Title | None = None
    #: How many levels of queues above a victim's own must hold more than they deserve, too; None:
    #: all that are not the asking queue's.
    levels: int | None = None
    on_preempt: bool = True
    on_reclaim: bool = True

    def only(self, *, preempt: bool, reclaim: bool) -> "VictimRule | None":
        """The rule as far as its flags leave it; None: nothing of it."""
        if not (preempt or reclaim):
            return None
        return replace(
            self, on_preempt=self.on_preempt and preempt, on_reclaim=self.on_reclaim and reclaim
        )


class VictimRules(NamedTuple):
    """All policies' rules for one kind of eviction."""

    allows: tuple[Allows, ...] = ()
    keeps_quorum: bool = False
    keeps_budgets: bool = False
    keeps_cooldown: bool = False
    entitles: frozenset[Title] = _BY_PRIORITY
    levels: int | None = None

    def allow(self, member: "Member") -> bool:
        """Whether every policy lets the pod be evicted."""
        return all(allows(member) for allows in self.allows)

    @property
    def for_gangs(self) -> "VictimRules":
        """The same where whole gangs go, whatever protects a quorum: priority alone entitles."""
        return self._replace(keeps_quorum=False, entitles=_BY_PRIORITY)


def combined(rules: Iterable[tuple[int, VictimRule]], kind: Kind) -> VictimRules:
    """The rules that speak of this kind; each with the tier that names it."""
    speak = [
        (tier, one)
        for tier, one in rules
        if (one.on_preempt if kind == "preempt" else one.on_reclaim)
    ]
    said: list[tuple[int, Title]] = [
        (tier, one.entitles) for tier, one in speak if one.entitles is not None
    ]
    first = min((tier for tier, _ in said), default=0)
    titles: set[Title] = {title for tier, title in said if tier == first}
    levels = [one.levels for _, one in speak if one.levels is not None]
    return VictimRules(
        tuple(one.allows for _, one in speak if one.allows is not None),
        any(one.keeps_quorum for _, one in speak),
        any(one.keeps_budgets for _, one in speak),
        any(one.keeps_cooldown for _, one in speak),
        frozenset(titles) or _BY_PRIORITY,
        min(levels, default=None),
    )
