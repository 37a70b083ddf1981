"""What the planner knows of claims and their devices, read change by change, equals what it reads
of all claims at once.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.state import reference_objects
from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.devices.inventory import Inventory
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.devices import ResourceClaim, SharedDevice
from tests.services.gang_planner.core.claims import (
    assert_counts_are_current,
    make_device_claim,
    make_device_class,
    make_slice,
)
from tests.services.gang_planner.core.scene import Scene, make_group, make_node
from tests.services.gang_planner.core.test_devices import members

DRIVER = "gpu.example.com"
_DEVICES = [(DRIVER, f"n{node}", f"gpu-{index}") for node in range(2) for index in range(2)]
_CLAIMS = st.builds(
    lambda at, allocated, parts: make_device_claim(
        f"c{at}",
        allocated=tuple(sorted(allocated)),
        has_allocation=bool(allocated or parts),
        shares=tuple(
            SharedDevice(driver=one[0], pool=one[1], device=one[2], capacity=(("memory", "1Gi"),))
            for one in parts
        ),
    ),
    st.integers(0, 3),
    st.sets(st.sampled_from(_DEVICES), max_size=2),
    st.lists(st.sampled_from(_DEVICES), max_size=2),
)


def content(inventory: Inventory) -> list[Any]:
    return [set(inventory.allocated), {one: inventory.shares(one) for one in _DEVICES}]


@given(st.lists(st.lists(st.one_of(_CLAIMS, st.integers(0, 3)), max_size=4), max_size=6))
@settings(deadline=None, max_examples=150)
def test_an_inventory_follows_changes_of_claims(steps: list[list[ResourceClaim | int]]) -> None:
    tables = ReferenceObjects()
    nodes = NodeTable(ResourceIndex())
    followed = Inventory(tables, nodes)
    version = 1
    for step in steps:
        for change in step:
            version += 1
            if isinstance(change, int):
                tables.remove(f"rc-c{change}")
            else:
                newer = msgspec.structs.replace(change, resource_version=version)
                tables.put(newer, from_snapshot=False)
        followed.refresh()
        fresh = Inventory(tables, nodes)
        fresh.refresh()
        assert content(followed) == content(fresh)


def test_an_inventory_that_is_older_than_the_log_of_changes_reads_all_claims(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reference_objects, "_CLAIM_CHANGES_MAX", 4)
    tables = ReferenceObjects()
    followed = Inventory(tables, NodeTable(ResourceIndex()))
    followed.refresh()
    for at in range(9):
        tables.put(make_device_claim(f"c{at}", allocated=_DEVICES[:1]), from_snapshot=False)
    assert tables.resource_claims.changed_since(0) is None
    followed.refresh()
    assert followed.allocated == {_DEVICES[0]: 9}
    for at in range(8):
        tables.remove(f"rc-c{at}")
        followed.refresh()
    assert followed.allocated == {_DEVICES[0]: 1}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["theirs", "free", "gone", "bound", "new"]),
            st.integers(0, 2),
            st.integers(1, 2),
        ),
        min_size=1,
        max_size=10,
    )
)
@settings(deadline=None, max_examples=40)
def test_counts_follow_claims(changes: list[tuple[str, int, int]]) -> None:
    """Of members with a claim each, while claims of their own and of others get and lose devices,
    and gangs take some.
    """
    scene = Scene([make_node(f"n{at}") for at in range(3)])
    scene.put(make_device_class(), *(make_slice(f"n{at}", 3) for at in range(3)))
    waiting = [*members("w", [("a",), ("b",)]), *members("v", [("c",)])]
    scene.put(make_group("w", 9), make_group("v", 9), *waiting)
    scene.put(*(make_device_claim(name, at) for at, name in enumerate("abc", 1)))
    for version, (kind, at, number) in enumerate(changes, 2):
        theirs = tuple((DRIVER, f"n{at}", f"gpu-{index}") for index in range(number))
        if kind == "theirs":
            claim = make_device_claim(f"other{at}", number, allocated=theirs)
            scene.put(msgspec.structs.replace(claim, resource_version=version))
        elif kind == "free":
            scene.put(make_device_claim(f"other{at}", number, resource_version=version))
        elif kind == "gone":
            scene.remove(make_device_claim("abc"[at], resource_version=version))
        elif kind == "bound":
            claim = make_device_claim("abc"[at], number, allocated=theirs)
            scene.put(msgspec.structs.replace(claim, resource_version=version))
        else:
            name = f"g{version}"
            scene.put(make_device_claim(name, number), make_group(name, 1))
            scene.put(*members(name, [(name,)]))
        scene.settle()
        assert_counts_are_current(scene, waiting)
