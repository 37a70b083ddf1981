"""The reason of the condition `PodScheduled=False` of a waiting member.

cluster-autoscaler and Karpenter add nodes for pods with the reason `Unschedulable`, and for no
other pods. So a member has this reason only if new nodes would help its gang and nothing else is in
the way. Every other reason is a word on which neither of them acts.
"""

import enum
from typing import Final

from shared.contracts.pending_reasons import PendingReason


class NewNodes(enum.StrEnum):
    """Whether new nodes would help a gang for which the nodes have too little free capacity
    (`NotEnoughResources`, `RepairRoom`), and if not, why. The value is the reason of its members'
    condition.

    A new node is one like a node of the cluster. Which other kinds an autoscaler could add is known
    to the autoscaler alone.
    """

    #: Yes: with enough of them its waiting members could be placed.
    HELP = "Unschedulable"
    #: Some members fit on no node that they may use, even when it is empty. Only the largest of
    #: these are Unschedulable: an autoscaler adds nodes of a kind that holds them, or none.
    OTHER_KIND = "NodesTooSmall"
    #: Nodes that it may use have free capacity, which its topology does not allow it to use: an
    #: autoscaler does not see topologies, so it would count this capacity.
    DOMAIN_FULL = "TopologyDomainFull"
    #: Its topology consists of HyperNodes that list their nodes by name, so new nodes would be in
    #: none of them.
    NO_DOMAIN = "OutsideTopology"
    #: Members that do not fit select nodes by their names, or their volumes do: a new node has
    #: another name.
    NAMED_NODES = "NodesNamed"
    #: Claims of members that do not fit cannot be used on any node: they are missing, lost, or not
    #: bound yet, or name a class that does not exist.
    CLAIMS = "ClaimsUnusable"
    #: It would fit without the reservations for other gangs.
    RESERVED = "CapacityReserved"
    #: It may be allowed to evict pods, which is not searched yet.
    MAY_PREEMPT = "PreemptionUndecided"
    #: Its pods fit, and the rest of its `minResources`, for which no pods exist, does not.
    MIN_RESOURCES = "MinResources"
    #: Neither its pods nor the rest of its `minResources` fit, and new nodes for its pods alone
    #: would not hold the rest: an autoscaler would add them, and remove them again.
    MIN_RESOURCES_OUT_OF_REACH = "MinResourcesOutOfReach"
    #: Its ProvisioningRequest is provisioned: its nodes were added, and may still be joining.
    PROVISIONED = "Provisioned"
    #: Its pods fit by now, and are tried again.
    FITS = "Retried"


#: The reason on which autoscalers act; kube-scheduler writes it on every pod that does not fit.
UNSCHEDULABLE: Final = NewNodes.HELP.value
#: Any other reason is one on which autoscalers do not act.
_OF_CAPACITY: Final = frozenset({PendingReason.NOT_ENOUGH_RESOURCES, PendingReason.REPAIR_ROOM})


def pod_reason(reason: PendingReason, new_nodes: NewNodes) -> str:
    """The reason of the condition PodScheduled=False of a gang's waiting members.

    Args:
        reason: The gang's pending reason.
        new_nodes: Whether new nodes would help; it counts only if capacity is the reason.
    """
    return new_nodes.value if reason in _OF_CAPACITY else reason.value
