"""Schedules mean the instants that cron's users expect."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kinds.cron_schedule import ScheduleError, is_schedule, parse

T0 = datetime(2026, 3, 27, 12, 0, tzinfo=UTC)  # A Friday.
BERLIN = ZoneInfo("Europe/Berlin")


def due(text: str, *, since: datetime = T0, zone: str = "UTC", times: int = 3) -> list[str]:
    """The next instants, on the zone's clock."""
    where = ZoneInfo(zone)
    found = []
    at: datetime | None = since
    for _ in range(times):
        assert at is not None
        at = parse(text).next_after(at, where)
        found.append(at.astimezone(where).strftime("%a %d %b %Y %H:%M:%S") if at else "never")
    return found


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("* * * * *", "Fri 27 Mar 2026 12:01:00"),
        ("*/7 * * * *", "Fri 27 Mar 2026 12:07:00"),
        ("50/5 * * * *", "Fri 27 Mar 2026 12:50:00"),
        ("0-30/10 8-11 * * mon-fri", "Mon 30 Mar 2026 08:00:00"),
        ("0 0 ? * ?", "Sat 28 Mar 2026 00:00:00"),
        ("5,10 3 * * SUN", "Sun 29 Mar 2026 03:05:00"),
        ("0 0 13 * fri", "Fri 03 Apr 2026 00:00:00"),
        ("0 0 13 * *", "Mon 13 Apr 2026 00:00:00"),
        ("0 0 */31 * fri", "Wed 01 Apr 2026 00:00:00"),
        ("0 0 29 2 *", "Tue 29 Feb 2028 00:00:00"),
        ("@hourly", "Fri 27 Mar 2026 13:00:00"),
        ("  @weekly ", "Sun 29 Mar 2026 00:00:00"),
        ("@yearly", "Fri 01 Jan 2027 00:00:00"),
        ("@every 90s", "Fri 27 Mar 2026 12:01:30"),
        ("@every 1h0.5m", "Fri 27 Mar 2026 13:00:30"),
        ("@every 3ms", "Fri 27 Mar 2026 12:00:01"),
        ("@every -1h", "Fri 27 Mar 2026 12:00:01"),
    ],
)
def test_the_next_instant_is_the_first_whose_fields_all_match(text: str, first: str) -> None:
    assert due(text, times=1) == [first]


def test_a_day_that_never_comes_is_not_waited_for() -> None:
    assert parse("0 0 31 feb *").next_after(T0, UTC) is None


def test_an_hour_that_the_clocks_skip_is_skipped_and_one_they_repeat_counts_twice() -> None:
    """Berlin goes from 2:00 to 3:00 on 29 March and from 3:00 to 2:00 on 25 October."""
    spring = due("30 2 * * *", since=datetime(2026, 3, 28, tzinfo=UTC), zone="Europe/Berlin")
    autumn = due("30 2 * * *", since=datetime(2026, 10, 24, 12, tzinfo=UTC), zone="Europe/Berlin")

    assert spring[:2] == ["Sat 28 Mar 2026 02:30:00", "Mon 30 Mar 2026 02:30:00"]
    assert autumn[:2] == ["Sun 25 Oct 2026 02:30:00"] * 2


def test_midnight_is_the_zones() -> None:
    assert due("@daily", zone="Asia/Tokyo", times=1) == ["Sat 28 Mar 2026 00:00:00"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@reboot",
        "@every fortnight",
        "@every",
        "@every 9999999999h",
        f"@every {'9' * 400}h",
        "0 1 2 3 4 5",
        "1 2 3 4",
        "60 * * * *",
        "0 0 * * 7",
        "0 0 0 * *",
        "*/0 * * * *",
        "5-1 * * * *",
        "now and then it is",
        "1,,2 * * * *",
        "1 2 3 4 ٣",
    ],
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    assert not is_schedule(text)
    with pytest.raises(ScheduleError):
        parse(text)


@given(
    minute=st.sets(st.integers(0, 59), min_size=1, max_size=3),
    hour=st.sets(st.integers(0, 23), min_size=1, max_size=3),
    since=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),  # noqa: DTZ001 - made aware below
)
def test_instants_are_those_that_looking_at_every_minute_finds(
    minute: set[int], hour: set[int], since: datetime
) -> None:
    text = f"{','.join(map(str, minute))} {','.join(map(str, hour))} * * *"
    since = since.replace(tzinfo=UTC)

    found = [since]
    while len(found) < 4:
        following = parse(text).next_after(found[-1], BERLIN)
        assert following is not None
        found.append(following)

    for before, after in pairwise(found):
        at = before.replace(second=0, microsecond=0) + timedelta(minutes=1)
        while at < after:
            local = at.astimezone(BERLIN)
            assert local.minute not in minute or local.hour not in hour
            at += timedelta(minutes=1)
        local = after.astimezone(BERLIN)
        assert local.minute in minute
        assert local.hour in hour


@pytest.mark.parametrize("unit", ["1,", "1m", "1", "*/2,", "9" * 9])
def test_a_schedule_as_long_as_a_book_is_refused_in_a_line(unit: str) -> None:
    for text in (f"{unit * 100_000} * * * *", f"@every {unit * 100_000}", f"@{unit * 100_000}"):
        with pytest.raises(ScheduleError) as refused:
            parse(text)
        assert len(str(refused.value)) < 200
