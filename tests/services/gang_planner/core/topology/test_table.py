"""Levels of domains, and what becomes of HyperNodes that contradict themselves."""

from typing import Literal

import numpy as np
import pytest

from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.topology.levels import MissingLevels
from services.gang_planner.core.state.topology.table import TopologyTable
from shared.model.object_table import Table
from shared.model.objects import NetworkTopology
from shared.model.reference_objects import HyperNode, HyperNodeMember, Topology
from shared.model.terms import Requirement, Selector
from tests.services.gang_planner.core.scene import make_node
from tests.services.gang_planner.core.topology.racks import cluster, exactly, hypernode, nodes_like

ANY_TIER = NetworkTopology(mode="hard", highest_tier=9)


def table(names: list[str], *hypernodes: HyperNode) -> TopologyTable:
    found = Table(HyperNode)
    for one in hypernodes:
        found.put(one)
    nodes = NodeTable(ResourceIndex())
    for name in names:
        nodes.put(make_node(name))
    return TopologyTable(nodes, found, Table(Topology))


def domains(
    table: TopologyTable, topology: NetworkTopology = ANY_TIER
) -> list[dict[str, list[str]]]:
    """Per level, the nodes of each domain."""
    return [
        {
            name: sorted(np.array(table.nodes.names)[level.mask(domain)].tolist())
            for domain, name in enumerate(level.names)
        }
        for level in table.levels(topology).levels
    ]


def test_a_row_has_the_nodes_of_its_racks() -> None:
    made, hypernodes = cluster(rows=1)
    found = table([one.name for one in made], *hypernodes)
    assert domains(found) == [
        {"rack-0-0": ["n-0-0-0", "n-0-0-1"], "rack-0-1": ["n-0-1-0", "n-0-1-1"]},
        {"row-0": ["n-0-0-0", "n-0-0-1", "n-0-1-0", "n-0-1-1"]},
    ]


def test_a_tiers_name_means_its_own_tier_in_trees_of_different_heights() -> None:
    found = table(
        ["d-0", "d-1", "d-2", "s-0", "s-1"],
        hypernode("deep-0", 1, nodes_like("^d-[01]$"), tier_name="rack"),
        hypernode("deep-1", 1, nodes_like("^d-2$"), tier_name="rack"),
        hypernode(
            "deep",
            2,
            exactly("deep-0", "HyperNode"),
            exactly("deep-1", "HyperNode"),
            tier_name="hall",
        ),
        hypernode("shallow", 1, nodes_like("^s-"), tier_name="hall"),
    )

    def tried(name: str) -> list[list[str]]:
        levels = domains(found, NetworkTopology(mode="hard", highest_tier_name=name))
        return [sorted(one for one, members in level.items() if members) for level in levels]

    assert tried("rack") == [["deep-0", "deep-1"]]
    assert tried("hall") == [["deep-0", "deep-1", "shallow"], ["deep"]]


@pytest.mark.parametrize(
    ("topology", "tiers", "open_beyond"),
    [
        pytest.param(NetworkTopology(highest_tier=1), [1], False, id="hard, up to a tier"),
        pytest.param(NetworkTopology(highest_tier=2), [1, 2], False, id="hard, up to the top"),
        pytest.param(NetworkTopology(highest_tier=3), [1, 2], True, id="hard, above all tiers"),
        pytest.param(NetworkTopology(), [1, 2], True, id="hard without a tier limits nothing"),
        pytest.param(NetworkTopology(mode="soft", highest_tier=1), [1, 2], True, id="soft"),
    ],
)
def test_a_topology_says_which_tiers_are_tried(
    topology: NetworkTopology, tiers: list[int], *, open_beyond: bool
) -> None:
    made, hypernodes = cluster()
    found = table([one.name for one in made], *hypernodes).levels(topology)
    assert ([one.tier for one in found.levels], found.open, found.problem) == (
        tiers,
        open_beyond,
        None,
    )


