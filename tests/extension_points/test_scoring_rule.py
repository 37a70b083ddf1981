"""A scoring rule is one file: the policy `nodeorder` weights it by the argument that it names."""

from tests.extension_points.product_copy import ProductCopy

RULE = '''"""Prefers nodes with the label `example.com/fast`."""

from typing import Final

from services.gang_planner.core.scoring import FULL, ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints
from shared.model.objects import Requirement

_FAST: Final = Requirement(key="example.com/fast", operator="Exists")


class FastNodes:
    """Full points for marked nodes, none for the rest."""

    name = "fastnodes"

    def score(self, nodes: ScoredNodes) -> Ints:
        """See `NodeScore`."""
        table = nodes.node_capacity.nodes
        marked = table.labels.matches(_FAST, _FAST.key, table.objects, nodes.slots)
        points: Ints = marked * FULL
        return points

    def slope(self, nodes: ScoredNodes) -> Ints | None:
        """None: labels do not depend on load."""
        del nodes
        return None


RULE: Final = ScoringRule(weight_argument="fastnodes.weight", default_weight=0, score=FastNodes())
'''
SCENARIO = """title: pods go to marked nodes when the rule has a weight
configuration: |
  actions: "allocate"
  tiers: [{plugins: [{name: gang}, {name: nodeorder, arguments: {fastnodes.weight: 100}}]}]
nodes: [{name: a}, {name: b, labels: {example.com/fast: "1"}}]
gangs: [{name: g, min_member: 3, members: [{count: 3, requests: {cpu: 1000}}]}]
expect: {bound: {g: 3}, within: {g: [b]}}
---
title: without a weight they are spread over unmarked nodes as well
configuration: |
  actions: "allocate"
  tiers: [{plugins: [{name: gang}, {name: nodeorder}]}]
nodes: [{name: a}, {name: b, labels: {example.com/fast: "1"}}]
gangs: [{name: g, min_member: 3, members: [{count: 3, requests: {cpu: 1000}}]}]
expect: {bound: {g: 3}, where: {g-worker-0: a}}
"""


def test_a_scoring_rule_is_one_file(product: ProductCopy) -> None:
    product.add("services/gang_planner/core/scoring/fast_nodes.py", RULE)
    product.add("tests/scenarios/nodeorder/fast_nodes.yaml", SCENARIO)
    tests = (
        "tests/scenarios/test_scenarios.py",
        "tests/services/gang_planner/core/test_policies.py",
    )
    report = product.run_tests(tests, only="fast_nodes or nodeorder")
    # Two scenarios, and what must hold for the scores of every policy.
    assert "4 passed" in report
