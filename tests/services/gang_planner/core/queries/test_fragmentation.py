"""How many more pods of each common shape fit: anywhere, in one domain, on one node."""

import pytest

from services.gang_planner.core.queries import fragmentation
from shared.contracts.questions import TierCapacity
from shared.model.reference_objects import HyperNode, HyperNodeMember
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

LARGE = make_shape({"cpu": 3000})


def rack(name: str, *nodes: str) -> HyperNode:
    members = tuple(HyperNodeMember(kind="Node", exact=node) for node in nodes)
    return HyperNode(uid=name, name=name, resource_version=1, tier=1, members=members)


def a_scene(*, leading: bool) -> Scene:
    """Nodes of four CPU: n0 has four free, n1 two, n2 two, n3 none."""
    scene = Scene(
        [make_node(f"n{n}", {"cpu": 4_000, "pods": 110}) for n in range(4)], leading=leading
    )
    scene.put(rack("r0", "n0", "n3"), rack("r1", "n1", "n2"))
    scene.put(make_group("running", 8))
    for node, count in (("n1", 2), ("n2", 2), ("n3", 4)):
        # Another image is no other shape.
        shape = make_shape({"cpu": 1000}, images=(node,))
        scene.put(*make_pods("running", count, shape, role=node, node=node, phase="Running"))
    scene.put(make_group("waits", 9), *make_pods("waits", 2, LARGE))
    scene.put(*make_pods("ended", 5, make_shape({"cpu": 2000}), node="n0", phase="Succeeded"))
    return scene


@pytest.mark.parametrize("leading", [False, True])
def test_free_amounts_on_several_nodes_do_not_hold_large_pods(leading: bool) -> None:
    small, large = a_scene(leading=leading).planner.fragmentation().shapes
    assert (small.members, small.waiting, large.members, large.waiting) == (8, 0, 2, 2)
    assert small.id != large.id
    assert (small.total, small.unfragmented) == (8, 8)
    assert (small.node, small.on_node) == ("n0", 4)
    assert small.tiers == (TierCapacity(tier="tier 1", domain="r0", pods=4),)
    assert (large.total, large.unfragmented) == (1, 2)
    assert (large.node, large.on_node) == ("n0", 1)
    assert large.tiers == (TierCapacity(tier="tier 1", domain="r0", pods=1),)
    assert dict(large.requests)["cpu"] == 3_000


def test_without_a_usable_node_nothing_fits_and_without_hypernodes_there_are_no_tiers() -> None:
    scene = Scene([make_node("n0", {"cpu": 4_000, "pods": 110})])
    scene.put(make_group("waits", 9))
    scene.put(*make_pods("waits", 2, make_shape({"cpu": 1}, node_selector=(("pool", "none"),))))
    (one,) = scene.planner.fragmentation().shapes
    assert (one.total, one.unfragmented, one.node, one.on_node, one.tiers) == (0, 0, "", 0, ())
    assert one.node_selector == (("pool", "none"),)
    assert Scene([]).planner.fragmentation().shapes == ()


def test_the_most_common_shapes_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragmentation, "SHAPES_MAX", 2)
    scene = Scene([make_node("n0", {"cpu": 4_000, "pods": 110})])
    for count in (1, 3, 2):
        name = f"g{count}"
        scene.put(make_group(name, 9))
        scene.put(*make_pods(name, count, make_shape({"cpu": 1000 * count})))
    assert [one.members for one in scene.planner.fragmentation().shapes] == [3, 2]
