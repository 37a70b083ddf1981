"""Schedules of CronJobs: five cron fields or a macro, and the instants that they denote.

The syntax is Volcano's: names of months and weekdays in any case, `?` equals `*`, Sunday is 0 and
not 7, `a/step` continues to the field's maximum, `@every` takes a Go duration. If day of month and
weekday are both restricted, a day needs to match only one of them.

Schedules follow local time in their zone: an hour that daylight saving time skips has no instants,
an hour that it repeats has its instants twice.
"""

from datetime import datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple, TypeAlias

from shared.kinds.durations import MS_MAX, exact_ms

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_MONTHS: Final = (
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
)
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: The longest distance of two leap days: a schedule without an instant in this time has none.
_YEARS_MAX: Final = 8
#: Limits the time to parse a schedule, which grows with the square of its length.
_CHARACTERS_MAX: Final = 1000
_MINUTE: Final = timedelta(minutes=1)


class ScheduleError(ValueError):
    """A text is not a schedule; the message names the invalid part."""


class _Field(NamedTuple):
    title: str
    first: int
    last: int
    words: dict[str, int]


_FIELDS: Final = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, {name: index + 1 for index, name in enumerate(_MONTHS)}),
    _Field("weekday", 0, 6, {name: index for index, name in enumerate(_DAYS)}),
)


class Every(NamedTuple):
    """An `@every` schedule."""

    period: timedelta

    def next_after(self, at: datetime, zone: tzinfo) -> datetime | None:
        """One period after `at`, which is cut to a whole second."""
        del zone
        return at.replace(microsecond=0) + self.period


class Fields(NamedTuple):
    """A schedule of five cron fields: the values that each field matches."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    #: Day of month and weekday are both restricted: a day matches if one of them does.
    either_day: bool

    def next_after(self, at: datetime, zone: tzinfo) -> datetime | None:
        """The first minute after `at`, a datetime with a zone, whose local time in `zone` matches;
        None if the next years have none.
        """
        # Steps are in elapsed time; the zone only converts each instant to local time.
        instant = at.replace(second=0, microsecond=0) + _MINUTE
        last_year = at.year + _YEARS_MAX
        while True:
            local = instant.astimezone(zone)
            if local.year > last_year:
                return None
            if not self._is_day(local):
                midnight = datetime.combine(local.date() + timedelta(days=1), time(), zone)
                instant = midnight.astimezone(at.tzinfo)
            elif local.hour not in self.hours:
                instant += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                instant += _MINUTE
            else:
                return instant

    def _is_day(self, local: datetime) -> bool:
        if local.month not in self.months:
            return False
        of_month = local.day in self.days
        of_week = local.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either_day else of_month and of_week


Schedule: TypeAlias = Every | Fields


def parse(text: str) -> Schedule:
    """Parse a schedule; surrounding whitespace is ignored. Raises ScheduleError."""
    text = text.strip()
    if len(text) > _CHARACTERS_MAX:
        raise ScheduleError(f"{text[:50]!r}…: has more than {_CHARACTERS_MAX} characters")
    if text.startswith(_EVERY):
        return _every(text.removeprefix(_EVERY))
    if text.startswith("@"):
        if text not in _MACROS:
            raise ScheduleError(f"{text}: there is no such macro")
        text = _MACROS[text]
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ScheduleError(f"{text!r}: five fields are wanted, these are {len(parts)}")
    read = [_read(part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = read
    return Fields(minutes, hours, days, months, weekdays, not (any_day or any_weekday))


def is_schedule(text: str) -> bool:
    """Whether `parse` accepts the text."""
    try:
        parse(text)
    except ScheduleError:
        return False
    return True


def _every(text: str) -> Every:
    found_ms = exact_ms(text)
    if found_ms is None:
        raise ScheduleError(f"@every {text[:50]}: a duration such as 1h30m is wanted")
    if found_ms > MS_MAX:
        raise ScheduleError(f"@every {text}: that is longer than Go's 292 years")
    # A period below one second, also a negative one, becomes one second.
    return Every(timedelta(seconds=max(int(found_ms) // 1000, 1)))


def _read(text: str, field: _Field) -> tuple[frozenset[int], bool]:
    """The values of a field, and whether one of its alternatives is an unrestricted `*`."""
    values: set[int] = set()
    unrestricted = False
    for part in text.split(","):
        span, stepped, step_text = part.partition("/")
        step = 1
        if stepped:
            if not _is_number(step_text) or int(step_text) == 0:
                raise ScheduleError(f"{part}: the step of {field.title} must be a positive number")
            step = int(step_text)
        first, last = _span(span, field, stepped=bool(stepped))
        values.update(range(first, last + 1, step))
        unrestricted |= span in {"*", "?"} and step == 1
    return frozenset(values), unrestricted


def _span(span: str, field: _Field, *, stepped: bool) -> tuple[int, int]:
    """First and last value of one alternative."""
    if span in {"*", "?"}:
        return field.first, field.last
    begin, ranged, end = span.partition("-")
    first = _value(begin, field)
    last = _value(end, field) if ranged else field.last if stepped else first
    if last < first:
        raise ScheduleError(f"{span}: a range of {field.title} must not go backwards")
    return first, last


def _value(text: str, field: _Field) -> int:
    value = field.words.get(text.lower())
    if value is None and _is_number(text):
        value = int(text)
    if value is None or not field.first <= value <= field.last:
        raise ScheduleError(f"{text!r}: {field.title} goes from {field.first} to {field.last}")
    return value


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
