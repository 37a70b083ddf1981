"""One decision that this binder carries out: its delivery lease, its protocol's state machine, and
what its requests write into pods.

JetStream delivers the message to another binder when it receives no acknowledgement or sign of life
for the consumer's ack wait. This binder's own clock shows, after a pause of any kind, that this may
have happened: from then on no request may be sent for it (ADR 0002).
"""

import datetime as dt
from typing import Any, Final, TypeAlias

import msgspec

from services.binder.core.commands import Limits
from services.binder.core.eviction import Eviction
from services.binder.core.machine import Machine
from services.binder.core.outcome import Sender
from services.binder.core.removal import Removal
from shared.bus.pull import Delivery
from shared.bus.setup import BINDER_ACK_WAIT_S
from shared.contracts import annotations
from shared.contracts.decisions import Act, Binding, EvictionDecision, GangDecision, Victim
from shared.contracts.pending_reasons import PendingReason
from shared.model.invariants import InvariantViolation

Marks: TypeAlias = dict[str, Any]
"""What a decision writes into each of its pods: the annotations that a Binding merges into it, or
the condition of a pod that is removed."""

#: Signs of life are sent this often.
PROGRESS_EVERY_S: Final = 0.5
#: Subtracted from the ack wait: a sign of life takes time to arrive.
_MARGIN_S: Final = 0.3

#: Longest message of a condition; the API server's own may be pages.
_MESSAGE_CHARS_MAX: Final = 1_024


class DeliveryLease:
    """A delivery that is not acknowledged, and whether this binder still holds it."""

    __slots__ = ("_renewed_s", "abandoned", "connection", "delivery")

    def __init__(self, delivery: Delivery, at_s: float, *, connection: int = 0) -> None:
        """Hold what was pulled at `at_s` of the monotonic clock, over the n-th `connection`."""
        self.delivery = delivery
        self.connection = connection
        self.abandoned = False
        self._renewed_s = at_s

    def is_held(self, at_s: float) -> bool:
        """Whether no other binder can have this message at `at_s` of the monotonic clock.

        Once another binder can, it stays False: a request of this decision may have been left out
        since.
        """
        if at_s - self._renewed_s >= BINDER_ACK_WAIT_S - _MARGIN_S:
            self.abandoned = True
        return not self.abandoned

    def renew(self, at_s: float) -> None:
        """Record that a sign of life was sent at `at_s` over a living connection."""
        self._renewed_s = at_s


class ActiveDecision(msgspec.Struct, frozen=True, eq=False):
    """A decision being carried out while `lease` is held: the delivery, its machine, and what every
    request needs.
    """

    lease: DeliveryLease
    machine: Machine | Removal
    marks: Marks

    def binding(self, index: int) -> Binding:
        """The binding that a request is about."""
        target = self.machine.targets[index]
        if not isinstance(target, Binding):
            raise InvariantViolation(f"target {index}", "is posted, and is no binding")
        return target

    def victim(self, index: int) -> Victim:
        """The victim that a request is about."""
        target = self.machine.targets[index]
        if not isinstance(target, Victim):
            raise InvariantViolation(f"target {index}", "is removed, and is no victim")
        return target


def activate(
    decision: Act, lease: DeliveryLease, sender: Sender, limits: Limits, generation: str
) -> ActiveDecision:
    """Choose the protocol of `decision`, which is of this generation of the stream."""
    if isinstance(decision, GangDecision):
        marks = pod_annotations(decision, sender.decision_seq, generation)
        return ActiveDecision(lease, Machine(decision, sender, limits), marks)
    machine = Eviction if decision.via == "eviction" else Removal
    return ActiveDecision(lease, machine(decision, sender, limits), _condition_of(decision))


def pod_annotations(decision: GangDecision, seq: int, generation: str) -> Marks:
    """The annotations that its pods get with their binding; `seq` is its sequence."""
    marks = {
        annotations.DECISION: f"{generation}/{seq}",
        annotations.TRACE_ID: decision.trace_id,
    }
    if decision.undisturbed:
        marks |= {annotations.DO_NOT_DISRUPT: "true", annotations.SAFE_TO_EVICT: "false"}
    if decision.provisioning_request:
        request, class_name = decision.provisioning_request, decision.provisioning_class
        marks |= dict.fromkeys(annotations.CONSUMES_REQUEST, request)
        marks |= dict.fromkeys(annotations.REQUEST_CLASS, class_name)
    return marks


def _condition_of(decision: EvictionDecision) -> Marks:
    """Make the condition of the pods that `decision` removes.

    Its instant is the decision's, so that writing it again changes nothing.
    """
    decided = dt.datetime.fromtimestamp(decision.cycle.now_ms // 1000, dt.UTC)
    reason, message = "GangReleased", f"Tutti releases gang {decision.gang}, {decision.reason}"
    if decision.reason == PendingReason.RUN_LIMIT:
        # Unlike other releases it is an event of the workload, which policies of Jobs follow.
        reason, message = decision.reason, f"Tutti evicts gang {decision.gang}"
    if decision.via == "eviction":
        # The reason that kube-scheduler gives: controllers and users search for it.
        reason = "PreemptionByScheduler"
        # Not the gang's name: it may be of another namespace.
        message = f"Tutti: {decision.reason.lower()} to accommodate another gang"
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": f"{message}: {decision.why}"[:_MESSAGE_CHARS_MAX] if decision.why else message,
        "lastTransitionTime": decided.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
