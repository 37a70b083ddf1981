"""What people are told of preemptions: who waits for victims to leave, and who was evicted.

A gang and its victims may be of different namespaces: neither is told the other's name then.
"""

from itertools import islice
from typing import TYPE_CHECKING, Final

from shared.contracts.verdicts import PodRef

if TYPE_CHECKING:
    from services.gang_planner.core.preempting.table import Preemption
    from services.gang_planner.core.tables.gangs import Gang
    from services.gang_planner.state import State

#: Pods of one gang that are told of one by one.
_PODS_MAX: Final = 100
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
    taken = _refs(state, one)
    for gang, count in one.hit.values():
        pods = tuple(islice((victim for id_, victim in taken if id_ == gang.gang_id), _PODS_MAX))
        gang.evicted = _victim_words(one, gang, count), gang.history.attempt, pods
        state.gangs.touch(gang)


def _refs(state: "State", one: "Preemption") -> list[tuple[str, PodRef]]:
    """The victims that are still known, each with its gang's id."""
    members = (state.members.get(victim.uid) for victim in one.act.victims)
    return [
        (
            member.gang.gang_id,
            PodRef(uid=member.pod.uid, name=member.pod.name, node=member.pod.node),
        )
        for member in members
        if member is not None and member.gang is not None
    ]


def _victim_words(one: "Preemption", gang: "Gang", count: int) -> str:
    pods = "1 of its pods was" if count == 1 else f"{count} of its pods were"
    verb = _VERBS[one.act.reason]
    if gang is one.gang:
        return f"{pods} {verb} for others of the same gang that count more"
    same = one.act.gang.startswith(f"{gang.namespace}/")
    by = f"gang {one.act.gang}" if same else "a gang of another namespace"
    return f"{pods} {verb} for {by}; what its controller makes again waits for room"
