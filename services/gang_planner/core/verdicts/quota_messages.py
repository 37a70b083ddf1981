"""Messages about admission, quotas and `minResources`: the gang ahead, the short amounts, the
queues that deserve the capacity, and the faults of queues.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from services.gang_planner.core.framework.admission import AdmissionView
from services.gang_planner.core.lifecycle.promises import PROMISED_MS
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.policies import resourcequota
from services.gang_planner.core.queueing.min_resources import Requirement, Unattainable
from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.needs import Explanation
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import QueueEntry, Shortage
from services.gang_planner.core.state.titles import title_of
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.reasons import QueueRefusal, seen_from
from shared.contracts.verdicts import Reason
from shared.model.bounded_text import joined

#: Groups without pods that are named; further ones are counted.
_NAMED_MAX: Final = 5


def first_in_line(gangs: GangTable, gang: Gang) -> Gang:
    """The group that has to be admitted before this one: itself, unless its queue is strict."""
    first = gangs.admission_queue.first(gang.queue) if gang.queue.strict else None
    return first or gang


def not_admitted(
    session: Session, view: AdmissionView, gang: Gang, first: Gang
) -> tuple[PendingReason, Explanation]:
    """Why a group is not admitted although the capabilities of its queues allow it. `first` is the
    result of `first_in_line`.
    """
    if first is not gang:
        return PendingReason.BEHIND_IN_QUEUE, behind(title_of(view.state, first), gang)
    if any(policy.name == "resourcequota" for policy in session.policies.policies):
        for quota, over in resourcequota.shortages(gang, view):
            if quota.too_large is not None:
                sentence = f"ResourceQuota {quota.namespace}/{quota.name}: {quota.too_large.text}"
                return PendingReason.NOT_ENOUGH_QUOTA, Explanation(sentence)
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


def with_unready(
    state: State, gang: Gang, explanation: Explanation, unready: Sequence[Gang]
) -> Explanation:
    """The explanation of a group that is not admitted, with the admitted groups that count before
    it although they cannot start. Those of other namespaces are counted in the sentence.
    """
    if not unready:
        return explanation
    own = (other for other in unready if other.namespace == gang.namespace)
    named = [title_of(state, other) for other in islice(own, _NAMED_MAX)]
    if hidden := len(unready) - len(named):
        named.append(f"{hidden} more")
    words = (
        f"admitted before it, and without the pods that they need: {listed(named)}, for at most "
        f"{PROMISED_MS // 1000} s each"
    )
    ahead = tuple(title_of(state, other) for other in unready[:_NAMED_MAX])
    return explanation._replace(sentence=f"{explanation.sentence}; {words}", ahead=ahead)


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


def shortage_in_words(
    queue: QueueEntry, shortage: Shortage, names: list[str], *, alone: bool
) -> str:
    """`queue a is at its capability: job needs 2 cpu more than it leaves`; `alone`: also when the
    queues are empty.
    """
    short = listed([in_words(name, by) for name, by in _named(shortage.over, names)])
    if shortage.reserved:
        return (
            f"queue {shortage.queue} may not use the guarantees of other queues: "
            f"job needs {short} more than they leave{', even when empty' if alone else ''}"
        )
    whose = seen_from(queue.name, shortage.queue)
    if alone:
        return f"{whose} can never hold it: job needs {short} more than its capability"
    return f"{whose} is at its capability: job needs {short} more than it leaves"


def shortage_reasons(shortage: Shortage, names: list[str]) -> tuple[Reason, ...]:
    """The shortage as reasons, one per resource, sorted by name."""
    reason = "GuaranteedToOthers" if shortage.reserved else "CapabilityExceeded"
    over = _named(shortage.over, names)
    return tuple(Reason(reason=reason, resource=name, short=by) for name, by in over)


def claims_in_words(state: State, bucket: Bucket) -> tuple[str, tuple[Reason, ...]]:
    """A message with the queues that wait for the capacity that a bucket leaves to them, because
    its own queue, or one above it, has its fair share; and the same as reasons.
    """
    names = state.resources.names
    queue = state.queues.entry(bucket.need.queue)
    # Queues claim against their siblings: the nearest queue that has claimants beside it.
    parents = {state.queues.entry(name).parent for name, _, _ in bucket.claimants}
    holder = next((entry for entry in queue.chain if entry.parent in parents), queue)
    beside = [
        (name, row)
        for name, row, _ in bucket.claimants
        if state.queues.entry(name).parent is holder.parent
    ]
    rows = sorted({names[row]: row for _, row in beside}.items())
    claimants = sorted({name for name, _ in beside})
    used, share = holder.used, holder.fair_share
    has = [
        f"{in_words(name, used.get(row, 0))} of {in_words(name, share.get(row, 0))}"
        for name, row in rows
    ]
    # Less is usable than all queues deserve together.
    short = any(share.get(row, 0) < holder.deserved.get(row, 0) for _, row in rows)
    part = "its share of what gangs can use" if short else "its deserved amount"
    waiting = f"queues {listed(claimants)} wait"
    if len(claimants) == 1:
        waiting = f"queue {claimants[0]} waits"
    sentence = (
        f"{seen_from(queue.name, holder.name)} holds {part} ({listed(has)}), and {waiting} for the "
        "rest of the free capacity"
    )
    return sentence, tuple(
        Reason(
            reason="DeservedExceeded",
            resource=name,
            short=max(used.get(row, 0) - share.get(row, 0), 0),
        )
        for name, row in rows
    )


def unattainable_in_words(unattainable: Unattainable) -> str:
    """A message why a gang's `minResources` cannot be met. Nodes may be added or come back."""
    needed, most = (
        in_words(unattainable.resource, unattainable.needed),
        in_words(unattainable.resource, unattainable.most),
    )
    if unattainable.queue is not None:
        limit = f"queue {unattainable.queue} may hold at most {most}"
        return f"its minResources can never be met: {needed} needed, and {limit}"
    limit = f"the nodes that its pods may use have {most} in all"
    return f"its minResources need more or other nodes: {needed} needed, and {limit}"


def requirements_in_words(requirements: Sequence[Requirement]) -> str:
    """A message with the amounts that nodes lack for a gang's `minResources`."""
    short = [
        f"{in_words(name, needed)} needed, {in_words(name, free).removesuffix(f' {name}')} free"
        for name, needed, free in requirements
        if needed > free
    ]
    if short:
        return f"not enough free capacity for its minResources: {joined(short, '; ')}"
    needed = listed(
        [in_words(requirement.resource, requirement.needed) for requirement in requirements]
    )
    return (
        f"not enough free capacity for its minResources: {needed} needed; as much "
        "is free, but not in parts that are large enough"
    )


def queue_refusal(queue: QueueEntry) -> QueueRefusal | None:
    """Why the queue takes no new gang; None: it does."""
    if queue.queue is None:
        return QueueRefusal(PendingReason.QUEUE_MISSING, (queue.name,))
    if queue.fault is not None:
        return queue.fault
    closed = queue.closed
    if closed is None or closed.queue is None:
        return None
    return QueueRefusal(PendingReason.QUEUE_NOT_OPEN, (queue.name, closed.name), closed.queue.state)


def _named(over: dict[int, int], names: list[str]) -> list[tuple[str, int]]:
    return sorted((names[row], by) for row, by in over.items())
