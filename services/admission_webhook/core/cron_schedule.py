"""Whether a text is a schedule of a CronJob: five fields of cron, or a macro.

As Volcano's users know it: names of months and weekdays in any case, `?` for `*`, Sunday is 0 and
not 7, `@every` with a Go duration.
"""

import re
from typing import Final, NamedTuple

_MACROS: Final = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
)
_EVERY: Final = "@every "
_DURATION: Final = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+|[+-]?0")
_MONTHS: Final = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class _Field(NamedTuple):
    first: int
    last: int
    words: dict[str, int]


_FIELDS: Final = (
    _Field(0, 59, {}),
    _Field(0, 23, {}),
    _Field(1, 31, {}),
    _Field(1, 12, {name: index + 1 for index, name in enumerate(_MONTHS)}),
    _Field(0, 6, {name: index for index, name in enumerate(_DAYS)}),
)


def is_schedule(text: str) -> bool:
    """Whether it can be read as a schedule; blanks around it do not matter."""
    text = text.strip()
    if text.startswith("@"):
        every = text.startswith(_EVERY)
        return text in _MACROS or (every and bool(_DURATION.fullmatch(text[len(_EVERY) :])))
    fields = text.split()
    return len(fields) == len(_FIELDS) and all(
        _is_part(part, field)
        for text, field in zip(fields, _FIELDS, strict=True)
        for part in text.split(",")
    )


def _is_part(part: str, field: _Field) -> bool:
    """One of the alternatives of a field: `*`, `a`, `a-b`, each with `/step` or without."""
    span, stepped, step = part.partition("/")
    if stepped and not (_is_number(step) and int(step) > 0):
        return False
    if span in {"*", "?"}:
        return True
    begin, ranged, end = span.partition("-")
    first = _value(begin, field)
    last = _value(end, field) if ranged else first
    return first is not None and last is not None and field.first <= first <= last <= field.last


def _value(text: str, field: _Field) -> int | None:
    word = field.words.get(text.lower())
    return word if word is not None else int(text) if _is_number(text) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
