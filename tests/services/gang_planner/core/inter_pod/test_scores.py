"""Points of preferred terms against kube-scheduler's formulas, read literally."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.constraints.inter_pod.rules import Switches
from services.gang_planner.core.scoring.inter_pod import Preferences
from services.gang_planner.core.state.inter_pod import profiles
from shared.model.objects import Node
from shared.model.terms import PodAffinity, PodTerm
from tests.services.gang_planner.core.inter_pod.naive import NaiveCluster, NaivePod
from tests.services.gang_planner.core.inter_pod.test_rules import World, pods, worlds


def signed(terms: PodAffinity) -> list[tuple[PodTerm, int]]:
    """Preferred terms and their points."""
    wanted = [(one, one.weight) for one in terms.preferred]
    return wanted + [(one, -one.weight) for one in terms.preferred_anti]


def attraction(naive: NaiveCluster, pod: NaivePod) -> dict[str, int]:
    """InterPodAffinity's points, 0 to 100."""
    raw: dict[str, int] = dict.fromkeys(naive.nodes, 0)

    def add(term: PodTerm, other: NaivePod, points: int) -> None:
        value = naive.labels_of(other).get(term.topology_key)
        for name, node in naive.nodes.items():
            if value is not None and dict(node.labels).get(term.topology_key) == value:
                raw[name] += points

    mine = pod.shape.pod_affinity or PodAffinity()
    for other in naive.placed():
        theirs = other.shape.pod_affinity or PodAffinity()
        for term, points in signed(mine):
            if naive.means(term, other):
                add(term, other, points)
        for term, points in (*signed(theirs), *((one, 1) for one in theirs.affinity)):
            if naive.means(term, pod):
                add(term, other, points)
    low, high = min(raw.values()), max(raw.values())
    return {
        name: int(100 * (found - low) / (high - low)) if high > low else 0
        for name, found in raw.items()
    }


def evenness(naive: NaiveCluster, pod: NaivePod) -> dict[str, int]:
    """PodTopologySpread's points, 0 to 100."""
    soft = [one for one in pod.shape.spread if one.when_unsatisfiable == "ScheduleAnyway"]
    if not soft:
        return dict.fromkeys(naive.nodes, 0)

    def scored(node: Node) -> bool:
        return all(one.topology_key in dict(node.labels) for one in soft)

    nodes = {name: node for name, node in naive.nodes.items() if scored(node)}
    raw: dict[str, int] = {}
    for name, node in nodes.items():
        points = 0.0
        for one in soft:
            counts = naive.counts(pod, one, soft)
            sizes = {dict(other.labels)[one.topology_key] for other in nodes.values()}
            here = counts.get(dict(node.labels)[one.topology_key], 0)
            points += here * math.log(len(sizes) + 2) + one.max_skew - 1
        raw[name] = round(points)
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    return {
        name: 0 if name not in raw else 100 if not high else 100 * (high + low - raw[name]) // high
        for name in naive.nodes
    }


@given(worlds(), st.data())
@settings(deadline=None, max_examples=60)
def test_points_are_kube_schedulers_with_the_points_of_pods_that_run(
    world: World, data: st.DataObject
) -> None:
    pod = pods(data.draw, terms_at_least=1)
    entry = profiles.entry_of(world.state, world.model("probe", pod))
    rules = world.session.pairs
    view = rules.view(entry)
    names = sorted(world.naive.nodes)
    slots = np.array([world.state.nodes.slot(name) for name in names])
    all_nodes = np.ones(len(names), dtype=np.bool_)
    for switches, expected in (
        (Switches(affinity_weight=1), attraction(world.naive, pod)),
        (Switches(spread_weight=1), evenness(world.naive, pod)),
    ):
        if view is None:
            continue
        rules.switches = switches
        preferences = Preferences(rules, view, slots)
        found = dict(zip(names, (preferences.points(all_nodes) // 1000).tolist(), strict=True))
        assert all(abs(found[name] - expected[name]) <= 1 for name in names), (found, expected)


@given(worlds(), st.data())
@settings(deadline=None, max_examples=60)
def test_points_after_a_step_are_those_of_a_fresh_look(world: World, data: st.DataObject) -> None:
    pod = pods(data.draw, terms_at_least=1)
    entry = profiles.entry_of(world.state, world.model("probe", pod))
    view = world.session.pairs.view(entry)
    if view is None:
        return
    names = sorted(world.naive.nodes)
    slots = np.array([world.state.nodes.slot(name) for name in names])
    all_nodes = np.ones(len(names), dtype=np.bool_)
    stepped = Preferences(world.session.pairs, view, slots)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(names) - 1))
        stepped.place(at)
        world.state.node_capacity.take(int(slots[at]), entry)
        fresh = Preferences(world.session.pairs, view, slots)
        assert stepped.points(all_nodes).tolist() == fresh.points(all_nodes).tolist()
