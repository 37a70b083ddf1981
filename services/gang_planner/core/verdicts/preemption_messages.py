"""Messages about preemptions, for preemptors and for evicted gangs.

A gang and its victims may be in different namespaces; a message has no names of another namespace.
"""

from typing import Final

from services.gang_planner.core.state.gang_history import Evicted
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.titles import title_of
from shared.model.gang_keys import title_of_place

_VERBS: Final = {"Preempted": "preempted", "Reclaimed": "reclaimed"}


def waiting_words(state: State, gang: Gang) -> str:
    """A message with the number of victims for which a preemptor waits."""
    one = state.preemptions.of(gang)
    if one is None:
        return "pods were evicted for it"
    members = (state.members.get(victim.uid) for victim in one.act.victims)
    left = sum(1 for member in members if member is not None and member.slot is not None)
    pods = "1 pod" if left == 1 else f"{left} pods"
    return f"waits for {pods} that Tutti evicts for it to leave: {one.act.why}"


def ended_words(gang: Gang) -> str:
    """A message with the end of the last failed eviction for a gang; "" if there is none."""
    found = gang.history.preemption_ended
    return f"the last eviction for it failed ({found})" if found is not None else ""


def evicted_words(state: State, gang: Gang, evicted: Evicted) -> str:
    """A message with the number of the gang's evicted pods and their preemptor."""
    count = evicted.members
    pods = "1 of its pods was" if count == 1 else f"{count} of its pods were"
    verb = _VERBS[evicted.reason]
    if evicted.preemptor is None:
        return f"{pods} {verb} for more important members of the same gang"
    same = evicted.preemptor.startswith(f"{gang.namespace}/")
    preemptor = state.gangs.by_id.get(evicted.preemptor_id)
    title = title_of_place(evicted.preemptor) if preemptor is None else title_of(state, preemptor)
    by = f"gang {title}" if same else "a gang of another namespace"
    return f"{pods} {verb} for {by}; pods that its controller creates again wait for capacity"
