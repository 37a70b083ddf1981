"""Spans of time as kubectl writes them: `45s`, `3m20s`, `5h12m`, `2d3h`, `400d`."""

from datetime import datetime

_MINUTE_S = 60
_HOUR_S = 3_600
_DAY_S = 86_400
_YEAR_S = 365 * _DAY_S


def span(seconds: int) -> str:
    """A span in at most two units, the second one only where it is significant.

    -1 is `0s`, since the API server's clock may be a second ahead of ours; less is `<invalid>`.
    """
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE_S:
        return f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE_S:
        return _two(seconds, _MINUTE_S, "m", 1, "s")
    if seconds < 3 * _HOUR_S:
        return f"{seconds // _MINUTE_S}m"
    if seconds < 8 * _HOUR_S:
        return _two(seconds, _HOUR_S, "h", _MINUTE_S, "m")
    if seconds < 2 * _DAY_S:
        return f"{seconds // _HOUR_S}h"
    if seconds < 8 * _DAY_S:
        return _two(seconds, _DAY_S, "d", _HOUR_S, "h")
    if seconds < 2 * _YEAR_S:
        return f"{seconds // _DAY_S}d"
    if seconds < 8 * _YEAR_S:
        return _two(seconds, _YEAR_S, "y", _DAY_S, "d")
    return f"{seconds // _YEAR_S}y"


def since(instant: object, now: datetime) -> str:
    """How long ago an RFC 3339 instant was; `<unknown>` if it is not one."""
    if not isinstance(instant, str) or not instant:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(instant)
        return span(int((now - then).total_seconds()))
    except (ValueError, TypeError):
        # TypeError: without a zone it cannot be compared with anything.
        return "<unknown>"


def _two(seconds: int, unit_s: int, name: str, small_s: int, small: str) -> str:
    rest = seconds % unit_s // small_s
    return f"{seconds // unit_s}{name}{rest}{small}" if rest else f"{seconds // unit_s}{name}"
