"""Where a part of a gang is tried: domains from the closest tier to the widest, in order of fit.

Within a tier the domain that is left fullest comes first (best fit), in the fullest domain of the
tiers above: large holes stay open for gangs that need them. Of domains that hold as many members
the one with less room beside them comes first. Domains that hold the quorum and not all that is
wanted come last, the roomiest first.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.topology.levels import NOWHERE, Level, Levels

#: What one member of a role weighs when rooms of domains are compared.
UNIT: Final = 1000


class Space(NamedTuple):
    """Nodes that a part of a gang is tried on."""

    #: None: all nodes.
    mask: Bools | None
    #: Name of the domain; "": the whole cluster.
    name: str = ""
    #: Place of its level among the levels; as many as there are: wider than all of them.
    level: int = 0
    domain: int = NOWHERE


class DomainDemand(NamedTuple):
    """What is to be placed, as the ranking of domains needs it: parallel lists, one item per role
    and shape.
    """

    roles: Sequence[str]
    wanted: Sequence[int]
    #: How many each node holds, one array each.
    counts: Callable[[], Sequence[Ints]]
    quorum: int
    minima: tuple[tuple[str, int], ...]
    #: How much room each node has, in thousandths of a member; asked where domains hold alike.
    reservations: Callable[[], Sequence[Ints]]


def spaces(
    found: Levels, demand: DomainDemand, near: Ints, home: str, base: Bools | None
) -> Iterator[Space]:
    """Spaces in the order in which they are to be tried; those that cannot hold the quorum are left
    out.

    Args:
        found: the levels allowed.
        demand: what is to be placed.
        near: slots that hold members already: only domains with all of them count.
        home: name of the domain to try before all others, if it is allowed; "": none.
        base: only these nodes may be used; None: all.
    """
    if home:
        for index, level in enumerate(found.levels):
            if home in level.names:
                domain = level.names.index(home)
                if domain in _ranked(found.levels, index, demand, near, base).tolist():
                    yield Space(_within(level.mask(domain), base), home, index, domain)
                break
    for index, level in enumerate(found.levels):
        for domain in _ranked(found.levels, index, demand, near, base).tolist():
            if level.names[domain] != home:
                mask = _within(level.mask(domain), base)
                yield Space(mask, level.names[domain], index, domain)
    if found.open:
        yield Space(base, level=len(found.levels))


def wider(found: Levels, space: Space, base: Bools | None) -> Iterator[Bools | None]:
    """Ever wider reference objects of a space, itself excluded, as far as the levels allow."""
    if space.level >= len(found.levels):
        return
    slots = np.flatnonzero(found.levels[space.level].mask(space.domain))
    for level in found.levels[space.level + 1 :]:
        domain = level.around(slots)
        if domain != NOWHERE:
            yield _within(level.mask(domain), base)
    if found.open:
        yield base


def where_it_stays(found: Levels, near: Ints) -> Bools | None:
    """The widest domain allowed around these slots: where a gang with members there has to stay;
    None: anywhere.
    """
    if not found.open and len(near):
        for level in reversed(found.levels):
            domain = level.around(near)
            if domain != NOWHERE:
                return level.mask(domain)
    return None


def room(level: Level, counts: Ints, base: Bools | None) -> Ints:
    """How many members each domain of a level holds."""
    return level.sums(counts if base is None else counts * base)


def _ranked(
    levels: Sequence[Level], index: int, demand: DomainDemand, near: Ints, base: Bools | None
) -> Ints:
    """Domains of one level that can hold the quorum, as far as single shapes show, in order."""
    level = levels[index]
    if not level.names:
        return np.zeros(0, dtype=np.int64)
    reservations = [room(level, counts, base) for counts in demand.counts()]
    wanted = np.array(demand.wanted, dtype=np.int64)
    fits = np.minimum(np.stack(reservations), wanted[:, None])
    holds = _holds(demand, fits)
    if len(near):
        only = level.around(near)
        holds &= np.arange(len(level.names)) == only
    found = np.flatnonzero(holds)
    if len(found) < 2:
        return found
    ratios = _ratios(reservations, wanted)[found]
    short = fits.sum(axis=0)[found] < int(wanted.sum())
    keys = [found]
    if len(set(ratios.tolist())) < len(ratios):
        left = [room(level, one, base) for one in demand.reservations()]
        keys.append(_ratios(left, wanted)[found])
    # The least significant key comes first: the widest tier above, …, the tier itself.
    for above in reversed(levels[index + 1 :]):
        parents = _parents(level, above)[found]
        above_all = _ratios([room(above, counts, base) for counts in demand.counts()], wanted)
        keys.append(np.where(parents >= 0, above_all[parents], np.iinfo(np.int64).max))
    keys += [np.where(short, -ratios, ratios), short]
    ordered: Ints = found[np.lexsort(keys)]
    return ordered


def _holds(demand: DomainDemand, fits: Ints) -> Bools:
    holds: Bools = fits.sum(axis=0) >= max(demand.quorum, 1)
    for role, least in demand.minima:
        rows = [index for index, one in enumerate(demand.roles) if one == role]
        holds &= fits[rows].sum(axis=0) >= least
    return holds


def _ratios(reservations: Sequence[Ints], wanted: Ints) -> Ints:
    """How many times over domains hold what is wanted, summed over shapes."""
    ratios: Ints = (np.stack(reservations) * UNIT // np.maximum(wanted, 1)[:, None]).sum(axis=0)
    return ratios


def _parents(level: Level, above: Level) -> Ints:
    """The domain above in which each domain's first node lies."""
    parents = np.full(len(level.names), NOWHERE, dtype=np.int64)
    slots = np.flatnonzero(level.domain_of >= 0)[::-1]
    parents[level.domain_of[slots]] = above.domain_of[slots]
    return parents


def _within(mask: Bools, base: Bools | None) -> Bools:
    return mask if base is None else mask & base
