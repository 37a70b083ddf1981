"""One span per release of a gang, in the trace of the attempt that it undoes.

It lasts from the note that begins the release to the one that ends it, with the reason, the message
and the number of victims. It is exported as attempts are (`tracing`): by the leader, and again
after a takeover, under the same id.
"""

from collections import OrderedDict, deque
from typing import Final

import msgspec

from shared.contracts.decisions import DecisionRecord, EvictionDecision, NoteClosed, NoteOpened
from shared.contracts.identity import gang_trace_id
from shared.telemetry.tracing import Tracer, gang_span

#: Open releases, and ended ones kept for a takeover.
RELEASES_MAX: Final = 4_096
RELEASE: Final = "release"


class _Release(msgspec.Struct, eq=False):
    """One release, until it has ended."""

    note: NoteOpened
    #: Replaced by its decision's; a gang may have no pod left to release.
    trace_id: str
    gang: str = ""
    victims: set[str] = set()
    end_ms: int = 0


class ReleaseSpans:
    """Follows releases through DECISIONS; exports them while this planner leads."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._leading = False
        self._open: OrderedDict[str, _Release] = OrderedDict()
        self._recent: deque[_Release] = deque(maxlen=RELEASES_MAX)

    def lead(self, since_ms: int) -> None:
        """Export releases from now on, and those that ended since `since_ms`."""
        self._leading = True
        for release in self._recent:
            if release.end_ms >= since_ms:
                self._export(release)
        self._recent.clear()

    def take(self, record: DecisionRecord) -> None:
        """Follow one record of the log."""
        match record:
            case NoteOpened(kind="release"):
                self.open(record)
            case EvictionDecision(via="delete"):
                release = self._open.get(record.gang_id)
                if release is not None:
                    release.gang = record.gang
                    release.trace_id = record.trace_id
                    release.victims.update(victim.uid for victim in record.victims)
            case NoteClosed(kind="release"):
                release = self._open.pop(record.gang_id, None)
                if release is not None:
                    release.end_ms = record.at_ms
                    if self._leading:
                        self._export(release)
                    else:
                        self._recent.append(release)
            case _:
                pass

    def open(self, note: NoteOpened) -> None:
        """Open a release that the log or a checkpoint contains."""
        trace_id = gang_trace_id(note.gang_id, max(note.attempt, 1))
        self._open[note.gang_id] = _Release(note, trace_id)
        if len(self._open) > RELEASES_MAX:
            self._open.popitem(last=False)

    def _export(self, release: _Release) -> None:
        note = release.note
        self._tracer.span(
            RELEASE,
            trace_id=release.trace_id,
            start_ms=note.at_ms,
            end_ms=release.end_ms,
            parent=gang_span(release.trace_id),
            attributes={
                "gang": release.gang,
                "gang.id": note.gang_id,
                "reason": note.reason,
                "message": note.message,
                "victims": len(release.victims),
            },
            error=note.reason,
        )
