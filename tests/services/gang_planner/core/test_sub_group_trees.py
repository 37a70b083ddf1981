"""Sub-groups of one group that contain each other: how many start, and in which domains."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.dialects.sub_group_tree import Part
from shared.model.objects import NetworkTopology, Node
from tests.services.gang_planner.core.scene import (
    Scene,
    make_node,
)
from tests.services.gang_planner.core.sub_groups import group, part, pods
from tests.support.golden import Golden

RACK = NetworkTopology(label_key="rack")
ZONE = NetworkTopology(label_key="zone")


def nodes(*cpus: int, **labels: str) -> list[Node]:
    """Nodes with so many CPUs each, named after their labels."""
    prefix = "".join(labels.values())
    return [
        make_node(
            f"n{prefix}-{index}",
            {"cpu": 1000 * count, "memory": 64 << 30, "pods": 110},
            labels=tuple(sorted(labels.items())),
        )
        for index, count in enumerate(cpus)
    ]


def bound(scene: Scene) -> list[str]:
    """The sub-groups of the pods that are bound now, one name per pod."""
    decisions = scene.settle()
    found = [scene.pods[one.uid].role for decision in decisions for one in decision.bindings]
    for decision in decisions:
        scene.run(decision)
    return sorted(found)


def places(scene: Scene, label: str) -> dict[str, set[str]]:
    """Sub-group -> values of a node label where its pods are."""
    table = scene.state.nodes
    labels = {node.name: dict(node.labels) for node in table.objects if node is not None}
    found: dict[str, set[str]] = {}
    for pod in scene.pods.values():
        if pod.node:
            value = labels[pod.node][label]
            found.setdefault(pod.role, set()).add(value)
    return found


def sentence(scene: Scene) -> str:
    """Why the job waits, a while after it was refused."""
    assert bound(scene) == []
    scene.step(after_ms=3_000)
    why = scene.verdict("job").why
    assert why is not None
    return why.sentence


def test_a_smaller_number_of_unequal_sub_groups_is_enough_and_the_rest_follows_whole() -> None:
    scene = Scene(nodes(3))
    scene.put(group(part("large", 4), part("small", 2), least=1))
    scene.put(*pods("large", 4), *pods("small", 2))
    assert bound(scene) == ["small", "small"]
    scene.put(*nodes(2, more="x"))
    assert bound(scene) == []
    scene.put(*nodes(1, more="y"))
    assert bound(scene) == ["large"] * 4


def test_sub_groups_of_sub_groups_are_whole_or_absent() -> None:
    """Each replica is a leader and two workers, and two of three replicas are enough."""
    replicas = [
        one
        for name in ("a", "b", "c")
        for one in (part(name), part(f"{name}-leader", 1, name), part(f"{name}-workers", 2, name))
    ]
    scene = Scene(nodes(5))
    scene.put(group(*replicas, least=2))
    for name in ("a", "b", "c"):
        scene.put(*pods(f"{name}-leader", 1), *pods(f"{name}-workers", 2))
    assert bound(scene) == []
    scene.put(*nodes(3, more="x"))
    assert bound(scene) == ["a-leader", "a-workers", "a-workers", "b-leader", *["b-workers"] * 2]
    scene.put(*nodes(1, more="y"))
    assert bound(scene) == ["c-leader", "c-workers", "c-workers"]


def test_some_of_the_sub_groups_share_a_domain_and_another_is_elsewhere() -> None:
    tree = group(
        part("pair", topology=RACK), part("a", 2, "pair"), part("b", 1, "pair"), part("c", 2)
    )
    scene = Scene([*nodes(2, rack="r0"), *nodes(2, rack="r1"), *nodes(2, rack="r2")])
    scene.put(tree, *pods("a", 2), *pods("b", 1), *pods("c", 2))
    assert sentence(scene).startswith(
        "no domain of rack holds 3 members of pair: the best one, rack=r0, holds 2; "
    )
    scene.put(*nodes(3, rack="r3"))
    assert bound(scene) == ["a", "a", "b", "c", "c"]
    found = places(scene, "rack")
    assert found["a"] == found["b"] == {"r3"}
    assert "r3" not in found["c"]


def test_each_level_has_a_domain_of_its_own() -> None:
    tree = group(
        part("workers", topology=ZONE),
        part("prefill", 3, "workers", topology=RACK),
        part("decode", 3, "workers", topology=RACK),
        part("server", 1),
    )
    scene = Scene(nodes(1, zone="z0", rack="r0"))
    for zone, capacities in (("z1", (3, 2)), ("z2", (3, 4))):
        for index, cpus in enumerate(capacities):
            scene.put(*nodes(cpus, zone=zone, rack=f"{zone}r{index}"))
    scene.put(tree, *pods("prefill", 3), *pods("decode", 3), *pods("server", 1))
    assert len(bound(scene)) == 7
    racks, zones = places(scene, "rack"), places(scene, "zone")
    assert zones["prefill"] == zones["decode"] == {"z2"}
    assert racks["prefill"] != racks["decode"]
    assert len(racks["prefill"]) == len(racks["decode"]) == 1


def test_a_set_in_the_way_of_another_moves() -> None:
    """The rack of four would hold the first pair best, but only the rack of five holds it and
    leaves a rack to the second pair.
    """
    tree = group(
        part("x", topology=RACK),
        part("x0", 2, "x"),
        part("x1", 1, "x"),
        part("y", topology=RACK),
        part("y0", 1, "y"),
        part("y1", 1, "y"),
        part("z", 4, topology=RACK),
    )
    scene = Scene([*nodes(4, rack="r0"), *nodes(5, rack="r1")])
    scene.put(tree)
    for name, count in (("x0", 2), ("x1", 1), ("y0", 1), ("y1", 1), ("z", 4)):
        scene.put(*pods(name, count))
    assert len(bound(scene)) == 9
    found = places(scene, "rack")
    assert found == {"z": {"r0"}, "x0": {"r1"}, "x1": {"r1"}, "y0": {"r1"}, "y1": {"r1"}}


@pytest.mark.parametrize(("capacity", "placed"), [(4, 0), (5, 5)])
def test_pods_of_no_sub_group_count_towards_a_larger_minimum(capacity: int, placed: int) -> None:
    scene = Scene(nodes(capacity))
    scene.put(group(part("a", 1), part("b", 2), minimum=5))
    scene.put(*pods("a", 1), *pods("b", 3), *pods("", 1))
    assert len(bound(scene)) == placed


def test_a_sub_group_that_needs_no_pods_delays_nothing() -> None:
    scene = Scene(nodes(2))
    scene.put(group(part("a", 1), part("later", 0)), *pods("a", 1))
    assert bound(scene) == ["a"]
    scene.put(*pods("later", 2))
    assert bound(scene) == ["later"]


def test_the_sub_groups_that_lack_pods_are_named(golden: Golden) -> None:
    scene = Scene(nodes(9))
    names = ("a", "b", "c", "d", "e")
    scene.put(group(part("x"), *(part(name, 2, "x") for name in names), part("y", 1)))
    scene.put(*pods("a", 6), *pods("b", 1), *pods("y", 5))
    golden(sentence(scene))


def test_a_lost_member_is_replaced_in_the_domain_of_its_set() -> None:
    scene = Scene([*nodes(3, rack="r0"), *nodes(1, rack="r1")])
    scene.put(group(part("x", topology=RACK), part("a", 2, "x"), part("b", 1, "x")))
    scene.put(*pods("a", 2), *pods("b", 1))
    assert bound(scene) == ["a", "a", "b"]
    scene.settle()
    scene.change("job-b-0", phase="Failed")
    scene.settle()
    (lost,) = pods("b", 1)
    scene.put(msgspec.structs.replace(lost, uid="again", name="again"))
    assert bound(scene) == ["b"]
    assert places(scene, "rack")["b"] == {"r0"}


Branch = tuple[bool, tuple[int, ...]]
"""Whether a set needs one rack, and the sizes of its sub-groups, each of which does."""


def arrangements(racks: tuple[int, ...], branches: tuple[Branch, ...]) -> Iterator[tuple[int, ...]]:
    """What is left of racks after each way to place all sets."""
    if not branches:
        yield racks
        return
    (together, sizes), *others = branches
    for one in _placed(racks, sizes, range(len(racks)), together=together):
        yield from arrangements(one, tuple(others))


def _placed(
    racks: tuple[int, ...], sizes: tuple[int, ...], allowed: range, *, together: bool
) -> Iterator[tuple[int, ...]]:
    if not sizes:
        yield racks
        return
    for at in allowed:
        if racks[at] >= sizes[0]:
            left = (*racks[:at], racks[at] - sizes[0], *racks[at + 1 :])
            here = range(at, at + 1) if together else allowed
            yield from _placed(left, sizes[1:], here, together=together)


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple),
    st.lists(
        st.tuples(st.booleans(), st.lists(st.integers(1, 3), min_size=1, max_size=2).map(tuple)),
        min_size=1,
        max_size=3,
    ).map(tuple),
)
@settings(max_examples=60, deadline=None)
def test_nested_sub_groups_start_exactly_when_racks_hold_all_of_them(
    racks: tuple[int, ...], branches: tuple[Branch, ...]
) -> None:
    scene = Scene(
        [node for index, cpus in enumerate(racks) for node in nodes(cpus, rack=str(index))]
    )
    parts = list[Part]()
    for index, (together, sizes) in enumerate(branches):
        parts.append(part(f"s{index}", topology=RACK if together else None))
        for number, size in enumerate(sizes):
            name = f"s{index}-{number}"
            parts.append(part(name, size, f"s{index}", topology=RACK))
            scene.put(*pods(name, size))
    scene.put(group(*parts))
    possible = any(True for _ in arrangements(racks, branches))
    assert bool(bound(scene)) == possible
