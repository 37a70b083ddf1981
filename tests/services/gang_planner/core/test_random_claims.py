"""Volumes and devices against a naive reading of the rules, while pods come and go."""

from dataclasses import dataclass, field

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.constraints.filters import dynamic_resources, volume_binding
from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry, ShapeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.reference_objects import Claim, Volume
from tests.services.gang_planner.core.claims import (
    GIB,
    HOST,
    make_claim,
    make_class,
    make_device_claim,
    make_device_class,
    make_slice,
    make_volume,
    on_host,
)
from tests.services.gang_planner.core.scene import make_node, make_shape

NODES = ("n0", "n1", "n2", "n3")
CLAIMS = ("a", "b", "c", "d", "e")


class Floor:
    """A node capacity with four nodes, and the tables around it."""

    def __init__(self) -> None:
        self.shapes = ShapeTable(ResourceIndex())
        self.nodes = NodeTable(self.shapes.resources)
        self.tables = ReferenceObjects()
        self.node_capacity = NodeCapacity(self.nodes, self.tables)
        for name in NODES:
            slot = self.nodes.put(make_node(name, labels=((HOST, name),)))
            self.node_capacity.add_capacity(slot, self.nodes.allocatable.cells[:, slot].copy())

    def shape(self, *claims: str, devices: tuple[str, ...] = ()) -> ShapeEntry:
        return self.shapes.intern(
            make_shape(claims=claims, device_claims=devices, namespace="team")
        )

    def may(self, shape: ShapeEntry) -> set[str]:
        """Nodes that both rules about claims let the shape use."""
        every = slice(0, self.nodes.size)
        volumes = volume_binding.FILTER.capacity(shape, self.node_capacity, every)
        devices = dynamic_resources.FILTER.capacity(shape, self.node_capacity, every)
        return {
            name
            for name in NODES
            if volumes[self.nodes.slot(name)] and devices[self.nodes.slot(name)]
        }


@dataclass
class Naive:
    """Which volume each claim got, and which pods use which claim."""

    volumes: list[Volume]
    claims: dict[str, Claim]
    made_on: frozenset[str]
    chosen: dict[str, tuple[str, str]] = field(default_factory=dict)
    users: dict[str, int] = field(default_factory=dict)

    def choose(self, names: tuple[str, ...], node: str) -> dict[str, tuple[str, str]] | None:
        """(volume, node) of each claim, as kube-scheduler's loop finds them."""
        found: dict[str, tuple[str, str]] = {}
        taken = {volume for volume, _ in self.chosen.values()}
        for name in sorted(names, key=lambda one: (self.claims[one].request_bytes, one)):
            claim = self.claims[name]
            if name in self.chosen:
                volume, where = self.chosen[name]
                if volume and not self.usable(volume, node):
                    return None
                if not volume and where != node:
                    return None
                continue
            fitting = [
                one
                for one in self.volumes
                if one.name not in taken
                and one.capacity_bytes >= claim.request_bytes
                and one.storage_class == claim.storage_class
                and self.usable(one.name, node)
            ]
            if fitting:
                best = min(fitting, key=lambda one: (one.capacity_bytes, one.name))
                found[name] = (best.name, node)
                taken.add(best.name)
            elif claim.storage_class == "made" and node in self.made_on:
                found[name] = ("", node)
            else:
                return None
        return found

    def usable(self, volume: str, node: str) -> bool:
        (one,) = [one for one in self.volumes if one.name == volume]
        if one.node_affinity is None:
            return True
        return any(node in term.expressions[0].values for term in one.node_affinity)


@st.composite
def stores(draw: st.DrawFn) -> tuple[list[Volume], list[Claim], frozenset[str]]:
    count = draw(st.integers(0, 6))
    homes = st.one_of(
        st.none(), st.lists(st.sampled_from(NODES), min_size=1, max_size=3, unique=True)
    )
    volumes = []
    for index in range(count):
        home = draw(homes)
        volumes.append(
            make_volume(
                f"v{index}",
                gib=draw(st.integers(1, 3)),
                storage_class=draw(st.sampled_from(("local", "made"))),
                node_affinity=None if home is None else on_host(*home),
            )
        )
    claims = [
        make_claim(
            name,
            request_bytes=draw(st.integers(1, 3)) * GIB,
            storage_class=draw(st.sampled_from(("local", "made"))),
        )
        for name in CLAIMS
    ]
    return volumes, claims, frozenset(draw(st.sets(st.sampled_from(NODES))))


def stocked(volumes: list[Volume], claims: list[Claim], made_on: frozenset[str]) -> Floor:
    floor = Floor()
    floor.tables.put(make_class(), from_snapshot=False)
    allowed = on_host(*sorted(made_on)) if made_on else on_host("nowhere")
    floor.tables.put(
        make_class("made", provisioner="p", allowed_topologies=allowed), from_snapshot=False
    )
    for volume in volumes:
        floor.tables.put(volume, from_snapshot=False)
    for claim in claims:
        floor.tables.put(claim, from_snapshot=False)
    return floor


