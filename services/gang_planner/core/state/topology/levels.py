"""Levels: the cluster cut into disjoint domains, once per tier.

A level says of every node slot which domain it lies in. Levels come from HyperNodes, one per tier,
or from node labels, one per key. The lower the tier the closer together are the nodes of a domain.
"""

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints

#: The domain of slots that are in none.
NOWHERE = -1


@dataclass(frozen=True, eq=False, slots=True)
class Level:
    """One tier's domains."""

    tier: int
    #: For people: "tier 1", a tier's own name, or a label key.
    title: str
    #: Domain of each slot, `NOWHERE` for none; may be shorter than the table of nodes is by now.
    domain_of: Ints
    #: Names of the domains, sorted: a domain is its place here.
    names: tuple[str, ...]

    def mask(self, domain: int) -> Bools:
        """The slots of a domain."""
        mask: Bools = self.domain_of == domain
        return mask

    def only_inside(self, around: Ints) -> "Level":
        """The same, without the domains that do not lie whole in one of the areas around them."""
        here = np.flatnonzero(self.domain_of >= 0)
        least = np.full(len(self.names), np.iinfo(np.int64).max)
        most = np.full(len(self.names), NOWHERE, dtype=np.int64)
        np.minimum.at(least, self.domain_of[here], around[here])
        np.maximum.at(most, self.domain_of[here], around[here])
        kept = (least == most) & (most >= 0)
        domain_of = np.full_like(self.domain_of, NOWHERE)
        domain_of[here] = np.where(kept[self.domain_of[here]], self.domain_of[here], NOWHERE)
        return Level(self.tier, self.title, domain_of, self.names)

    def sums(self, counts: Ints) -> Ints:
        """The sum of `counts` (one per slot) over each domain."""
        inside = self.domain_of >= 0
        sums = np.bincount(
            self.domain_of[inside], weights=counts[inside], minlength=len(self.names)
        )
        # Sums of counts stay far below 2**53, where doubles are exact.
        return sums.astype(np.int64)

    def around(self, slots: Ints) -> int:
        """The one domain that has all of these slots; `NOWHERE` when there is none."""
        found = self.domain_of[slots]
        first = int(found[0])
        return first if bool((found == first).all()) else NOWHERE


class MissingLevels(enum.Enum):
    """What a topology asks for and the cluster does not have."""

    HYPER_NODES = "HyperNodes at all"
    TIER_NAME = "a HyperNode whose tier has the name"
    TIER = "a HyperNode of this tier or a lower one"
    LABEL = "a node with the label"


class TopologyProblem(NamedTuple):
    """Why a topology has no levels."""

    missing: MissingLevels
    #: The tier, its name, or the label key.
    what: str


class Levels(NamedTuple):
    """Where a topology lets a gang be, from the closest domains to the widest."""

    levels: tuple[Level, ...]
    #: Beyond the levels the whole cluster is allowed: the topology's mode is soft, or its limit is
    #: above all tiers.
    open: bool
    #: Why there are no levels; None: there are, or a gang may be anywhere.
    problem: TopologyProblem | None = None
