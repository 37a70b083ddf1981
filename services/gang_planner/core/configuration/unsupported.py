"""Entries of a `volcano-scheduler.conf` that are accepted and have no effect, with the reasons.

Existing files of Volcano therefore load unchanged. The planner reports entries without effect in
its log and in `tutti status`; with `--strict-conf`, it rejects the file instead.
"""

from collections.abc import Mapping
from typing import Final

#: Volcano's plugins that Tutti does not implement.
PLUGINS: Final[Mapping[str, str]] = {
    "capacity-card": "cards are not distinguished by annotations; give each kind a resource name "
    "of its own, which capability and deserved may name",
    "deviceshare": "shared devices need the annotations of a vendor's device plugin, whose "
    "contract is not kept here; a gang that asks for them gets the condition UnsupportedDevice",
    "extender": "decisions that wait for an HTTP server cannot be replayed",
    "fairshare": "what users held in the past is not kept; drf orders by what they hold now",
    "group-topology-affinity": "what groups say of each other's domains is not read; their pods' "
    "anti-affinity is",
    "numa-aware": "NUMA placement is the kubelet's topology manager's; its reports are not read",
    "rescheduling": "pods that run are only moved for a gang that is proven to fit in their place",
    "reservation": "reservations of one target job no longer exist in Volcano either",
    "tdm": "no zones are lent by the hour; use taints, or a queue that is reclaimed from",
    "usage": "load measured from outside cannot be replayed; what pods request decides",
}

#: Volcano's actions that Tutti does not implement.
ACTIONS: Final[Mapping[str, str]] = {
    "elect": "reservations of one target job no longer exist in Volcano either",
    "reserve": "reservations of one target job no longer exist in Volcano either",
    "shuffle": "it only serves the plugins rescheduling and tdm, which are not offered",
}

#: Flags without effect; every other flag that is false switches off its part of the plugin.
FLAGS: Final[Mapping[str, str]] = {
    "enableJobReady": "a gang is ready when its quorum is placed, whatever is configured",
    "enableJobPipelined": "the decision that evicts victims reserves the capacity that they leave",
    "enableNamespaceOrder": "an order of namespaces no longer exists in Volcano either",
    "enableTaskOrder": "members go by task priority and index, whatever is configured",
    "enablePreemptive": "whether a gang may evict is its priority's and its queue's",
    "enabledClusterOrder": "there is one cluster",
    "enableBestNode": "scores add up, no policy has the last word",
    "enableTargetJob": "reservations of one target job no longer exist in Volcano either",
    "enableReservedNodes": "reservations of one target job no longer exist in Volcano either",
    "enabledAllocatable": "a queue's ceilings hold, whatever is configured",
    "enabledOverused": "what a queue deserves limits it only while others claim theirs",
    "enabledHyperNodeOrder": "a policy of topology with weight 0 prefers nothing",
    "enabledVictim": "it only serves the action shuffle",
    "enableJobStarving": "a gang preempts until its minimum is placed, members above it never do",
    "enabledSubJobReady": "sub-gangs are whole or not placed, whatever is configured",
    "enabledSubJobPipelined": "see enableJobPipelined",
    "enabledSubJobOrder": "sub-gangs go by name",
    "enabledHyperNodeGradient": "domains are tried from the lowest tier up",
}


def unknown(name: str) -> str:
    """The reason why an unknown plugin has no effect."""
    del name
    return "it is none of Tutti's; a plugin of your own (.so) cannot be loaded"
