from datetime import UTC, datetime

import pytest

from shared.kube.ages import since, span

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (601, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (2 * 86400, "2d"),
        (2 * 86400 + 3600, "2d1h"),
        (8 * 86400, "8d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_a_span_is_written_as_kubectl_writes_it(seconds: int, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize("instant", ["", None, "yesterday", "2026-11-21T11:00:00", 7])
def test_what_is_no_instant_is_unknown(instant: object) -> None:
    assert since(instant, NOW) == "<unknown>"


def test_an_instant_of_the_api_is_counted_from() -> None:
    assert since("2026-11-21T11:59:15Z", NOW) == "45s"
