"""What every policy must keep to, and what each of the placing ones does."""

import importlib

import numpy as np
import pytest

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.policies import discovered
from services.gang_planner.core.scoring import FULL, ScoredNodes
from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry, ShapeTable
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

CPU = make_shape({"cpu": 1000, "memory": 1 << 30})


def three_nodes() -> tuple[NodeCapacity, ShapeEntry]:
    """Nodes that are empty, half used and nearly full."""
    resources = ResourceIndex()
    nodes = NodeTable(resources)
    node_capacity = NodeCapacity(nodes)
    shape = ShapeTable(resources).intern(CPU)
    for name, running in (("empty", 0), ("half", 2), ("full", 3)):
        slot = nodes.put(make_node(name, {"cpu": 4000, "memory": 8 << 30, "pods": 9}))
        node_capacity.add_capacity(slot, nodes.allocatable.cells[:, slot])
        for _ in range(running):
            node_capacity.take(slot, shape)
    return node_capacity, shape


@pytest.mark.parametrize("name", sorted(discovered()))
def test_a_policy_is_called_like_its_file_and_says_what_it_does(name: str) -> None:
    module = importlib.import_module(
        f"services.gang_planner.core.policies.{name.replace('-', '_')}"
    )
    assert module.build(Arguments("here", {})).name == name
    assert module.__doc__
    assert module.build.__doc__


@pytest.mark.parametrize("name", sorted(discovered()))
def test_scores_of_a_policy_are_bounded_repeatable_and_leave_the_ground_alone(name: str) -> None:
    node_capacity, shape = three_nodes()
    slots = np.arange(3)
    before = node_capacity.free.cells.tolist()
    for weight, score in discovered()[name](Arguments("here", {})).scores:
        found = score.score(ScoredNodes(shape, node_capacity, slots))
        again = score.score(ScoredNodes(shape, node_capacity, slots))
        slope = score.slope(ScoredNodes(shape, node_capacity, slots))
        assert weight > 0
        assert found.tolist() == again.tolist()
        assert int(found.min()) >= 0
        assert int(found.max()) <= FULL
        assert slope is None or (found.dtype == slope.dtype and len(slope) == 3)
    assert node_capacity.free.cells.tolist() == before


def placed(conf: str, count: int, nodes: int = 4) -> list[int]:
    """How many members each node gets."""
    scene = Scene((make_node(f"n{i}") for i in range(nodes)), conf=conf)
    scene.put(make_group("a", count), *make_pods("a", count, CPU))
    (decision,) = scene.settle()
    names = [one.node for one in decision.bindings]
    return [names.count(f"n{i}") for i in range(nodes)]


def test_by_default_a_gang_is_spread() -> None:
    assert placed("", 8) == [2, 2, 2, 2]


def test_binpack_fills_nodes_up() -> None:
    conf = "tiers: [{plugins: [{name: predicates}, {name: binpack}]}]"
    assert placed(conf, 8) == [4, 4, 0, 0]


def test_binpack_wins_over_spreading_when_its_weight_is_larger() -> None:
    conf = (
        "tiers: [{plugins: [{name: predicates}, {name: nodeorder}, "
        "{name: binpack, arguments: {binpack.weight: 5}}]}]"
    )
    assert placed(conf, 8) == [4, 4, 0, 0]


def test_without_any_policy_names_decide_and_nothing_is_over_committed() -> None:
    assert placed("tiers: []", 6) == [4, 2, 0, 0]


def test_spreading_evens_out_what_was_uneven() -> None:
    scene = Scene(make_node(f"n{i}") for i in range(2))
    scene.put(*make_pods("old", 2, CPU, group_name="", owner=None, node="n0", phase="Running"))
    scene.put(make_group("a", 4), *make_pods("a", 4, CPU))
    (decision,) = scene.settle()
    names = [one.node for one in decision.bindings]
    assert (names.count("n0"), names.count("n1")) == (1, 3)


def test_a_switched_off_predicate_is_not_judged() -> None:
    picky = make_shape({"cpu": 1}, node_selector=(("disk", "ssd"),))
    for enabled, decisions in (("true", 0), ("false", 1)):
        conf = (
            "tiers: [{plugins: [{name: predicates, arguments: "
            f"{{predicate.NodeAffinityEnable: {enabled}}}}}]}}]"
        )
        scene = Scene([make_node("n0")], conf=conf)
        scene.put(make_group("a", 1), *make_pods("a", 1, picky))
        assert len(scene.settle()) == decisions
