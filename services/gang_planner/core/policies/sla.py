"""Groups that have waited too long: the one whose deadline comes first goes first, and at its
deadline it is admitted without asking lower tiers.

The waiting time is counted from the group's creation. It is the group's own (annotation
`sla-waiting-time`), else the one that the configuration gives for all.
"""

from typing import Final

from services.gang_planner.core.framework.admission import AdmissionView, Vote
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.gangs import Gang
from shared.kinds.durations import duration_ms

_WAITING_TIME: Final = "sla-waiting-time"
#: Behind every deadline.
_NEVER: Final = 2**62


def build(arguments: Arguments) -> Policy:
    """Argument `sla-waiting-time`: a duration as Go writes it, `1h30m`; absent: groups without
    their own have none.
    """
    text = arguments.text(_WAITING_TIME)
    waiting_ms = 0
    if text:
        found = duration_ms(text)
        if found is None or found <= 0:
            raise arguments.wrong(_WAITING_TIME, f"must be a duration as 1h30m, not {text!r}")
        waiting_ms = found
    sla = _Sla(waiting_ms)
    return Policy(name="sla", group_key=sla.key, enqueue=sla.vote, due_ms=sla.due_ms)


class _Sla:
    def __init__(self, waiting_ms: int) -> None:
        self._waiting_ms = waiting_ms

    def due_ms(self, gang: Gang) -> int:
        """When the group has waited long enough; 0: it has no deadline."""
        own_ms = gang.group.sla_waiting_ms if gang.group is not None else 0
        waiting_ms = own_ms or self._waiting_ms
        return gang.created_ms + waiting_ms if waiting_ms else 0

    def key(self, gang: Gang) -> tuple[int, ...]:
        return (self.due_ms(gang) or _NEVER,)

    def vote(self, gang: Gang, view: AdmissionView) -> Vote:
        due_ms = self.due_ms(gang)
        return Vote.PERMIT if 0 < due_ms <= view.now_ms else Vote.ABSTAIN
