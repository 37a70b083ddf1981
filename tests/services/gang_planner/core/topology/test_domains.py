"""Which domain a gang is tried in first: the closest, and of these the one that it fills best."""

import numpy as np
import pytest

from services.gang_planner.core.placement.domains import (
    DomainDemand,
    domain_around,
    ranked_spaces,
    wider,
)
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.topology.levels import Level, Levels

RACKS = Level(1, "tier 1", np.array([0, 0, 1, 1, 2, 2, -1]), ("a", "b", "c"))
ROWS = Level(2, "tier 2", np.array([0, 0, 0, 0, 1, 1, -1]), ("r", "s"))
NO_SLOTS: Ints = np.zeros(0, dtype=np.int64)


def tried(
    counts: list[int],
    quorum: int,
    *,
    wanted: int | None = None,
    near: Ints = NO_SLOTS,
    home: str | None = None,
    open_beyond: bool = False,
    base: list[bool] | None = None,
    fractions: list[int] | None = None,
) -> list[str | None]:
    left = np.array(fractions or [0] * len(counts))
    demand = DomainDemand(
        [""], [wanted or quorum], lambda: [np.array(counts)], quorum, (), lambda: [left]
    )
    found = Levels((RACKS, ROWS), open_beyond)
    mask = None if base is None else np.array(base)
    return [space.name for space in ranked_spaces(found, demand, near, home, mask)]


@pytest.mark.parametrize(
    ("counts", "quorum", "names"),
    [
        pytest.param([4, 4, 2, 2, 3, 3, 9], 4, ["b", "c", "a", "s", "r"], id="best fit first"),
        pytest.param([4, 4, 2, 2, 3, 3, 9], 8, ["a", "r"], id="what is too small is left out"),
        pytest.param([4, 4, 2, 2, 3, 3, 9], 12, ["r"], id="a row when no rack holds it"),
        pytest.param([4, 4, 2, 2, 3, 3, 9], 13, [], id="nowhere"),
        pytest.param([2, 2, 0, 0, 2, 2, 0], 4, ["a", "c", "r", "s"], id="by name among equals"),
        pytest.param([2, 2, 2, 2, 2, 2, 0], 4, ["c", "a", "b", "s", "r"], id="in the fuller row"),
    ],
)
def test_the_domains_of_a_gang_in_order(counts: list[int], quorum: int, names: list[str]) -> None:
    assert tried(counts, quorum) == names


def test_a_domain_that_holds_all_that_is_wanted_is_better_than_one_for_the_quorum() -> None:
    assert tried([4, 4, 2, 2, 3, 3, 9], 4, wanted=6)[:3] == ["c", "a", "b"]


def test_of_domains_that_hold_equally_many_the_one_with_less_free_capacity_is_first() -> None:
    fractions = [2600, 2600, 2600, 2100, 2600, 2600, 0]
    assert tried([2, 2, 2, 2, 0, 0, 0], 4, fractions=fractions) == ["b", "a", "r"]


def test_a_gang_returns_to_its_former_domain_if_that_still_holds_it() -> None:
    assert tried([4, 4, 2, 2, 3, 3, 9], 4, home="s")[:2] == ["s", "b"]
    assert tried([4, 4, 1, 1, 3, 3, 9], 4, home="b")[0] == "c"


def test_members_that_have_a_place_bind_the_others_to_its_domains() -> None:
    assert tried([4, 4, 2, 2, 3, 3, 9], 1, near=np.array([2])) == ["b", "r"]
    assert tried([4, 4, 2, 2, 3, 3, 9], 1, near=np.array([1, 2])) == ["r"]
    assert tried([4, 4, 2, 2, 3, 3, 9], 1, near=np.array([1, 4])) == []
    assert tried([4, 4, 2, 2, 3, 3, 9], 1, near=np.array([1, 6]), open_beyond=True) == [None]


def test_only_the_nodes_given_count() -> None:
    rack_a_only = [True, True, False, False, False, False, False]
    assert tried([4, 4, 2, 2, 3, 3, 9], 4, base=rack_a_only) == ["a", "r"]


def test_what_surrounds_a_domain_is_its_row_and_then_everything() -> None:
    counts = [np.array([4, 4, 2, 2, 3, 3, 9])]
    demand = DomainDemand([""], [4], lambda: counts, 4, (), lambda: counts)
    found = Levels((RACKS, ROWS), open=True)
    first = next(iter(ranked_spaces(found, demand, NO_SLOTS, "", None)))
    row, everything = wider(found, first, None)
    assert (first.name, everything) == ("b", None)
    assert row is not None
    assert np.flatnonzero(row).tolist() == [0, 1, 2, 3]


def test_a_gang_with_members_stays_in_the_widest_domain_allowed() -> None:
    closed = Levels((RACKS, ROWS), open=False)
    here = domain_around(closed, np.array([0]))
    assert here is not None
    assert np.flatnonzero(here).tolist() == [0, 1, 2, 3]
    assert domain_around(Levels((RACKS, ROWS), open=True), np.array([0])) is None
    assert domain_around(closed, NO_SLOTS) is None
