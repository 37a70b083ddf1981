"""The search for several shapes against an exhaustive one: what fits is found, and how often the
greedy half alone would have missed it.
"""

import itertools
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.placement import attempt, exact_search
from services.gang_planner.core.placement.attempt import PlacementRequest
from services.gang_planner.core.placement.gang_placement import Placement, Refusal, place
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from shared.model.objects import NetworkTopology, Shape
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

Amounts = tuple[int, int]
"""cpu, memory."""


class Case(msgspec.Struct, frozen=True):
    """Nodes and what a gang asks of them."""

    nodes: tuple[Amounts, ...]
    #: (role, requests, members) each.
    groups: tuple[tuple[str, Amounts, int], ...]
    quorum: int
    minima: tuple[tuple[str, int], ...] = ()


def attempt_on(case: Case) -> Placement | Refusal:
    """Place the gang on its nodes."""
    return place(*asked(case))


def asked(case: Case) -> tuple[Session, PlacementRequest]:
    """These nodes, and the gang to place on them."""
    state = State()
    policies = parse_configuration("").policies(state)
    session = Session(
        state.node_capacity, state.shapes, Masks(state.nodes, policies.node_filters), policies
    )
    for index, (cpu, memory) in enumerate(case.nodes):
        slot = state.nodes.put(make_node(f"n{index}", {"cpu": cpu, "memory": memory, "pods": 99}))
        state.node_capacity.add_capacity(slot, state.nodes.allocatable.cells[:, slot])
    wanted = []
    for role, (cpu, memory), count in case.groups:
        requests = (("cpu", cpu), ("memory", memory), ("pods", 1))
        shape = state.shapes.intern(msgspec.msgpack.encode(Shape(requests=requests)))
        wanted.append((role, shape.id, count))
    need = Need(
        queue="default",
        quorum=case.quorum,
        minima=case.minima,
        wanted=tuple(wanted),
        best_effort=False,
        attached=False,
    )
    queue = state.queues.entry("default")
    return session, PlacementRequest(queue=queue, need=need, members_max=case.quorum)


def possible(case: Case) -> bool:
    """Whether any placement at all holds the quorum and every minimum: all of them are tried."""
    reachable = {(0,) * len(case.groups)}
    for node in case.nodes:
        reachable = {
            tuple(
                min(have + more, group[2])
                for have, more, group in zip(placed, added, case.groups, strict=True)
            )
            for placed in reachable
            for added in _fills(node, [group[1] for group in case.groups])
        }
    return any(_holds(case, placed) for placed in reachable)


def _holds(case: Case, placed: Sequence[int]) -> bool:
    by_role: dict[str, int] = {}
    for (role, _, _), count in zip(case.groups, placed, strict=True):
        by_role[role] = by_role.get(role, 0) + count
    return sum(placed) >= case.quorum and all(by_role[role] >= least for role, least in case.minima)


