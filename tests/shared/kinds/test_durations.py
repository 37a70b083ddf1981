"""Durations as Go writes them."""

import time

import pytest

from shared.kinds.durations import SECONDS_MAX, duration_ms, seconds_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1h", 3_600_000),
        ("1h30m5s", 5_405_000),
        ("1.5s", 1_500),
        (".5s", 500),
        ("300ms", 300),
        ("1ns", 1),
        ("+2m", 120_000),
        ("1µs1us", 1),
        ("999999999999h", 2**63 // 1_000_000),
    ],
)
def test_a_duration_becomes_milliseconds_and_never_less_than_it_is(
    text: str, expected: int
) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize(
    "text", ["", "5", "1 h", "-1s", "1d", "s", "1h 2m", ".s", "x1s", "1sx", "9" * 100 + "s"]
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_ms(text) is None


def test_a_text_that_is_nearly_a_duration_is_refused_in_no_time() -> None:
    """Found by the fuzzer: each run of digits was tried split in every way, and five ways for each
    of ten runs took a second.
    """
    began_s = time.thread_time()
    assert duration_ms("1" + "m99998" * 10) is None
    assert time.thread_time() - began_s < 0.1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5_400),
        ("4h30m", 16_200),
        ("1500ms", 2),
        ("3600", 3_600),
        ("9" * 30, SECONDS_MAX),
        ("9999999h", SECONDS_MAX),
        *((text, None) for text in ("", "0", "0s", "-5", "-5m", "1.5", "2d", "٣", "soon")),
    ],
)
def test_a_run_limit_is_a_duration_or_seconds(text: str, seconds: int | None) -> None:
    assert seconds_of(text) == seconds
