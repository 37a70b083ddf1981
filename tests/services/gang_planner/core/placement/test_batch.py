"""Many equal gangs in one pass: the same gangs are placed as one by one, whole and in order."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.allocation import batch
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.placement.domains import Space
from services.gang_planner.core.placement.gang_placement import StructuredPlacement
from shared.contracts.decisions import GangDecision
from shared.model.objects import HostPort, NetworkTopology, Node, Pod, PodGroup, Queue
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

_RACK = "rack"
_IN_ONE_RACK = NetworkTopology(mode="hard", label_key=_RACK, highest_tier=1)
_CPUS = (1000, 1500, 700)

Load = tuple[list[Node], list[tuple[PodGroup, list[Pod]]], list[Queue]]


def place_all(load: Load, *, at_once: bool) -> tuple[Scene, list[int]]:
    """Run until nothing changes, with or without passes for many; the scene, and how many gangs
    each such pass has placed.
    """
    nodes, gangs, queues = load
    passes: list[int] = []
    spread = batch._spread

    def watched(work: CycleContext, runs: Sequence[Any], space: Space) -> Any:
        passes.append(sum(len(one.gangs) for one in runs))
        return spread(work, runs, space)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "_spread", watched)
        if not at_once:
            patch.setattr(batch, "_request", lambda *_: None)
        scene = Scene(nodes)
        scene.put(*queues)
        for group, pods in gangs:
            scene.put(group, *pods)
        while scene.step().decisions:
            pass
    return scene, passes


def placed(scene: Scene) -> dict[str, dict[str, str]]:
    """Pods with their nodes, by gang."""
    return {
        one.gang.partition("/")[2]: {each.name: each.node for each in one.bindings}
        for _, one in scene.decisions
    }


def make_gang(index: int, size: int, cpus: Sequence[int], **fields: Any) -> Any:
    """A group of this size and its pods, with these requests by turns."""
    name = f"g{index:02d}"
    pods = [
        pod
        for at, cpu in enumerate(cpus)
        for pod in make_pods(
            name,
            len(range(at, size, len(cpus))),
            make_shape({"cpu": cpu, "memory": cpu // 100 * (1 << 30) // 10}),
            role=f"r{at}",
        )
    ]
    return make_group(name, size, created_ms=index, **fields), pods


@st.composite
def mixed_loads(draw: st.DrawFn) -> Load:
    """Gangs of several shapes in queues that take turns."""
    nodes, _, queues = draw(loads(kinds=1))
    gangs = [
        make_gang(
            index,
            draw(st.integers(1, 3)),
            draw(st.sampled_from([_CPUS[:1], _CPUS[1:2], _CPUS[2:], _CPUS[:2]])),
            topology=draw(st.sampled_from([None, None, None, _IN_ONE_RACK])),
            queue=draw(st.sampled_from(["q0", "q1"])),
        )
        for index in range(draw(st.integers(2, 12)))
    ]
    return nodes, gangs, queues


@st.composite
def loads(draw: st.DrawFn, *, kinds: int) -> Load:
    """A few nodes in two racks, and more gangs than they may hold."""
    nodes = [
        make_node(
            f"n{index}",
            {
                "cpu": draw(st.integers(1, 12)) * 500,
                "memory": draw(st.integers(1, 12)) << 29,
                "pods": draw(st.integers(1, 8)),
            },
            labels=((_RACK, f"r{index % 2}"),),
        )
        for index in range(draw(st.integers(1, 8)))
    ]
    cpus = _CPUS[:kinds]
    topology = draw(st.sampled_from([None, _IN_ONE_RACK]))
    queues = [
        Queue(uid=f"q{at}", dialect="incubator", name=f"q{at}", resource_version=1)
        for at in range(2)
    ]
    limit = draw(st.sampled_from([0, 4000]))
    if limit:
        queues[1] = Queue(
            uid="q1",
            dialect="volcano",
            name="q1",
            resource_version=1,
            capability=amounts(cpu=limit),
        )
    names = draw(st.sampled_from([("q0",), ("q1",), ("q0", "q1")]))
    size = draw(st.integers(kinds, 4))
    gangs = [
        make_gang(index, size, cpus, topology=topology, queue=names[index % len(names)])
        for index in range(draw(st.integers(2, 12)))
    ]
    return nodes, gangs, queues


@given(loads(kinds=1))
@settings(deadline=None, max_examples=60)
def test_the_same_gangs_of_one_shape_are_placed_as_one_by_one(load: Load) -> None:
    together, _ = place_all(load, at_once=True)
    one_by_one, _ = place_all(load, at_once=False)
    assert list(placed(together)) == list(placed(one_by_one))
    for gang, pods in placed(together).items():
        assert len(pods) == len(placed(one_by_one)[gang])


@given(loads(kinds=3))
@settings(deadline=None, max_examples=60)
def test_gangs_of_several_shapes_that_one_pass_places_are_placed_one_by_one_too(load: Load) -> None:
    together, passes = place_all(load, at_once=True)
    one_by_one, _ = place_all(load, at_once=False)
    first = passes[0] if passes else 0
    assert list(placed(together))[:first] == list(placed(one_by_one))[:first]


@given(mixed_loads())
@settings(deadline=None, max_examples=25)
def test_gangs_of_several_queues_that_one_pass_places_are_placed_one_by_one_too(load: Load) -> None:
    together, passes = place_all(load, at_once=True)
    one_by_one, _ = place_all(load, at_once=False)
    first = passes[0] if passes else 0
    assert list(placed(together))[:first] == list(placed(one_by_one))[:first]
    assert len(together.decisions) >= first


def test_on_equal_nodes_gangs_get_the_places_that_they_would_have_got_one_by_one() -> None:
    nodes = [make_node(f"n{at}", {"cpu": 4000, "memory": 4 << 30, "pods": 9}) for at in range(7)]
    load = nodes, [make_gang(index, 3, (1000,)) for index in range(2)], list[Queue]()
    together, passes = place_all(load, at_once=True)
    one_by_one, _ = place_all(load, at_once=False)
    assert passes == [2]
    assert placed(together) == placed(one_by_one)


def test_a_gang_of_which_a_refused_member_is_left_out_is_placed_beside_its_equals() -> None:
    """Seed 405 of the simulation: more members waited than it needed, and the planner crashed."""
    scene = LoggedScene([make_node("n0")])
    scene.refuses = lambda binding: binding.name == "bare-worker-0"
    shape = make_shape({"cpu": 100})
    scene.put(make_group("bare", 2), *make_pods("bare", 3, shape, owner=None))
    scene.step()
    scene.carry_out()
    scene.step()
    assert scene.wakeup_ms is not None
    for name in ("b", "c"):
        scene.put(make_group(name, 2), *make_pods(name, 2, shape))
    step = scene.step(after_ms=scene.wakeup_ms - scene.now_ms)
    found = [one for one in step.decisions if isinstance(one, GangDecision)]
    whole = {one.gang for one in found if len(one.bindings) == 2}
    assert whole == {"team/bare", "team/b", "team/c"}


def test_queues_that_take_turns_are_served_in_one_pass_in_the_order_of_their_turns() -> None:
    nodes = [
        make_node(f"n{index}", {"cpu": 64_000, "memory": 64 << 30, "pods": 99})
        for index in range(9)
    ]
    queues = [
        Queue(uid=name, dialect="incubator", name=name, resource_version=1, weight=weight)
        for name, weight in (("heavy", 4), ("light", 1))
    ]
    gangs = [make_gang(at, 3, (1000,), queue=("heavy", "light")[at % 2]) for at in range(40)]
    together, passes = place_all((nodes, gangs, queues), at_once=True)
    one_by_one, _ = place_all((nodes, gangs, queues), at_once=False)
    assert list(placed(together)) == list(placed(one_by_one))
    assert passes == [40]


def test_gangs_that_want_the_same_port_are_not_placed_beside_others_in_one_pass() -> None:
    """Two shapes with one port share no node, which their amounts do not show."""
    port = (HostPort(port=80),)
    nodes = [make_node(f"n{at}", {"cpu": 4000, "memory": 4 << 30, "pods": 9}) for at in range(4)]
    gangs = [
        (
            make_group(f"g{at}", 2, created_ms=at),
            make_pods(f"g{at}", 2, make_shape({"cpu": (500, 700)[at % 2]}, host_ports=port)),
        )
        for at in range(3)
    ]
    scene, _ = place_all((nodes, gangs, []), at_once=True)
    assert list(placed(scene)) == ["g0", "g1"]
    used = [node for pods in placed(scene).values() for node in pods.values()]
    assert sorted(used) == ["n0", "n1", "n2", "n3"]


def test_a_pass_takes_what_the_ceiling_of_the_queue_leaves() -> None:
    nodes = [
        make_node(f"n{index}", {"cpu": 64_000, "memory": 64 << 30, "pods": 99})
        for index in range(3)
    ]
    queue = Queue(
        uid="q", dialect="volcano", name="q", resource_version=1, capability=amounts(cpu=8000)
    )
    gangs = [make_gang(index, 3, (1000,), queue="q") for index in range(5)]
    scene, passes = place_all((nodes, gangs, [queue]), at_once=True)
    assert passes == [2]
    assert list(placed(scene)) == ["g00", "g01"]


def test_every_gang_of_a_pass_is_in_one_rack_and_racks_are_filled_in_turn() -> None:
    nodes = [
        make_node(
            f"n{index}",
            {"cpu": 6000, "memory": 64 << 30, "pods": 9},
            labels=((_RACK, f"r{index % 3}"),),
        )
        for index in range(6)
    ]
    gangs = [make_gang(index, 3, (1000,), topology=_IN_ONE_RACK) for index in range(12)]
    scene, passes = place_all((nodes, gangs, []), at_once=True)
    racks = [{int(node[1:]) % 3 for node in pods.values()} for pods in placed(scene).values()]
    assert passes == [4, 4, 4]
    assert racks == [{0}] * 4 + [{1}] * 4 + [{2}] * 4


def test_a_rack_that_disappointed_one_gang_is_not_tried_for_its_equals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The small rack holds either shape alone, and not both."""
    nodes = [
        make_node("small", {"cpu": 1500, "memory": 64 << 30, "pods": 9}, labels=((_RACK, "r0"),)),
        make_node(
            "large", {"cpu": 64_000, "memory": 64 << 30, "pods": 99}, labels=((_RACK, "r1"),)
        ),
    ]
    gangs = [make_gang(index, 2, (1000, 700), topology=_IN_ONE_RACK) for index in range(6)]
    tried: list[str | None] = []
    real = StructuredPlacement._fill

    def fill(attempt: StructuredPlacement, space: Space) -> bool:
        tried.append(space.name)
        return real(attempt, space)

    monkeypatch.setattr(StructuredPlacement, "_fill", fill)
    scene, passes = place_all((nodes, gangs, []), at_once=True)
    assert tried == ["rack=r0", "rack=r1"]
    assert passes == [5]
    assert len(placed(scene)) == 6
