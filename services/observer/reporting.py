"""What an observer counts, and its lines of log."""

import logging

from services.observer.core.recount import Recount
from shared.contracts.decisions import Act, GangDecision
from shared.telemetry.metrics import Metrics

log = logging.getLogger("services.observer")


class Reporting:
    """The metrics, each made once."""

    def __init__(self, metrics: Metrics) -> None:
        """Register them."""
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
        self._standing = metrics.gauge("decisions_standing", "Decisions that are not answered yet.")

    def decided(self, seq: int, decision: Act, recount: Recount | None) -> None:
        """One decision was read."""
        if not isinstance(decision, GangDecision):
            self._evictions(decision.reason).inc()
            said = f"would evict {len(decision.victims)} pods: {decision.reason}"
        else:
            assert recount is not None, "a decision to bind is recounted"
            self._decisions(recount.proof).inc()
            said = f"would bind {len(decision.bindings)} pods, {recount.proof}"
            if recount.words:
                said += f": {recount.words}"
        level = logging.ERROR if recount is not None and recount.proof == "failed" else logging.INFO
        log.log(
            level,
            "decision %d of %s: %s",
            seq,
            decision.gang,
            said,
            extra={"gang_id": decision.gang_id, "trace_id": decision.trace_id},
        )

    def observe(self, counts: tuple[int, int], standing: int) -> None:
        """Take the gauges' values."""
        self._gangs.set(counts[0])
        self._partial.set(counts[1])
        self._standing.set(standing)
