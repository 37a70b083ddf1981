"""Cool-down protection: a pod with `volcano.sh/cooldown-time` is not evicted for that long after
its start.
"""

from services.gang_planner.core.configuring.arguments import Arguments
from services.gang_planner.core.configuring.policy import Policy
from services.gang_planner.core.preempting.rules import VictimRule


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    return Policy(name="cdp", victims=VictimRule(keeps_cooldown=True))
