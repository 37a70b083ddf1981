"""Instants and durations in messages to users."""

from datetime import UTC, datetime
from typing import Final

#: The last instant that a date can have: gangs that run for decades may wait for each other.
_LAST_S: Final = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())


def in_words(at_ms: int) -> str:
    """An instant, as in "2026-11-30 14:20:05 UTC"."""
    return datetime.fromtimestamp(min(at_ms // 1_000, _LAST_S), UTC).strftime(
        "%Y-%m-%d %H:%M:%S UTC"
    )


def duration(lasts_ms: int) -> str:
    """A duration in whole seconds, as in "1h30m" or "45s"."""
    seconds = lasts_ms // 1_000
    parts = ((seconds // 3_600, "h"), (seconds % 3_600 // 60, "m"), (seconds % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
