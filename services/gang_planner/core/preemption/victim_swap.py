"""Evicts members of a gang for members of the same gang with a higher task priority.

Only for a gang that has started, and only members above its minima, so that it stays whole while
they leave. The least important ones go first. The pods that its controller creates for them wait:
they are less important than their replacements, so the exchange ends.
"""

from typing import TYPE_CHECKING, NamedTuple

from services.gang_planner.core.state.member_states import task_priority
from services.gang_planner.core.state.needs import Need

if TYPE_CHECKING:
    from collections.abc import Iterator

    from services.gang_planner.core.preemption.candidates import VictimCandidates
    from services.gang_planner.core.preemption.units import Unit
    from services.gang_planner.core.state.gangs import Gang


class Swap(NamedTuple):
    """Members to place, and members that may be evicted for them."""

    need: Need
    units: "list[Unit]"


def swaps(gang: "Gang", need: Need, candidates: "VictimCandidates") -> "Iterator[Swap]":
    """Swaps for the most important waiting members of a gang, the least harmful first."""
    if need.quorum or need.structure is not None or not gang.history.started:
        return
    groups = [
        (role, shape_id, [task_priority(one.pod) for one in gang.waiting[role, shape_id].values()])
        for role, shape_id, _ in need.wanted
    ]
    top = max(max(priorities) for _, _, priorities in groups)
    if all(task_priority(one.pod) >= top for one in gang.members.values() if one.slot is not None):
        return
    wanted = Need(
        queue=need.queue,
        quorum=0,
        minima=(),
        wanted=tuple(
            (role, shape_id, priorities.count(top))
            for role, shape_id, priorities in groups
            if top in priorities
        ),
        best_effort=False,
        attached=need.attached,
        avoid=need.avoid,
    )
    units = [one for one in candidates.within(gang) if one.importance < top]
    for level in sorted({one.importance for one in units}):
        yield Swap(wanted, [one for one in units if one.importance <= level])
