"""Gangs that have not reached their quorum before those that only grow. No gang is evicted below
its quorum: members above it may be (flags `enablePreemptable` and `enableReclaimable`).

That a gang is placed whole or not at all is no policy: the Statement sees to it, whatever the
configuration says.
"""

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRule
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.gangs import Gang


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    return Policy(name="gang", group_key=_key, victims=VictimRule(keeps_quorum=True))


def _key(gang: Gang) -> tuple[int, ...]:
    return (int(gang.history.started or gang.quorum_held),)
