"""Shares by water-filling are exact: no tolerance, whatever the order of the parties is.

`water_fill` is the definition, in plain fractions; the planner's `whole_shares` are its shares,
rounded down.
"""

from fractions import Fraction
from itertools import permutations
from math import floor
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.gang_planner.core.queueing.water_filling import Party, whole_shares

#: Small amounts, which meet bounds and each other, and amounts as large as bytes.
amounts = st.one_of(st.integers(0, 6), st.integers(0, 2**60))


@st.composite
def a_party(draw: Any) -> Party:
    floor = draw(st.one_of(st.just(0), amounts))
    weight = draw(st.one_of(st.integers(1, 4), st.integers(1, 2**60)))
    return Party(weight, floor, floor + draw(amounts))


several = st.lists(a_party(), min_size=1, max_size=7)


def water_fill(total: int, parties: list[Party]) -> list[Fraction]:
    """The exact shares: at the level at which they add up to the total, found by trying all levels
    at which a party leaves its floor or reaches its maximum.
    """
    floors = sum(party.floor for party in parties)
    if floors > total:
        return [Fraction(party.floor * total, floors) for party in parties]

    def at(level: Fraction) -> list[Fraction]:
        return [
            min(Fraction(one.most), max(Fraction(one.floor), one.weight * level)) for one in parties
        ]

    bends = {Fraction(edge, one.weight) for one in parties for edge in (one.floor, one.most)}
    low = max(level for level in (Fraction(0), *bends) if sum(at(level)) <= total)
    rising = sum(one.weight for one in parties if one.floor <= one.weight * low < one.most)
    return at(low + Fraction(total - sum(at(low)), rising)) if rising else at(low)


def test_three_queues_that_deserve_more_than_there_is_get_the_same() -> None:
    assert water_fill(4000, [Party(2000, 0, 2000)] * 3) == [Fraction(4000, 3)] * 3


@given(total=amounts, parties=several)
def test_whole_shares_are_the_exact_ones_rounded_down(total: int, parties: list[Party]) -> None:
    assert whole_shares(total, parties) == [floor(one) for one in water_fill(total, parties)]


@given(total=amounts, parties=several)
def test_all_of_a_total_is_shared_and_no_party_gets_more_than_its_maximum(
    total: int, parties: list[Party]
) -> None:
    shares = water_fill(total, parties)
    assert sum(shares) == min(total, sum(party.most for party in parties))
    assert all(0 <= share <= one.most for share, one in zip(shares, parties, strict=True))


@given(total=amounts, parties=several)
def test_no_party_is_above_its_floor_and_the_level_of_one_that_wants_more(
    total: int, parties: list[Party]
) -> None:
    shares = water_fill(total, parties)
    if sum(party.floor for party in parties) > total:
        return
    for low, wanting in zip(shares, parties, strict=True):
        assert low >= wanting.floor
        if low < wanting.most:
            level = Fraction(low) / wanting.weight
            for high, other in zip(shares, parties, strict=True):
                assert high <= max(Fraction(other.floor), level * other.weight)


@given(total=amounts, parties=several)
def test_floors_of_more_than_there_is_are_divided_in_proportion(
    total: int, parties: list[Party]
) -> None:
    floors = sum(party.floor for party in parties)
    if floors <= total:
        return
    shares = water_fill(total, parties)
    assert shares == [Fraction(party.floor * total, floors) for party in parties]


@given(total=amounts, parties=st.lists(a_party(), min_size=1, max_size=4))
def test_the_order_of_parties_changes_no_share(total: int, parties: list[Party]) -> None:
    shares = water_fill(total, parties)
    for order in permutations(range(len(parties))):
        assert water_fill(total, [parties[at] for at in order]) == [shares[at] for at in order]


@given(total=amounts, more=amounts, parties=several)
def test_a_larger_total_makes_no_share_smaller(total: int, more: int, parties: list[Party]) -> None:
    before, after = water_fill(total, parties), water_fill(total + more, parties)
    assert all(low <= high for low, high in zip(before, after, strict=True))


@given(total=amounts, weights=st.lists(st.integers(1, 2**60), min_size=1, max_size=6))
def test_parties_that_want_everything_share_it_by_weight(total: int, weights: list[int]) -> None:
    shares = water_fill(total, [Party(weight, 0, total) for weight in weights])
    assert shares == [Fraction(total * weight, sum(weights)) for weight in weights]
