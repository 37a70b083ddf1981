"""Successors: gangs that a workload creates again as a whole after it deleted the first one.

When a worker fails, LeaderWorkerSet deletes a group's pods and its PodGroup, and JobSet deletes its
child Jobs. Both create them again, under the same or other names. The *workload* at the top of the
pods' owners stays. While it exists, capacity is reserved for the successor: the gang with the same
key, or a new one whose pods belong to the same part of the same workload.
"""

from collections.abc import Collection

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.gang_keys import UNNAMED
from shared.model.objects import Pod
from shared.model.owners import workload_of

#: UID of a workload, and a part of it.
Origin = tuple[str, str]


def origin_of(reference_objects: ReferenceObjects, pod: Pod) -> Origin:
    """The UID of the topmost existing workload that creates this pod, and the pod's part of it; two
    empty strings: none is known.
    """
    workload = workload_of(reference_objects.workloads, pod)
    if workload is None:
        return "", ""
    return workload.uid, pod.part if pod.workload else ""


def is_made_again(gang: Gang) -> bool:
    """Whether a gang with an existing workload is being deleted as a whole: its group is deleted,
    or all of its members have ended or are being deleted.
    """
    if gang.lacks_object:
        return True
    if gang.key[0] not in UNNAMED and gang.group is not None and gang.group.deleting:
        return True
    return not gang.living


def find_successors(state: State, workloads: Collection[str]) -> dict[Origin, Gang]:
    """Find gangs that may inherit holds, by the origin of their members: new gangs, gangs that have
    inherited holds already, and started gangs that lack members. The last is the first gang itself,
    if its new pods named another group first: the group of their Job, until the controller wrote
    that of their JobSet into them.
    """
    successor_of: dict[Origin, Gang] = {}
    gangs = [
        gang
        for gang in state.gangs.gangs.values()
        if gang.traits.ours and gang.living and (_may_inherit(gang) or state.holds.of(gang))
    ]
    for gang in sorted(gangs, key=lambda gang: (gang.created_ms, gang.key)):
        for member in gang.members.values():
            origin = origin_of(state.reference_objects, member.pod)
            if origin[0] in workloads:
                successor_of.setdefault(origin, gang)
    return successor_of


def _may_inherit(gang: Gang) -> bool:
    """Whether it lacks members since it has started, or has no decision yet."""
    return not (gang.quorum_held if gang.history.has_started else gang.history.attempt)
