"""What a record says of its gang, and how much of it is kept until an attempt takes it."""

import pytest

from services.gang_planner import trace_events as module
from services.gang_planner.trace_events import EVENTS_MAX, PendingEvents, event_of
from shared.telemetry.tracing import Event
from tests.services.gang_planner.test_release_spans import CLOSED, DECIDED, OPENED
from tests.services.gang_planner.test_tracing import closed, note


def test_a_note_is_reported_with_its_text() -> None:
    event = event_of(note("repair", at_ms=5))
    assert event is not None
    assert (event.name, event.at_ms) == ("repair begun", 5)
    assert event.attributes == {"reason": "Lost", "until_ms": 30_005}
    assert event_of(closed("backoff", at_ms=7)) == Event("backoff ended", 7, {"reason": "Done"})


def test_a_release_has_its_own_span() -> None:
    assert [event_of(record) for record in (OPENED, DECIDED, CLOSED)] == [None, None, None]


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GANGS_MAX", 2)
    pending = PendingEvents()
    for number in range(EVENTS_MAX + 1):
        pending.add("a", Event("x", number))
    pending.add("b", Event("x", 1))
    kept = pending.take("a", with_holds=False)
    assert [event.at_ms for event in kept] == list(range(1, EVENTS_MAX + 1))
    for gang in "cde":
        pending.add(gang, Event("x", 1))
    assert [len(pending.take(gang, with_holds=False)) for gang in "bcde"] == [0, 0, 1, 1]
