"""Whether the members of a gang agree where the API of its group requires it."""

from collections.abc import Collection

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import FAILED, LEAVING, SUCCEEDED

_ENDING = frozenset({SUCCEEDED, FAILED, LEAVING})


def difference(gang: Gang) -> str:
    """In which property the members differ from each other or from their group, with the values;
    "" if they may be scheduled together.
    """
    group = gang.group
    if group is None or not group.uniform:
        return ""
    pods = [member.pod for member in gang.members.values() if member.state not in _ENDING]
    schedulers = {pod.scheduler_name for pod in pods}
    if len(schedulers) > 1:
        return f"its pods name different schedulers: {_listed(schedulers)}"
    if group.priority is None:
        return ""
    others = {pod.priority for pod in pods} - {group.priority}
    if others:
        return f"its priority is {group.priority}, and that of pods is {_listed(others)}"
    if len({pod.preempts for pod in pods}) > 1:
        return "its pods have different preemption policies"
    return ""


def _listed(values: Collection[str] | Collection[int]) -> str:
    return ", ".join(str(value) for value in sorted(values)[:5])
