"""Labels of nodes become trees of HyperNodes, or nothing."""

from collections.abc import Mapping

import pytest
import yaml

from services.controller.core.hypernodes import (
    ConfigurationError,
    Discovered,
    Topology,
    counted,
    discover,
    topologies,
)
from tests.support.golden import Golden

#: As Volcano's guide shows it, with a topology of each form.
CONF = """
networkTopologyDiscovery:
  - source: ufm
    enabled: true
    interval: 10m
  - source: label
    enabled: true
    config:
      networkTopologyTypes:
        plain:
          - nodeLabel: cluster
          - nodeLabel: tor
          - nodeLabel: kubernetes.io/hostname
        chosen:
          nodeSelector: {matchLabels: {kind: deep}}
          levels:
            - {nodeLabel: tor, tierName: switch}
            - {nodeLabel: kubernetes.io/hostname}
"""


def configured(text: str = CONF) -> tuple[Topology, ...]:
    found = topologies(yaml.safe_load(text))
    assert found is not None
    return found


def tree(found: Discovered) -> dict[str, tuple[int, str, list[str]]]:
    """Value of the domain -> tier, its name, names of what is in it (the ends of them)."""
    shown = {}
    for one in found.hypernodes.values():
        labels = one.metadata.labels
        value = f"{labels['volcano.sh/network-topology-profile']}/" + next(
            labels[key] for key in ("tor", "cluster") if key in labels
        )
        names = [
            member.selector.exact_match.name
            for member in one.spec.members
            if member.selector is not None and member.selector.exact_match is not None
        ]
        shown[value] = (one.spec.tier, one.spec.tier_name, names)
    return shown


NODES = {
    f"n{number}": {"cluster": "c", "tor": f"t{number // 2}", "kubernetes.io/hostname": f"n{number}"}
    for number in range(4)
}


def test_levels_become_tiers_from_the_bottom() -> None:
    found = discover(configured(), NODES)
    names = {one.metadata.labels.get("tor", "c"): name for name, one in found.hypernodes.items()}

    assert found.problems == ()
    assert tree(found) == {
        "plain/t0": (1, "tor", ["n0", "n1"]),
        "plain/t1": (1, "tor", ["n2", "n3"]),
        "plain/c": (2, "cluster", [names["t0"], names["t1"]]),
    }
    assert set(counted(found.hypernodes.values(), NODES).values()) == {2, 4}
    assert {
        one.metadata.labels["volcano.sh/network-topology-source"]
        for one in found.hypernodes.values()
    } == {"label"}


def test_a_node_that_a_selector_chooses_is_in_that_topology_only() -> None:
    found = discover(configured(), {**NODES, "deep": {"kind": "deep", "tor": "t0", "cluster": "c"}})

    assert tree(found)["chosen/t0"] == (1, "switch", ["deep"])
    assert tree(found)["plain/t0"] == (1, "tor", ["n0", "n1"])


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ({"lost": {"tor": "t9"}}, "topology plain: node lost lacks cluster"),
        (
            {"astray": {"tor": "t0", "cluster": "d"}},
            "topology plain: t0 is part of two others, d and c",
        ),
    ],
)
def test_a_topology_in_two_minds_is_not_published_and_others_are(
    nodes: Mapping[str, Mapping[str, str]], problem: str
) -> None:
    deep = {"deep": {"kind": "deep", "tor": "t0"}}

    found = discover(configured(), {**NODES, **nodes, **deep})

    assert found.problems == (problem,)
    assert found.torn == {"plain"}
    assert set(tree(found)) == {"chosen/t0"}


def test_a_node_of_two_topologies_leaves_both_unpublished(golden: Golden) -> None:
    twice = CONF + CONF[CONF.index("        chosen:") :].replace("chosen", "second")

    found = discover(configured(twice), {"deep": {"kind": "deep", "tor": "t0"}})

    golden(*found.problems)
    assert found.torn == {"chosen", "second"}
    assert found.hypernodes == {}


def test_names_are_the_same_in_any_order_and_apart_for_like_values() -> None:
    nodes = {
        "a": {"cluster": "C 1", "tor": "T.1"},
        "b": {"cluster": "C 1", "tor": "t-1"},
    }

    forward = discover(configured(), nodes)
    backward = discover(configured(), dict(reversed(nodes.items())))

    assert forward == backward
    assert len(forward.hypernodes) == 3
    assert all(name == name.lower() and "." not in name for name in forward.hypernodes)


@pytest.mark.parametrize(
    "text",
    ["", "networkTopologyDiscovery: []", CONF.replace("enabled: true", "enabled: false")],
)
def test_without_an_enabled_source_nothing_is_discovered(text: str) -> None:
    assert topologies(yaml.safe_load(text)) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("- nodeLabel: tor", "- label: tor"), "nodeLabel"),
        (("{kind: deep}", "[kind, deep]"), "matchLabels"),
        (("matchLabels: {kind: deep}", "matchExpressions: 7"), "matchExpressions"),
        (("            - {nodeLabel: tor, tierName: switch}\n", ""), "chosen: a level above"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_by_name(
    change: tuple[str, str], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        configured(CONF.replace(*change))


@pytest.mark.parametrize(
    "text",
    [
        r'{"networkTopologyDisco\ud800very": "memory"}',
        r'{"networkTopologyDiscovery": ["\ud800none"]}',
        CONF.replace("tierName: switch", r'tierName: "\ud800"'),
        CONF.replace("chosen:", r'"\ud800":'),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_like_anything_that_is_no_text(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"\\ud800.*' holds half of a surrogate pair"):
        configured(text)
