"""No pod is evicted against a PodDisruptionBudget.

Without this policy such pods are still the last to be chosen, and the API server's eviction refuses
them: a budget's status may be newer than what is known here.
"""

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRule
from services.gang_planner.core.framework.policy import Policy


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    return Policy(name="pdb", victims=VictimRule(keeps_budgets=True))
