"""Cool-down protection: a pod with the annotation `volcano.sh/cooldown-time` is not evicted until
that time has passed since its start.
"""

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRules
from services.gang_planner.core.framework.policy import Policy


def build(_: Arguments) -> Policy:
    """Takes no arguments."""
    return Policy(name="cdp", victims=VictimRules(keeps_cooldown=True))
