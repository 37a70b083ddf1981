"""Levels: divisions of the cluster into disjoint domains, one per tier.

A level maps every node slot to its domain. Levels are made from HyperNodes, one per tier, or from
node labels, one per key. The lower the tier, the closer together are the nodes of a domain.
"""

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints

#: The domain number of slots without a domain.
NOWHERE = -1


@dataclass(frozen=True, eq=False, slots=True)
class Level:
    """One tier's domains."""

    tier: int
    #: Title in messages: "tier 1", a tier's name, or a label key.
    title: str
    #: Domain of each slot, `NOWHERE` for none; may be shorter than the current table of nodes.
    domain_of: Ints
    #: Sorted names of the domains; a domain number is an index.
    names: tuple[str, ...]

    def mask(self, domain: int) -> Bools:
        mask: Bools = self.domain_of == domain
        return mask

    def only_inside(self, around: Ints) -> "Level":
        """The level without domains that are not inside one area; `around`: each slot's area."""
        here = np.flatnonzero(self.domain_of >= 0)
        least = np.full(len(self.names), np.iinfo(np.int64).max)
        most = np.full(len(self.names), NOWHERE, dtype=np.int64)
        np.minimum.at(least, self.domain_of[here], around[here])
        np.maximum.at(most, self.domain_of[here], around[here])
        kept = (least == most) & (most >= 0)
        domain_of = np.full_like(self.domain_of, NOWHERE)
        domain_of[here] = np.where(kept[self.domain_of[here]], self.domain_of[here], NOWHERE)
        return Level(self.tier, self.title, domain_of, self.names)

    def split_by(self, wider: "Level") -> "Level":
        """The level with each domain divided where it is in several domains of another level; nodes
        outside these are in no domain. Both levels are of one table of nodes.
        """
        here = np.flatnonzero((self.domain_of >= 0) & (wider.domain_of >= 0))
        if not len(here):
            return Level(self.tier, self.title, np.full_like(self.domain_of, NOWHERE), ())
        pairs = self.domain_of[here] * len(wider.names) + wider.domain_of[here]
        distinct, numbers = np.unique(pairs, return_inverse=True)
        domain_of = np.full_like(self.domain_of, NOWHERE)
        domain_of[here] = numbers
        kept: list[int] = distinct.tolist()
        names = tuple(self.names[pair // len(wider.names)] for pair in kept)
        return Level(self.tier, self.title, domain_of, names)

    def sums(self, counts: Ints) -> Ints:
        """The sum of `counts` (one per slot) over each domain."""
        inside = self.domain_of >= 0
        sums = np.bincount(
            self.domain_of[inside], weights=counts[inside], minlength=len(self.names)
        )
        # Sums of counts are far below 2**53, up to which doubles are exact.
        return sums.astype(np.int64)

    def around(self, slots: Ints) -> int:
        """The domain that contains all of the slots; `NOWHERE` if there is none."""
        domains = self.domain_of[slots]
        first = int(domains[0])
        return first if bool((domains == first).all()) else NOWHERE


class MissingLevels(enum.Enum):
    """The levels that a topology requires and the cluster lacks."""

    HYPER_NODES = "HyperNodes at all"
    TIER_NAME = "a HyperNode whose tier has the name"
    TIER = "a HyperNode of this tier or a lower one"
    LABEL = "a node with the label"


class TopologyProblem(NamedTuple):
    """Why a topology has no levels."""

    missing: MissingLevels
    #: The tier, its name, or the label key.
    what: str = ""


class Levels(NamedTuple):
    """The levels in which a topology permits a gang, from the closest domains to the widest."""

    levels: tuple[Level, ...]
    #: Whether the whole cluster is permitted after the levels: the topology's mode is soft, or its
    #: limit is above all tiers.
    open: bool
    #: Why there are no levels; None: there are, or a gang may use any node.
    problem: TopologyProblem | None = None
