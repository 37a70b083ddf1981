"""The members that a group lacks of its minimum when the pods of a question are all that exist."""

from collections import Counter
from collections.abc import Iterable

from services.gang_planner.core.state.planner_state import State
from shared.contracts.reasons import GroupMissing, in_words
from shared.model.gang_keys import has_objects, key_of_group
from shared.model.objects import Pod, PodGroup


def missing_in_words(state: State, group: PodGroup, pods: Iterable[Pod]) -> str:
    """A message with the number of missing members, or with the missing group object; "": pods of
    the question, and those that wait in the cluster, suffice, or the gang has started.
    """
    table = state.gangs
    known = table.gangs.get(table.trees.gang_of(key_of_group(group)))
    asked = tuple(pods)
    if known is None or known.group is None:
        names = {pod.group_name for pod in asked}
        if not group.dialect and names == {group.name} and has_objects(group.scope):
            return in_words(GroupMissing(group.scope, group.namespace, group.name))
    members = {pod.uid: pod.role for pod in asked}
    if known is not None:
        if known.history.started:
            return ""
        members |= {uid: one.pod.role for uid, one in known.members.items()}
        if known.group is not None and not group.dialect:
            group = known.group
    roles = Counter(members.values())
    needed = group.min_member
    minima = group.min_task_member
    lacking = 0
    if sum(count for _, count in minima) <= needed:
        lacking = sum(max(count - roles[role], 0) for role, count in minima)
    missing = max(needed - len(members), lacking)
    if missing <= 0:
        return ""
    verb = "member is" if needed == 1 else "members are"
    return f"{missing} of {needed} {verb} missing from what was asked"
