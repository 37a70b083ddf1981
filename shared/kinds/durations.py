"""Durations in Go's syntax ("1h30m", "300ms"), which Volcano uses everywhere."""

import re
from fractions import Fraction
from typing import Final

#: The longest duration in Go, which counts nanoseconds in 63 bits.
MS_MAX: Final = 2**63 // 1_000_000
#: About 68 years: what 31 bits hold.
SECONDS_MAX: Final = 2**31 - 1
_TEXT_CHARACTERS_MAX: Final = 64
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"([+-]?)((?:{_PART.pattern})+|0)")
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


def exact_ms(text: str) -> Fraction | None:
    """A duration in milliseconds, exactly; None if the text is not one. "0" needs no unit."""
    whole = _WHOLE.fullmatch(text) if len(text) <= _TEXT_CHARACTERS_MAX else None
    if whole is None:
        return None
    parts = (Fraction(number) * _MS[unit] for number, unit in _PART.findall(whole[2]))
    total = sum(parts, Fraction(0))
    return -total if whole[1] == "-" else total


def duration_ms(text: str) -> int | None:
    """A duration in milliseconds, rounded up so that a positive one never becomes 0.

    At most `MS_MAX`. None if the text is not a duration, or a negative one.
    """
    exact = exact_ms(text)
    if exact is None or exact < 0:
        return None
    return min(MS_MAX, -(-exact.numerator // exact.denominator))


def seconds_of(text: str) -> int | None:
    """A positive duration in whole seconds, rounded up: in Go's syntax, or a number of seconds. At
    most `SECONDS_MAX`; None if the text is none.
    """
    if text.isascii() and text.isdigit() and len(text) <= _TEXT_CHARACTERS_MAX:
        seconds = int(text)
    else:
        seconds = -(-(duration_ms(text) or 0) // 1_000)
    return min(seconds, SECONDS_MAX) or None