def _fills(node: Amounts, requests: Sequence[Amounts]) -> Iterator[tuple[int, ...]]:
    ranges = [range(min(node[0] // cpu, node[1] // memory) + 1) for cpu, memory in requests]
    for counts in itertools.product(*ranges):
        used = [
            sum(n * one[axis] for n, one in zip(counts, requests, strict=True)) for axis in (0, 1)
        ]
        if used[0] <= node[0] and used[1] <= node[1]:
            yield counts


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small clusters and gangs of two or three shapes that nearly fill them."""
    small = st.integers(1, 5)
    nodes = draw(st.lists(st.tuples(st.integers(2, 9), st.integers(2, 9)), min_size=1, max_size=4))
    requests = draw(st.lists(st.tuples(small, small), min_size=2, max_size=3, unique=True))
    groups = tuple((f"r{i}", one, draw(st.integers(1, 4))) for i, one in enumerate(requests))
    total = sum(count for _, _, count in groups)
    minima = tuple((role, draw(st.integers(0, count))) for role, _, count in groups)
    least = max(1, sum(count for _, count in minima))
    return Case(tuple(nodes), groups, draw(st.integers(least, total)), minima)


@settings(max_examples=400, deadline=None)
@given(cases())
def test_a_gang_of_several_shapes_is_placed_exactly_when_it_fits(case: Case) -> None:
    found = attempt_on(case)
    assert not found.budget_exceeded
    assert isinstance(found, Placement) == possible(case)
    if isinstance(found, Placement):
        assert sum(one.placed for one in found.groups) >= case.quorum
        assert all(
            sum(one.placed for one in found.groups if one.role == role) >= least
            for role, least in case.minima
        )


def test_what_the_greedy_search_misses_the_exact_one_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first member takes the only node that would hold the second one."""
    case = Case(((6, 7), (5, 4), (8, 3)), (("a", (1, 4), 1), ("b", (3, 5), 1)), 2)
    assert possible(case)
    assert isinstance(attempt_on(case), Placement)
    monkeypatch.setattr(attempt, "_is_searchable", lambda _: False)
    assert isinstance(attempt_on(case), Refusal)


def test_a_search_that_its_budget_ends_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(((6, 7), (5, 4), (8, 3)), (("a", (1, 4), 1), ("b", (3, 5), 1)), 2)
    monkeypatch.setattr(exact_search, "WORK_MAX", 1)
    found = attempt_on(case)
    assert isinstance(found, Refusal)
    assert found.budget_exceeded


def test_a_search_leaves_the_ground_as_it_was() -> None:
    case = Case(((4, 4),), (("a", (2, 2), 2), ("b", (1, 1), 2)), 4)
    session, request = asked(case)
    node_capacity = session.node_capacity
    before = node_capacity.free.cells.copy()
    assert isinstance(place(session, request), Refusal)
    assert bool(np.array_equal(before, node_capacity.free.cells))


def test_a_gangs_verdict_says_that_its_search_was_ended_by_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact_search, "WORK_MAX", 1)
    nodes = [
        make_node(name, {"cpu": cpu, "memory": memory, "pods": 9})
        for name, cpu, memory in (("n0", 6, 7), ("n1", 5, 4), ("n2", 8, 3))
    ]
    scene = Scene(nodes)
    scene.put(make_group("job", 2))
    scene.put(*make_pods("job", 1, make_shape({"cpu": 1, "memory": 4}), role="a"))
    scene.put(*make_pods("job", 1, make_shape({"cpu": 3, "memory": 5}), role="b"))
    assert scene.settle() == []
    why = scene.verdict("job").why
    assert why is not None
    assert why.reason == "SearchBudgetExceeded"
    assert "it may fit: the search for nodes used up its budget" in why.sentence


def two_racks(second: tuple[int, int], *, gangs: int = 1) -> Scene:
    """Nodes of one rack that only the exact search fills, a rack of one node, and gangs that want
    to be in one rack.
    """
    sizes = (("n0", 6, 7, "a"), ("n1", 5, 4, "a"), ("n2", 8, 3, "a"), ("n3", *second, "b"))
    scene = Scene(
        [
            make_node(name, {"cpu": cpu, "memory": memory, "pods": 9}, labels=(("rack", rack),))
            for name, cpu, memory, rack in sizes
        ]
    )
    topology = NetworkTopology(mode="hard", label_key="rack", highest_tier=1)
    for at in range(gangs):
        name = f"job{at}"
        scene.put(make_group(name, 2, topology=topology, created_ms=at))
        scene.put(*make_pods(name, 1, make_shape({"cpu": 1, "memory": 4}), role="a"))
        scene.put(*make_pods(name, 1, make_shape({"cpu": 3, "memory": 5}), role="b"))
    return scene


def test_a_rack_in_which_the_budget_ends_the_search_does_not_end_it_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact_search, "WORK_MAX", 1)
    (decision,) = two_racks((90, 90)).settle()
    assert decision.domain == "rack=b"


def test_identical_gangs_of_a_gang_whose_search_the_budget_ended_get_the_same_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact_search, "WORK_MAX", 1)
    scene = two_racks((4, 9), gangs=2)
    (decision,) = scene.settle()
    assert decision.domain == "rack=b"
    why = scene.verdict("job1").why
    assert why is not None
    assert why.reason == "SearchBudgetExceeded"


def test_what_is_more_than_a_rack_has_is_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either shape alone would find room enough."""
    monkeypatch.setattr(exact_search, "WORK_MAX", 1)
    scene = Scene([make_node("n0", {"cpu": 8, "memory": 99, "pods": 9})])
    scene.put(make_group("job", 4))
    scene.put(*make_pods("job", 2, make_shape({"cpu": 3}), role="a"))
    scene.put(*make_pods("job", 2, make_shape({"cpu": 2}), role="b"))
    assert scene.settle() == []
    why = scene.verdict("job").why
    assert why is not None
    assert why.reason == "NotEnoughResources"
