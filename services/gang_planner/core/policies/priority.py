"""Orders gangs by priority, the highest first. A gang may preempt gangs of strictly lower priority
(flag `enablePreemptable`).
"""

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRules
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State


def build(_: Arguments) -> Policy:
    """Takes no arguments."""
    victims = VictimRules(entitles=frozenset({"priority"}), on_reclaim=False)
    return Policy(name="priority", group_key=_key, victims=victims)


def _key(gang: Gang, _: State) -> tuple[int, ...]:
    return (-gang.priority,)
