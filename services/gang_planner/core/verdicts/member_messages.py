"""Messages about what members of a gang declare: unsupported requests, gates, contradictions."""

from collections.abc import Iterable
from typing import Final

from services.gang_planner.core.lifecycle.assessment import unsupported_fields
from services.gang_planner.core.state.amounts import listed
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import GATED
from shared.contracts import annotations

#: Maximum number of fields named in one sentence.
_FIELDS_MAX: Final = 20
#: Maximum number of declarations named in one sentence, each with its remedy.
_DECLARATIONS_MAX: Final = 2
#: Maximum number of distinct values in a message.
_VALUES_MAX: Final = 5


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
    found: list[str] = []
    minima, queues = gang.declarations.minima(), gang.declarations.queues()
    if len(minima) > 1:
        found.append(
            f"its members disagree in {annotations.GROUP_MIN_MEMBER} "
            f"({_listed(minima)}): the largest value is in effect"
        )
    if len(queues) > 1:
        found.append(
            f"its members disagree in {annotations.QUEUE_NAME} ({_listed(queues)}): "
            f"{gang.declarations.declared.queue} is in effect, which most of them name"
        )
    return "; ".join(found)


def _listed(values: Iterable[int | str]) -> str:
    words = [str(one) for one in values]
    more = len(words) - _VALUES_MAX
    return listed([*words[:_VALUES_MAX], f"{more} more"] if more > 0 else words)
