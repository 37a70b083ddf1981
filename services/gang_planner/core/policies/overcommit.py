"""Delays the admission of groups that exceed the cluster's capacity times a factor, except for a
limited number of groups per queue.

A group is admitted if its minimum fits into the total of all nodes times the factor, minus the used
capacity and the capacity that admitted gangs are expected to use. Gangs whose pods fit on no node
are not counted.

A group that does not fit is admitted while fewer than `enqueueWithoutRoom` admitted gangs of its
queue, with at least its priority, wait. (`enqueueWithoutRoom` is an argument of the enqueue action
or an annotation of the queue.) Its pods then exist: gangs of lower priority cannot keep a preemptor
out, and an autoscaler sees the missing capacity.
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
    """Argument `overcommit-factor` (1.2); a factor below 1 is replaced by 1.2."""
    text = arguments.text(_FACTOR)
    factor = _DEFAULT
    if text is not None:
        try:
            factor = Fraction(text)
        except (ValueError, ZeroDivisionError):
            raise arguments.wrong(_FACTOR, f"must be a number, not {text!r}") from None
        if factor < 1:
            factor = _DEFAULT

    def vote(gang: Gang, view: AdmissionView) -> Vote:
        if _has_room(gang, view, factor):
            return Vote.PERMIT
        most = without_room(gang.queue, view.without_room)
        return Vote.PERMIT if view.waiting_before(gang) < most else Vote.REJECT

    return Policy(name="overcommit", enqueue=vote)


def _has_room(gang: Gang, view: AdmissionView, factor: Fraction) -> bool:
    for row, amount in view.node_minimum(gang).items():
        most = view.total(row) * factor.numerator // factor.denominator
        if amount > 0 and view.used(row) + view.coming(row) + amount > most:
            return False
    return True
