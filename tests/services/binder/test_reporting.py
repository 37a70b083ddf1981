"""The binder's spans, built from the outcome's own instants."""

import logging

import msgspec
import pytest

from services.binder.reporting import Reporting
from shared.contracts.decisions import Act
from shared.contracts.outcomes import Member, Outcome
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracing import gang_span
from tests.services.binder.core.samples import make_decision, make_release
from tests.support.kept_spans import KeptSpans


@pytest.fixture
def tracer() -> KeptSpans:
    return KeptSpans()


@pytest.fixture
def reporting(tracer: KeptSpans) -> Reporting:
    return Reporting(Metrics("binder"), tracer)


def made(decision: Act, **given: object) -> Outcome:
    fields: dict[str, object] = {
        "gang_id": decision.gang_id,
        "decision_seq": 7,
        "epoch": decision.epoch,
        "binder": "binder-0",
        "delivered": 1,
        "received_ms": 1_000,
    }
    return Outcome(**{**fields, **given})  # type: ignore[arg-type]  # chosen by the test


def test_a_proof_and_the_binding_behind_it_are_two_spans_below_the_root(
    reporting: Reporting, tracer: KeptSpans
) -> None:
    decision = make_decision(3)
    instants = {"preflight_ms": 1_010, "first_bound_ms": 1_015, "last_bound_ms": 1_020}
    reporting.finished(decision, made(decision, bound=3, **instants), 1_025)
    proof, bind = tracer.spans
    assert (proof.name, proof.start_ms, proof.end_ms) == ("preflight", 1_000, 1_010)
    assert (bind.name, bind.start_ms, bind.end_ms) == ("bind", 1_010, 1_020)
    assert proof.parent == bind.parent == gang_span(decision.trace_id)
    assert proof.error == bind.error == ""
    assert bind.attributes["bound"] == 3


def test_a_refused_proof_says_what_the_first_refusal_was(
    reporting: Reporting, tracer: KeptSpans
) -> None:
    decision = make_decision(2)
    members = (
        Member(uid="u-0", node="n", result="skipped"),
        Member(uid="u-1", node="n", result="refused", code=403, reason="Forbidden", message="no"),
    )
    outcome = made(decision, reason="PreflightFailed", preflight_ms=1_010, members=members)
    reporting.finished(decision, outcome, 1_025)
    (proof,) = tracer.spans
    assert proof.error == "PreflightFailed: refused 403 Forbidden no"


def test_a_binding_that_missed_a_member_is_an_error_and_lasts_until_the_outcome(
    reporting: Reporting, tracer: KeptSpans
) -> None:
    decision = make_decision(2)
    member = Member(uid="u-1", node="n", result="gone", code=404)
    outcome = made(decision, bound=1, last_bound_ms=1_020, members=(member,))
    reporting.finished(decision, outcome, 3_000)
    (bind,) = tracer.spans
    assert (bind.end_ms, bind.error) == (3_000, "1 not bound: gone 404")


def test_a_decision_that_is_not_carried_out_is_an_error(
    reporting: Reporting, tracer: KeptSpans
) -> None:
    decision = make_decision(2)
    reporting.refused(made(decision, reason="StaleEpoch"), decision, 1_001)
    (bind,) = tracer.spans
    assert (bind.name, bind.error) == ("bind", "StaleEpoch")
    assert bind.parent == gang_span(decision.trace_id)


def test_a_record_that_cannot_be_read_has_no_trace(reporting: Reporting, tracer: KeptSpans) -> None:
    decision = make_decision(2)
    reporting.refused(made(decision, reason="Undecodable"), None, 1_001)
    assert not tracer.spans


def test_a_release_is_a_span_that_says_what_could_not_be_removed(
    reporting: Reporting, tracer: KeptSpans
) -> None:
    decision = make_release(2)
    members = (
        Member(uid="u-1", node="", result="refused", code=403, reason="Forbidden", message="no"),
    )
    reporting.finished(decision, made(decision, evicted=1, members=members), 1_025)
    (remove,) = tracer.spans
    assert (remove.name, remove.start_ms, remove.end_ms) == ("remove", 1_000, 1_025)
    assert remove.parent == gang_span(decision.trace_id)
    assert remove.attributes["reason"] == "BindingRefused"
    assert remove.error == "1 not removed: refused 403 Forbidden no"


def test_a_line_of_log_names_gang_decision_and_trace(
    reporting: Reporting, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="services.binder")
    decision = make_decision(3)
    reporting.finished(decision, made(decision, bound=3), 1_025)
    reporting.refused(made(decision, reason="StaleEpoch"), decision, 1_025)
    reporting.refused(made(decision, reason="Unreadable"), None, 1_025)
    known = {"gang": decision.gang, "attempt": 1, "trace_id": decision.trace_id}
    for line, more in zip(caplog.records, (known, known, {}), strict=True):
        assert ({"gang_id": decision.gang_id, "decision": 7} | more).items() <= vars(line).items()
    assert [line.levelname for line in caplog.records] == ["INFO", "WARNING", "WARNING"]


def test_the_span_of_an_eviction_has_no_words_about_a_victim(
    reporting: Reporting, tracer: KeptSpans, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the preemptor's trace, whose readers may not read the victims; the log has them."""
    eviction = msgspec.structs.replace(make_release(2), via="eviction", reason="Preempted")
    refused = Member(
        uid="u-0", node="", result="refused", code=403, reason="Secret", message="the-secret"
    )
    reporting.finished(eviction, made(eviction, evicted=1, members=(refused,)), 1_020)
    (span,) = tracer.spans
    assert span.error == "1 not removed: the API server refuses to evict a pod (status 403)"
    assert "the-secret" in caplog.text


def test_the_span_of_a_release_has_the_words_about_the_gangs_own_pod(
    reporting: Reporting, tracer: KeptSpans
) -> None:
    release = make_release(2)
    refused = Member(uid="u-0", node="", result="refused", code=403, message="not this one")
    reporting.finished(release, made(release, evicted=1, members=(refused,)), 1_020)
    (span,) = tracer.spans
    assert "not this one" in span.error
