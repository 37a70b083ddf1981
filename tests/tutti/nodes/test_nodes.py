"""What `tutti nodes` reads from the API's nodes and gangs."""

from typing import Literal

import pytest

from shared.contracts.visibility import (
    API_VERSION,
    Gang,
    GangStatus,
    MemberCounts,
    Node,
    NodeAmounts,
    NodePlacement,
    NodeStatus,
    ObjectMeta,
)
from shared.kube.quantities import QuantityError
from tutti.nodes_command import by_share, uses


def node(
    name: str, *, ready: bool = True, cordoned: bool = False, **amounts: tuple[str, str]
) -> Node:
    """A node with what is requested and allocatable of each resource."""
    resources = tuple(
        NodeAmounts(resource=resource, requested=requested, allocatable=allocatable, free="")
        for resource, (requested, allocatable) in amounts.items()
    )
    return Node(
        api_version=API_VERSION,
        kind="Node",
        metadata=ObjectMeta(name=name),
        status=NodeStatus(
            ready=ready, schedulable=not cordoned, pods=0, members=0, resources=resources
        ),
    )


def gang(
    name: str,
    *,
    title: str = "",
    phase: Literal["Running", "Completed"] = "Running",
    **placement: int,
) -> Gang:
    """A gang of the namespace `team` with members on nodes."""
    return Gang(
        api_version=API_VERSION,
        kind="Gang",
        metadata=ObjectMeta(namespace="team", name=name),
        status=GangStatus(
            phase=phase,
            queue="default",
            title=title,
            min_member=1,
            members=MemberCounts(total=1, pending=0, running=1, succeeded=0, failed=0),
            placement=tuple(
                NodePlacement(node=where, members=members) for where, members in placement.items()
            ),
        ),
    )


def test_a_node_has_the_apis_amounts_in_order_and_the_gangs_with_most_members_first() -> None:
    (used,) = uses(
        [node("n1", pods=("4", "110"), memory=("0", "8Gi"), cpu=("3500m", "4"), unused=("0", "0"))],
        [
            gang("small", n1=1),
            gang("large", n1=2, n2=7),
            gang("done", phase="Completed", n1=9),
            gang("elsewhere", n2=1),
            gang("second-a843473f-2a42-4665-8d18-7da12094861f", title="job/second", n1=1),
        ],
    )
    assert [(use.resource, use.used, use.allocatable) for use in used.resources] == [
        ("cpu", 3_500, 4_000),
        ("memory", 0, 8 << 30),
        ("pods", 4, 110),
    ]
    assert used.gangs == ("team/large", "team/job/second", "team/small")
    assert used.state == "Ready"


def test_the_fullest_come_first_and_those_without_the_resource_last() -> None:
    nodes = uses(
        [
            node("full", ready=False, cordoned=True, cpu=("1", "1")),
            node("half", cpu=("1", "2"), gpu=("0", "2")),
            node("empty", cpu=("0", "2")),
        ],
        [],
    )
    assert [use.name for use in by_share(nodes, "cpu")] == ["full", "half", "empty"]
    assert [use.name for use in by_share(nodes, "gpu")] == ["half", "empty", "full"]
    assert [use.state for use in nodes if use.name == "full"] == ["NotReady,cordoned"]


def test_an_amount_that_is_no_quantity_is_refused() -> None:
    with pytest.raises(QuantityError):
        uses([node("n1", cpu=("many", "4"))], [])
