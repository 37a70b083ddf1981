"""Events of attempts' root spans: repairs, holds, pauses and deadlines that begin and end, and
evictions for the gang.

Events of a gang without an open attempt wait for the next one. All tables are bounded.
"""

from collections import OrderedDict
from typing import Final, TypeAlias, assert_never

from shared.contracts.decisions import EvictionDecision, NoteClosed, NoteOpened
from shared.telemetry.tracing import Attributes, Event

#: Events per attempt; further ones are dropped.
EVENTS_MAX: Final = 32
#: Gangs with events that wait for an attempt; beyond that, the oldest is forgotten.
GANGS_MAX: Final = 4_096
_MESSAGE_CHARACTERS_MAX: Final = 256

EventRecord: TypeAlias = NoteOpened | NoteClosed | EvictionDecision

HOLD: Final = "hold"


def event_of(record: EventRecord) -> Event | None:
    """A span event for a record of a gang; None: no event, or the record has spans of its own."""
    more: Attributes = {}
    match record:
        case NoteOpened(kind="release") | NoteClosed(kind="release"):
            return None
        case EvictionDecision(via="delete"):
            return None
        case EvictionDecision():
            name, at_ms, message = "eviction decided", record.cycle.now_ms, record.why
            more = {"victims": len(record.victims)}
        case NoteOpened():
            name, at_ms, message = f"{record.kind} begun", record.at_ms, record.message
            more = {"until_ms": record.until_ms, "node": record.node}
        case NoteClosed():
            name, at_ms, message = f"{record.kind} ended", record.at_ms, record.message
        case _:
            assert_never(record)
    values = {"reason": record.reason, "message": message[:_MESSAGE_CHARACTERS_MAX], **more}
    return Event(name, at_ms, {key: value for key, value in values.items() if value})


class PendingEvents:
    """Events of gangs that have no open attempt, until the next one takes them."""

    def __init__(self) -> None:
        self._events: OrderedDict[str, list[Event]] = OrderedDict()

    def add(self, gang_id: str, event: Event) -> None:
        """Keep an event; the gang's oldest is dropped when there are too many."""
        events = self._events.setdefault(gang_id, [])
        events.append(event)
        del events[:-EVENTS_MAX]
        self._events.move_to_end(gang_id)
        if len(self._events) > GANGS_MAX:
            self._events.popitem(last=False)

    def take(self, gang_id: str, *, with_holds: bool) -> list[Event]:
        """Remove and return the gang's events. Without `with_holds` the attempt replaces no lost
        members: holds were about pods that never returned, and their events are dropped.
        """
        events = self._events.pop(gang_id, [])
        return [event for event in events if with_holds or not event.name.startswith(HOLD)]

    def forget(self, gang_id: str) -> None:
        """Drop the events of a gang that is gone."""
        self._events.pop(gang_id, None)
