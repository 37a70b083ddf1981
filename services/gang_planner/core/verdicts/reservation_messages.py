"""Sentences about reservations, and about the gangs that leave room for them."""

from typing import Final

from services.gang_planner.core.foresight.reservations import PAUSED
from services.gang_planner.core.lifecycle.run_limits import NOTICE, OVERRUN
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.instants import duration, in_words
from shared.contracts.decisions import NoteOpened
from shared.model.invariants import required

#: A shorter limit is no advice.
_LEAST_MS: Final = 60_000


def delay_in_words(bucket: Bucket, gang: Gang) -> str:
    """Whose start the gang might delay, and with which run limit it would not."""
    delay = required(bucket.would_delay, gang.full_name, "delays no reservation")
    namespace = delay.gang[1]
    owner = delay.title if namespace == gang.namespace else "a gang of another namespace"
    if not delay.from_ms:
        return f"would fit now, but would take capacity that is kept for {owner}"
    advice = ""
    if delay.most_ms >= _LEAST_MS:
        limit = duration(delay.most_ms // _LEAST_MS * _LEAST_MS)
        advice = f"; starts now if its run limit is at most {limit}"
    return f"would fit now, but would delay {owner}, reserved for {in_words(delay.from_ms)}{advice}"


def reserved(gang: Gang) -> NoteOpened | None:
    """The note by which capacity is kept for the gang; None: none is."""
    note = gang.history.notes.reservation
    return None if note is None or note.reason == PAUSED else note


def run_in_words(note: NoteOpened) -> str:
    """What becomes of a gang whose run limit is near or has passed; "": neither."""
    limit = duration(note.until_ms - note.since_ms)
    if note.reason == NOTICE:
        return f"Tutti evicts all its pods at {in_words(note.until_ms)}, when its run limit ends"
    if note.reason == OVERRUN:
        return f"it runs for longer than its limit of {limit}, which serves planning only"
    return ""
