"""Durations as Go writes them ("1h30m", "300ms"), which is how Volcano's annotations give them."""

import re
from fractions import Fraction
from typing import Final

#: Longer ones are taken for this: beyond it no number of milliseconds fits 63 bits in nanoseconds.
_MS_MAX: Final = 2**63 // 1_000_000
_TEXT_CHARACTERS_MAX: Final = 64
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_MS: Final = {
    "ns": Fraction(1, 1_000_000),
    "us": Fraction(1, 1000),
    "µs": Fraction(1, 1000),
    "μs": Fraction(1, 1000),
    "ms": Fraction(1),
    "s": Fraction(1000),
    "m": Fraction(60_000),
    "h": Fraction(3_600_000),
}


def duration_ms(text: str) -> int | None:
    """Milliseconds of a duration, rounded up so that a positive one never becomes none.

    None when the text is no duration, or a negative one; "0" needs no unit.
    """
    text = text.removeprefix("+")
    if text == "0":
        return 0
    if not text or len(text) > _TEXT_CHARACTERS_MAX:
        return None
    total, end = Fraction(0), 0
    for part in _PART.finditer(text):
        if part.start() != end:
            return None
        total += Fraction(part[1]) * _MS[part[2]]
        end = part.end()
    if end != len(text):
        return None
    return min(_MS_MAX, -(-total.numerator // total.denominator))