def test_members_are_found_by_labels() -> None:
    by_label = HyperNodeMember(
        kind="Node",
        labels=Selector(requirements=(Requirement(key="rack", operator="In", values=("x",)),)),
    )
    found = table([], hypernode("x", 1, by_label))
    for name, rack in (("a", "x"), ("b", "y"), ("c", "x")):
        found.nodes.put(make_node(name, labels=(("rack", rack),)))
    assert domains(found) == [{"x": ["a", "c"]}]
    found.nodes.put(make_node("b", labels=(("rack", "x"),), resource_version=2))
    found.nodes.remove(0)
    assert domains(found) == [{"x": ["b", "c"]}]


def test_levels_are_computed_again_only_when_names_labels_or_hypernodes_change() -> None:
    found = table(["a", "b"], hypernode("x", 1, exactly("a")))
    before = found.levels(ANY_TIER).levels[0]
    found.nodes.put(make_node("b", {"cpu": 1}, resource_version=2))
    assert found.levels(ANY_TIER).levels[0] is before
    found.nodes.put(make_node("c"))
    assert found.levels(ANY_TIER).levels[0] is not before


@pytest.mark.parametrize(
    ("hypernodes", "problem"),
    [
        pytest.param(
            [
                hypernode("x", 1, exactly("y", "HyperNode"), exactly("a")),
                hypernode("y", 2, exactly("x", "HyperNode"), exactly("b")),
            ],
            "HyperNode x is a member of itself through y",
            id="a ring",
        ),
        pytest.param(
            [hypernode("x", 1, exactly("x", "HyperNode"), exactly("a"), exactly("b"))],
            "HyperNode x is a member of itself through x",
            id="its own member",
        ),
        pytest.param(
            [hypernode("x", 1, exactly("a"), exactly("b"), exactly("gone"))],
            "HyperNode x names node gone, which is missing",
            id="a node that is missing",
        ),
        pytest.param(
            [hypernode("x", 1, exactly("a"), exactly("b"), exactly("gone", "HyperNode"))],
            "HyperNode x names HyperNode gone, which is missing",
            id="a HyperNode that is missing",
        ),
        pytest.param(
            [hypernode("x", 1, exactly("a"), exactly("b"), nodes_like("("))],
            "HyperNode x has the pattern '(': ",
            id="a pattern that is none",
        ),
        pytest.param(
            [hypernode("x", 1, exactly("a"), exactly("b")), hypernode("y", 1, exactly("b"))],
            "node b is in HyperNodes x and y of tier 1: it counts for x",
            id="a node in two racks",
        ),
        pytest.param(
            [
                hypernode("x", 1, exactly("y", "HyperNode")),
                hypernode("y", 1, exactly("a"), exactly("b")),
            ],
            "HyperNode y of tier 1 is a member of x of tier 1",
            id="a member that is not below",
        ),
    ],
)
def test_what_is_wrong_with_hypernodes_is_said_and_the_rest_counts(
    hypernodes: list[HyperNode], problem: str
) -> None:
    found = table(["a", "b"], *hypernodes)
    assert any(one.startswith(problem) for one in found.problems)
    named = {name for level in domains(found) for names in level.values() for name in names}
    assert named == {"a", "b"}


def test_hypernodes_above_each_other_without_end_break_nothing() -> None:
    chain = [hypernode(f"h{i:03}", i, exactly(f"h{i + 1:03}", "HyperNode")) for i in range(500)]
    found = table(["a"], *chain, hypernode("h500", 500, exactly("a")))
    assert any("lies below more than" in one for one in found.problems)


def test_label_keys_are_levels_from_the_closest_to_the_widest() -> None:
    found = table([])
    for name, rack, row in (("a", "1", "x"), ("b", "2", "x"), ("c", "3", "y")):
        found.nodes.put(make_node(name, labels=(("rack", rack), ("row", row))))
    found.nodes.put(make_node("d"))
    assert domains(found, NetworkTopology(label_key="rack,row")) == [
        {"rack=1": ["a"], "rack=2": ["b"], "rack=3": ["c"]},
        {"row=x": ["a", "b"], "row=y": ["c"]},
    ]
    assert len(domains(found, NetworkTopology(label_key="rack,row", highest_tier=1))) == 1
    assert found.levels(NetworkTopology(label_key="no")).problem == (MissingLevels.LABEL, "no")


