"""The arrays against a literal reading of kube-scheduler's rules, on random small clusters in which
pods, labels, namespaces and nodes come, change and go.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.ingest import cluster
from services.gang_planner.core.placement.members import MembersRequest, place_members
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state import accounting
from services.gang_planner.core.state.inter_pod import profiles
from services.gang_planner.core.state.planner_state import State
from shared.contracts.cluster import NamespaceChanges, NodeChanges
from shared.model.objects import Node, Pod, Shape
from shared.model.reference_objects import Namespace
from tests.services.gang_planner.core.inter_pod.naive import NaiveCluster, NaivePod
from tests.services.gang_planner.core.inter_pod.strategies import (
    LABELS,
    NAMESPACES,
    NODE_LABELS,
    TAINTS,
    shapes,
)

CONF = "tiers: [{plugins: [{name: predicates}, {name: nodeorder}]}]"
PODS_PER_NODE = 4


class World:
    """One cluster, kept twice: in the planner's tables and literally."""

    def __init__(self) -> None:
        self.state = State()
        self.naive = NaiveCluster()
        policies = parse_configuration(CONF).policies(self.state)
        masks = Masks(self.state.nodes, policies.node_filters)
        self.session = Session(self.state.node_capacity, self.state.shapes, masks, policies)
        self.versions = 0
        self._record({"epoch": 1, "at_ms": 1})

    def _record(self, fields: dict[str, Any]) -> dict[str, Any]:
        self.versions += 1
        self.state.view.epoch = self.state.view.newest_epoch = 1
        return fields

    def put_node(self, name: str, labels: dict[str, str], taints: tuple[Any, ...]) -> None:
        node = Node(
            uid=f"u-{name}",
            name=name,
            resource_version=self.versions,
            labels=tuple(sorted({**labels, "host": name}.items())),
            allocatable=(("pods", PODS_PER_NODE),),
            taints=taints,
        )
        self.naive.nodes[name] = node
        self._apply(NodeChanges(**self._record({"epoch": 1, "at_ms": 1}), changed=(node,)))

    def put_namespace(self, name: str, labels: dict[str, str]) -> None:
        self.naive.namespaces[name] = labels
        one = Namespace(
            uid=name,
            name=name,
            resource_version=self.versions,
            labels=tuple(sorted(labels.items())),
        )
        self._apply(NamespaceChanges(**self._record({"epoch": 1, "at_ms": 1}), changed=(one,)))

    def put_pod(self, uid: str, pod: NaivePod) -> None:
        self.versions += 1
        self.naive.pods[uid] = pod
        accounting.put_pod(self.state, self.model(uid, pod), 1)

    def remove_pod(self, uid: str) -> None:
        del self.naive.pods[uid]
        accounting.remove_pod(self.state, uid)

    def model(self, uid: str, pod: NaivePod) -> Pod:
        return Pod(
            uid=uid,
            namespace=pod.namespace,
            name=uid,
            resource_version=self.versions,
            shape=msgspec.msgpack.encode(pod.shape),
            node=pod.node,
            deleting=pod.deleting,
            labels=msgspec.msgpack.encode(tuple(sorted(pod.labels.items()))),
        )

    def _apply(self, record: Any) -> None:
        cluster.apply_record(self.state, self.state.view.cluster_seq + 1, record)

    # ------------------------------------------------------------------- comparing

    def compare(self, pod: NaivePod) -> None:
        """The pod may be on the same nodes, for the same reasons."""
        entry = profiles.entry_of(self.state, self.model("probe", pod))
        nodes = self.state.nodes
        rules = self.session.pairs
        view = rules.view(entry)
        refused = {name: self.naive.refusal(pod, node) for name, node in self.naive.nodes.items()}
        for name, why in refused.items():
            slot = nodes.slot(name)
            if view is None:
                assert not why
            else:
                assert bool(rules.allowed(view)[slot]) == (not why), (name, why)
                assert bool(rules.ceiling(view)[slot]) or why, (name, why)
        if view is not None:
            found = rules.reasons(view, nodes.exists[: nodes.size].copy())
            assert found == Counter(why for why in refused.values() if why)

    def check_counts(self) -> None:
        """What is counted is what is there."""
        expected: dict[int, dict[int, int]] = {}
        for member in self.state.members.values():
            if member.slot is not None:
                for tally, amount in member.shape.tallies:
                    slots = expected.setdefault(tally, {})
                    slots[member.slot] = slots.get(member.slot, 0) + amount
        kept = {tally: {at: n for at, n in found.items() if n} for tally, found in expected.items()}
        assert self.state.node_capacity.pairs.content() == {
            t: found for t, found in kept.items() if found
        }


