"""Which nodes a pod may use at all: a thin table over `constraints.filters`.

Resources, host ports and the taint-like rules are always judged by kube-scheduler; here three of
them can be switched off by the arguments that Volcano knows. Without this policy only what is free
counts.
"""

from services.gang_planner.core.constraints.filters import (
    CapacityFilter,
    NodeFilter,
    node_affinity,
    node_ports,
    node_ready,
    node_unschedulable,
    taint_toleration,
    volume_limits,
    volume_zone,
)
from services.gang_planner.core.constraints.inter_pod.switches import Switches
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy


def build(arguments: Arguments) -> Policy:
    """Arguments `predicate.NodeAffinityEnable`, `.NodePortsEnable`, `.TaintTolerationEnable`,
    `.PodAffinityEnable`, `.PodTopologySpreadEnable`, `.NodeVolumeLimitsEnable`,
    `.VolumeZoneEnable`, all true.
    """
    filters: list[NodeFilter] = [node_unschedulable.FILTER, node_ready.FILTER]
    capacity_filters: list[CapacityFilter] = []
    if arguments.boolean("predicate.TaintTolerationEnable", default=True):
        filters.append(taint_toleration.FILTER)
    if arguments.boolean("predicate.NodeAffinityEnable", default=True):
        filters.append(node_affinity.FILTER)
    if arguments.boolean("predicate.NodePortsEnable", default=True):
        capacity_filters.append(node_ports.FILTER)
    if arguments.boolean("predicate.NodeVolumeLimitsEnable", default=True):
        capacity_filters.append(volume_limits.FILTER)
    if arguments.boolean("predicate.VolumeZoneEnable", default=True):
        capacity_filters.append(volume_zone.FILTER)
    pairwise = Switches(
        affinity=arguments.boolean("predicate.PodAffinityEnable", default=True),
        spread=arguments.boolean("predicate.PodTopologySpreadEnable", default=True),
    )
    return Policy(
        name="predicates",
        node_filters=tuple(filters),
        capacity_filters=tuple(capacity_filters),
        pairwise=pairwise,
    )
