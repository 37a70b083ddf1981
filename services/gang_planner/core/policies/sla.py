"""Limits the waiting time of groups: orders gangs by deadline, and admits a group at its deadline
without votes of lower tiers.

The deadline is the group's creation plus its waiting time: the group's annotation
`sla-waiting-time`, or else the configuration's argument.
"""

from typing import Final

from services.gang_planner.core.framework.admission import AdmissionView, Vote
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from shared.kinds.durations import duration_ms

_WAITING_TIME: Final = "sla-waiting-time"
#: Later than every deadline.
_NEVER: Final = 2**62


def build(arguments: Arguments) -> Policy:
    """Argument `sla-waiting-time`: a duration in Go's format, such as `1h30m`. If it is absent,
    groups without the annotation have no deadline.
    """
    text = arguments.text(_WAITING_TIME)
    waiting_ms = 0
    if text:
        given_ms = duration_ms(text)
        if given_ms is None or given_ms <= 0:
            raise arguments.wrong(_WAITING_TIME, f"must be a duration as 1h30m, not {text!r}")
        waiting_ms = given_ms
    sla = _Sla(waiting_ms)
    return Policy(name="sla", group_key=sla.key, enqueue=sla.vote, due_ms=sla.due_ms)


class _Sla:
    def __init__(self, waiting_ms: int) -> None:
        self._waiting_ms = waiting_ms

    def due_ms(self, gang: Gang) -> int:
        """Deadline of the group in Unix milliseconds; 0: none."""
        own_ms = gang.group.sla_waiting_ms if gang.group is not None else 0
        waiting_ms = own_ms or self._waiting_ms
        return gang.created_ms + waiting_ms if waiting_ms else 0

    def key(self, gang: Gang, _: State) -> tuple[int, ...]:
        return (self.due_ms(gang) or _NEVER,)

    def vote(self, gang: Gang, view: AdmissionView) -> Vote:
        due_ms = self.due_ms(gang)
        return Vote.PERMIT if 0 < due_ms <= view.now_ms else Vote.ABSTAIN
