"""PodDisruptionBudgets, and how far evictions would violate them.

A budget allows as many evictions as its status says, less those of ours that are in flight.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from shared.model.label_selectors import selects
from shared.model.terms import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.gang_planner.core.state.gangs import Member
    from services.gang_planner.core.state.planner_state import State
    from shared.model.reference_objects import Budget

_labels: Final = msgspec.msgpack.Decoder(Labels).decode


class Budgets:
    """All budgets of the cluster, for one search."""

    def __init__(self, state: "State") -> None:
        self._by_namespace: dict[str, list[Budget]] = {}
        #: How many more evictions each allows, by UID.
        self._left: dict[str, int] = {}
        for uid in sorted(state.reference_objects.budgets):
            one = state.reference_objects.budgets[uid]
            self._by_namespace.setdefault(one.namespace, []).append(one)
            self._left[uid] = one.disruptions_allowed
        self._matched: dict[tuple[str, bytes], tuple[str, ...]] = {}
        if self._by_namespace:
            pods_in_flight = [state.members.get(uid) for uid in state.preemptions.victims]
            for member in pods_in_flight:
                if member is not None and member.slot is not None and not member.pod.deleting:
                    for uid in self.of(member):
                        self._left[uid] -= 1

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return bool(self._by_namespace)

    def violations(self, victims: "Iterable[Member]") -> int:
        """How many of these pods exceed the budgets; one that exceeds two budgets counts twice."""
        if not self._by_namespace:
            return 0
        taken: dict[str, int] = {}
        for member in victims:
            for uid in self.of(member):
                taken[uid] = taken.get(uid, 0) + 1
        return sum(max(count - self.left(uid), 0) for uid, count in taken.items())

    def left(self, uid: str) -> int:
        """How many more evictions a budget allows."""
        return max(self._left[uid], 0)

    def of(self, member: "Member") -> tuple[str, ...]:
        """UIDs of the budgets that select a pod."""
        budgets = self._by_namespace.get(member.pod.namespace)
        if not budgets:
            return ()
        key = member.pod.namespace, member.pod.labels
        found = self._matched.get(key)
        if found is None:
            labels = dict(_labels(member.pod.labels)) if member.pod.labels else {}
            found = self._matched[key] = tuple(
                one.uid
                for one in budgets
                if one.selector is not None and selects(one.selector, labels)
            )
        return found
