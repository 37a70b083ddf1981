"""Metrics with the same name in every service: `tutti_<name>{component="<service>"}`."""

import platform
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

PREFIX = "tutti_"
LABEL = "component"


class ComponentMetrics:
    """One service's metrics under names common to all services."""

    def __init__(self, component: str, registry: CollectorRegistry) -> None:
        self._component = component
        self._registry = registry

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge whose `value` is called whenever the metrics are read."""
        gauge = Gauge(PREFIX + name, text, [LABEL], registry=self._registry)
        gauge.labels(self._component).set_function(value)

    def totals(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        values: Callable[[], Mapping[tuple[str, ...], float]],
    ) -> None:
        """As `Metrics.totals`."""
        own = (self._component,)
        self._registry.register(
            Totals(
                PREFIX + name,
                text,
                (LABEL, *labels),
                lambda: {own + key: value for key, value in values().items()},
            )
        )

    def build_info(self, version: str) -> None:
        """A series that is always 1, with the version of Tutti and Python as labels."""
        labels = [LABEL, "version", "python"]
        info = Gauge(f"{PREFIX}build_info", "What runs; always 1.", labels, registry=self._registry)
        info.labels(self._component, version, platform.python_version()).set(1)


class Totals(Collector):
    """Counters whose `values` are called whenever the metrics are read."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        values: Callable[[], Mapping[tuple[str, ...], float]],
    ) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._values = values

    @override
    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, value in self._values().items():
            family.add_metric(labels, value)
        yield family
