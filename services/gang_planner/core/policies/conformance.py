"""Protects system pods from eviction: pods of the classes `system-cluster-critical` and
`system-node-critical`, and all pods in `kube-system`.
"""

from typing import Final

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRules
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.gangs import Member

_CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})
_NAMESPACE: Final = "kube-system"


def build(_: Arguments) -> Policy:
    """Takes no arguments."""
    return Policy(name="conformance", victims=VictimRules(allows=(_allows,)))


def _allows(member: Member) -> bool:
    pod = member.pod
    return pod.namespace != _NAMESPACE and pod.priority_class not in _CRITICAL
