"""How many different CEL selectors of a namespace's users are in force at a time.

A selector is compiled, and evaluated for every device, in a cycle that all tenants share. So it
counts which claims exist, not what they have cost: a planner that replays the log has compiled
nothing yet.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, TypeAlias

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.devices.selection import requests_of, too_long
from shared.model.devices import ResourceClaim

if TYPE_CHECKING:
    from services.gang_planner.core.state.reference_objects import ReferenceObjects

Asked: TypeAlias = tuple[str, tuple[str, ...]]
"""Device class and selectors of a request: together they are evaluated for all devices."""

#: Characters of the different selectors of all claims without devices in a namespace.
NAMESPACE_CHARACTERS_MAX: Final = 2_048
#: What the selectors of a request count at least.
REQUEST_CHARACTERS_MIN: Final = 64

#: What a claim beyond the bound says.
WAITS: Final = (
    "spec.devices.requests: the different CEL selectors of the namespace's claims without devices "
    f"have more than {NAMESPACE_CHARACTERS_MAX} characters together (at least "
    f"{REQUEST_CHARACTERS_MIN} each), and Tutti evaluates no more at a time"
)


class _Namespace:
    """The claims of a namespace that select devices and have none."""

    def __init__(self) -> None:
        self.claims: dict[str, tuple[str, frozenset[Asked]]] = {}
        #: Number of claims with each.
        self._users: Counter[Asked] = Counter()
        self._characters = 0

    def replace(self, claim: ResourceClaim, asked: frozenset[Asked]) -> None:
        """What the claim asks for now; nothing: it does not count."""
        _, before = self.claims.pop(claim.uid, ("", frozenset()))
        if asked:
            self.claims[claim.uid] = claim.name, asked
        for use in asked - before:
            self._characters += 0 if use in self._users else _characters(use)
            self._users[use] += 1
        for use in before - asked:
            self._users[use] -= 1
            if not self._users[use]:
                del self._users[use]
                self._characters -= _characters(use)

    def waiting(self) -> list[str]:
        """Names of the claims beyond the bound. Those with the first UIDs are within it, so that
        the same objects give the same answer.
        """
        if self._characters <= NAMESPACE_CHARACTERS_MAX:
            return []
        counted: set[Asked] = set()
        left = NAMESPACE_CHARACTERS_MAX
        beyond: list[str] = []
        for _, (name, asked) in sorted(self.claims.items()):
            new = asked - counted
            if len(new) * REQUEST_CHARACTERS_MIN > left or (more := _sum(new)) > left:
                beyond.append(name)
            else:
                counted |= new
                left -= more
        return beyond


class SelectorLimits:
    """The claims that wait until others of their namespace have devices or are gone."""

    def __init__(self, tables: "ReferenceObjects") -> None:
        self._claims = tables.resource_claims
        self._at: int | None = None
        self._namespaces: dict[str, _Namespace] = {}
        self._waiting: set[Key] = set()
        self._waiting_in: dict[str, list[str]] = {}

    def waiting(self) -> AbstractSet[Key]:
        """The claims beyond the bound of their namespaces."""
        claims = self._claims
        if self._at == claims.changes:
            return self._waiting
        changed = None if self._at is None else claims.changed_since(self._at)
        self._at = claims.changes
        if changed is None:
            self._namespaces.clear()
            touched = dict.fromkeys(self._waiting_in)
            changed = list(claims.values())
        else:
            touched = {}
        for claim in changed:
            now = claims.get(claim.uid)
            asked = frozenset[Asked]() if now is None else _asked(now)
            space = self._namespaces.get(claim.namespace)
            if space is None:
                if not asked:
                    continue
                space = self._namespaces[claim.namespace] = _Namespace()
            space.replace(claim if now is None else now, asked)
            touched[claim.namespace] = None
        for name in touched:
            self._count(name)
        return self._waiting

    def _count(self, name: str) -> None:
        space = self._namespaces.get(name)
        waiting = [] if space is None else space.waiting()
        before = self._waiting_in.pop(name, ())
        self._waiting.difference_update((name, claim) for claim in before)
        if waiting:
            self._waiting_in[name] = waiting
            self._waiting.update((name, claim) for claim in waiting)
        if space is not None and not space.claims:
            del self._namespaces[name]


def _asked(claim: ResourceClaim) -> frozenset[Asked]:
    """What the claim has evaluated."""
    if claim.is_allocated or claim.unsupported:
        return frozenset()
    selecting = [request for request in requests_of(claim) if request.selectors]
    if not selecting or too_long(claim):
        return frozenset()
    return frozenset((request.device_class, request.selectors) for request in selecting)


def _sum(asked: Iterable[Asked]) -> int:
    return sum(map(_characters, asked))


def _characters(asked: Asked) -> int:
    return max(REQUEST_CHARACTERS_MIN, sum(map(len, asked[1])))
