"""Reasons for which gangs wait that more than one process finds, and the sentence for each.

The planner (verdicts, the ledger, answers about gangs that do not exist yet), `tutti why`, `tutti
explain-dialect` and the webhook judge by different facts. Of one situation each makes the same
reason, and only `in_words` makes a sentence of it. The sentences of reasons that only the planner
can find are in its `core/verdicts`.
"""

from typing import ClassVar, Literal, TypeAlias, assert_never

import msgspec

from shared.contracts.pending_reasons import PendingReason
from shared.model.bounded_text import joined
from shared.model.gang_keys import has_objects
from shared.model.objects import GROUP_NAME_SCOPE


class GroupMissing(msgspec.Struct, frozen=True):
    """Pods name a group that has no object, or a gang that no pod declares."""

    reason: ClassVar = PendingReason.GROUP_MISSING
    scope: str
    namespace: str
    name: str


class QueueRefusal(msgspec.Struct, frozen=True):
    """A queue that takes no gang."""

    reason: Literal[
        PendingReason.QUEUE_MISSING,
        PendingReason.QUEUE_NOT_OPEN,
        PendingReason.QUEUE_PARENT_MISSING,
        PendingReason.QUEUE_CYCLE,
        PendingReason.QUEUE_NOT_LEAF,
    ]
    #: The gang's queue first. QUEUE_NOT_OPEN: the one that is not, if it is another one.
    #: QUEUE_PARENT_MISSING: a queue and its missing parent. QUEUE_CYCLE: the queues of the cycle.
    #: QUEUE_NOT_LEAF: the queue that has children.
    queues: tuple[str, ...]
    #: QUEUE_NOT_OPEN: the state.
    state: str = ""


class OtherScheduler(msgspec.Struct, frozen=True):
    """Pods of a gang name a scheduler that does not read their gang."""

    scheduler: str
    pods: int


class NotRunning(msgspec.Struct, frozen=True, kw_only=True):
    """A member that has a node and does not run there. `why` is the kubelet's reason, if any."""

    reason: ClassVar = PendingReason.NOT_STARTING
    pod: str
    node: str = ""
    why: str


Reason: TypeAlias = GroupMissing | QueueRefusal | OtherScheduler | NotRunning


def in_words(reason: Reason) -> str:
    """The sentence."""
    match reason:
        case GroupMissing(scope=scope, namespace=namespace, name=name):
            if not has_objects(scope):
                return f"no pod declares the gang {namespace}/{name} of {scope}"
            kind = "PodGroup" if scope == GROUP_NAME_SCOPE else scope
            return f"{kind} {namespace}/{name} does not exist"
        case QueueRefusal():
            return _queue_in_words(reason)
        case OtherScheduler(scheduler=scheduler, pods=pods):
            names = "names" if pods == 1 else "name"
            return f"{pods} of its pods {names} the scheduler {scheduler}"
        case NotRunning(pod=pod, node=node, why=why):
            where = f" on {node}" if node else ""
            return f"{pod} does not run{where}: {why or 'the kubelet reports no reason'}"
        case _:
            assert_never(reason)


def seen_from(queue: str, name: str) -> str:
    """`queue a`, or of one above the queue of a gang `queue a, above queue b,`."""
    return f"queue {name}" if name == queue else f"queue {name}, above queue {queue},"


def _queue_in_words(refusal: QueueRefusal) -> str:
    first, last = refusal.queues[0], refusal.queues[-1]
    match refusal.reason:
        case PendingReason.QUEUE_MISSING:
            return f"queue {first} does not exist"
        case PendingReason.QUEUE_NOT_OPEN:
            return f"{seen_from(first, last)} is {refusal.state}"
        case PendingReason.QUEUE_PARENT_MISSING:
            return f"queue {first} has the parent {last}, which does not exist"
        case PendingReason.QUEUE_CYCLE:
            return f"the parents of queue {first} form a cycle: {joined(refusal.queues, ' > ')}"
        case PendingReason.QUEUE_NOT_LEAF:
            return f"queue {first} has child queues: submit gangs to those"
        case _:
            assert_never(refusal.reason)
