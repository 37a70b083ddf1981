"""One log line per record that the planner appends: the gang, the decision and its reason, the
records that it follows from, and its trace.

    info     decisions, starts, holds, and ends of holds, repairs and releases
    warning  pods are evicted or deleted, or a gang is bound in part

Lines beyond the rate of `shared.runtime.logs` are dropped and counted; DECISIONS has every record.
"""

import logging
from collections import OrderedDict
from typing import Final, NamedTuple, assert_never

from shared.contracts.decisions import (
    Act,
    Cycle,
    EvictionDecision,
    GangDecision,
    GangStarted,
    Note,
    NoteClosed,
    NoteOpened,
    UseCharged,
)
from shared.contracts.identity import gang_trace_id

log = logging.getLogger("services.gang_planner")

#: Gangs whose name and trace are kept for their notes, which have neither.
GANGS_MAX: Final = 16_384
#: The attempt of a gang that is gone.
_NO_ATTEMPT: Final = 0
_WARNINGS: Final = frozenset({"release", "repair", "degraded"})


class _Known(NamedTuple):
    """A gang's name, attempt and trace in its newest decision."""

    gang: str
    attempt: int
    trace_id: str


class DecisionLog:
    """Writes the lines; keeps the names of recent gangs."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def appended(self, seq: int, record: Act | Note, name: str = "") -> None:
        """Log a record that is in DECISIONS under this sequence; `name` is its gang's
        "namespace/name", "" if the planner does not know it.
        """
        known = self._known.get(record.gang_id)
        # A gang that the planner has forgotten is named as in its last decision.
        name = name or (known.gang if known is not None else f"gang with id {record.gang_id}")
        level, words = logging.INFO, {"why": "", "node": ""}
        values: tuple[object, ...]
        match record:
            case GangDecision():
                known, name = self._remember(record), record.gang
                message = "decided %s: %d bindings, attempt %d"
                values = name, len(record.bindings), record.attempt
                words["why"] = record.why
            case EvictionDecision():
                known, name = self._remember(record), record.gang
                level = logging.WARNING
                verb = "evicting" if record.via == "eviction" else "removing"
                message = f"{verb} %d pods for %s: %s"
                values = len(record.victims), name, record.reason
                words["why"] = record.why
            case GangStarted():
                message = "started %s, attempt %d"
                values = name, record.attempt
            case NoteOpened():
                level = logging.WARNING if record.kind in _WARNINGS else logging.INFO
                message = f"{record.kind} of %s begins: %s"
                values = name, record.reason
                words = {"why": record.message, "node": record.node}
            case NoteClosed():
                message = f"{record.kind} of %s ended: %s"
                values = name, record.reason
                words["why"] = record.message
            case UseCharged():
                # It concerns no single gang, and there is one whenever a share changes.
                return
            case _:
                assert_never(record)
        attempt = getattr(record, "attempt", 0) or (known.attempt if known is not None else 0) or 1
        facts: dict[str, object] = {
            "gang": name,
            "gang_id": record.gang_id,
            "attempt": attempt,
            "decision": seq,
            "trace_id": self._trace_id(record, known, attempt),
            **_cause(record.cycle),
            **{key: value for key, value in words.items() if value},
        }
        log.log(level, message, *values, extra=facts)

    def _trace_id(self, record: Act | Note, known: _Known | None, attempt: int) -> str:
        if isinstance(record, GangDecision | EvictionDecision):
            return record.trace_id
        if known is not None and known.attempt == attempt:
            return known.trace_id
        # Decided before this planner took over: wrong only if the gang continues a Job's trace.
        return gang_trace_id(record.gang_id, max(attempt, 1))

    def forget(self, gang_id: str) -> None:
        """Forget the trace of a gang that is gone; later notes have its name."""
        known = self._known.get(gang_id)
        if known is not None:
            self._known[gang_id] = _Known(known.gang, _NO_ATTEMPT, "")

    def _remember(self, decision: Act) -> _Known:
        known = _Known(decision.gang, decision.attempt, decision.trace_id)
        self._known[decision.gang_id] = known
        self._known.move_to_end(decision.gang_id)
        if len(self._known) > GANGS_MAX:
            self._known.popitem(last=False)
        return known


def _cause(cycle: Cycle | None) -> dict[str, object]:
    """The newest applied record of each log at the decision."""
    if cycle is None:
        return {}
    return {"cluster_seq": cycle.cluster_seq, "outcomes_seq": cycle.outcomes_seq}
