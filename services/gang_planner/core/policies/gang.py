"""Orders gangs that have not reached their quorum before gangs that have. Evictions leave every
gang at least its quorum: only members above it are victims (flags `enablePreemptable` and
`enableReclaimable`).

All-or-nothing placement does not depend on this policy: `Statement` enforces it in every
configuration.
"""

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRules
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State


def build(_: Arguments) -> Policy:
    """Takes no arguments."""
    return Policy(name="gang", group_key=_key, victims=VictimRules(keeps_quorum=True))


def _key(gang: Gang, _: State) -> tuple[int, ...]:
    return (int(gang.history.started or gang.quorum_held),)
