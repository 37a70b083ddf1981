"""Distributing a gang at once gives what placing pod after pod on the best node gives."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.placement import members
from services.gang_planner.core.placement.members import CandidateNodes, distribute, in_turn


def one_by_one(
    wanted: int, capacity: list[int], score: list[int], slope: list[int], rank: list[int]
) -> list[int]:
    """The loop that a scheduler would run."""
    counts = [0] * len(capacity)
    for _ in range(wanted):
        best = max(
            (node for node in range(len(capacity)) if counts[node] < capacity[node]),
            key=lambda node: (score[node] + slope[node] * counts[node], -rank[node]),
        )
        counts[best] += 1
    return counts


def in_order(
    wanted: int, capacity: list[int], score: list[int], slope: list[int], rank: list[int]
) -> list[int]:
    """The nodes that the same loop takes, one after the other."""
    found: list[int] = []
    before = [0] * len(capacity)
    for pods in range(1, wanted + 1):
        after = one_by_one(pods, capacity, score, slope, rank)
        found += [node for node in range(len(capacity)) if after[node] > before[node]]
        before = after
    return found


@st.composite
def loads(
    draw: st.DrawFn, *, slopes: st.SearchStrategy[int]
) -> tuple[int, list[int], list[int], list[int], list[int]]:
    size = draw(st.integers(1, 12))
    capacity = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any))
    score = draw(st.lists(st.integers(0, 40), min_size=size, max_size=size))
    slope = draw(st.lists(slopes, min_size=size, max_size=size))
    rank = draw(st.permutations(range(size)))
    wanted = draw(st.integers(1, sum(capacity)))
    return wanted, capacity, score, slope, list(rank)


def nodes(
    capacity: list[int], score: list[int], slope: list[int] | None, rank: list[int]
) -> CandidateNodes:
    """As many nodes as the lists are long."""
    free, points, ranks = (np.array(one, dtype=np.int64) for one in (capacity, score, rank))
    slopes = None if slope is None else np.array(slope, dtype=np.int64)
    return CandidateNodes(np.arange(len(free)), free, points, slopes, ranks)


@given(loads(slopes=st.integers(-9, -1)), st.sampled_from([0, 4096]), st.sampled_from([0, 16]))
@settings(deadline=None, max_examples=400)
def test_spreading_levels_like_a_pod_by_pod_loop(
    load: tuple[int, list[int], list[int], list[int], list[int]], matrix_cells: int, few: int
) -> None:
    wanted, capacity, score, slope, rank = load
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "_MATRIX_CELLS_MAX", matrix_cells)
        patch.setattr(members, "_ONE_BY_ONE_MAX", few)
        found = distribute(wanted, nodes(capacity, score, slope, rank))
    assert found.tolist() == one_by_one(wanted, capacity, score, slope, rank)


@given(loads(slopes=st.integers(-9, -1)))
@settings(deadline=None, max_examples=60)
def test_pods_are_in_the_order_in_which_a_loop_places_them(
    load: tuple[int, list[int], list[int], list[int], list[int]],
) -> None:
    wanted, *lists = load
    taken = distribute(wanted, nodes(*lists))
    assert in_turn(taken, nodes(*lists)).tolist() == in_order(wanted, *lists)


@given(loads(slopes=st.just(0)))
@settings(deadline=None, max_examples=60)
def test_without_a_slope_pods_are_in_the_order_of_nodes(
    load: tuple[int, list[int], list[int], list[int], list[int]],
) -> None:
    wanted, capacity, score, slope, rank = load
    candidates = nodes(capacity, score, None, rank)
    found = in_turn(distribute(wanted, candidates), candidates).tolist()
    assert found == in_order(wanted, capacity, score, slope, rank)


@given(loads(slopes=st.just(0)), st.sampled_from([0, 16]))
@settings(deadline=None, max_examples=200)
def test_without_a_slope_nodes_are_filled_in_order_of_score(
    load: tuple[int, list[int], list[int], list[int], list[int]], few: int
) -> None:
    wanted, capacity, score, slope, rank = load
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "_ONE_BY_ONE_MAX", few)
        found = distribute(wanted, nodes(capacity, score, None, rank))
    assert found.tolist() == one_by_one(wanted, capacity, score, slope, rank)


@given(loads(slopes=st.integers(0, 9)))
@settings(deadline=None, max_examples=200)
def test_packing_fills_a_node_before_it_touches_the_next(
    load: tuple[int, list[int], list[int], list[int], list[int]],
) -> None:
    wanted, capacity, score, slope, rank = load
    found = distribute(wanted, nodes(capacity, score, slope, rank))
    assert int(found.sum()) == wanted
    partly = [node for node in range(len(capacity)) if 0 < found[node] < capacity[node]]
    assert len(partly) <= 1


def test_a_gang_of_500_on_5000_nodes_is_distributed_within_two_milliseconds() -> None:
    generator = np.random.default_rng(7)
    capacity = generator.integers(0, 9, 5000)
    score = generator.integers(0, 200_000, 5000)
    slope = np.full(5000, -700, dtype=np.int64)
    rank = generator.permutation(5000)
    candidates = CandidateNodes(np.arange(5000), capacity, score, slope, rank)
    took_s: list[float] = []
    for _ in range(5):
        before = time.process_time()
        found = distribute(500, candidates)
        took_s.append(time.process_time() - before)
        assert int(found.sum()) == 500
    assert min(took_s) < 0.002
