"""One decision on its way through this binder."""

from services.binder.core.machine import Machine
from services.binder.holding import Holding
from shared.contracts import annotations
from shared.contracts.decisions import Binding, GangDecision


class Carrying:
    """A decision being carried out: the delivery, its machine, and what every request needs."""

    __slots__ = ("bindings", "holding", "machine", "marks")

    def __init__(self, holding: Holding, machine: Machine, marks: dict[str, str]) -> None:
        """Carry out `machine`'s decision for as long as `holding` is ours."""
        self.holding = holding
        self.machine = machine
        self.bindings: tuple[Binding, ...] = machine.decision.bindings
        self.marks = marks


def marks_of(decision: GangDecision, incarnation: str, decision_seq: int) -> dict[str, str]:
    """Make the annotations that every Binding of `decision` merges into its pod."""
    return {
        annotations.DECISION: f"{incarnation}/{decision_seq}",
        annotations.TRACE_ID: decision.trace_id,
    }
