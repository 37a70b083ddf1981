"""Requests to the API server by verb and status."""

from shared.telemetry.metrics import ApiCalls, Metrics


def test_requests_are_counted_by_verb_and_status_and_those_without_answer_apart() -> None:
    metrics = Metrics("binder")
    count = ApiCalls(metrics)
    for status in (201, 201, 409, 0):
        count("POST", status)
    count("WATCH", 200)
    assert metrics.figures() == {
        'api_requests_total{verb="POST",code="201"}': 2.0,
        'api_requests_total{verb="POST",code="409"}': 1.0,
        'api_requests_total{verb="POST",code="none"}': 1.0,
        'api_requests_total{verb="WATCH",code="200"}': 1.0,
    }
