"""A HyperNode's nodes are those of all its members, each once."""

from typing import Any

import msgspec
import pytest

from services.controller.core.hypernodes import counted
from shared.kinds.hypernode import HyperNode

NODES = {f"node-{n}": {"rack": "a" if n < 3 else "b", "odd": str(n % 2)} for n in range(5)}


def hypernode(name: str, *members: dict[str, Any]) -> HyperNode:
    spec = {"tier": 1, "members": list(members)}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, HyperNode)


def member(kind: str, **selector: Any) -> dict[str, Any]:
    return {"type": kind, "selector": selector}


EXACT = member("Node", exactMatch={"name": "node-0"})
REGEX = member("Node", regexMatch={"pattern": "-[01]$"})
RACK = member("Node", labelMatch={"matchLabels": {"rack": "b"}})


@pytest.mark.parametrize(
    ("members", "count"),
    [
        ([EXACT], 1),
        ([member("Node", exactMatch={"name": "gone"})], 0),
        ([REGEX], 2),
        ([EXACT, REGEX, RACK], 4),
        ([member("Node", regexMatch={"pattern": "("})], 0),
        ([{"type": "Node"}], 0),
    ],
)
def test_members_select_nodes_by_name_pattern_and_labels(
    members: list[dict[str, Any]], count: int
) -> None:
    assert counted([hypernode("h", *members)], NODES) == {"h": count}


def test_nodes_of_hypernodes_below_count_once_even_in_a_circle() -> None:
    lower = hypernode("lower-a", EXACT, RACK), hypernode("lower-b", REGEX)
    top = hypernode("top", member("HyperNode", regexMatch={"pattern": "^lower"}))
    circle = hypernode("circle", EXACT, member("HyperNode", exactMatch={"name": "round"}))
    back = hypernode("round", RACK, member("HyperNode", exactMatch={"name": "circle"}))

    assert counted([*lower, top, circle, back], NODES) == {
        "lower-a": 3,
        "lower-b": 2,
        "top": 4,
        "circle": 3,
        "round": 3,
    }
