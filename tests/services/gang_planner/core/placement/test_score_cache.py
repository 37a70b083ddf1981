"""Ratings and fits that were repaired equal those worked out again."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.constraints.feasibility import Fits
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.framework.policy_set import ScoreCache
from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeTable
from shared.model.objects import Taint
from tests.services.gang_planner.core.scene import make_node, make_shape

NODES = 40
CONF = (
    "tiers: [{plugins: [{name: predicates}, {name: nodeorder}, "
    "{name: binpack, arguments: {binpack.weight: 2}}]}]"
)
SHAPES = (
    make_shape({"cpu": 300, "memory": 1 << 30}),
    make_shape({"memory": 2 << 30}),
    make_shape(),
)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, NODES - 1), st.booleans()), max_size=30)
)
@settings(max_examples=50, deadline=None)
def test_repaired_ratings_and_fits_equal_fresh_ones(moves: list[tuple[int, int, bool]]) -> None:
    resources = ResourceIndex()
    nodes = NodeTable(resources)
    node_capacity = NodeCapacity(nodes)
    for i in range(NODES):
        taints = (Taint(key="k", effect="PreferNoSchedule"),) * (i % 3)
        slot = nodes.put(make_node(f"n{i}", taints=taints))
        node_capacity.add_capacity(slot, nodes.allocatable.cells[:, slot])
    shapes = [ShapeTable(resources).make(i, one) for i, one in enumerate(SHAPES)]
    policies = parse_configuration(CONF).policies(State())
    masks = Masks(nodes, policies.node_filters)
    ratings, fits = (
        ScoreCache(node_capacity, policies),
        Fits(node_capacity, masks, policies.capacity_filters),
    )
    for at, slot, looked_at in moves:
        node_capacity.take(slot, shapes[at])
        if not looked_at:
            continue
        for shape in shapes:
            score, slope = ratings.of(shape)
            fresh_score, fresh_slope = policies.scores(shape, node_capacity, np.arange(NODES))
            assert score.tolist() == fresh_score.tolist()
            assert slope is not None
            assert fresh_slope is not None
            assert slope.tolist() == fresh_slope.tolist()
            fresh = Fits(node_capacity, masks, policies.capacity_filters)
            assert fits.counts(shape).tolist() == fresh.counts(shape).tolist()
            assert fits.total(shape) == fresh.total(shape)