@given(stores(), st.data())
@settings(deadline=None, max_examples=150)
def test_volumes_are_chosen_as_a_naive_reading_of_the_rules_chooses_them(
    store: tuple[list[Volume], list[Claim], frozenset[str]], data: st.DataObject
) -> None:
    volumes, claims, made_on = store
    floor = stocked(volumes, claims, made_on)
    naive = Naive(volumes, {one.name: one for one in claims}, made_on)
    there: list[tuple[ShapeEntry, tuple[str, ...], str]] = []
    for _ in range(data.draw(st.integers(1, 8))):
        drawn: set[str] = data.draw(st.sets(st.sampled_from(CLAIMS), min_size=1, max_size=2))
        names = tuple(sorted(drawn))
        shape = floor.shape(*names)
        expected = {node for node in NODES if naive.choose(names, node) is not None}
        assert floor.may(shape) == expected
        assert floor.node_capacity.one_by_one(shape)
        comes: bool = data.draw(st.booleans())
        if expected and comes:
            node = data.draw(st.sampled_from(sorted(expected)))
            naive.chosen.update(naive.choose(names, node) or {})
            floor.node_capacity.take(floor.nodes.slot(node), shape)
            there.append((shape, names, node))
            for name in names:
                naive.users[name] = naive.users.get(name, 0) + 1
                choice = floor.node_capacity.storage.find(("team", name))
                assert choice is not None
                assert choice.volume == naive.chosen[name][0]
        elif there:
            shape, names, node = there.pop(data.draw(st.integers(0, len(there) - 1)))
            floor.node_capacity.give(floor.nodes.slot(node), shape)
            for name in names:
                naive.users[name] -= 1
                if not naive.users[name]:
                    del naive.users[name], naive.chosen[name]
    trial = floor.node_capacity.copy()
    for shape, _, node in there:
        trial.give(floor.nodes.slot(node), shape)
        floor.node_capacity.give(floor.nodes.slot(node), shape)
    for node_capacity in (trial, floor.node_capacity):
        assert not node_capacity.storage.uses
        assert not any(node_capacity.storage.find(("team", name)) for name in CLAIMS)


@given(
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.lists(st.integers(1, 3), min_size=5, max_size=5),
    st.data(),
)
@settings(deadline=None, max_examples=100)
def test_devices_are_counted_as_a_naive_count_of_them(
    devices: list[int], wanted: list[int], data: st.DataObject
) -> None:
    floor = Floor()
    floor.tables.put(make_device_class(), from_snapshot=False)
    for node, count in zip(NODES, devices, strict=True):
        floor.tables.put(make_slice(node, count), from_snapshot=False)
    needs = dict(zip(CLAIMS, wanted, strict=True))
    for name, count in needs.items():
        floor.tables.put(make_device_claim(name, count), from_snapshot=False)
    free: dict[str, int] = dict(zip(NODES, devices, strict=True))
    held: dict[str, str] = {}
    allocated: set[str] = set()
    for _ in range(data.draw(st.integers(1, 10))):
        name = data.draw(st.sampled_from(CLAIMS))
        shape = floor.shape(devices=(name,))
        fits = {held[name]} if name in held else {n for n in NODES if free[n] >= needs[name]}
        if name not in allocated:
            assert floor.may(shape) == fits
        if name not in held and fits:
            node = data.draw(st.sampled_from(sorted(fits)))
            floor.node_capacity.take(floor.nodes.slot(node), shape)
            held[name] = node
            free[node] -= needs[name]
            grant = floor.node_capacity.devices.grants.find(("team", name))
            assert grant is not None
            assert len(grant.picks) == needs[name]
        elif name in held and name not in allocated and data.draw(st.booleans()):
            # The binder has written it: the cluster shows what was chosen.
            grant = floor.node_capacity.devices.grants.find(("team", name))
            assert grant is not None
            claim = make_device_claim(name, needs[name])
            given_devices = tuple(device for device in [one.device for one in grant.picks])
            changed = msgspec.structs.replace(claim, resource_version=2, allocated=given_devices)
            floor.tables.put(changed, from_snapshot=False)
            allocated.add(name)
        elif name in held and name not in allocated:
            floor.node_capacity.give(floor.nodes.slot(held[name]), shape)
            free[held.pop(name)] += needs[name]
    granted = [
        device
        for name in set(held) - allocated
        for grant in [floor.node_capacity.devices.grants.find(("team", name))]
        if grant is not None
        for device in [one.device for one in grant.picks]
    ]
    given_away = [
        device for one in floor.tables.resource_claims.values() for device in one.allocated
    ]
    assert len({*granted, *given_away}) == len(granted) + len(given_away)
