"""The key that pods of one gang share: planner and observer group pods by it; and the gang's name
for its users. Objects that controllers make have names with a UID, which no user chose:
`second-a843473f-…` is the group of the Job `second`.
"""

import re
from typing import Final, TypeAlias

from shared.model.objects import GROUP_NAME_SCOPE, Pod, PodGroup

GangKey: TypeAlias = tuple[str, str, str]
"""(scope, namespace, group), ("owner", namespace, owner UID) or ("pod", "", pod UID).

A user chooses the UID in an owner reference, and the API server does not check it. It names an
owner only together with the namespace of the object that refers to it.
"""

#: First items of the keys of gangs without a name: no scope is called so.
UNNAMED: Final = frozenset({"owner", "pod"})

#: Prefix of the names of groups that are made for pods that name none, as in Volcano.
MADE_FOR_PODS_PREFIX: Final = "podgroup-"


def key_of(pod: Pod) -> GangKey | None:
    """The gang that a pod belongs to; None: it is in no gang and only uses its node's capacity."""
    if pod.group_name:
        return pod.group_scope, pod.namespace, pod.group_name
    if not pod.ours:
        return None
    if pod.owner is not None:
        return "owner", pod.namespace, pod.owner.uid
    return "pod", "", pod.uid


def key_of_group(group: PodGroup) -> GangKey:
    """The gang that a group object declares."""
    if group.by_owner:
        owner_uid = group.owner.uid if group.owner is not None else group.uid
        return "owner", group.namespace, owner_uid
    return group.scope, group.namespace, group.name


def scope_of(key: GangKey) -> str:
    """The scope of a gang's name. A gang without a name shares that of the group names, because a
    group object of its name may come.
    """
    return GROUP_NAME_SCOPE if key[0] in UNNAMED else key[0]


def has_objects(scope: str) -> bool:
    """Whether the gangs of a scope have group objects; the other ones are declared by pods."""
    return scope == GROUP_NAME_SCOPE or "." in scope


def is_of_pods(group: PodGroup | None) -> bool:
    """Whether it is a group that its pods declare, and that has no object."""
    return group is not None and not group.uid


def is_made_for_pods(group: PodGroup) -> bool:
    """Whether it has the name of a group object that was made for pods that named none."""
    named = group.name.startswith(MADE_FOR_PODS_PREFIX)
    return named and group.scope == GROUP_NAME_SCOPE and bool(group.uid)


_UID: Final = re.compile(
    r"(?P<stem>.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-(?P<part>[^:]+))?(?::.*)?"
)
_UNNAMED: Final = MADE_FOR_PODS_PREFIX.removesuffix("-")


def gang_title(name: str, owner: str = "") -> str:
    """The gang's name for its users, as unique in its namespace as names are.

    Args:
        name: The gang's own name.
        owner: The object that its user created, as "job/second"; "": none is known.

    Returns:
        The owner, with the gang's number among the owner's or its own name behind it, if it has one
        that does not follow from the owner's: "leaderworkerset/serve (0)". Without an owner, the
        gang's name without a UID.
    """
    matched = _UID.fullmatch(name)
    stem, part = (matched["stem"], matched["part"]) if matched is not None else (name, None)
    if not owner:
        return name if stem == _UNNAMED else _with_part(stem, part)
    if part is None and matched is None and name != owner.partition("/")[2]:
        part = name
    return _with_part(owner, part)


def title_of_place(place: str) -> str:
    """The title of the gang "namespace/name", behind its namespace."""
    namespace, slash, name = place.rpartition("/")
    return f"{namespace}{slash}{gang_title(name)}"


def _with_part(title: str, part: str | None) -> str:
    return f"{title} ({part})" if part else title
