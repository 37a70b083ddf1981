"""Metrics of one service: names, labels, and the figures for `tutti status`."""

from collections.abc import Iterable

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from shared.model.invariants import InvariantViolation
from shared.telemetry import metrics as module
from shared.telemetry.metrics import Metrics


def test_names_carry_the_service() -> None:
    metrics = Metrics("binder")
    metrics.counter("pods_bound_total", "Pods bound.").inc(3)
    assert b"tutti_binder_pods_bound_total 3.0" in metrics.exposition().body


def test_what_every_service_shows_has_one_name_and_the_service_as_a_label() -> None:
    metrics = Metrics("binder")
    metrics.component.watch("ready", "Whether it is.", lambda: 1)
    metrics.component.totals("calls_total", "Calls.", ("verb",), lambda: {("GET",): 2.0})
    metrics.component.build_info("1.2.3")
    text = metrics.exposition().body.decode()
    assert 'tutti_ready{component="binder"} 1.0' in text
    assert 'tutti_calls_total{component="binder",verb="GET"} 2.0' in text
    assert 'tutti_build_info{component="binder",python="3.' in text
    assert metrics.figures()["ready"] == 1.0
    assert metrics.figures()['calls_total{verb="GET"}'] == 2.0


def test_figures_are_counters_and_gauges_without_the_prefix() -> None:
    metrics = Metrics("gang_planner")
    metrics.counter("decisions_total", "Decisions.").inc(2)
    gangs = metrics.gauges("gangs", "Gangs by phase.", "phase")
    gangs("Pending").set(4)
    gangs("Running").set(1)
    metrics.histogram("cycle_seconds", "Cycles.", (0.1, 1.0)).observe(0.5)
    assert metrics.figures() == {
        "decisions_total": 2.0,
        'gangs{phase="Pending"}': 4.0,
        'gangs{phase="Running"}': 1.0,
    }


def test_a_labelled_child_is_made_once() -> None:
    outcomes = Metrics("binder").counters("outcomes_total", "Outcomes by result.", "result")
    assert outcomes("bound") is outcomes("bound")
    outcomes("bound").inc()
    outcomes("refused").inc(2)


def test_values_of_a_label_beyond_the_limit_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CHILDREN_MAX", 2)
    metrics = Metrics("s")
    counters = metrics.counters("refusals_total", "By reason, which a user chose.", "reason")
    for reason in ("a", "b", "c", "d", "a"):
        counters(reason).inc()
    figures = metrics.figures()
    assert figures['refusals_total{reason="a"}'] == 2
    assert figures['refusals_total{reason="other"}'] == 2
    assert len([name for name in figures if name.startswith("refusals_total")]) == 3


@pytest.mark.parametrize("name", ["Decisions_total", "decisions", "9_total"])
def test_a_counter_must_be_named_by_the_rules(name: str) -> None:
    with pytest.raises(InvariantViolation):
        Metrics("s").counter(name, "x")


def test_one_name_twice_is_an_error() -> None:
    metrics = Metrics("s")
    metrics.gauge("depth", "x")
    with pytest.raises(ValueError, match="Duplicated"):
        metrics.gauge("depth", "x")


def test_open_metrics_have_the_traces_of_single_observations() -> None:
    metrics = Metrics("binder")
    seconds = metrics.histograms("seconds", "By phase.", (0.1, 1.0), "phase")
    seconds("bound").observe(0.5, {"trace_id": "ab" * 16})
    plain = metrics.exposition()
    assert plain.content_type.startswith("text/plain; version=0.0.4")
    assert b"trace_id" not in plain.body
    asked = metrics.exposition("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert asked.content_type.startswith("application/openmetrics-text; version=1.0.0")
    (line,) = [one for one in asked.body.decode().splitlines() if "# {" in one]
    assert line.startswith('tutti_binder_seconds_bucket{le="1.0",phase="bound"} 1.0')
    assert f'# {{trace_id="{"ab" * 16}"}} 0.5' in line
    assert asked.body.endswith(b"# EOF\n")


def test_totals_are_asked_for_when_they_are_read() -> None:
    metrics = Metrics("binder")
    known: dict[tuple[str, ...], float] = {}
    metrics.totals("calls_total", "By verb.", ("verb",), lambda: known)
    assert metrics.figures() == {}
    known["GET",] = 2
    assert metrics.figures() == {'calls_total{verb="GET"}': 2.0}
    assert b'tutti_binder_calls_total{verb="GET"} 2.0' in metrics.exposition().body


def test_series_of_known_values_are_there_before_anything_happened() -> None:
    metrics = Metrics("binder")
    metrics.counters("decisions_total", "By reason.", "reason", ("Done",))
    metrics.gauges("gangs", "By phase.", "phase", ("Running",))
    metrics.histograms("seconds", "By phase.", (1.0,), "phase", ("bound",))
    assert metrics.figures() == {
        'decisions_total{reason="Done"}': 0.0,
        'gangs{phase="Running"}': 0.0,
    }
    assert b'tutti_binder_seconds_count{phase="bound"} 0.0' in metrics.exposition().body


def test_figures_do_not_collect_what_others_register() -> None:
    """A planner with 2,000 queues took longer over Volcano's series than `tutti status` waits."""
    metrics = Metrics("binder")
    metrics.counter("pods_bound_total", "Pods bound").inc()

    class Slow(Collector):
        def describe(self) -> list[Metric]:
            return []

        @override
        def collect(self) -> Iterable[Metric]:
            raise AssertionError("collected for figures")

    metrics.registry.register(Slow())
    assert metrics.figures() == {"pods_bound_total": 1.0}