def test_closer_domains_of_labels_end_where_the_widest_ends() -> None:
    """Rack 1 is in two rows, and node d is in no row: a gang stays in one row in any case."""
    found = table([])
    for name, *labels in (
        ("a", ("rack", "1"), ("row", "x")),
        ("b", ("rack", "1"), ("row", "y")),
        ("c", ("rack", "2"), ("row", "y")),
        ("d", ("rack", "2")),
    ):
        found.nodes.put(make_node(name, labels=tuple(labels)))
    racks, rows = found.levels(NetworkTopology(label_key="rack,row")).levels
    assert [racks.mask(one).tolist() for one in range(len(racks.names))] == [
        [True, False, False, False],
        [False, True, False, False],
        [False, False, True, False],
    ]
    assert rows.names == ("row=x", "row=y")
    (whole, _) = found.levels(NetworkTopology(mode="soft", label_key="rack,row")).levels
    assert whole.names == ("rack=1", "rack=2")
    absent = found.levels(NetworkTopology(label_key="rack,zone"))
    assert absent.problem == (MissingLevels.LABEL, "rack,zone")


def test_the_order_of_slots_keeps_racks_and_rows_together() -> None:
    made, hypernodes = cluster()
    names = sorted((one.name for one in made), key=lambda name: name[::-1])
    found = table([*names, "outside"], *hypernodes)
    order = found.order(None)
    ordered = [found.nodes.names[slot] for slot in np.argsort(order).tolist()]
    assert ordered == [*sorted(names), "outside"]


def nodes_of_levels(
    mode: Literal["hard", "soft"],
    keys: str,
    *,
    levels: tuple[str, ...] = ("zone", "row", "rack"),
) -> tuple[list[list[str]], bool]:
    """The nodes of the domains that a topology by labels permits, if an object has these levels;
    and whether the whole cluster is permitted after them.
    """
    topologies = Table(Topology)
    topologies.put(Topology(uid="t", name="network", resource_version=1, levels=levels))
    nodes = NodeTable(ResourceIndex())
    for place in ("z0/a/0", "z0/a/1", "z0/b/0", "z1/a/0"):
        labels = sorted(zip(("zone", "row", "rack"), place.split("/"), strict=True))
        nodes.put(make_node(place.replace("/", "-"), labels=tuple(labels)))
    nodes.put(make_node("elsewhere", labels=(("rack", "0"),)))
    found = TopologyTable(nodes, Table(HyperNode), topologies).levels(
        NetworkTopology(mode=mode, label_key=keys, levels_of="network")
    )
    named = np.array(nodes.names)
    return [
        sorted("+".join(named[level.mask(domain)]) for domain in range(len(level.names)))
        for level in found.levels
    ], found.open


RACKS = ["z0-a-0", "z0-a-1", "z0-b-0", "z1-a-0"]
ROWS = ["z0-a-0+z0-a-1", "z0-b-0", "z1-a-0"]
ZONES = ["z0-a-0+z0-a-1+z0-b-0", "z1-a-0"]


@pytest.mark.parametrize(
    ("mode", "keys", "expected"),
    [
        ("hard", "rack,zone", [RACKS, ROWS, ZONES]),
        ("hard", "rack,row", [RACKS, ROWS]),
        ("hard", "row", [ROWS]),
        ("hard", "zone,rack", [RACKS]),
        ("soft", "row", [ROWS, ZONES]),
        ("soft", "rack", [RACKS, ROWS, ZONES]),
    ],
)
def test_a_topology_has_the_levels_between_two_and_the_wider_ones(
    mode: Literal["hard", "soft"], keys: str, expected: list[list[str]]
) -> None:
    """Racks of one number in different rows are different racks."""
    assert nodes_of_levels(mode, keys) == (expected, mode == "soft")


def test_a_key_that_is_no_level_of_the_topology_is_a_label_by_itself() -> None:
    assert nodes_of_levels("hard", "rack", levels=("zone", "row")) == (
        [["z0-a-0+z0-b-0+z1-a-0+elsewhere", "z0-a-1"]],
        False,
    )
