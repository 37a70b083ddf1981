"""Series under Volcano's names: made when they are read, and bounded."""

from collections.abc import Iterable

import pytest

from shared.telemetry import volcano as module
from shared.telemetry.metrics import Metrics
from shared.telemetry.volcano import Column, Latencies, Row, VolcanoMetrics

ROWS: list[Row] = []


def rows(_: str) -> Iterable[Row]:
    return ROWS


@pytest.fixture
def metrics() -> Metrics:
    metrics = Metrics("gang-planner")
    columns = [Column("job_share", "Shares.", ("job",)), Column("retries", "R.", ("job",), True)]
    VolcanoMetrics(metrics).table(columns, rows)
    ROWS[:] = [(("a",), 1.0), (("b",), 2.0)]
    return metrics


def series(metrics: Metrics) -> list[str]:
    lines = metrics.exposition().body.decode().splitlines()
    return [line for line in lines if line.startswith("volcano_")]


def test_a_series_goes_with_its_row(metrics: Metrics) -> None:
    assert 'volcano_job_share{job="b"} 2.0' in series(metrics)
    del ROWS[1]
    assert series(metrics) == ['volcano_job_share{job="a"} 1.0', 'volcano_retries{job="a"} 1.0']


def test_two_rows_with_the_same_labels_are_one_series(metrics: Metrics) -> None:
    ROWS.append((("a",), 3.0))
    assert series(metrics).count('volcano_job_share{job="a"} 3.0') == 1
    assert 'volcano_job_share{job="a"} 1.0' not in series(metrics)


def test_no_metric_has_more_series_than_the_bound(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SERIES_MAX", 3)
    ROWS[:] = [((str(index),), 1.0) for index in range(10)]
    assert len(series(metrics)) == 2 * 3


def test_a_counter_keeps_volcanos_name_although_it_lacks_the_ending(metrics: Metrics) -> None:
    assert "# TYPE volcano_retries untyped" in metrics.exposition().body.decode()


def test_equal_latencies_are_taken_at_once_and_fall_into_buckets_up_to_their_bounds() -> None:
    metrics = Metrics("gang-planner")
    latencies = Latencies(metrics, "wait", "Waits.", "stage", (1, 10))
    for amount, times in [(0.5, 1), (1, 1_000), (7, 2), (11, 4)]:
        latencies.observe("Bound", amount, times)
    assert series(metrics) == [
        'volcano_wait_bucket{le="1.0",stage="Bound"} 1001.0',
        'volcano_wait_bucket{le="10.0",stage="Bound"} 1003.0',
        'volcano_wait_bucket{le="+Inf",stage="Bound"} 1007.0',
        'volcano_wait_count{stage="Bound"} 1007.0',
        'volcano_wait_sum{stage="Bound"} 1058.5',
    ]
