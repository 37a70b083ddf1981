"""Metrics under Volcano's names, so that its users' dashboards and alerts continue working.

They are in the same registry as Tutti's own. Series by job or queue are computed when a client
reads the metrics, from a bounded number of rows: a job that is gone has no series.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice
from typing import Final, NamedTuple, TypeAlias

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import (
    GaugeMetricFamily,
    HistogramMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from shared.telemetry.metrics import Metrics

_PREFIX: Final = "volcano_"

#: Limit of the series of one metric: a Prometheus server holds millions in total, and reads them
#: every few seconds.
SERIES_MAX: Final = 1_000

Row: TypeAlias = tuple[tuple[str, ...], float]
"""The labels' values, and the value."""


class Column(NamedTuple):
    """One metric with labels.

    Attributes:
        name: Volcano's name without its prefix.
        text: Its help text.
        labels: Their names.
        counts: Whether it only grows. (Volcano's counters lack the ending `_total` that the format
            wants of one, so they are exposed without a type.)
    """

    name: str
    text: str
    labels: tuple[str, ...]
    counts: bool = False


class VolcanoMetrics:
    """Volcano's metrics of one service."""

    def __init__(self, metrics: Metrics) -> None:
        self._registry = metrics.registry

    def histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        """A histogram without labels."""
        return Histogram(f"{_PREFIX}{name}", text, buckets=buckets, registry=self._registry)

    def gauge(self, name: str, text: str) -> Gauge:
        """A gauge without labels."""
        return Gauge(f"{_PREFIX}{name}", text, registry=self._registry)

    def counters(
        self, name: str, text: str, label: str, values: Iterable[str]
    ) -> dict[str, Counter]:
        """Counters by one label with few values, which all exist from the start."""
        parent = Counter(f"{_PREFIX}{name}", text, [label], registry=self._registry)
        return {value: parent.labels(value) for value in values}

    def table(self, columns: Iterable[Column], rows: Callable[[str], Iterable[Row]]) -> None:
        """Register metrics whose series are computed when a client reads them: `rows` is called
        with a column's name. The first `SERIES_MAX` are shown; of rows with equal labels, the last.
        """
        self._registry.register(_Table(tuple(columns), rows))


class Latencies(Collector):
    """One histogram by one label, which takes a thousand equal values in one call."""

    def __init__(
        self, metrics: Metrics, name: str, text: str, label: str, buckets: tuple[float, ...]
    ) -> None:
        self._name = f"{_PREFIX}{name}"
        self._text = text
        self._label = label
        self._bounds = buckets
        #: By the label's value: number of amounts in each bucket, and last of those beyond all.
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}
        metrics.registry.register(self)

    def observe(self, value: str, amount: float, times: int = 1) -> None:
        """Add an amount that was observed `times` times, under the label's value."""
        counts = self._counts.get(value)
        if counts is None:
            counts = self._counts[value] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, amount)] += times
        self._sums[value] = self._sums.get(value, 0.0) + amount * times

    @override
    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=[self._label])
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for value, counts in self._counts.items():
            so_far = list(accumulate(counts))
            buckets = list(zip(names, so_far, strict=True))
            family.add_metric([value], buckets, self._sums[value])
        yield family


class _Table(Collector):
    def __init__(self, columns: tuple[Column, ...], rows: Callable[[str], Iterable[Row]]) -> None:
        self._columns = columns
        self._rows = rows

    @override
    def collect(self) -> Iterator[Metric]:
        for column in self._columns:
            kind = UnknownMetricFamily if column.counts else GaugeMetricFamily
            family = kind(f"{_PREFIX}{column.name}", column.text, labels=column.labels)
            # One value for each set of labels: a repeated series would make the answer invalid.
            for labels, value in islice(dict(self._rows(column.name)).items(), SERIES_MAX):
                family.add_metric(labels, value)
            yield family
