"""Entries of a `volcano-scheduler.conf` that are accepted and have no effect, with the reasons.

Existing files of Volcano therefore load unchanged. The planner reports entries without effect in
its log and in `tutti status`; with `--strict-conf`, it rejects the file instead.
"""

from collections.abc import Mapping
from typing import Final

_TARGET_JOB: Final = "Volcano no longer has reservations for one target job either"

#: Volcano's plugins that Tutti does not implement.
PLUGINS: Final[Mapping[str, str]] = {
    "capacity-card": "Tutti does not distinguish cards by annotations; give each kind of card its "
    "own resource name and use it in the queue's capability and deserved",
    "deviceshare": "Tutti does not implement the annotations with which a vendor's device plugin "
    "shares devices; a gang that requests them waits with the reason UnsupportedDevice",
    "extender": "Tutti does not call HTTP servers for decisions, because it could not replay them",
    "fairshare": "past-use orders queues and users by what they have used",
    "group-topology-affinity": "Tutti does not read affinity between groups; use anti-affinity of "
    "their pods",
    "numa-aware": "Tutti leaves NUMA placement to the kubelet's topology manager and does not read "
    "its reports",
    "rescheduling": "Tutti evicts running pods only for a gang that fits in their place",
    "reservation": _TARGET_JOB,
    "tdm": "Tutti does not lend zones by the hour; use taints, or a reclaimable queue",
    "usage": "Tutti does not read measured load, because it could not replay decisions; pods' "
    "requests decide",
}

#: Volcano's actions that Tutti does not implement.
ACTIONS: Final[Mapping[str, str]] = {
    "elect": _TARGET_JOB,
    "shuffle": "only the plugins rescheduling and tdm use it, which Tutti does not implement",
}

#: Flags without effect; every other flag that is false switches off its part of the plugin.
FLAGS: Final[Mapping[str, str]] = {
    "enableJobReady": "Tutti always binds a gang only when its whole quorum is placed",
    "enableJobPipelined": "the decision that evicts pods always reserves their capacity",
    "enableNamespaceOrder": "Volcano no longer has an order of namespaces either",
    "enableTaskOrder": "Tutti always orders the members of a gang by task priority and index",
    "enablePreemptive": "the gang's priority and its queue decide whether it may evict pods",
    "enabledClusterOrder": "Tutti schedules in one cluster",
    "enableBestNode": "Tutti adds up the scores of all policies; none overrides another",
    "enableTargetJob": _TARGET_JOB,
    "enableReservedNodes": _TARGET_JOB,
    "enabledAllocatable": "Tutti always applies the limits of queues",
    "enabledOverused": "the deserved amount limits a queue only while other queues need theirs",
    "enabledHyperNodeOrder": "set the weight of the policy network-topology-aware to 0 instead",
    "enabledVictim": "only the action shuffle uses it, which Tutti does not implement",
    "enableJobStarving": "a gang always preempts for its minimum, never for members above it",
    "enabledSubJobReady": "Tutti always places a sub-gang as a whole",
    "enabledSubJobPipelined": "see enableJobPipelined",
    "enabledSubJobOrder": "Tutti always orders sub-gangs by name",
    "enabledHyperNodeGradient": "Tutti always tries topology domains from the lowest tier up",
}

#: The same for any other name of a plugin.
UNKNOWN_PLUGIN: Final = "Tutti has no such plugin, and cannot load plugins from .so files"
