"""The line that each record leaves in the log."""

import logging

import msgspec
import pytest

from services.gang_planner import log_lines as module
from services.gang_planner.log_lines import DecisionLog
from shared.contracts.decisions import Act, GangStarted, Note
from shared.contracts.identity import gang_trace_id
from tests.services.gang_planner.test_release_spans import DECIDED, OPENED
from tests.services.gang_planner.test_tracing import closed, decision, note
from tests.support.golden import Golden

STARTED = GangStarted(gang_id="g", epoch=2, at_ms=1, attempt=1)


def lines(
    caplog: pytest.LogCaptureFixture,
    *records: Act | Note,
    to: DecisionLog | None = None,
    name: str = "",
) -> list[logging.LogRecord]:
    """What is written of these records, appended as 5, 6…"""
    caplog.set_level(logging.INFO, logger="services.gang_planner")
    caplog.clear()
    log = to or DecisionLog()
    for seq, record in enumerate(records, start=5):
        log.appended(seq, record, name)
    return caplog.records


def test_a_decision_is_one_line_with_gang_cause_and_trace(
    caplog: pytest.LogCaptureFixture,
    golden: Golden,
) -> None:
    (line,) = lines(caplog, decision())
    golden(line.getMessage())
    assert line.levelname == "INFO"
    expected = {
        "gang": "default/g",
        "gang_id": "g",
        "attempt": 1,
        "decision": 5,
        "trace_id": gang_trace_id("g", 1),
        "cluster_seq": 7,
        "outcomes_seq": 0,
    }
    assert expected.items() <= vars(line).items()


def test_what_takes_somebodys_pods_is_a_warning_that_says_why(
    caplog: pytest.LogCaptureFixture,
    golden: Golden,
) -> None:
    begun, removing = lines(caplog, OPENED, DECIDED)
    assert removing.levelname == begun.levelname == "WARNING"
    golden(removing.getMessage())
    golden(begun.getMessage())
    assert vars(begun)["why"] == "w-1: denied"


def test_notes_have_their_gangs_name_and_the_trace_of_its_decision(
    caplog: pytest.LogCaptureFixture,
    golden: Golden,
) -> None:
    _, begun, ended, started = lines(
        caplog, decision(), note("hold", at_ms=1), closed("hold", at_ms=2), STARTED
    )
    golden(*(line.getMessage() for line in (begun, ended, started)))
    assert {vars(line)["trace_id"] for line in (begun, ended, started)} == {gang_trace_id("g", 1)}


def test_a_gang_that_another_planner_decided_has_the_name_that_this_planner_knows(
    caplog: pytest.LogCaptureFixture,
    golden: Golden,
) -> None:
    (started,) = lines(caplog, STARTED, name="default/g")
    assert started.getMessage() == "started default/g, attempt 1"
    assert vars(started)["trace_id"] == gang_trace_id("g", 1)
    (unknown,) = lines(caplog, STARTED)
    golden(unknown.getMessage())


def test_what_is_remembered_is_bounded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(module, "GANGS_MAX", 1)
    log = DecisionLog()
    other = msgspec.structs.replace(DECIDED, gang_id="h", gang="default/h")
    *_, started = lines(caplog, decision(), other, STARTED, to=log)
    golden(started.getMessage())


def test_of_a_gang_that_is_gone_only_the_name_is_remembered(
    caplog: pytest.LogCaptureFixture,
    golden: Golden,
) -> None:
    log = DecisionLog()
    lines(caplog, msgspec.structs.replace(decision(), trace_id="of a job"), to=log)
    log.forget("g")
    log.forget("g")
    log.forget("h")
    ended, started = lines(caplog, closed("hold", at_ms=2), STARTED, to=log)
    golden(ended.getMessage())
    assert vars(started)["gang"] == "default/g"
    assert vars(started)["trace_id"] == vars(ended)["trace_id"] == gang_trace_id("g", 1)
