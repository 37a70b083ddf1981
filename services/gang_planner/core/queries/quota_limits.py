"""ResourceQuotas that can never admit a gang, even in an empty namespace; for fit queries.

The need of a gang with pods is a lower bound (the members with the smallest requests of each
resource form the quorum), so that no possible gang is reported as impossible. For a group without
pods its declared minimum is used, as at its admission.
"""

from collections.abc import Callable, Iterator
from typing import Final

from services.gang_planner.core.policies.resourcequota import counted_as, matches
from services.gang_planner.core.state.amounts import in_words
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from shared.model.objects import PodGroup, Resources
from shared.model.reference_objects import ResourceQuota

_POD_COUNTS: Final = frozenset({"pods", "count/pods"})
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."


def too_small(state: State, gang: Gang, size: int, limits: Resources) -> str:
    """A message with a quota of the gang's namespace that is below `size` of its members; "" if
    there is none.

    Args:
        state: The planner's state, with the quotas.
        gang: The gang, with its pods.
        size: How many members it needs.
        limits: The least limits of `size` members, by the keys of quotas.
    """
    asked = [dict(member.shape.shape.requests) for member in gang.members.values()]
    limited = dict(limits)

    def least(name: str) -> int:
        if name in _POD_COUNTS:
            return size
        if name.startswith(_LIMITS):
            return limited.get(name, 0)
        resource = name.removeprefix(_REQUESTS)
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
            for words in _over(quota, least):
                return f"ResourceQuota {quota.name} {words}"
    return ""


def _over(quota: ResourceQuota, least: Callable[[str], int]) -> Iterator[str]:
    for name, hard in quota.hard:
        needs = least(name)
        if needs <= hard:
            continue
        if name in _POD_COUNTS:
            yield f"allows {hard} pods, the gang needs {needs}"
            continue
        resource = name.removeprefix(_REQUESTS).removeprefix(_LIMITS)
        what = "limits of " if name.startswith(_LIMITS) else ""
        allowed, needed = in_words(resource, hard), in_words(resource, needs)
        yield f"allows {what}{allowed}, the gang needs {needed} at least"
