"""The key that pods of one gang share: planner and observer group pods by it."""

from typing import TypeAlias

from shared.model.objects import Pod, PodGroup

GangKey: TypeAlias = tuple[str, str, str]
"""("name", namespace, group), ("owner", "", owner UID) or ("pod", "", pod UID)."""


def key_of(pod: Pod) -> GangKey | None:
    """The gang that a pod belongs to; None: it is in no gang and only uses its node's capacity."""
    if pod.group_name:
        return "name", pod.namespace, pod.group_name
    if not pod.ours:
        return None
    if pod.owner is not None:
        return "owner", "", pod.owner.uid
    return "pod", "", pod.uid


def key_of_group(group: PodGroup) -> GangKey:
    """The gang that a group object declares."""
    if group.by_owner:
        return "owner", "", group.owner.uid if group.owner is not None else group.uid
    return "name", group.namespace, group.name
