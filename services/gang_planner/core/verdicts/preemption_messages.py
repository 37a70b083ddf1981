"""Words for preemptions: which gang waits for victims to leave, and which one was evicted.

A gang and its victims may be of different namespaces: no name crosses their border.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from services.gang_planner.core.state.gang_history import Evicted
    from services.gang_planner.core.state.gangs import Gang
    from services.gang_planner.core.state.planner_state import State

_VERBS: Final = {"Preempted": "preempted", "Reclaimed": "reclaimed"}


def waiting_words(state: "State", gang: "Gang") -> str:
    """What a gang with an open preemption waits for."""
    one = state.preemptions.of(gang)
    if one is None:
        return "others were evicted for it"
    members = (state.members.get(victim.uid) for victim in one.act.victims)
    left = sum(1 for member in members if member is not None and member.slot >= 0)
    pods = "1 pod" if left == 1 else f"{left} pods"
    return f"waits for {pods} to leave, evicted for it: {one.act.why}"


def ended_words(gang: "Gang") -> str:
    """How the last eviction for a gang ended, if it came to nothing; "" else."""
    found = gang.history.preemption_ended
    return f"the last eviction for it came to nothing ({found})" if found else ""


def evicted_words(gang: "Gang", evicted: "Evicted") -> str:
    """How many of the gang's pods were evicted, and for which gang."""
    count = evicted.members
    pods = "1 of its pods was" if count == 1 else f"{count} of its pods were"
    verb = _VERBS[evicted.reason]
    if evicted.preemptor is None:
        return f"{pods} {verb} for others of the same gang that count more"
    same = evicted.preemptor.startswith(f"{gang.namespace}/")
    by = f"gang {evicted.preemptor}" if same else "a gang of another namespace"
    return f"{pods} {verb} for {by}; pods that its controller creates again wait for capacity"
