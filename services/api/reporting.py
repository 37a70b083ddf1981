"""The API service's metrics."""

from typing import Final

from shared.telemetry.metrics import Metrics

#: Seconds. A page of a thousand gangs takes some milliseconds.
_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)


class Reporting:
    """Metrics; no answer depends on them."""

    def __init__(self, metrics: Metrics) -> None:
        self._requests = metrics.counters(
            "requests_total", "Requests by the status of their answer.", "status"
        )
        self._request_seconds = metrics.histogram(
            "request_seconds", "From a request to its answer, without watches", _BUCKETS
        )
        self.slow_readers = metrics.counter(
            "slow_readers_total",
            "Watches that were disconnected because their clients did not read.",
        )
        self.watches = metrics.gauge("watches", "Open watches.")
        self.gangs = metrics.gauge("gangs", "Gangs that are served.")
        self.registered = metrics.gauge("registered", "1 while the API server sends requests here.")
        self.certificate_ends = metrics.gauge(
            "certificate_ends_seconds", "When the serving certificate ends, since the epoch."
        )

    def answered(self, status: int, seconds: float | None) -> None:
        """A request was answered after so many seconds; None: it was a watch."""
        self._requests(str(status)).inc()
        if seconds is not None:
            self._request_seconds.observe(seconds)
