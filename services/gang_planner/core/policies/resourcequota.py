"""Admits a group only if its minimum fits into every ResourceQuota of its namespace, in addition to
the used amounts and the minima of admitted groups that have no pods yet.

`requests.cpu` and `cpu` are the same resource. `pods` and `count/pods` are the group's minimum
number of members if `minResources` does not set them. A quota with scopes applies if the scopes can
match the group's pods.
"""

from collections.abc import Iterator
from typing import Final

from services.gang_planner.core.framework.admission import AdmissionView, Vote
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.gangs import Gang
from shared.model.objects import PodGroup
from shared.model.reference_objects import ResourceQuota

REQUESTS: Final = "requests."
POD_COUNTS: Final = frozenset({"pods", "count/pods"})
#: Scopes that never match pods of a batch job: quotas with such a scope do not apply.
_OTHERS: Final = frozenset({"BestEffort", "Terminating", "CrossNamespacePodAffinity"})


def build(_: Arguments) -> Policy:
    """Takes no arguments."""
    return Policy(name="resourcequota", enqueue=_vote)


def _vote(gang: Gang, view: AdmissionView) -> Vote:
    for _ in shortages(gang, view):
        return Vote.REJECT
    return Vote.PERMIT


def shortages(gang: Gang, view: AdmissionView) -> Iterator[tuple[ResourceQuota, dict[str, int]]]:
    """Yield each quota that the group exceeds, with the excess per resource name of the quota.

    Of a quota that is too large to be judged, the limits are not known: every group exceeds it, by
    no resource. An administrator wrote it, and it limits only its namespace.
    """
    for quota in view.state.reference_objects.quotas.values():
        if quota.namespace != gang.namespace:
            continue
        if quota.too_large is not None:
            yield quota, {}
        elif matches(quota, gang.group):
            over = _short(gang, quota, view)
            if over:
                yield quota, over


def _short(gang: Gang, quota: ResourceQuota, view: AdmissionView) -> dict[str, int]:
    used = dict(quota.used)
    over: dict[str, int] = {}
    for name, hard in quota.hard:
        amount = counted_as(name, gang.group, gang.min_member)
        if amount <= 0:
            continue
        held = used.get(name, 0) + _promised(gang, name, view)
        if held + amount > hard:
            over[name] = held + amount - hard
    return over


def counted_as(name: str, group: PodGroup | None, members: int) -> int:
    """The amount of a group's minimum under a quota's resource name; 0 if it requests none.

    `members` is the group's minimum number of members.
    """
    asked = dict(group.min_resources or ()) if group is not None else {}
    if name in asked:
        return asked[name]
    if name in POD_COUNTS:
        return max((asked.get(key, 0) for key in POD_COUNTS), default=0) or members
    if name.startswith(REQUESTS):
        return asked.get(name.removeprefix(REQUESTS), 0)
    return asked.get(REQUESTS + name, 0)


def _promised(gang: Gang, name: str, view: AdmissionView) -> int:
    """Total minima of admitted groups in the namespace that have no pods yet."""
    key = gang.namespace, name
    cached = view.promised.get(key)
    if cached is None:
        by_id = view.state.gangs.by_id
        entries = view.state.queues.entries.values()
        admitted = [by_id.get(gang_id) for entry in entries for gang_id in entry.promises]
        promised = sum(_counted_in(key, gang) for gang in admitted)
    else:
        promised, seen = cached
        promised += sum(_counted_in(key, gang) for gang in view.admitted[seen:])
    view.promised[key] = promised, len(view.admitted)
    return promised


def _counted_in(key: tuple[str, str], gang: Gang | None) -> int:
    """What an admitted gang counts under a namespace's resource name."""
    if gang is None or gang.namespace != key[0] or gang.members:
        return 0
    return counted_as(key[1], gang.group, gang.min_member)


def matches(quota: ResourceQuota, group: PodGroup | None) -> bool:
    """Whether the quota's scopes can match the group's pods."""
    for scope in quota.scopes:
        name, _, rest = scope.partition(" ")
        if name in _OTHERS:
            return False
        if name == "PriorityClass" and rest and not _class_matches(rest, group):
            return False
    return True


def _class_matches(condition: str, group: PodGroup | None) -> bool:
    operator, _, listed = condition.partition(" ")
    name = group.priority_class if group is not None else ""
    match operator:
        case "In":
            return name in listed.split(",")
        case "NotIn":
            return name not in listed.split(",")
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)
