"""Topology keys that users make up cost neither memory nor other tenants' time."""

import pytest

from shared.model.bounds import POD_RESOURCES_MAX, TERMS_MAX, judged_shape
from shared.model.terms import PodAffinity, PodTerm, Selector, SpreadConstraint
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.reachable import reachable

ANY = Selector()


def terms(count: int, stem: str = "evil.example") -> tuple[PodTerm, ...]:
    """Terms about all pods of all namespaces, each with a key of its own."""
    return tuple(
        PodTerm(selector=ANY, namespace_selector=ANY, topology_key=f"{stem}/{number}")
        for number in range(count)
    )


def test_a_key_that_no_node_has_gets_domains_when_a_node_has_it() -> None:
    scene = Scene([make_node("n1"), make_node("n2")])
    counts = scene.state.node_capacity.pairs
    counts.add(0, ((7, 1),), 1)
    assert counts.by_domain(7, "rack").tolist() == [0]
    scene.put(make_node("n1", labels=(("rack", "a"),), resource_version=2))
    assert counts.by_domain(7, "rack").tolist() == [0, 1]
    scene.put(make_node("n1", resource_version=3))
    assert not counts.by_domain(7, "rack").any()
    assert not scene.state.nodes.labels.known("rack")


def test_keys_of_bound_pods_that_no_node_has_are_not_looked_up_on_nodes() -> None:
    """Each of 1,600 such terms cost each gang of another tenant a millisecond."""
    scene = Scene([make_node("n1", {"cpu": 64_000, "pods": 110, "memory": 1 << 40})])
    for number in range(8):
        affinity = PodAffinity(anti_affinity=terms(TERMS_MAX, f"evil-{number}"))
        scene.put(make_group(f"evil-{number}", 1, namespace="evil"))
        shape = make_shape({"cpu": 10}, pod_affinity=affinity)
        scene.put(*make_pods(f"evil-{number}", 1, shape, namespace="evil"))
    decisions = scene.settle()
    assert len(decisions) == 8
    for decision in decisions:
        scene.run(decision)
    scene.put(make_group("good", 2), *make_pods("good", 2, make_shape({"cpu": 100})))
    assert len(scene.settle()) == 1
    state = scene.state
    for table in (state.nodes.labels, state.node_capacity.pairs.domains):
        assert not [key for key in reachable(table, str) if key.startswith("evil-0/")]


def test_a_cycle_ends_before_all_gangs_with_rules_about_each_other_are_placed() -> None:
    """The rules are work, like columns of nodes, so that a cycle has an end."""
    scene = Scene([make_node("n1", {"cpu": 64_000, "pods": 900, "memory": 1 << 40})])
    for number in range(60):
        affinity = PodAffinity(anti_affinity=terms(TERMS_MAX, f"evil-{number}"))
        scene.put(make_group(f"evil-{number}", 1, namespace="evil"))
        shape = make_shape({"cpu": 10}, pod_affinity=affinity)
        scene.put(*make_pods(f"evil-{number}", 1, shape, namespace="evil"))
    assert 0 < len(scene.step().decisions) < 60
    scene.settle()
    assert len(scene.decisions) == 60


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"pod_affinity": PodAffinity(anti_affinity=terms(TERMS_MAX + 1))}, "spec.affinity"),
        (
            {"pod_affinity": PodAffinity(affinity=terms(TERMS_MAX), preferred=terms(1))},
            "spec.affinity",
        ),
        (
            {
                "spread": tuple(
                    SpreadConstraint(max_skew=1, topology_key=one.topology_key)
                    for one in terms(TERMS_MAX + 1)
                )
            },
            "spec.topologySpreadConstraints",
        ),
    ],
)
def test_a_pod_with_too_many_terms_waits_with_the_field(
    fields: dict[str, object], words: str
) -> None:
    shape = judged_shape(make_shape({"cpu": 10}, **fields), on_node=False)
    scene = Scene([make_node("n1")])
    scene.put(make_group("many", 1), *make_pods("many", 1, shape))
    assert not scene.settle()
    assert f"{words} has {TERMS_MAX + 1} terms" in scene.verdict("many").conditions[0].message


def test_a_pod_with_too_many_resources_waits_with_the_rule() -> None:
    requests = {f"evil.example/{number}": 1 for number in range(POD_RESOURCES_MAX)}
    shape = judged_shape(make_shape(requests), on_node=False)
    scene = Scene([make_node("n1")])
    scene.put(make_group("many", 1), *make_pods("many", 1, shape))
    assert not scene.settle()
    message = scene.verdict("many").conditions[0].message
    assert "requests has 33 resources, and Tutti judges at most 32" in message
    assert len(scene.state.resources.names) < POD_RESOURCES_MAX
