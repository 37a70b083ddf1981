"""Groups that pods declare completely, without an object (`Membership.group`).

Koordinator's pods and PodGroups may list gangs that are admitted together. They are one gang of
Tutti. Its name is made of theirs, so that the pods of each of them find the same one.
"""

import hashlib
from typing import Final

import msgspec

from shared.contracts.annotations import QUEUE_NAME
from shared.dialects import requirements
from shared.dialects.field_checks import natural
from shared.dialects.group_metadata import annotation_errors, shown
from shared.dialects.protocol import NAME_CHARACTERS_MAX, Membership
from shared.dialects.settings import read_settings
from shared.kube.objects import ObjectMeta
from shared.model.objects import Labels, PodGroup, Resources

#: The list as JSON: ["namespace/name", ...].
GROUPS: Final = "gang.scheduling.koordinator.sh/groups"
#: Gangs that one list may name. Koordinator has no limit, but each pod carries the minima of all.
_TOGETHER_MAX: Final = 50
_HASH_CHARACTERS: Final = 16

_decode: Final = msgspec.json.Decoder(list[str]).decode


def other_gangs(text: str, namespace: str, own: str) -> tuple[tuple[str, ...], str]:
    """The names of the gangs that are admitted together with the gang `own`, sorted, and what is
    wrong with the list; then there are none.
    """
    if not text:
        return (), ""
    try:
        listed = _decode(text)
    except msgspec.MsgspecError as error:
        return (), str(error)
    names: set[str] = set()
    for gang in listed:
        place, _, name = gang.partition("/")
        if not place or not name:
            return (), f'"{gang[:50]}" is not a gang as namespace/name'
        if place != namespace:
            return (), f'"{gang[:50]}" is a gang of another namespace'
        names.add(name)
    names.discard(own)
    if len(names) >= _TOGETHER_MAX:
        return (), f"names more than {_TOGETHER_MAX} gangs"
    return tuple(sorted(names)), ""


def objection_to_list(text: str, namespace: str, own: str) -> str:
    """Why a PodGroup with this list is not planned: the other gangs' minima are known from pods
    only. "": it is planned, because the list names no other gang.
    """
    others, objection = other_gangs(text, namespace, own)
    if others:
        return "is read on pods only: declare the gangs in annotations of their pods"
    return objection


def name_of_all(names: tuple[str, ...]) -> str:
    """The name of the gang that these gangs are together; different for different names."""
    name = ",".join(sorted(names))
    if len(name) <= NAME_CHARACTERS_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARACTERS]
    return f"{name[: NAME_CHARACTERS_MAX - _HASH_CHARACTERS - 1]},{digest}"


def number_of_pods(metadata: ObjectMeta, key: str, *, least: int) -> tuple[int, tuple[str, ...]]:
    """The number of pods in an annotation, and what is wrong with it (then the number is 0)."""
    text = metadata.annotations.get(key, "")
    number = natural(text)
    if number is not None and number >= least:
        return number, ()
    problem = f'not "{text[:50]}"' if text else "and is missing"
    return 0, (
        f"metadata.annotations[{key}]: must be a number of pods, {least} or more, {problem}",
    )


def declared_by(
    metadata: ObjectMeta,
    name: str,
    *,
    dialect: str,
    min_member: int,
    min_task_member: tuple[tuple[str, int], ...] = (),
    min_resources: Resources | None = None,
    queue: str = "",
    settings: Labels = (),
    errors: tuple[str, ...] = (),
) -> Membership:
    """The membership of a pod, with the group that it declares.

    Args:
        metadata: The pod's. Its annotations of Tutti and Volcano count as those of a group object
            would.
        name: The group's name.
        dialect: Name of its dialect, which is the scope of the name, too.
        min_member: As in `PodGroup`.
        min_task_member: Likewise.
        min_resources: Likewise.
        queue: The queue that the dialect derives; Volcano's annotation counts before it.
        settings: Settings that the dialect derives; the pod's annotations count before them.
        errors: What is wrong with the declaration: such a gang is not planned.
    """
    given = metadata.annotations
    name = name[:NAME_CHARACTERS_MAX]
    group = PodGroup(
        uid="",
        dialect=dialect,
        namespace=metadata.namespace,
        name=name,
        scope=dialect,
        resource_version=0,
        min_member=min_member,
        min_task_member=min_task_member,
        min_resources=min_resources,
        queue=(given.get(QUEUE_NAME) or queue)[:NAME_CHARACTERS_MAX],
        settings=tuple(sorted({**dict(settings), **dict(read_settings(given))}.items())),
        topology=requirements.label_topology(given),
        errors=shown([*errors, *annotation_errors(metadata)]),
    )
    return Membership(group_name=name, self_declared=True, scope=dialect, group=group)
