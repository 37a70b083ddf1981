"""Gangs of higher priority first; they may preempt gangs of strictly lower priority (flag
`enablePreemptable`).
"""

from services.gang_planner.core.configuring.arguments import Arguments
from services.gang_planner.core.configuring.policy import Policy
from services.gang_planner.core.preempting.rules import VictimRule
from services.gang_planner.core.tables.gangs import Gang


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    victims = VictimRule(entitles="priority", on_reclaim=False)
    return Policy(name="priority", group_key=_key, victims=victims)


def _key(gang: Gang) -> tuple[int, ...]:
    return (-gang.priority,)
