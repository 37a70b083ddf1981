"""Reports as JSON and YAML."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

from tutti.api.output import report_data


class Inner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="inner"):
    first_seen_ms: int = 0
    took_ms: int = 0
    names: tuple[str, ...] = ()


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    state: Literal["a", "b"] = "a"
    silent_s: float | None = None
    decisions_per_s: float = 0.5
    began_ms: int = 0
    since: datetime | None = None
    #: Keys are data: names of resources, labels.
    by_name: dict[str, Inner] = {}


class Renamed(msgspec.Struct, rename="camel"):
    resource_version: str = "1"


def test_names_are_in_camel_case_and_units_in_full() -> None:
    inner = Inner(first_seen_ms=1_790_000_000_250, took_ms=12)
    since = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
    found = Outer(silent_s=2.0, began_ms=1_790_000_000_000, since=since, by_name={"my_key": inner})
    assert report_data(found) == {
        "state": "a",
        "silentSeconds": 2.0,
        "decisionsPerSecond": 0.5,
        "began": "2026-09-21T14:13:20.000Z",
        "since": "2026-11-27T12:00:00Z",
        "byName": {
            "my_key": {"firstSeen": "2026-09-21T14:13:20.250Z", "tookMilliseconds": 12},
        },
    }
    assert report_data([Renamed()]) == [{"resourceVersion": "1"}]


def test_unknown_instants_are_left_out_and_defaults_where_the_struct_leaves_them_out() -> None:
    assert report_data(Inner()) == {}
    assert report_data(Outer()) == {
        "state": "a",
        "silentSeconds": None,
        "decisionsPerSecond": 0.5,
        "since": None,
        "byName": {},
    }
