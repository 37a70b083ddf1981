"""Filters nodes by kube-scheduler's rules: the filters below, inter-pod affinity and topology
spread.

Volcano's arguments switch individual rules off. Without this policy, only the filters for
resources, volumes and devices apply.
"""

from services.gang_planner.core.constraints.filters import CapacityRule, NodeRule, filter_rules
from services.gang_planner.core.constraints.inter_pod.rules import Switches
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy


def build(arguments: Arguments) -> Policy:
    """Arguments: the switch of each filter (below), `predicate.PodAffinityEnable` and
    `predicate.PodTopologySpreadEnable` (true each).
    """
    rules = [
        rule
        for rule in filter_rules()
        if rule.switch is None or arguments.boolean(rule.switch, default=True)
    ]
    return Policy(
        name="predicates",
        node_filters=tuple(rule.filter for rule in rules if isinstance(rule, NodeRule)),
        capacity_filters=tuple(rule.filter for rule in rules if isinstance(rule, CapacityRule)),
        pairwise=Switches(
            affinity=arguments.boolean("predicate.PodAffinityEnable", default=True),
            spread=arguments.boolean("predicate.PodTopologySpreadEnable", default=True),
        ),
    )
