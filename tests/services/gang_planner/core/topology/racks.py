"""A small cluster with racks and rows, and gangs that want to be close together."""

from typing import Any

from shared.model.objects import NetworkTopology, Node
from shared.model.reference_objects import HyperNode, HyperNodeMember
from tests.services.gang_planner.core.scene import Scene, make_node

ONE_RACK = NetworkTopology(mode="hard", highest_tier=1)
ONE_ROW = NetworkTopology(mode="hard", highest_tier=2)


def hypernode(name: str, tier: int, *members: HyperNodeMember, **fields: Any) -> HyperNode:
    """A HyperNode of these members."""
    return HyperNode(
        uid=f"hyper-{name}", name=name, resource_version=1, tier=tier, members=members, **fields
    )


def nodes_like(pattern: str) -> HyperNodeMember:
    """All nodes whose names match."""
    return HyperNodeMember(kind="Node", regex=pattern)


def exactly(name: str, kind: Any = "Node") -> HyperNodeMember:
    """The node, or HyperNode, of this name."""
    return HyperNodeMember(kind=kind, exact=name)


def cluster(rows: int = 2, racks: int = 2, nodes: int = 2) -> tuple[list[Node], list[HyperNode]]:
    """Nodes `n-ROW-RACK-INDEX` of 4 CPUs, a HyperNode for each rack and row."""
    made: list[Node] = []
    hypernodes: list[HyperNode] = []
    for row in range(rows):
        here = [f"rack-{row}-{rack}" for rack in range(racks)]
        hypernodes.append(hypernode(f"row-{row}", 2, *(exactly(one, "HyperNode") for one in here)))
        for rack, name in enumerate(here):
            hypernodes.append(hypernode(name, 1, nodes_like(f"^n-{row}-{rack}-")))
            made += [make_node(f"n-{row}-{rack}-{index}") for index in range(nodes)]
    return made, hypernodes


def scene(rows: int = 2, racks: int = 2, nodes: int = 2) -> Scene:
    """A planner that knows such a cluster."""
    made, hypernodes = cluster(rows, racks, nodes)
    found = Scene(made)
    found.put(*hypernodes)
    return found


def racks_of(places: dict[str, str]) -> set[str]:
    """Racks of the nodes that pods are on."""
    return {node.rpartition("-")[0] for node in places.values()}
