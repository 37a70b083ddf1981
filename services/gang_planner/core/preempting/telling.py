"""What people are told of preemptions: who waits for victims to leave, and who was evicted.

A gang and its victims may be of different namespaces: neither is told the other's name then.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from services.gang_planner.core.gangs import Gang
    from services.gang_planner.core.preempting.table import Preemption
    from services.gang_planner.state import State

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


def hit_by(state: "State", one: "Preemption") -> "dict[str, tuple[Gang, int]]":
    """The gangs of the victims, by id, and how many pods of each."""
    found: dict[str, tuple[Gang, int]] = {}
    for victim in one.act.victims:
        member = state.members.get(victim.uid)
        if member is not None and member.gang is not None:
            gang = member.gang
            found[gang.gang_id] = gang, found.get(gang.gang_id, (gang, 0))[1] + 1
    return found


def tell_victims(state: "State", one: "Preemption") -> None:
    """Have the gangs of the victims say what happened to them, now that it has."""
    for gang, count in one.hit.values():
        gang.evicted = _victim_words(one, gang, count), gang.history.attempt
        state.gangs.touch(gang)


def _victim_words(one: "Preemption", gang: "Gang", count: int) -> str:
    same = one.act.gang.startswith(f"{gang.namespace}/")
    by = f"gang {one.act.gang}" if same else "a gang of another namespace"
    pods = "1 of its pods was" if count == 1 else f"{count} of its pods were"
    verb = _VERBS[one.act.reason]
    return f"{pods} {verb} for {by}; what its controller makes again waits for room"
