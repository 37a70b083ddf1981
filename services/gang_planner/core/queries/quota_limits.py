"""ResourceQuotas that can never admit a gang, even in an empty namespace; for fit queries.

The need of a gang with pods is a lower bound (the members with the smallest requests of each
resource form the quorum), so that no possible gang is reported as impossible. For a group without
pods its declared minimum is used, as at its admission.
"""

from collections.abc import Callable
from typing import Final

from services.gang_planner.core.policies.resourcequota import (
    POD_COUNTS,
    REQUESTS,
    counted_as,
    matches,
)
from services.gang_planner.core.state.amounts import in_words
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from shared.model.objects import PodGroup, Resources

_LIMITS: Final = "limits."


def too_small(state: State, gang: Gang, size: int, limits: Resources) -> str:
    """A message with a quota of the gang's namespace that is below `size` of its members; "" if
    there is none. `limits` are the least limits of `size` members, by the keys of quotas.
    """
    asked = [dict(member.shape.shape.requests) for member in gang.members.values()]
    limited = dict(limits)

    def least(name: str) -> int:
        if name in POD_COUNTS:
            return size
        if name.startswith(_LIMITS):
            return limited.get(name, 0)
        resource = name.removeprefix(REQUESTS)
        return sum(sorted(one.get(resource, 0) for one in asked)[:size])

    return _exceeded(state, gang.group, least)


def too_small_for(state: State, group: PodGroup) -> str:
    """A message with a quota that is below the group's declared minimum; "" if there is none."""
    return _exceeded(state, group, lambda name: counted_as(name, group, group.min_member))


def _exceeded(state: State, group: PodGroup | None, least: Callable[[str], int]) -> str:
    if group is None:
        return ""
    for quota in sorted(state.reference_objects.quotas.values(), key=lambda one: one.name):
        if quota.namespace == group.namespace and matches(quota, group):
            for name, hard in quota.hard:
                if (needs := least(name)) > hard:
                    return f"ResourceQuota {quota.name} {_over(name, hard, needs)}"
    return ""


def _over(name: str, hard: int, needs: int) -> str:
    if name in POD_COUNTS:
        return f"allows {hard} pods, the gang needs {needs}"
    resource = name.removeprefix(REQUESTS).removeprefix(_LIMITS)
    what = "limits of " if name.startswith(_LIMITS) else ""
    allowed, needed = in_words(resource, hard), in_words(resource, needs)
    return f"allows {what}{allowed}, the gang needs {needed} at least"
