"""What an object that is too large becomes: small, itself, and no less strict."""

from typing import Any

import msgspec
import pytest

from shared.model import bounds, devices
from shared.model import objects as model
from shared.model import reference_objects as looked_up
from shared.model.terms import Requirement, Selector, SelectorTerm, WeightedTerm

MANY = tuple(f"v{number}" for number in range(bounds.ENTRIES_MAX))
WIDE = Requirement(key="k", operator="In", values=MANY)
TERMS = (SelectorTerm(expressions=(WIDE,)),)
CLUSTER: dict[str, Any] = {"uid": "u", "name": "one", "resource_version": 7}
NAMED: dict[str, Any] = {**CLUSTER, "namespace": "team"}
RESOURCES = tuple((f"e.x/{number:03}", 1) for number in range(bounds.RESOURCES_MAX + 1))
#: 10,001 values and the requirement that has them.
ENTRIES = "has 10001 entries, and Tutti judges at most 10000"
OF_SELECTOR = "has 10001 entries, and Tutti judges at most 64"


@pytest.mark.parametrize(
    ("one", "left", "what"),
    [
        (
            looked_up.Budget(
                **NAMED, selector=Selector(requirements=(WIDE,)), disruptions_allowed=9
            ),
            {"selector": Selector(), "disruptions_allowed": 0},
            f"TooLarge: spec.selector {OF_SELECTOR}",
        ),
        (
            looked_up.Claim(
                **NAMED,
                selector=Selector(requirements=(WIDE,)),
                access_modes=("ReadWriteOncePod",),
                volume_name="v",
            ),
            {"selector": None, "access_modes": ("ReadWriteOncePod",), "volume_name": "v"},
            f"TooLarge: spec.selector {OF_SELECTOR}",
        ),
        (
            looked_up.ResourceQuota(**NAMED, hard=RESOURCES, used=(("cpu", 1),)),
            {"hard": (), "used": (("cpu", 1),)},
            "TooLarge: spec.hard has 257 resources, and Tutti judges at most 256",
        ),
        (
            looked_up.Volume(**CLUSTER, node_affinity=TERMS, handle="h"),
            {"node_affinity": (), "handle": "h"},
            f"TooLarge: spec.nodeAffinity has 10002 {ENTRIES.partition(' 10001 ')[2]}",
        ),
        (
            devices.ResourceSlice(
                **CLUSTER, driver="d", pool="p", devices=("a",) * 10_001, details=()
            ),
            {"devices": (), "details": (), "driver": "d", "pool": "p"},
            f"TooLarge: spec.devices {ENTRIES}",
        ),
        (
            devices.ResourceClaim(
                **NAMED,
                requests=(
                    devices.DeviceRequest(
                        name="r",
                        tolerations=tuple(devices.DeviceToleration(key=key) for key in MANY),
                    ),
                ),
                allocated=(("d", "p", "a"),),
            ),
            {"requests": (), "allocated": (("d", "p", "a"),)},
            f"TooLarge: spec.devices.requests {ENTRIES}",
        ),
        (
            model.Node(**CLUSTER, allocatable=(("cpu", 1),), labels=(("k", "v" * 300_000),)),
            {"labels": (), "allocatable": ()},
            "TooLarge: metadata.labels has a text of 300000 characters, and Tutti reads 16384",
        ),
        (
            model.Node(**CLUSTER, allocatable=(("cpu", 1),), images=(("i", 1),) * 10_001),
            {"images": (), "allocatable": (("cpu", 1),)},
            f"TooLarge: status.images {ENTRIES}",
        ),
        (
            model.Queue(**CLUSTER, dialect="volcano", capability=RESOURCES, state="Open"),
            {"capability": (), "state": "Unknown"},
            "TooLarge: spec.capability has 257 resources, and Tutti judges at most 256",
        ),
        (
            model.PodGroup(**NAMED, dialect="volcano", min_member=5, min_resources=RESOURCES),
            {"min_member": 5, "min_resources": None},
            "TooLarge: spec.minResources has 257 resources, and Tutti judges at most 256",
        ),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, msgspec.Struct) else "",
)
def test_only_the_field_that_is_too_large_is_dropped_and_named(
    one: model.ClusterObject, left: dict[str, Any], what: str
) -> None:
    small = bounds.bounded(one)
    assert (small.uid, small.name, small.resource_version) == ("u", "one", 7)
    assert {name: getattr(small, name) for name in left} == left
    assert bounds.marker_of(small) == what
    assert len(msgspec.msgpack.encode(small)) < 1024
    assert bounds.bounded(small) == small


def test_an_object_within_the_bounds_is_the_same_object() -> None:
    members = tuple(
        looked_up.HyperNodeMember(kind="Node", exact=f"node-{number}") for number in range(5_000)
    )
    one = looked_up.HyperNode(**CLUSTER, members=members)
    assert bounds.bounded(one) is one
    assert bounds.marker_of(one) == ""


def test_many_fields_below_their_bounds_that_are_too_large_together_lose_the_largest() -> None:
    texts = tuple("t" * 15_000 for _ in range(12))
    one = devices.DeviceClass(**CLUSTER, selectors=texts, unsupported=texts[:6])
    small = bounds.bounded(one)
    assert bounds.marker_of(small).startswith("TooLarge: spec.selectors takes 180")


@pytest.mark.parametrize("more", [0, 1])
def test_a_pod_has_a_number_of_requirements_of_nodes_and_any_number_of_values(more: int) -> None:
    half = bounds.NODE_REQUIREMENTS_MAX // 2
    one = Requirement(key="k", operator="NotIn", values=("v",) * 20)
    required = SelectorTerm(expressions=(one,) * (half - 1), fields=(one,))
    preferred = WeightedTerm(weight=1, term=SelectorTerm(expressions=(one,) * (half + more)))
    shape = model.Shape(node_affinity=(required,), preferred_node_affinity=(preferred,))
    encoded = msgspec.msgpack.encode(shape)
    judged = bounds.judged_shape(encoded, on_node=False)
    if not more:
        assert judged == encoded
        return
    assert msgspec.msgpack.decode(judged, type=model.Shape).unsupported == (
        "TooLarge: spec.affinity.nodeAffinity has 257 requirements, and Tutti judges at most 256",
    )


def test_a_group_that_pods_declare_is_bounded_like_an_object() -> None:
    group = model.PodGroup(**NAMED, dialect="d", min_member=3, min_resources=RESOURCES)
    one = model.Pod(**NAMED, shape=msgspec.msgpack.encode(model.Shape()), declared_group=group)
    small = bounds.bounded(one)
    assert isinstance(small, model.Pod)
    assert small.declared_group is not None
    assert small.declared_group.min_member == 3
    assert bounds.marker_of(small).startswith("TooLarge: spec.minResources has 257 resources")


def test_every_list_has_a_place_where_its_user_finds_it() -> None:
    """A field that is renamed would lose its path."""
    named = [(kind, set(paths)) for kind, paths in bounds._PATHS.items()]
    named += [(kind, {field}) for kind, field in bounds._DROPPED]
    named += [(kind, set(fields)) for kind, fields in bounds._RESOURCES.items()]
    for kind, fields in named:
        assert fields <= {field.name for field in msgspec.structs.fields(kind)}, kind
