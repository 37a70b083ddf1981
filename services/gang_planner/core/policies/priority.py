"""Gangs of higher priority first."""

from services.gang_planner.core.arguments import Arguments
from services.gang_planner.core.gangs import Gang
from services.gang_planner.core.policy import Policy


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    return Policy(name="priority", group_key=_key)


def _key(gang: Gang) -> tuple[int, ...]:
    return (-gang.priority,)
