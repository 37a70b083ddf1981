"""Where a part of a gang is tried: domains from the closest tier to the widest, in order of fit.

Within a tier the domain that is left fullest comes first (best fit), in the fullest domain of the
tiers above: large free domains are left to gangs that need them. Of domains that hold equally many
members, the one with less other free capacity comes first. Domains that hold the quorum but not all
members come last, those with the most free capacity first.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.topology.levels import NOWHERE, Level, Levels
from shared.model.objects import NetworkTopology

#: Weight of one member when the free capacities of domains are compared.
UNIT: Final = 1000


class Space(NamedTuple):
    """Nodes that a part of a gang is tried on."""

    #: None: all nodes.
    mask: Bools | None
    #: Name of the domain; None: the whole cluster.
    name: str | None = None
    #: Index of its level; the number of levels for the whole cluster.
    level: int = 0
    domain: int = NOWHERE


class DomainDemand(NamedTuple):
    """Members to place, as the ranking of domains needs them: parallel lists, one item per role and
    shape.
    """

    roles: Sequence[str]
    wanted: Sequence[int]
    #: How many each node can hold, one array each.
    counts: Callable[[], Sequence[Ints]]
    quorum: int
    minima: tuple[tuple[str, int], ...]
    #: The free capacity of each node in thousandths of a member; decides between equal domains.
    fractions: Callable[[], Sequence[Ints]]


def find_spaces(
    session: Session,
    topology: NetworkTopology,
    groups: Sequence[tuple[str, ShapeEntry, int]],
    quorum: int,
    minima: tuple[tuple[str, int], ...],
    *,
    near: Iterable[str] = (),
    home: str | None = None,
    base: Bools | None = None,
) -> Iterator[Space]:
    """Spaces in which these members may be placed together, in the order in which to try them.

    Args:
        session: Its budget is charged.
        topology: How close together they have to be.
        groups: (role, shape, members) each.
        quorum: Spaces that certainly cannot hold as many are left out.
        minima: The same by role.
        near: Nodes with members already: only domains that contain all of these count.
        home: Name of the domain to try first; None: it has no preferred domain.
        base: One flag per slot, only these nodes may be used; None: all.
    """
    node_capacity = session.node_capacity
    levels = node_capacity.topology.levels(topology)
    session.work_left -= len(levels.levels) * node_capacity.nodes.size
    demand = DomainDemand(
        roles=[role for role, _, _ in groups],
        wanted=[wanted for _, _, wanted in groups],
        counts=lambda: [session.fits.counts(shape) for _, shape, _ in groups],
        quorum=quorum,
        minima=minima,
        fractions=lambda: [node_capacity.capacity_in_parts(shape, UNIT) for _, shape, _ in groups],
    )
    return ranked_spaces(levels, demand, node_capacity.nodes.slots_of(near), home, base)


def ranked_spaces(
    levels: Levels, demand: DomainDemand, near: Ints, home: str | None, base: Bools | None
) -> Iterator[Space]:
    """The spaces of `find_spaces`; `near` as slots."""
    if home is not None:
        for index, level in enumerate(levels.levels):
            if home in level.names:
                domain = level.names.index(home)
                if domain in _ranked(levels.levels, index, demand, near, base).tolist():
                    yield Space(_within(level.mask(domain), base), home, index, domain)
                break
    for index, level in enumerate(levels.levels):
        for domain in _ranked(levels.levels, index, demand, near, base).tolist():
            if level.names[domain] != home:
                mask = _within(level.mask(domain), base)
                yield Space(mask, level.names[domain], index, domain)
    if levels.open:
        yield Space(base, level=len(levels.levels))


def wider(levels: Levels, space: Space, base: Bools | None) -> Iterator[Bools | None]:
    """Ever wider domains around a space, without itself, as far as the levels allow."""
    if space.level >= len(levels.levels):
        return
    slots = np.flatnonzero(levels.levels[space.level].mask(space.domain))
    for level in levels.levels[space.level + 1 :]:
        domain = level.around(slots)
        if domain != NOWHERE:
            yield _within(level.mask(domain), base)
    if levels.open:
        yield base


def domain_around(levels: Levels, near: Ints) -> Bools | None:
    """The widest domain allowed around these slots, in which a gang with members there has to stay;
    None: it may be anywhere.
    """
    if not levels.open and len(near):
        for level in reversed(levels.levels):
            domain = level.around(near)
            if domain != NOWHERE:
                return level.mask(domain)
    return None


def counts_by_domain(level: Level, counts: Ints, base: Bools | None) -> Ints:
    """How many members each domain of a level can hold, given the counts of nodes."""
    return level.sums(counts if base is None else counts * base)


def _ranked(
    levels: Sequence[Level], index: int, demand: DomainDemand, near: Ints, base: Bools | None
) -> Ints:
    """Domains of one level that can hold the quorum, as far as single shapes show, best first."""
    level = levels[index]
    if not level.names:
        return np.zeros(0, dtype=np.int64)
    capacities = [counts_by_domain(level, counts, base) for counts in demand.counts()]
    wanted = np.array(demand.wanted, dtype=np.int64)
    fits = np.minimum(np.stack(capacities), wanted[:, None])
    holds = _holds(demand, fits)
    if len(near):
        only = level.around(near)
        holds &= np.arange(len(level.names)) == only
    domains = np.flatnonzero(holds)
    if len(domains) < 2:
        return domains
    ratios = _ratios(capacities, wanted)[domains]
    short = fits.sum(axis=0)[domains] < int(wanted.sum())
    keys = [domains]
    if len(set(ratios.tolist())) < len(ratios):
        left = [counts_by_domain(level, free, base) for free in demand.fractions()]
        keys.append(_ratios(left, wanted)[domains])
    # The least significant key comes first: the widest tier above, …, the tier itself.
    for above in reversed(levels[index + 1 :]):
        parents = _parents(level, above)[domains]
        wider_capacities = [counts_by_domain(above, counts, base) for counts in demand.counts()]
        above_all = _ratios(wider_capacities, wanted)
        keys.append(np.where(parents >= 0, above_all[parents], np.iinfo(np.int64).max))
    keys += [np.where(short, -ratios, ratios), short]
    ordered: Ints = domains[np.lexsort(keys)]
    return ordered


def _holds(demand: DomainDemand, fits: Ints) -> Bools:
    holds: Bools = fits.sum(axis=0) >= max(demand.quorum, 1)
    for role, least in demand.minima:
        rows = [index for index, of_group in enumerate(demand.roles) if of_group == role]
        holds &= fits[rows].sum(axis=0) >= least
    return holds


def _ratios(capacities: Sequence[Ints], wanted: Ints) -> Ints:
    """How many times over each domain can hold all members, summed over shapes."""
    ratios: Ints = (np.stack(capacities) * UNIT // np.maximum(wanted, 1)[:, None]).sum(axis=0)
    return ratios


def _parents(level: Level, above: Level) -> Ints:
    """The domain above in which each domain's first node lies."""
    parents = np.full(len(level.names), NOWHERE, dtype=np.int64)
    slots = np.flatnonzero(level.domain_of >= 0)[::-1]
    parents[level.domain_of[slots]] = above.domain_of[slots]
    return parents


def _within(mask: Bools, base: Bools | None) -> Bools:
    return mask if base is None else mask & base
