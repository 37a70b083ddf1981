"""Requests to the API server, counted by verb and status.

The counts are in a dictionary, because each binding counts its request and the library's counters
cost five times as much.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from shared.telemetry.metrics import Metrics

#: The status of a request that had no answer.
NO_ANSWER: Final = "none"


class ApiCalls:
    """Counts what `shared.kube.transport.OnCall` reports."""

    def __init__(self, metrics: Metrics) -> None:
        """Register the metric, once per process."""
        self._counts: defaultdict[tuple[str, int], int] = defaultdict(int)
        metrics.component.totals(
            "api_requests_total",
            "Requests to the API server, by verb (WATCH: begun) and status (none: no answer).",
            ("verb", "code"),
            self._by_labels,
        )

    def __call__(self, verb: str, status: int) -> None:
        """Count one request; `status` is 0 without an answer."""
        self._counts[verb, status] += 1

    def _by_labels(self) -> Mapping[tuple[str, ...], float]:
        return {
            (verb, str(status) if status else NO_ANSWER): count
            for (verb, status), count in self._counts.items()
        }
