"""Two gangs of two tenants around the same nodes, in every interleaving: what one of them suffers,
or is refused, costs the other nothing.
"""

import pytest

from tests.model.search import Found, search
from tests.model.states import Rules
from tests.model.test_commit_protocol import FAULTS


@pytest.mark.parametrize("gangs", [(1, 1), (2, 1), (1, 2)], ids=str)
def test_both_gangs_become_whole_where_nodes_suffice(gangs: tuple[int, ...]) -> None:
    result = search(Rules(gangs=gangs, nodes=sum(gangs)))
    assert set(result.ends) == {"whole, whole"}


@pytest.mark.parametrize(("gangs", "nodes"), [((1, 1), 1), ((2, 1), 2), ((2, 2), 3)], ids=str)
def test_one_gang_waits_whole_where_nodes_do_not_suffice(
    gangs: tuple[int, ...], nodes: int
) -> None:
    result = search(Rules(gangs=gangs, nodes=nodes))
    assert set(result.ends) == {"whole, waits"}


@pytest.mark.parametrize("poisoned", [0, 1])
def test_a_gang_that_a_policy_refuses_leaves_the_other_whole(poisoned: int) -> None:
    rules = Rules(gangs=(2, 1), nodes=4)
    refused = frozenset({rules.of_gang(poisoned)[0]})
    result = search(Rules(gangs=(2, 1), nodes=4, poisoned=refused))
    assert set(result.ends) == {("released, whole", "whole, released")[poisoned]}


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [2, 1])
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_at_any_instant_leaves_two_gangs_whole_waiting_or_released(
    fault: str, nodes: int
) -> None:
    result = search(Rules(gangs=(1, 1), nodes=nodes, faults=frozenset({fault}), faults_max=1))
    assert any("whole" in end for end in result.ends)


@pytest.mark.slow
@pytest.mark.parametrize("gangs", [(2, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_leaves_no_gang_in_part_where_two_compete(
    fault: str, gangs: tuple[int, ...]
) -> None:
    result = search(Rules(gangs=gangs, nodes=2, faults=frozenset({fault}), faults_max=1))
    assert any("whole" in end for end in result.ends)


def test_a_planner_that_takes_pods_of_two_tenants_for_one_gang_is_found_out() -> None:
    with pytest.raises(Found, match="pods of two gangs"):
        search(Rules(gangs=(2, 1), nodes=4, gangs_are_apart=False))


def test_room_of_a_lost_member_that_is_given_away_is_found_out() -> None:
    faults = frozenset({"pod-deleted"})
    with pytest.raises(Found, match="stays like this for ever"):
        search(Rules(gangs=(2, 1), nodes=2, faults=faults, faults_max=1, lost_are_held=False))
