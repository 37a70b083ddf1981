"""Which nodes a pod may use at all: the filters, and terms between pods.

Resources, host ports and the taint-like rules are always judged by kube-scheduler; here the rules
that have a switch can be turned off by the arguments that Volcano knows. Without this policy only
the free capacity counts.
"""

from services.gang_planner.core.constraints.filters import CapacityRule, NodeRule, filter_rules
from services.gang_planner.core.constraints.inter_pod.switches import Switches
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy


def build(arguments: Arguments) -> Policy:
    """Arguments: the switch of each filter (below), `predicate.PodAffinityEnable` and
    `predicate.PodTopologySpreadEnable`, all true.
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
