"""Groups that do not fit wait for admission, except for a few of each queue.

A group is let in when its minimum fits into what nodes have in all, times a factor, less what is
taken and what admitted gangs will take. Gangs that have pods and found no room do not count: they
take none. A group for which there is no room is let in all the same while fewer than
`enqueueWithoutRoom` (an argument of the enqueue action, or an annotation of the queue) gangs of its
queue and of its priority or above wait inside, so that its pods exist: a preemptor is never kept
out by gangs of lower priority, and an autoscaler sees what is missing.
"""

from fractions import Fraction
from typing import Final

from services.gang_planner.core.framework.admission import AdmissionView, Vote
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.gang_settings import without_room
from services.gang_planner.core.state.gangs import Gang

_FACTOR: Final = "overcommit-factor"
_DEFAULT: Final = Fraction(6, 5)


def build(arguments: Arguments) -> Policy:
    """Argument `overcommit-factor` (1.2); one below 1 counts as 1.2."""
    text = arguments.text(_FACTOR)
    factor = _DEFAULT
    if text is not None:
        try:
            factor = Fraction(text)
        except (ValueError, ZeroDivisionError):
            raise arguments.wrong(_FACTOR, f"must be a number, not {text!r}") from None
        if factor < 1:
            factor = _DEFAULT
    return Policy(name="overcommit", enqueue=_Overcommit(factor).vote)


class _Overcommit:
    def __init__(self, factor: Fraction) -> None:
        self._factor = factor

    def vote(self, gang: Gang, view: AdmissionView) -> Vote:
        if self._has_room(gang, view):
            return Vote.PERMIT
        most = without_room(gang.queue, view.without_room)
        return Vote.PERMIT if view.waiting_before(gang) < most else Vote.REJECT

    def _has_room(self, gang: Gang, view: AdmissionView) -> bool:
        for row, amount in view.node_minimum(gang).items():
            most = view.total(row) * self._factor.numerator // self._factor.denominator
            if amount > 0 and view.used(row) + view.coming(row) + amount > most:
                return False
        return True
