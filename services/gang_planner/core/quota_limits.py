"""ResourceQuotas that can never admit a gang, however empty the namespace: for questions.

What the gang needs is estimated from below (the pods that ask for least of each resource make its
quorum), so that nothing is called impossible that is not. Limits are not judged: a shape does not
hold them.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from services.gang_planner.core.amounts import in_words
from services.gang_planner.core.gangs import Gang
from services.gang_planner.core.policies.resourcequota import matches
from services.gang_planner.state import State
from shared.model.surroundings import ResourceQuota

_POD_COUNTS: Final = frozenset({"pods", "count/pods"})
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."


def too_small(state: State, gang: Gang, size: int) -> str:
    """Which quota of the gang's namespace is below `size` of its members; "" for none."""
    asked = [dict(member.shape.shape.requests) for member in gang.members.values()]
    for quota in sorted(state.surroundings.quotas.values(), key=lambda one: one.name):
        if quota.namespace == gang.namespace and matches(quota, gang):
            for words in _over(quota, asked, size):
                return f"ResourceQuota {quota.name} {words}"
    return ""


def _over(quota: ResourceQuota, asked: Iterable[dict[str, int]], size: int) -> Iterator[str]:
    for name, hard in quota.hard:
        if name in _POD_COUNTS:
            if size > hard:
                yield f"allows {hard} pods, the gang needs {size}"
            continue
        if name.startswith((_LIMITS, "count/")):
            continue
        resource = name.removeprefix(_REQUESTS)
        least = sum(sorted(one.get(resource, 0) for one in asked)[:size])
        if least > hard:
            told = in_words(resource, hard)
            yield f"allows {told}, the gang needs {in_words(resource, least)} at least"
