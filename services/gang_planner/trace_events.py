"""What happens to a gang between its decisions, as events of its attempts' root spans: repairs,
holds, pauses and deadlines that begin and end, and evictions for it.

What happens while no attempt is open waits for the next one. Everything here is bounded.
"""

from collections import OrderedDict
from typing import Final, TypeAlias

from shared.contracts.decisions import EvictionDecision, NoteClosed, NoteOpened
from shared.telemetry.tracing import Attributes, Event

#: Of one attempt; what comes then is left out.
EVENTS_MAX: Final = 32
#: Gangs with events that wait for an attempt; the one that waits longest is forgotten.
GANGS_MAX: Final = 4_096
_MESSAGE_CHARACTERS_MAX: Final = 256

Happening: TypeAlias = NoteOpened | NoteClosed | EvictionDecision

HOLD: Final = "hold"


def event_of(record: Happening) -> Event | None:
    """A span event for a record of a gang; None: no event, or the record has spans of its own."""
    match record:
        case NoteOpened(kind="release") | NoteClosed(kind="release"):
            return None
        case NoteOpened():
            values: Attributes = {
                "reason": record.reason,
                "message": record.message[:_MESSAGE_CHARACTERS_MAX],
                "until_ms": record.until_ms,
                "node": record.node,
            }
            return Event(f"{record.kind} begun", record.at_ms, _said(values))
        case NoteClosed():
            values = {
                "reason": record.reason,
                "message": record.message[:_MESSAGE_CHARACTERS_MAX],
            }
            return Event(f"{record.kind} ended", record.at_ms, _said(values))
        case EvictionDecision(via="eviction"):
            values = {
                "reason": record.reason,
                "message": record.why[:_MESSAGE_CHARACTERS_MAX],
                "victims": len(record.victims),
            }
            return Event("eviction decided", record.cycle.now_ms, _said(values))
        case EvictionDecision():
            return None


class PendingEvents:
    """Events of gangs that have no open attempt, until the next one takes them."""

    def __init__(self) -> None:
        """None."""
        self._events: OrderedDict[str, list[Event]] = OrderedDict()

    def add(self, gang_id: str, event: Event) -> None:
        """Keep an event; the gang's oldest goes when there are too many."""
        events = self._events.setdefault(gang_id, [])
        events.append(event)
        del events[:-EVENTS_MAX]
        self._events.move_to_end(gang_id)
        if len(self._events) > GANGS_MAX:
            self._events.popitem(last=False)

    def take(self, gang_id: str, *, with_holds: bool) -> list[Event]:
        """The gang's events, which are forgotten here.

        Args:
            gang_id: The gang.
            with_holds: Whether the attempt that takes them makes a loss good. If not, what was
                said of holds is about pods that never came back.
        """
        events = self._events.pop(gang_id, [])
        return [event for event in events if with_holds or not event.name.startswith(HOLD)]

    def forget(self, gang_id: str) -> None:
        """The gang is no more."""
        self._events.pop(gang_id, None)


def _said(values: Attributes) -> Attributes:
    """Only what is there."""
    return {key: value for key, value in values.items() if value}
