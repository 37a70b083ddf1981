"""Never selects a victim whose eviction would violate a PodDisruptionBudget.

Without this policy such pods are selected last, and the API server can still refuse their eviction:
it may know a newer status of the budget than the planner.
"""

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRules
from services.gang_planner.core.framework.policy import Policy


def build(_: Arguments) -> Policy:
    """Takes no arguments."""
    return Policy(name="pdb", victims=VictimRules(keeps_budgets=True))
