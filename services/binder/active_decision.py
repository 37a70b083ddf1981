"""One decision on its way through this binder."""

import datetime as dt
from typing import Any, Final, TypeAlias

from services.binder.core.commands import Limits
from services.binder.core.eviction import Eviction
from services.binder.core.machine import Machine
from services.binder.core.outcome import Sender
from services.binder.core.removal import Removal
from services.binder.delivery_lease import DeliveryLease
from shared.contracts import annotations
from shared.contracts.decisions import Act, Binding, EvictionDecision, GangDecision, Victim

Marks: TypeAlias = dict[str, Any]
"""What a decision leaves on every pod it touches: the annotations that a Binding merges into it, or
the condition of one that is removed."""

#: Of a condition's message; the API server's own words may be pages.
_MESSAGE_CHARS_MAX: Final = 1_024


class ActiveDecision:
    """A decision being carried out: the delivery, its machine, and what every request needs."""

    __slots__ = ("lease", "machine", "marks")

    def __init__(self, lease: DeliveryLease, machine: Machine | Removal, marks: Marks) -> None:
        """Carry out `machine`'s decision for as long as `lease` is ours."""
        self.lease = lease
        self.machine = machine
        self.marks = marks

    def binding(self, index: int) -> Binding:
        """The binding that a request is about."""
        target = self.machine.targets[index]
        assert isinstance(target, Binding), "only a binding is posted"
        return target

    def victim(self, index: int) -> Victim:
        """The victim that a request is about."""
        target = self.machine.targets[index]
        assert isinstance(target, Victim), "only a victim is removed"
        return target


def carry(
    decision: Act, lease: DeliveryLease, sender: Sender, limits: Limits, generation: str
) -> ActiveDecision:
    """Make the machine that carries out `decision`, of one generation (`generation`) of the
    stream.
    """
    if isinstance(decision, GangDecision):
        marks = marks_of(decision, generation, sender.decision_seq)
        return ActiveDecision(lease, Machine(decision, sender, limits), marks)
    machine = Eviction if decision.via == "eviction" else Removal
    return ActiveDecision(lease, machine(decision, sender, limits), condition_of(decision))


def marks_of(decision: GangDecision, generation: str, decision_seq: int) -> Marks:
    """Make the annotations that every Binding of `decision` merges into its pod."""
    return {
        annotations.DECISION: f"{generation}/{decision_seq}",
        annotations.TRACE_ID: decision.trace_id,
    }


def condition_of(decision: EvictionDecision) -> Marks:
    """Make the condition of the pods that `decision` removes.

    Its instant is the decision's, so that writing it again changes nothing.
    """
    decided = dt.datetime.fromtimestamp(decision.cycle.now_ms // 1000, dt.UTC)
    reason, message = "GangReleased", f"Tutti releases gang {decision.gang}, {decision.reason}"
    if decision.via == "eviction":
        # What kube-scheduler says: controllers and people look for it.
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
