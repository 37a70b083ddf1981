"""Water-filling: divides an amount among parties by weight, within the bounds of each.

All shares rise together until the amount is used up. The level is an exact fraction, so the share
of a party depends only on amounts, and never on the order of the parties.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple


class Party(NamedTuple):
    """A queue or a gang that gets a share."""

    #: At least 1.
    weight: int
    #: Lower bound of its share, if the total suffices for all lower bounds.
    floor: int
    #: Upper bound of its share; at least `floor`.
    most: int


def whole_shares(total: int, parties: Sequence[Party]) -> list[int]:
    """Divide a total by water-filling.

    Shares rise by weight from each party's floor until the party has its maximum or the total is
    used up. If the total is less than the sum of all floors, the floors are divided in proportion.

    Returns:
        One share per party, rounded down: they add up to the total, or to the sum of all maxima if
        that is smaller, less than one per party missing. A larger total makes no share smaller.
    """
    level, bounded = _filled(total, parties)
    if level is None:
        return [party.most for party in bounded]
    top, bottom = level.numerator, level.denominator
    return [min(most, max(floor, weight * top // bottom)) for weight, floor, most in bounded]


def _filled(total: int, parties: Sequence[Party]) -> tuple[Fraction | None, list[Party]]:
    """The level (None: all parties have their maxima), and the parties with their bounds."""
    total = max(total, 0)
    if sum(party.floor for party in parties) > total:
        parties = [Party(max(party.floor, 1), 0, party.floor) for party in parties]
    bounded = [Party(weight, floor, max(most, floor)) for weight, floor, most in parties]
    if sum(party.most for party in bounded) <= total:
        return None, bounded
    return _level(total, bounded), bounded


def _level(total: int, parties: Sequence[Party]) -> Fraction:
    """The level whose shares add up to the total, which is less than the sum of all maxima.

    The sum of shares is piecewise linear in the level. It bends where a party leaves its floor or
    reaches its maximum, at the fraction of that amount and the party's weight. The bends are
    passed in ascending order until the sum would exceed the total.
    """
    #: Different bends differ by at least the reciprocal of this, so they sort as integers.
    scale = max(party.weight for party in parties) ** 2
    bends: list[tuple[int, int, int, int]] = []
    for weight, floor, most in parties:
        bends.append((floor * scale // weight, floor, weight, 1))
        bends.append((most * scale // weight, most, weight, -1))
    bends.sort()
    #: At a level, the shares add up to `fixed`, plus the level times `rising`.
    fixed, rising = sum(party.floor for party in parties), 0
    for _, amount, weight, direction in bends:
        if fixed * weight + rising * amount > total * weight:
            break
        fixed -= direction * amount
        rising += direction * weight
    return Fraction(total - fixed, rising)
