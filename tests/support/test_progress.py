"""A long step is reported when it begins, while it lasts, and when it ends."""

import re
import threading

import pytest

from tests.support.progress import reported


def test_a_step_is_reported_until_it_is_done() -> None:
    lines: list[str] = []
    thrice = threading.Event()

    def write_line(line: str) -> None:
        lines.append(line)
        if len(lines) == 4:
            thrice.set()

    with reported("building it", "a moment", interval_s=0.001, write_line=write_line):
        assert thrice.wait(10)

    first, *during, last = lines
    assert first == "tests: building it (a moment)"
    assert len(during) >= 3
    for line in during:
        assert re.fullmatch(r"tests: building it: \d+ s so far \(a moment\)", line)
    assert re.fullmatch(r"tests: building it: done after \d+ s", last)


def test_a_step_that_fails_is_reported_as_failed() -> None:
    lines: list[str] = []

    with (
        pytest.raises(ZeroDivisionError),
        reported("dividing", "a moment", write_line=lines.append),
    ):
        raise ZeroDivisionError

    assert lines[-1].startswith("tests: dividing: failed after ")
