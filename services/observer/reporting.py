"""An observer's metrics and log lines."""

import logging

from services.observer.core.recount import Recount
from shared.contracts.decisions import Act, GangDecision
from shared.model.invariants import required
from shared.telemetry.metrics import Metrics

log = logging.getLogger("services.observer")


class Reporting:
    """Metrics and log lines; no outcome depends on them."""

    def __init__(self, metrics: Metrics) -> None:
        self._decisions = metrics.counters(
            "decisions_total", "Decisions to bind, by the result of their recount.", "proof"
        )
        self._evictions = metrics.counters(
            "evictions_total", "Decisions to evict or release, by reason.", "reason"
        )
        self._gangs = metrics.gauge("gangs", "Gangs that have pods.")
        self._partial = metrics.gauge(
            "gangs_partial", "Gangs that the other scheduler has bound in part."
        )
        self._assumed = metrics.gauge("decisions_standing", "Decisions that are not answered yet.")

    def decided(self, seq: int, decision: Act, recount: Recount | None) -> None:
        if not isinstance(decision, GangDecision):
            self._evictions(decision.reason).inc()
            summary = f"would evict {len(decision.victims)} pods: {decision.reason}"
        else:
            checked = required(recount, f"recount of decision {seq}")
            self._decisions(checked.proof).inc()
            summary = f"would bind {len(decision.bindings)} pods, {checked.proof}"
            if checked.reason:
                summary += f": {checked.reason}"
        level = logging.ERROR if recount is not None and recount.proof == "failed" else logging.INFO
        log.log(
            level,
            "decision %d of %s: %s",
            seq,
            decision.gang,
            summary,
            extra={"gang_id": decision.gang_id, "trace_id": decision.trace_id},
        )

    def observe(self, counts: tuple[int, int], assumed: int) -> None:
        """Set the gauges: gangs with pods and those bound in part, and assumed decisions."""
        self._gangs.set(counts[0])
        self._partial.set(counts[1])
        self._assumed.set(assumed)
