"""Spans of time as kubectl writes them: `45s`, `3m20s`, `5h12m`, `2d3h`, `400d`."""

import math
from datetime import datetime
from typing import Final

_SECOND: Final = (1, "s")
_MINUTE: Final = (60, "m")
_HOUR: Final = (3_600, "h")
_DAY: Final = (86_400, "d")
_YEAR: Final = (365 * 86_400, "y")
#: Below each limit in seconds: the unit, and the second unit if it is significant.
_UNITS: Final = (
    (2 * 60, _SECOND, None),
    (10 * 60, _MINUTE, _SECOND),
    (3 * 3_600, _MINUTE, None),
    (8 * 3_600, _HOUR, _MINUTE),
    (2 * 86_400, _HOUR, None),
    (8 * 86_400, _DAY, _HOUR),
    (2 * 365 * 86_400, _DAY, None),
    (8 * 365 * 86_400, _YEAR, _DAY),
    (math.inf, _YEAR, None),
)


def span(seconds: int) -> str:
    """A span in at most two units, the second one only where it is significant.

    -1 is `0s`, since the API server's clock may be a second ahead of ours; less is `<invalid>`.
    """
    if seconds < -1:
        return "<invalid>"
    whole = max(seconds, 0)
    _, (unit_s, unit), second = next(row for row in _UNITS if whole < row[0])
    if second is None or not (rest := whole % unit_s // second[0]):
        return f"{whole // unit_s}{unit}"
    return f"{whole // unit_s}{unit}{rest}{second[1]}"


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