def pods(draw: Callable[[st.SearchStrategy[Any]], Any], *, terms_at_least: int = 0) -> NaivePod:
    namespace = draw(st.sampled_from(NAMESPACES))
    shape = draw(shapes(namespace, terms_at_least=terms_at_least))
    return NaivePod(shape, namespace, draw(LABELS))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A cluster after some changes, with some pods on it."""
    world = World()
    for name in NAMESPACES:
        world.put_namespace(name, draw(st.sampled_from([{}, {"team": "red"}])))
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    for name in names:
        world.put_node(name, draw(NODE_LABELS), draw(TAINTS))
    for index in range(draw(st.integers(0, 7))):
        pod = pods(draw)
        pod.node = draw(st.sampled_from(names))
        pod.deleting = draw(st.sampled_from([False, False, True]))
        world.put_pod(f"p{index}", pod)
    return world


@given(worlds(), st.data())
@settings(deadline=None, max_examples=60)
def test_the_arrays_allow_what_a_literal_reading_allows_through_all_changes(
    world: World, data: st.DataObject
) -> None:
    probes = [pods(data.draw, terms_at_least=1) for _ in range(2)]
    for probe in probes:
        world.compare(probe)
    for _ in range(data.draw(st.integers(0, 3))):
        match data.draw(st.sampled_from(["pod", "gone", "labels", "deleting", "node", "space"])):
            case "pod":
                pod = pods(data.draw)
                pod.node = data.draw(st.sampled_from(sorted(world.naive.nodes)))
                world.put_pod(f"q{world.versions}", pod)
            case "gone" if world.naive.pods:
                world.remove_pod(data.draw(st.sampled_from(sorted(world.naive.pods))))
            case "labels" if world.naive.pods:
                uid = data.draw(st.sampled_from(sorted(world.naive.pods)))
                world.naive.pods[uid].labels = data.draw(LABELS)
                world.put_pod(uid, world.naive.pods[uid])
            case "deleting" if world.naive.pods:
                uid = data.draw(st.sampled_from(sorted(world.naive.pods)))
                world.naive.pods[uid].deleting = True
                world.put_pod(uid, world.naive.pods[uid])
            case "node":
                name = data.draw(st.sampled_from(["n0", "n1", "n9"]))
                world.put_node(name, data.draw(NODE_LABELS), data.draw(TAINTS))
            case "space":
                name = data.draw(st.sampled_from(NAMESPACES))
                world.put_namespace(name, data.draw(st.sampled_from([{}, {"team": "red"}])))
            case _:
                pass
        for probe in probes:
            world.compare(probe)
    world.check_counts()


@given(worlds(), st.data())
@settings(deadline=None, max_examples=60)
def test_equal_pods_are_placed_as_if_one_by_one_and_a_discard_leaves_no_trace(
    world: World, data: st.DataObject
) -> None:
    pod = pods(data.draw, terms_at_least=1)
    wanted = data.draw(st.integers(1, 8))
    state = world.state
    entry = profiles.entry_of(state, world.model("probe", pod))
    queue = state.queues.entry("default")
    before = state.node_capacity.pairs.content()
    statement = Statement(state.node_capacity, queue)
    packed = data.draw(st.booleans())
    at_most = world.session.total(entry)
    request = MembersRequest(
        statement=statement, role="", shape=entry, wanted=wanted, packed=packed
    )
    placed = place_members(world.session, request)
    left = Counter(
        {
            state.nodes.names[slot]: count
            for one in statement.allocations
            for slot, count in zip(one.slots.tolist(), one.counts.tolist(), strict=True)
        }
    )
    assert sum(left.values()) == placed <= min(wanted, at_most)
    _place_one_by_one(world.naive, pod, left)
    if placed < wanted:
        for name, node in world.naive.nodes.items():
            full = sum(one.node == name for one in world.naive.pods.values()) >= PODS_PER_NODE
            assert full or _unusable(pod.shape, node) or world.naive.refusal(pod, node), name
    statement.discard()
    assert state.node_capacity.pairs.content() == before
    world.check_counts()


def _place_one_by_one(naive: NaiveCluster, pod: NaivePod, left: Counter[str]) -> None:
    """Put the pods on their nodes in an order in which each is allowed."""
    for index in range(sum(left.values())):
        allowed = [
            name
            for name, count in sorted(left.items())
            if count and not naive.refusal(pod, naive.nodes[name])
        ]
        assert allowed, (index, left)
        # The shape with the fewest keeps most orders open.
        there = Counter(one.node for key, one in naive.pods.items() if key.startswith("new-"))
        name = min(allowed, key=lambda one: (there[one], one))
        left[name] -= 1
        naive.pods[f"new-{index}"] = NaivePod(pod.shape, pod.namespace, pod.labels, name)


def _unusable(shape: Shape, node: Node) -> bool:
    labels = dict(node.labels)
    tainted = any(taint.effect == "NoSchedule" for taint in node.taints)
    return tainted or any(labels.get(key) != value for key, value in shape.node_selector)
