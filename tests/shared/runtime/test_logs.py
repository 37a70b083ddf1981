"""Log lines: JSON or text, with the trace, never the same thing without end."""

import json
import logging

import pytest

from shared.runtime.logs import (
    LINES_MAX,
    TEMPLATES_MAX,
    TEXT_BYTES_MAX,
    WINDOW_S,
    JsonFormatter,
    RepetitionFilter,
    TextFormatter,
    configure,
)
from tests.support.manual_clock import ManualClock
from tests.support.reachable import largest


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    return logging.getLogger("a.b").makeRecord(
        "a.b", logging.WARNING, "file", 1, message, args, None, extra=extra
    )


def test_a_json_line_holds_message_service_and_fields() -> None:
    line = JsonFormatter("binder", "binder-0").format(record("bound %d", 8, gang="ns/g", n=2))
    assert "\n" not in line
    decoded = json.loads(line)
    assert decoded.pop("at").endswith("Z")
    assert decoded == {
        "level": "warning",
        "service": "binder",
        "instance": "binder-0",
        "logger": "a.b",
        "message": "bound 8",
        "gang": "ns/g",
        "n": 2,
    }


def test_an_exception_stays_in_its_line() -> None:
    error = ValueError("first\nsecond")
    made = record("failed")
    made.exc_info = (ValueError, error, None)
    line = JsonFormatter("s", "i").format(made)
    assert "\n" not in line
    assert "ValueError: first" in json.loads(line)["exception"]


def test_what_json_cannot_say_is_said_as_text() -> None:
    assert (
        json.loads(JsonFormatter("s", "i").format(record("x", what=ValueError("v"))))["what"] == "v"
    )


def test_a_text_line_ends_with_its_fields() -> None:
    assert TextFormatter().format(record("hello", gang="g")).endswith("WARNING a.b: hello gang=g")


def test_a_line_has_the_trace_that_it_names_and_none_if_that_is_empty() -> None:
    named = record("x", trace_id="e" * 32)
    assert json.loads(JsonFormatter("s", "i").format(named))["trace_id"] == "e" * 32
    assert "trace_id" not in json.loads(JsonFormatter("s", "i").format(record("x", trace_id="")))
    assert "trace_id" not in json.loads(JsonFormatter("s", "i").format(record("x")))


def test_a_repeated_message_is_cut_off_and_the_next_window_counts_what_was_cut() -> None:
    clock = ManualClock()
    limit = RepetitionFilter(clock)
    passed = sum(limit.filter(record("again %d", n)) for n in range(LINES_MAX + 30))
    assert passed == LINES_MAX
    clock.now_s += WINDOW_S
    after = record("again %d", 1)
    assert limit.filter(after)
    assert json.loads(JsonFormatter("s", "i").format(after))["suppressed"] == 30


def test_other_messages_are_not_cut_off_with_it() -> None:
    limit = RepetitionFilter(ManualClock())
    for n in range(LINES_MAX * 2):
        limit.filter(record("again", n))
    assert limit.filter(record("something else"))


def test_what_is_watched_for_repetition_is_bounded() -> None:
    limit = RepetitionFilter(ManualClock())
    for n in range(TEMPLATES_MAX + 100):
        limit.filter(record(f"message {n}"))
    assert largest(limit) == TEMPLATES_MAX


def test_configured_logging_writes_one_format_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        configure("binder", "binder-0", log_format="json", level="info")
        logging.getLogger("x").info("hello")
        logging.getLogger("x").debug("too quiet")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "hello"


def test_a_line_with_a_users_text_is_bounded() -> None:
    long = record("gang %s waits", "x" * 1_000_000)
    long.gang = "y" * 1_000_000
    for formatter in (JsonFormatter("s", "i"), TextFormatter()):
        line = formatter.format(long)
        assert len(line.encode()) < 3 * TEXT_BYTES_MAX
        assert "more characters)" in line
