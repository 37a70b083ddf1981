"""Which verdicts belong to a gang's trace: those that report how it came to run."""

import pytest

from services.controller.reporting import Reporting
from shared.contracts.verdicts import Condition, Verdict
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracing import gang_span
from tests.services.controller.core.samples import (
    START_MS,
    make_running,
    make_verdict,
    make_waiting,
)
from tests.support.kept_spans import KeptSpans

SCHEDULED = (Condition(type="Scheduled", status="True", since_ms=START_MS),)


def spans_of(verdict: Verdict) -> KeptSpans:
    tracer = KeptSpans()
    Reporting(Metrics("controller"), tracer).settled(verdict, 4, verdict.at_ms + 30)
    return tracer


def test_a_report_lasts_from_the_verdict_to_the_last_write() -> None:
    verdict = make_waiting()
    (report,) = spans_of(verdict).spans
    assert (report.name, report.start_ms, report.end_ms) == ("report", START_MS, START_MS + 30)
    assert report.parent == gang_span(verdict.trace_id)
    assert report.attributes["reason"] == "NotEnoughResources"


@pytest.mark.parametrize(
    "verdict",
    [
        pytest.param(make_verdict(phase="Starting", attempt=1), id="it was decided"),
        pytest.param(make_running(attempt=1, conditions=SCHEDULED), id="it began to run"),
        pytest.param(
            make_running(attempt=1, conditions=SCHEDULED, at_ms=START_MS + 60_000),
            id="its pods began to run within the minute",
        ),
        pytest.param(make_verdict(phase="Gone"), id="it went before it was decided"),
    ],
)
def test_how_a_gang_came_to_run_is_traced(verdict: Verdict) -> None:
    assert len(spans_of(verdict).spans) == 1


@pytest.mark.parametrize(
    "verdict",
    [
        pytest.param(
            make_running(attempt=1, conditions=SCHEDULED, at_ms=START_MS + 60_001),
            id="a member failed later",
        ),
        pytest.param(make_verdict(phase="Gone", attempt=1), id="it went after it had run"),
        pytest.param(make_running(conditions=SCHEDULED), id="no decision of ours"),
        pytest.param(make_waiting(trace_id=""), id="it has no trace"),
    ],
)
def test_what_becomes_of_it_later_is_not(verdict: Verdict) -> None:
    assert not spans_of(verdict).spans
