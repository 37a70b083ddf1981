"""One line of log per record that the planner appends: the gang, what was decided and why, the
records that it follows from, and its trace.

    info     what was done: decided, started, holds, what ended
    warning  pods are evicted or deleted, or a gang is bound in part

Beyond `shared.runtime.logs`' rate lines are dropped, and counted; all of it is in DECISIONS.
"""

import logging
from collections import OrderedDict
from typing import Final, NamedTuple

from shared.contracts.decisions import (
    Act,
    Cycle,
    EvictionDecision,
    GangDecision,
    GangStarted,
    Note,
    NoteClosed,
    NoteOpened,
)
from shared.contracts.identity import gang_trace_id

log = logging.getLogger("services.gang_planner")

#: Gangs whose name and trace are remembered for their notes, which have neither.
GANGS_MAX: Final = 16_384
_WARNINGS: Final = frozenset({"release", "repair", "degraded"})


class _Known(NamedTuple):
    """A gang as its newest decision has it."""

    gang: str
    attempt: int
    trace_id: str


class DecisionLog:
    """Writes the lines."""

    def __init__(self) -> None:
        """No gang is known."""
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def appended(self, seq: int, record: Act | Note) -> None:
        """A record is in DECISIONS under this sequence."""
        match record:
            case GangDecision():
                self._remember(record)
                self._tell(
                    seq,
                    record,
                    logging.INFO,
                    "decided %s: %d bindings, attempt %d",
                    record.gang,
                    len(record.bindings),
                    record.attempt,
                    why=record.why,
                )
            case EvictionDecision():
                self._remember(record)
                verb = "evicting" if record.via == "eviction" else "removing"
                self._tell(
                    seq,
                    record,
                    logging.WARNING,
                    f"{verb} %d pods for %s: %s",
                    len(record.victims),
                    record.gang,
                    record.reason,
                    why=record.why,
                )
            case GangStarted():
                self._tell(
                    seq,
                    record,
                    logging.INFO,
                    "started %s, attempt %d",
                    self._name(record.gang_id),
                    record.attempt,
                )
            case NoteOpened():
                level = logging.WARNING if record.kind in _WARNINGS else logging.INFO
                self._tell(
                    seq,
                    record,
                    level,
                    f"{record.kind} of %s begins: %s",
                    self._name(record.gang_id),
                    record.reason,
                    why=record.message,
                    node=record.node,
                )
            case NoteClosed():
                self._tell(
                    seq,
                    record,
                    logging.INFO,
                    f"{record.kind} of %s ended: %s",
                    self._name(record.gang_id),
                    record.reason,
                    why=record.message,
                )

    def _tell(
        self,
        seq: int,
        record: Act | Note,
        level: int,
        message: str,
        *words: object,
        **fields: str,
    ) -> None:
        known = self._known.get(record.gang_id)
        attempt = getattr(record, "attempt", 0) or (known.attempt if known is not None else 1)
        facts: dict[str, object] = {
            "gang": self._name(record.gang_id),
            "gang_id": record.gang_id,
            "attempt": attempt,
            "decision": seq,
            "trace_id": self._trace_id(record, known, attempt),
            **_cause(record.cycle),
            **{key: value for key, value in fields.items() if value},
        }
        log.log(level, message, *words, extra=facts)

    def _trace_id(self, record: Act | Note, known: _Known | None, attempt: int) -> str:
        if isinstance(record, GangDecision | EvictionDecision):
            return record.trace_id
        if known is not None and known.attempt == attempt:
            return known.trace_id
        # Decided before this planner took over: right unless the gang continues a Job's trace.
        return gang_trace_id(record.gang_id, max(attempt, 1))

    def forget(self, gang_id: str) -> None:
        """The gang is gone; what is noted of it later has its id for a name."""
        self._known.pop(gang_id, None)

    def _remember(self, decision: Act) -> None:
        known = _Known(decision.gang, decision.attempt, decision.trace_id)
        self._known[decision.gang_id] = known
        self._known.move_to_end(decision.gang_id)
        if len(self._known) > GANGS_MAX:
            self._known.popitem(last=False)

    def _name(self, gang_id: str) -> str:
        known = self._known.get(gang_id)
        return known.gang if known is not None else gang_id


def _cause(cycle: Cycle | None) -> dict[str, object]:
    """The records that were known when it was decided: the newest of each log."""
    if cycle is None:
        return {}
    return {"cluster_seq": cycle.cluster_seq, "outcomes_seq": cycle.outcomes_seq}
