"""Who may be evicted for whom: what always holds, and what policies add.

Always: a victim is ours, on its node, of another gang that has started and is neither released nor
evicted already, not marked `volcano.sh/preemptable: "false"` (on the pod or its group), not refused
lately, and has run for its minimum. To *preempt* takes from gangs of strictly lower priority in the
same queue; to *reclaim* from queues that hold more than they deserve, for a queue that then still
holds no more than it deserves.

Policies only protect: each is asked, wherever its tier, and one refusal is enough. (In Volcano a
victim that one tier protects can be had through the next.)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from services.gang_planner.core.gangs import Gang
    from services.gang_planner.core.members import Member

Kind: TypeAlias = Literal["preempt", "reclaim"]


class Asks(NamedTuple):
    """A gang that asks for the room of others."""

    gang: "Gang"
    kind: Kind
    now_ms: int


Allows: TypeAlias = Callable[["Member"], bool]


@dataclass(frozen=True, kw_only=True)
class VictimRule:
    """What a policy says of victims."""

    #: Whether it lets a pod be evicted; None: it does not look at single pods.
    allows: Allows | None = None
    #: No gang is brought below its quorum: only members above it are victims.
    keeps_quorum: bool = False
    #: No PodDisruptionBudget is violated; without it the API server refuses, who may know better.
    keeps_budgets: bool = False
    #: A pod is protected for its cool-down time after its start.
    keeps_cooldown: bool = False
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
    """All policies' rules for one kind of taking."""

    allows: tuple[Allows, ...] = ()
    keeps_quorum: bool = False
    keeps_budgets: bool = False
    keeps_cooldown: bool = False

    def allow(self, member: "Member") -> bool:
        """Whether every policy lets the pod be evicted."""
        return all(allows(member) for allows in self.allows)


def combined(rules: Iterable[VictimRule], kind: Kind) -> VictimRules:
    """The rules that speak of this kind."""
    speak = [one for one in rules if (one.on_preempt if kind == "preempt" else one.on_reclaim)]
    return VictimRules(
        tuple(one.allows for one in speak if one.allows is not None),
        any(one.keeps_quorum for one in speak),
        any(one.keeps_budgets for one in speak),
        any(one.keeps_cooldown for one in speak),
    )
