"""Prometheus metrics of one service: `tutti_<service>_<name>`. Metrics of every service have one
name, and the service as a label (`component`).

A look-up by label costs three times an increment, so a caller requests its metrics at the start and
keeps them. A client that requests OpenMetrics also gets exemplars: trace ids of single
observations.
"""

import platform
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from shared.model.invariants import InvariantViolation

#: Of the metrics that have the same name in every service.
PREFIX: Final = "tutti_"
LABEL: Final = "component"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
#: Series per labelled metric: a label must be of low cardinality, never a gang or a pod. Values
#: beyond these are counted together: what users chose must not end a process.
CHILDREN_MAX: Final = 200
OTHER: Final = "other"

_Metric = TypeVar("_Metric", Counter, Gauge, Histogram)
Values = Callable[[], Mapping[tuple[str, ...], float]]
"""Called for the values of a counter, by those of its labels; the latter must be few, and the
former never decrease.
"""


class Exposition(NamedTuple):
    """The metrics as they are served."""

    body: bytes
    content_type: str


class Metrics:
    """One registry. Requesting a name twice is an error."""

    def __init__(self, service: str) -> None:
        self._prefix = f"tutti_{service.replace('-', '_')}_"
        # `_created` series would be a third of all series, and no dashboard reads them.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's
        #: The exposed metrics: our own, and those that other code registers.
        self.registry = CollectorRegistry()
        self._own = CollectorRegistry()
        self.registry.register(_Registered(self._own))
        ProcessCollector(registry=self.registry)
        #: The metrics of every service, with this service as a label.
        self.component = ComponentMetrics(service, self._own)

    def counter(self, name: str, text: str) -> Counter:
        """A counter; its name ends in `_total`."""
        return Counter(self._counter_name(name), text, registry=self._own)

    def counters(
        self, name: str, text: str, label: str, known: Iterable[str] = ()
    ) -> Callable[[str], Counter]:
        """Counters by one label: call with the label's value, cheaply.

        Series of `known` values exist from the start, at 0: Prometheus sees no increase in a series
        that appears with its first increment.
        """
        parent = Counter(self._counter_name(name), text, [label], registry=self._own)
        return _children(parent, known)

    def gauge(self, name: str, text: str) -> Gauge:
        return Gauge(self._full(name), text, registry=self._own)

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge whose `value` is called whenever the metrics are read."""
        self.gauge(name, text).set_function(value)

    def gauges(
        self, name: str, text: str, label: str, known: Iterable[str] = ()
    ) -> Callable[[str], Gauge]:
        """Gauges by one label, those of `known` values from the start."""
        parent = Gauge(self._full(name), text, [label], registry=self._own)
        return _children(parent, known)

    def histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        """A histogram; its unit is in its name (`_seconds`, `_bytes`)."""
        return Histogram(self._full(name), text, buckets=buckets, registry=self._own)

    def histograms(
        self,
        name: str,
        text: str,
        buckets: tuple[float, ...],
        label: str,
        known: Iterable[str] = (),
    ) -> Callable[[str], Histogram]:
        """Histograms by one label, those of `known` values from the start."""
        parent = Histogram(self._full(name), text, [label], buckets=buckets, registry=self._own)
        return _children(parent, known)

    def totals(self, name: str, text: str, labels: tuple[str, ...], values: Values) -> None:
        """Counters whose `values` are called whenever the metrics are read."""
        self._own.register(Totals(self._counter_name(name), text, labels, values))

    def figures(self) -> dict[str, float]:
        """Counters and gauges by name without the prefix, labels but `component` in braces: for
        `tutti status`.

        Volcano's series are not collected: those of 2,000 queues would delay the answer too long.
        """
        figures: dict[str, float] = {}
        for family in self._own.collect():
            if family.type not in {"counter", "gauge"}:
                continue
            for sample in family.samples:
                labels = ",".join(
                    f'{key}="{value}"' for key, value in sample.labels.items() if key != LABEL
                )
                name = sample.name.removeprefix(self._prefix).removeprefix(PREFIX)
                figures[f"{name}{{{labels}}}" if labels else name] = sample.value
        return figures

    def exposition(self, accept: str = "") -> Exposition:
        """Everything, in OpenMetrics where the Accept header `accept` asks for it, else in
        Prometheus' text format.
        """
        encode, content_type = choose_encoder(accept)
        return Exposition(encode(self.registry), content_type)

    def _counter_name(self, name: str) -> str:
        if not name.endswith("_total"):
            raise InvariantViolation(name, "a counter's name ends in _total")
        return self._full(name)

    def _full(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise InvariantViolation(name, "is not a metric's name")
        return self._prefix + name


def _children(parent: _Metric, known: Iterable[str]) -> Callable[[str], _Metric]:
    """The children of a labelled metric, each made once; those of `known` values now."""
    children: dict[str, _Metric] = {}

    def child(value: str) -> _Metric:
        known_child = children.get(value)
        if known_child is None:
            if len(children) >= CHILDREN_MAX and value != OTHER:
                return child(OTHER)
            known_child = children[value] = parent.labels(value)
        return known_child

    for value in known:
        child(value)
    return child


class _Registered(Collector):
    """All metrics of a registry, as one collector of another."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def describe(self) -> list[Metric]:
        """No names, since metrics are added after the registration."""
        return []

    @override
    def collect(self) -> Iterable[Metric]:
        return self._registry.collect()


class ComponentMetrics:
    """One service's metrics under names common to all: `tutti_<name>{component="<service>"}`."""

    def __init__(self, component: str, registry: CollectorRegistry) -> None:
        self._component = component
        self._registry = registry

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge whose `value` is called whenever the metrics are read."""
        gauge = Gauge(PREFIX + name, text, [LABEL], registry=self._registry)
        gauge.labels(self._component).set_function(value)

    def totals(self, name: str, text: str, labels: tuple[str, ...], values: Values) -> None:
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

    def __init__(self, name: str, text: str, labels: tuple[str, ...], values: Values) -> None:
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


#: The status of a request that had no answer.
NO_ANSWER: Final = "none"


class ApiCalls:
    """Counts what `shared.kube.transport.OnCall` reports: requests to the API server.

    The counts are in a dictionary, because each binding counts its request and the library's
    counters cost five times as much.
    """

    def __init__(self, metrics: Metrics) -> None:
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
