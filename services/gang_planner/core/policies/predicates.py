"""Which nodes a pod may use at all: a thin table over `filters`.

Resources, host ports and the taint-like rules are always judged by kube-scheduler; here three of
them can be switched off by the arguments that Volcano knows. Without this policy only what is free
counts.
"""

from services.gang_planner.core.configuring.arguments import Arguments
from services.gang_planner.core.configuring.policy import Policy
from services.gang_planner.core.filters import (
    NodeFilter,
    RoomFilter,
    node_affinity,
    node_ports,
    node_ready,
    node_unschedulable,
    taint_toleration,
    volume_limits,
    volume_zone,
)
from services.gang_planner.core.pairwise.switches import Switches


def build(arguments: Arguments) -> Policy:
    """Arguments `predicate.NodeAffinityEnable`, `.NodePortsEnable`, `.TaintTolerationEnable`,
    `.PodAffinityEnable`, `.PodTopologySpreadEnable`, `.NodeVolumeLimitsEnable`,
    `.VolumeZoneEnable`, all true.
    """
    filters: list[NodeFilter] = [node_unschedulable.FILTER, node_ready.FILTER]
    room_filters: list[RoomFilter] = []
    if arguments.boolean("predicate.TaintTolerationEnable", default=True):
        filters.append(taint_toleration.FILTER)
    if arguments.boolean("predicate.NodeAffinityEnable", default=True):
        filters.append(node_affinity.FILTER)
    if arguments.boolean("predicate.NodePortsEnable", default=True):
        room_filters.append(node_ports.FILTER)
    if arguments.boolean("predicate.NodeVolumeLimitsEnable", default=True):
        room_filters.append(volume_limits.FILTER)
    if arguments.boolean("predicate.VolumeZoneEnable", default=True):
        room_filters.append(volume_zone.FILTER)
    pairwise = Switches(
        affinity=arguments.boolean("predicate.PodAffinityEnable", default=True),
        spread=arguments.boolean("predicate.PodTopologySpreadEnable", default=True),
    )
    return Policy(
        name="predicates",
        node_filters=tuple(filters),
        room_filters=tuple(room_filters),
        pairwise=pairwise,
    )
