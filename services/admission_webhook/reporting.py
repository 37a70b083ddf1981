"""The webhook's metrics."""

from typing import Final, Literal, get_args

from services.admission_webhook.adviser import Ending
from services.admission_webhook.group_lookup import LookupEnding
from shared.telemetry.metrics import Metrics

Result = Literal["allowed", "changed", "refused", "not ours", "malformed", "too many"]

#: Seconds. A review should take well below 0.1.
_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)


class Reporting:
    def __init__(self, metrics: Metrics) -> None:
        self._reviews = metrics.counters(
            "reviews_total", "Reviews answered, by result", "result", get_args(Result)
        )
        self._advice = metrics.counters(
            "advice_total",
            "Questions to the planner, by how they ended",
            "ending",
            get_args(Ending),
        )
        self._lookups = metrics.counters(
            "group_lookups_total",
            "Look-ups of PodGroups that users' pods name, by how they ended",
            "ending",
            get_args(LookupEnding),
        )
        self.review_seconds = metrics.histogram(
            "review_seconds", "From a whole request to its answer", _BUCKETS
        )
        self.registered = metrics.gauge(
            "webhook_registered", "1 while the API server is configured to send reviews here"
        )
        self._queues_known = metrics.gauge(
            "queues_known", "1 while the queues are known, so that they are checked"
        )
        self.certificate_ends = metrics.gauge(
            "certificate_expiry_timestamp_seconds", "When the certificate that is served ends"
        )
        self.reloads = metrics.counter("certificate_reloads_total", "Certificates reloaded")

    def reviewed(self, result: Result) -> None:
        self._reviews(result).inc()

    def advised(self, ending: Ending) -> None:
        self._advice(ending).inc()

    def looked_up(self, ending: LookupEnding) -> None:
        self._lookups(ending).inc()

    def queues_known(self, known: bool) -> None:
        self._queues_known.set(known)
