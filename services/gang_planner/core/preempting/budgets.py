"""PodDisruptionBudgets, as far as an eviction would violate them.

How many more pods each lets go is what its status says, less those that evictions of ours still
under way will take.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from services.gang_planner.core.pairwise.selecting import selects
from shared.model.terms import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.gang_planner.core.members import Member
    from services.gang_planner.state import State
    from shared.model.surroundings import Budget

_labels: Final = msgspec.msgpack.Decoder(Labels).decode


class Budgets:
    """All budgets of the cluster, for one search."""

    def __init__(self, state: "State") -> None:
        self._by_namespace: dict[str, list[Budget]] = {}
        for uid in sorted(state.surroundings.budgets):
            one = state.surroundings.budgets[uid]
            self._by_namespace.setdefault(one.namespace, []).append(one)
        self._matched: dict[tuple[str, bytes], tuple[int, ...]] = {}
        self._under_way: dict[str, int] = {}
        if self._by_namespace:
            under_way = [state.members.get(uid) for uid in state.preemptions.victims]
            for member in under_way:
                if member is not None and member.slot >= 0 and not member.pod.deleting:
                    self._count(self._under_way, member)

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return bool(self._by_namespace)

    def violations(self, victims: "Iterable[Member]") -> int:
        """How many of these pods go beyond what the budgets allow; one that two budgets forbid
        counts twice.
        """
        if not self._by_namespace:
            return 0
        taken: dict[str, int] = {}
        for member in victims:
            self._count(taken, member)
        over = 0
        for budgets in self._by_namespace.values():
            for one in budgets:
                left = one.disruptions_allowed - self._under_way.get(one.uid, 0)
                over += max(taken.get(one.uid, 0) - max(left, 0), 0)
        return over

    def _count(self, taken: dict[str, int], member: "Member") -> None:
        budgets = self._by_namespace.get(member.pod.namespace)
        if not budgets:
            return
        key = member.pod.namespace, member.pod.labels
        found = self._matched.get(key)
        if found is None:
            labels = dict(_labels(member.pod.labels)) if member.pod.labels else {}
            found = self._matched[key] = tuple(
                index
                for index, one in enumerate(budgets)
                if one.selector is not None and selects(one.selector, labels)
            )
        for index in found:
            uid = budgets[index].uid
            taken[uid] = taken.get(uid, 0) + 1
