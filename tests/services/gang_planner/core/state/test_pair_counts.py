"""Counts of pods by tally: what a copy shares with its original."""

import pytest

from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.inter_pod.counts import DomainTable, PairCounts
from services.gang_planner.core.state.nodes import NodeTable


@pytest.mark.parametrize("writes", ["original", "copy", "both"])
def test_neither_a_copy_nor_its_original_sees_what_is_added_to_the_other(writes: str) -> None:
    original = PairCounts(DomainTable(NodeTable(ResourceIndex())))
    original.add(0, [(1, 2)], 3)
    copied = original.copy()
    again = original.copy()
    if writes != "copy":
        original.add(0, [(1, 2), (2, 1)], 1)
    if writes != "original":
        copied.add(0, [(1, 2)], -3)
    assert original.content() == ({1: {0: 6}} if writes == "copy" else {1: {0: 8}, 2: {0: 1}})
    assert copied.content() == ({1: {0: 6}} if writes == "original" else {})
    assert again.content() == {1: {0: 6}}
