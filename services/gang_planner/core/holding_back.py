"""Verdicts that are held back: that a gang of which nothing was said is starting.

A gang whose bindings go well runs a moment after it was decided, and then one verdict says all.
When thousands of pods are bound they are all decided first, and that moment lasts many seconds. So
Starting is told only when it has lasted 20 s (the controller writes it when it has lasted 30 s
more). Not held back is what corrects something: whoever was told that a gang waits (and why) would
act on it, so that gang's Starting is told at once; nor what wants a PodGroup made.
"""

from itertools import islice
from typing import Final, NamedTuple

import msgspec

from services.gang_planner.core.gangs import Gang, GangKey
from shared.contracts.identity import gang_trace_id
from shared.contracts.verdicts import Verdict

_STARTING_MS: Final = 20_000


class _Entry(NamedTuple):
    """One gang, and what is said should it go before anything else was."""

    due_ms: int
    key: GangKey
    gone: Verdict


class HeldBack:
    """Gangs of which it is not told yet that they are starting, by id.

    In the order in which it will be: all wait equally long.
    """

    def __init__(self) -> None:
        """None."""
        self._entries: dict[str, _Entry] = {}

    def holds(self, gang: Gang, last: Verdict | None, epoch: int, now_ms: int) -> bool:
        """Whether nothing is to be said of this starting gang yet; `last` is what was said last."""
        if last is not None and (last.why is not None or last.phase == "Starting"):
            return False
        entry = self._entries.get(gang.gang_id)
        if entry is None:
            entry = _Entry(now_ms + _STARTING_MS, gang.key, _gone(gang, epoch, now_ms))
            self._entries[gang.gang_id] = entry
        return entry.due_ms > now_ms

    def said(self, gang_id: str) -> None:
        """Something was said of the gang."""
        self._entries.pop(gang_id, None)

    def take_due(self, now_ms: int, limit: int) -> list[GangKey]:
        """Gangs, at most `limit`, that have been starting for long enough; they are let go."""
        due: list[tuple[str, GangKey]] = []
        for gang_id, entry in islice(self._entries.items(), limit):
            if entry.due_ms > now_ms:
                break
            due.append((gang_id, entry.key))
        for gang_id, _ in due:
            del self._entries[gang_id]
        return [key for _, key in due]

    def take_gone(self, gang_id: str, now_ms: int) -> Verdict | None:
        """What to say of a gang that is no more: it was decided, so its attempt has to end."""
        entry = self._entries.pop(gang_id, None)
        return None if entry is None else msgspec.structs.replace(entry.gone, at_ms=now_ms)

    def next_ms(self) -> int | None:
        """When the next one is due; None: none is held back."""
        return next((entry.due_ms for entry in self._entries.values()), None)

    def forget_pace(self, now_ms: int) -> None:
        """The clock was set back: all are due at this instant."""
        self._entries = {
            gang_id: entry._replace(due_ms=now_ms) for gang_id, entry in self._entries.items()
        }


def _gone(gang: Gang, epoch: int, now_ms: int) -> Verdict:
    group, owner = gang.group, gang.owner
    return Verdict(
        gang_id=gang.gang_id,
        epoch=epoch,
        at_ms=now_ms,
        dialect=group.dialect if group is not None else "",
        namespace=gang.namespace,
        name=gang.name,
        uid=group.uid if group is not None else "",
        owner_uid=owner.uid if group is None and owner is not None else "",
        phase="Gone",
        attempt=gang.history.attempt,
        trace_id=gang_trace_id(gang.gang_id, max(gang.history.attempt, 1)),
        first_seen_ms=gang.history.first_seen_ms,
    )
