"""Which pods belong to which sub-gang, and that parts are placed whenever they fit their racks."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.placement.attempt import PlacementRequest
from services.gang_planner.core.placement.gang_placement import Placement, Refusal, place
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.needs import Need, Structure, SubNeed
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.sub_gangs import part_of, sub_gangs
from shared.model.objects import NetworkTopology, Shape, SubGroup
from shared.model.terms import Requirement, Selector
from tests.services.gang_planner.core.scene import Scene, make_group, make_node, make_pods
from tests.services.gang_planner.core.scene import make_shape as shape_of

RACK = NetworkTopology(label_key="rack")


def policy(name: str, *requirements: Requirement, keys: tuple[str, ...] = ()) -> SubGroup:
    selector = Selector(requirements=requirements) if requirements else None
    return SubGroup(name=name, selector=selector, match_label_keys=keys, size=2)


@pytest.mark.parametrize(
    ("labels", "part"),
    [
        ({"app": "a", "stage": "0"}, "stages/0"),
        ({"app": "a", "stage": "12"}, "stages/12"),
        ({"app": "a"}, "rest"),
        ({"app": "b", "stage": "0"}, "rest"),
        ({"app": "c", "never": ""}, ""),
        ({"stage": "0"}, ""),
    ],
)
def test_a_pod_belongs_to_the_first_policy_that_selects_it_and_whose_keys_it_has(
    labels: dict[str, str], part: str
) -> None:
    stages = policy("stages", Requirement(key="app", operator="In", values=("a",)), keys=("stage",))
    rest = policy(
        "rest",
        Requirement(key="app", operator="Exists"),
        Requirement(key="app", operator="NotIn", values=("c",)),
        Requirement(key="never", operator="DoesNotExist"),
    )
    scene = Scene([make_node("n")])
    (pod,) = make_pods(
        "job",
        1,
        shape_of(),
        labels=msgspec.msgpack.encode(tuple(sorted(labels.items()))),
    )
    scene.put(make_group("job", 9, sub_groups=(stages, rest)), pod)
    gang = scene.state.gangs.by_id["group-job"]
    assert part_of(gang, pod) == part
    assert [one.name for one in sub_gangs(gang)] == ([part] if part else [])


@pytest.mark.parametrize(
    ("pods", "part"),
    [
        (("a", "job-worker-0", "z"), "named"),
        (("job-worker-0",), "named"),
        (("job-worker-1",), "rest"),
        (("z",), "rest"),
        ((), "rest"),
    ],
)
def test_a_policy_may_name_its_pods(pods: tuple[str, ...], part: str) -> None:
    scene = Scene([make_node("n")])
    (pod,) = make_pods("job", 1, shape_of())
    named = SubGroup(name="named", pods=pods, size=1)
    scene.put(make_group("job", 9, sub_groups=(named, SubGroup(name="rest"))), pod)
    assert part_of(scene.state.gangs.by_id["group-job"], pod) == part


@pytest.mark.parametrize(("least", "placed"), [(2, 4), (4, 4), (5, 0)])
def test_members_of_sub_gangs_above_their_size_count_towards_the_gangs_minimum(
    least: int, placed: int
) -> None:
    """The gang has no members outside its sub-gangs."""
    scene = Scene([make_node("n", {"cpu": 4000, "pods": 99})])
    a, b = (tuple(f"job-{name}-{index}" for index in range(3)) for name in "ab")
    parts = (
        SubGroup(name="a", pods=a, min_sub_groups=1),
        SubGroup(name="b", pods=b, min_sub_groups=1),
    )
    scene.put(make_group("job", least, sub_groups=parts))
    for name in ("a", "b"):
        scene.put(*make_pods("job", 3, shape_of({"cpu": 1000}), role=name))
    assert sum(len(decision.bindings) for decision in scene.settle()) == placed


def attempt(racks: Sequence[Sequence[int]], sizes: Sequence[int]) -> Placement | Refusal:
    """Sub-gangs of these sizes, each to be in one rack; racks are the room of their nodes."""
    state = State()
    policies = parse_configuration("").policies(state)
    masks = Masks(state.nodes, policies.node_filters)
    session = Session(state.node_capacity, state.shapes, masks, policies)
    for rack, nodes in enumerate(racks):
        for index, reservation in enumerate(nodes):
            labels = (("rack", str(rack)),)
            node = make_node(f"n{rack}-{index}", {"cpu": reservation, "pods": 99}, labels=labels)
            slot = state.nodes.put(node)
            state.node_capacity.add_capacity(slot, state.nodes.allocatable.cells[:, slot])
    shape = state.shapes.intern(msgspec.msgpack.encode(Shape(requests=(("cpu", 1), ("pods", 1)))))
    parts = tuple(
        SubNeed("p", f"p/{index}", size, (("w", shape.id, size),), RACK)
        for index, size in enumerate(sizes)
    )
    need = Need(
        queue="default",
        quorum=sum(sizes),
        minima=(),
        wanted=(("w", shape.id, sum(sizes)),),
        best_effort=False,
        attached=False,
        structure=Structure(sub_gangs=parts),
    )
    queue = state.queues.entry("default")
    return place(session, PlacementRequest(queue=queue, need=need, members_max=sum(sizes)))


def possible(reservations: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Whether every size finds a rack, by trying all of them."""
    if not sizes:
        return True
    return any(
        reservation >= sizes[0]
        and possible(
            (*reservations[:at], reservation - sizes[0], *reservations[at + 1 :]), sizes[1:]
        )
        for at, reservation in enumerate(reservations)
    )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_parts_are_placed_exactly_when_racks_hold_all_of_them(
    racks: list[list[int]], sizes: list[int]
) -> None:
    tried = attempt(racks, sizes)
    assert isinstance(tried, Placement) == possible(
        tuple(sum(rack) for rack in racks), tuple(sizes)
    )
    assert not tried.budget_exceeded


def test_a_part_that_is_in_the_way_of_others_moves() -> None:
    """Best fit puts the first part of three into the rack of four: then a part of two is left."""
    assert possible((4, 6), (3, 3, 2, 2))
    assert isinstance(attempt([[4], [6]], [3, 3, 2, 2]), Placement)
