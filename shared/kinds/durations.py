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
#: Units of slurm-bridge's durations, and their seconds.
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_UNIT: Final = re.compile(r"([0-9]+)([smhdw])")
_UNITS_ONLY: Final = re.compile(rf"(?:{_UNIT.pattern})+")
_CLOCK: Final = re.compile(r"(?:([0-9]+)-)?([0-9]+(?::[0-9]+){0,2})")
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


def whole_seconds(text: str) -> int | None:
    """A duration in whole seconds, rounded up: in Go's syntax, or a number of seconds. At most
    `SECONDS_MAX`; None if the text is none, or a negative one.
    """
    if text.isascii() and text.isdigit() and len(text) <= _TEXT_CHARACTERS_MAX:
        return min(int(text), SECONDS_MAX)
    ms = duration_ms(text)
    return None if ms is None else min(-(-ms // 1_000), SECONDS_MAX)


def seconds_of(text: str) -> int | None:
    """A positive duration, as `whole_seconds`; None if the text is none."""
    return whole_seconds(text) or None


def slurm_seconds(text: str) -> int | None:
    """A positive time limit as slurm-bridge reads it, in seconds, rounded up to whole minutes: a
    number of minutes, Slurm's "minutes:seconds", "hours:minutes:seconds", "days-hours" with
    ":minutes" and ":seconds" or without, or numbers with the units s, m, h, d and w. At most
    `SECONDS_MAX`; None if the text is none of these, or 0, which is no limit in Slurm.
    """
    if len(text) > _TEXT_CHARACTERS_MAX:
        return None
    if _UNITS_ONLY.fullmatch(text):
        seconds = sum(int(number) * _UNITS[unit] for number, unit in _UNIT.findall(text))
    elif matched := _CLOCK.fullmatch(text):
        numbers = [int(part) for part in matched[2].split(":")]
        if matched[1] is None and len(numbers) < len("hms"):
            numbers.insert(0, 0)  # without days, minutes come first unless there are hours
        hours, minutes, rest = (*numbers, 0, 0)[:3]
        seconds = int(matched[1] or 0) * 86_400 + hours * 3_600 + minutes * 60 + rest
    else:
        return None
    return min(-(-seconds // 60) * 60, SECONDS_MAX) or None
