"""Gangs that have not reached their quorum before those that only grow.

That a gang is placed whole or not at all is no policy: the Statement sees to it, whatever the
configuration says.
"""

from services.gang_planner.core.arguments import Arguments
from services.gang_planner.core.gangs import Gang
from services.gang_planner.core.policy import Policy


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    return Policy(name="gang", group_key=_key)


def _key(gang: Gang) -> tuple[int, ...]:
    return (int(gang.history.started),)
