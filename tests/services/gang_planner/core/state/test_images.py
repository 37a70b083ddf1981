"""Images and preferred terms about nodes decide among nodes that fit."""

import msgspec

from services.gang_planner.core.state.nodes import ImageTable
from shared.model.terms import Requirement, SelectorTerm, WeightedTerm
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

GIB = 1 << 30


def prefers(key: str, weight: int) -> WeightedTerm:
    requirement = Requirement(key=key, operator="Exists")
    return WeightedTerm(weight=weight, term=SelectorTerm(expressions=(requirement,)))


def where(scene: Scene, name: str, shape: bytes) -> list[str]:
    scene.put(make_group(name, 1), *make_pods(name, 1, shape))
    (decision,) = scene.settle()
    return list(scene.where(decision).values())


def test_a_node_that_matches_the_heavier_preferred_term_is_taken() -> None:
    scene = Scene(
        [make_node("a"), make_node("b", labels=(("x", ""),)), make_node("c", labels=(("y", ""),))]
    )
    light = make_shape({"cpu": 100}, preferred_node_affinity=(prefers("x", 10), prefers("y", 20)))
    heavy = make_shape({"cpu": 100}, preferred_node_affinity=(prefers("x", 30), prefers("y", 20)))
    assert where(scene, "one", light) == ["c"]
    assert where(scene, "two", heavy) == ["b"]
    assert where(scene, "three", make_shape({"cpu": 100})) == ["a"]


def test_labels_that_change_change_what_is_preferred() -> None:
    shape = make_shape({"cpu": 100}, preferred_node_affinity=(prefers("x", 10),))
    scene = Scene([make_node("a"), make_node("b", labels=(("x", ""),))])
    assert where(scene, "one", shape) == ["b"]
    scene.put(
        make_node("b", resource_version=2), make_node("a", resource_version=2, labels=(("x", ""),))
    )
    assert where(scene, "two", shape) == ["a"]


def test_a_node_that_has_a_large_image_is_taken_until_it_has_it_no_more() -> None:
    shape = make_shape({"cpu": 10}, images=("big", "small"))
    big = make_node("b", images=(("big", GIB),))
    scene = Scene([make_node("a", images=(("small", 1 << 20),)), big])
    assert where(scene, "one", shape) == ["b"]
    scene.put(msgspec.structs.replace(big, resource_version=2, images=()))
    # Small images count for nothing: the emptier node is taken.
    assert where(scene, "two", shape) == ["a"]


def test_images_are_known_by_the_nodes_that_have_them_now() -> None:
    table = ImageTable()
    first = make_node("a", images=(("x", 5), ("y", 6)))
    second = make_node("b", images=(("x", 7),))
    table.put(0, None, first)
    table.put(1, None, second)
    assert dict(table.of("x")) == {0: 5, 1: 7}
    table.put(0, first, make_node("a", images=(("y", 8),)))
    assert dict(table.of("x")) == {1: 7}
    assert dict(table.of("y")) == {0: 8}
    table.put(0, make_node("a", images=(("y", 8),)), None)
    table.put(1, second, None)
    assert not table.any
