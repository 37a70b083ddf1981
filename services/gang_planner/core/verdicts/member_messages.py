"""Messages about members: what they declare (unsupported requests, gates, contradictions), and
preemptions, for preemptors and for evicted gangs.

A gang and its victims may be in different namespaces; a message has no names of another namespace.
"""

from collections.abc import Iterable
from typing import Final

from services.gang_planner.core.lifecycle.assessment import unsupported_fields
from services.gang_planner.core.state.amounts import listed
from services.gang_planner.core.state.gang_history import Evicted
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import GATED
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.titles import title_of
from shared.contracts import annotations
from shared.model.gang_keys import title_of_place

#: Maximum number of fields named in one sentence.
_FIELDS_MAX: Final = 20
#: Maximum number of declarations named in one sentence, each with its remedy.
_DECLARATIONS_MAX: Final = 2
#: Maximum number of distinct values in a message.
_VALUES_MAX: Final = 5
_VERBS: Final = {"Preempted": "preempted", "Reclaimed": "reclaimed"}


def unsupported_words(gang: Gang) -> str:
    """The message for the gang's unsupported requests or constraints."""
    fields = unsupported_fields(gang)
    if fields.declarations:
        named = "; ".join(fields.declarations[:_DECLARATIONS_MAX])
        return f"Tutti does not bind the members one by one: {named}"
    if fields.devices:
        named = ", ".join(fields.devices[:_FIELDS_MAX])
        return f"members request parts of devices, which Tutti does not place by count: {named}"
    named = ", ".join(fields.constraints[:_FIELDS_MAX])
    return f"members have constraints that Tutti does not support: {named}"


def gated_words(gang: Gang) -> str:
    """The message for scheduling gates of its members, with the names of the gates."""
    gated = [member.pod for member in gang.members.values() if member.state == GATED]
    names = sorted({name for pod in gated for name in pod.gates})
    members = "1 member has" if len(gated) == 1 else f"{len(gated)} members have"
    return f"{members} scheduling gates: {_listed(names)}"


def disagreement_words(gang: Gang) -> str:
    """A message with the different values of its members and the value that counts; "" if they
    agree, or if the gang has a group object.
    """
    if gang.group is not None or not gang.declarations.disagree:
        return ""
    parts: list[str] = []
    minima, queues = gang.declarations.minima(), gang.declarations.queues()
    if len(minima) > 1:
        parts.append(
            f"its members disagree in {annotations.GROUP_MIN_MEMBER} "
            f"({_listed(minima)}): the largest value is in effect"
        )
    if len(queues) > 1:
        parts.append(
            f"its members disagree in {annotations.QUEUE_NAME} ({_listed(queues)}): "
            f"{gang.declarations.declared.queue} is in effect, which most of them name"
        )
    return "; ".join(parts)


def waiting_words(state: State, gang: Gang) -> str:
    """A message with the number of victims for which a preemptor waits."""
    preemption = state.preemptions.of(gang)
    if preemption is None:
        return "pods were evicted for it"
    members = (state.members.get(victim.uid) for victim in preemption.act.victims)
    left = sum(1 for member in members if member is not None and member.slot is not None)
    pods = "1 pod" if left == 1 else f"{left} pods"
    return f"waits for {pods} that Tutti evicts for it to leave: {preemption.act.why}"


def ended_words(gang: Gang) -> str:
    """A message with the end of the last failed eviction for a gang; "" if there is none."""
    ended = gang.history.preemption_ended
    return f"the last eviction for it failed ({ended})" if ended is not None else ""


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


def _listed(values: Iterable[int | str]) -> str:
    words = [str(value) for value in values]
    more = len(words) - _VALUES_MAX
    return listed([*words[:_VALUES_MAX], f"{more} more"] if more > 0 else words)
