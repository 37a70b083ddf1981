"""Nobody evicts what the cluster itself needs: critical pods, and all of `kube-system`."""

from typing import TYPE_CHECKING, Final

from services.gang_planner.core.configuring.arguments import Arguments
from services.gang_planner.core.configuring.policy import Policy
from services.gang_planner.core.preempting.rules import VictimRule

if TYPE_CHECKING:
    from services.gang_planner.core.tables.members import Member

_CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})
_NAMESPACE: Final = "kube-system"


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    return Policy(name="conformance", victims=VictimRule(allows=_allows))


def _allows(member: "Member") -> bool:
    pod = member.pod
    return pod.namespace != _NAMESPACE and pod.priority_class not in _CRITICAL
