"""Prometheus metrics of one service: `tutti_<service>_<name>`, children made once and kept."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """One registry. Ask for a metric once, at start, and keep what you get: asking twice is an error."""

    registry: CollectorRegistry

    def __init__(self, service: str) -> None:
        raise NotImplementedError

    def counter(self, name: str, text: str) -> Counter:
        """A counter; its name ends in `_total`."""
        raise NotImplementedError

    def counters(self, name: str, text: str, label: str) -> Callable[[str], Counter]:
        """Counters by one label: call with the label's value, cheaply."""
        raise NotImplementedError

    def gauge(self, name: str, text: str) -> Gauge:
        """A gauge."""
        raise NotImplementedError

    def gauges(self, name: str, text: str, label: str) -> Callable[[str], Gauge]:
        """Gauges by one label."""
        raise NotImplementedError

    def histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        """A histogram; its unit is in its name (`_seconds`, `_bytes`)."""
        raise NotImplementedError

    def figures(self) -> dict[str, float]:
        """Counters and gauges by name without the prefix, labels in braces: what `tutti status` shows."""
        raise NotImplementedError
