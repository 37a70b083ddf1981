"""Messages for groups that are not admitted: a gang ahead, a short quota, too little capacity."""

from services.gang_planner.core.framework.admission import AdmissionView
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.policies import resourcequota
from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import Explanation
from services.gang_planner.core.state.planner_state import State
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Reason


def first_in_line(state: State, gang: Gang) -> Gang:
    """The group that has to be admitted before this one: itself, unless its queue is strict."""
    first = state.gangs.admission_queue.first(gang.queue) if gang.queue.strict else None
    return first or gang


def not_admitted(
    state: State, session: Session, gang: Gang, first: Gang
) -> tuple[PendingReason, Explanation]:
    """Why a group is not admitted although the capabilities of its queues allow it. `first` is the
    result of `first_in_line`.
    """
    if first is not gang:
        return PendingReason.BEHIND_IN_QUEUE, behind(first.title, gang)
    policies = session.policies
    view = AdmissionView(state, session.totals, 0, policies.without_room)
    if any(one.name == "resourcequota" for one in policies.policies):
        for quota, over in resourcequota.shortages(gang, view):
            short = [
                in_words(name.removeprefix("requests.").removeprefix("limits."), by)
                for name, by in sorted(over.items())
            ]
            return PendingReason.NOT_ENOUGH_QUOTA, Explanation(
                f"ResourceQuota {quota.namespace}/{quota.name} is short: job needs "
                f"{listed(short)} more than it leaves",
                quota=tuple(
                    Reason(reason="ResourceQuotaExceeded", resource=name, short=by)
                    for name, by in sorted(over.items())
                ),
            )
    waiting = view.waiting_before(gang)
    if waiting:
        gangs = "1 gang waits" if waiting == 1 else f"{waiting} gangs wait"
        return PendingReason.NOT_ADMITTED, Explanation(
            f"free capacity does not suffice for it, and {gangs} for capacity in queue "
            f"{gang.queue.name} already"
        )
    return PendingReason.NOT_ADMITTED, Explanation("waits to be admitted to its queue")


def behind(first: str, gang: Gang) -> Explanation:
    """A message about the gang ahead of `gang` in its strict queue. `first` is that gang's title;
    the sentence omits it if its namespace is another one.
    """
    same = first.startswith(f"{gang.namespace}/")
    ahead = first if same else "a gang of another namespace"
    return Explanation(
        f"{ahead} is ahead in queue {gang.queue.name}, which is strictly first-in, first-out",
        ahead=(first,),
    )
