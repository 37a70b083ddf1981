"""Groups that pods declare completely, without an object (`Membership.group`)."""

from typing import Final

from shared.contracts.annotations import QUEUE_NAME
from shared.dialects import requirements
from shared.dialects.numbers import natural
from shared.dialects.protocol import Membership
from shared.dialects.settings import read_settings, setting_errors
from shared.kube.objects import ObjectMeta
from shared.model.objects import Labels, PodGroup, Resources

_TEXT_CHARACTERS_MAX: Final = 253


def number_of_pods(metadata: ObjectMeta, key: str, *, least: int) -> tuple[int, tuple[str, ...]]:
    """The number of pods in an annotation, and what is wrong with it (then the number is 0)."""
    text = metadata.annotations.get(key, "")
    number = natural(text)
    if number is not None and number >= least:
        return number, ()
    found = f'not "{text[:50]}"' if text else "and is missing"
    return 0, (f"metadata.annotations[{key}]: must be a number of pods, {least} or more, {found}",)


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
    name = name[:_TEXT_CHARACTERS_MAX]
    found = (*errors, *setting_errors(given), *(one.text for one in requirements.objections(given)))
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
        queue=(given.get(QUEUE_NAME) or queue)[:_TEXT_CHARACTERS_MAX],
        settings=tuple(sorted({**dict(settings), **dict(read_settings(given))}.items())),
        topology=requirements.label_topology(given),
        errors=tuple(error[:_TEXT_CHARACTERS_MAX] for error in found[:10]),
    )
    return Membership(group_name=name, self_declared=True, scope=dialect, group=group)
