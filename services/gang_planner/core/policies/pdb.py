"""Nobody is evicted against a PodDisruptionBudget.

Without this policy such pods are still the last to be chosen, and the API server's eviction refuses
them: a budget's status may be newer than what is known here.
"""

from services.gang_planner.core.configuring.arguments import Arguments
from services.gang_planner.core.configuring.policy import Policy
from services.gang_planner.core.preempting.rules import VictimRule


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    return Policy(name="pdb", victims=VictimRule(keeps_budgets=True))
