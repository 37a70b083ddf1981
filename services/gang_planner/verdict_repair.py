"""Finds verdicts that were overwritten by foreign messages (ADR 0047), so that they are published
again.

VERDICTS keeps one message of a subject: what the planner published last is gone then, and no client
that reads it would miss anything. The active planner is its only writer: whatever is stored there
and was not acknowledged to this process is read, now and then.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.contracts import subjects
from shared.contracts.foreign_messages import OnForeign, is_foreign

log = logging.getLogger(__name__)

#: Between two looks. Each asks for the stream's state, and reads nothing without a foreign message.
LOOK_S: Final = 5.0
#: Messages that are read in one look; the next one continues.
_READ_MAX: Final = 1024
_AT_ONCE: Final = 64
_KINDS: Final = (subjects.verdict(""), subjects.wanted(""))


class VerdictRepair:
    """Knows which messages of VERDICTS are this process's."""

    def __init__(self, bus: Bus, on_foreign: OnForeign) -> None:
        """Look over `bus`; `on_foreign` is called for each foreign message."""
        self._bus = bus
        self._on_foreign = on_foreign
        #: Up to where everything was looked at; None: this process does not write yet.
        self._looked_to: int | None = None
        #: Beyond it.
        self._own: set[int] = set()

    def begin(self, seq: int) -> None:
        """This process writes from here on, and has read all up to `seq`."""
        self._looked_to = seq

    def stored(self, seq: int) -> None:
        """A message of ours was acknowledged."""
        self._own.add(seq)

    async def run(self, tell_again: Callable[[list[str]], None]) -> None:
        """Look until cancelled; `tell_again` is called with the gangs whose verdict is gone."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                lost = await self._look()
            except BusError as error:
                log.info("cannot read VERDICTS, it is read again: %s", error)
                continue
            if lost:
                tell_again(lost)

    async def _look(self) -> list[str]:
        begin = self._looked_to
        if begin is None:
            return []
        last = (await self._bus.stream_info(subjects.VERDICTS)).last_seq
        foreign = [seq for seq in range(begin + 1, last + 1) if seq not in self._own]
        if len(foreign) > _READ_MAX:
            last = foreign[_READ_MAX - 1]
            del foreign[_READ_MAX:]
        lost: dict[str, None] = {}
        for first in range(0, len(foreign), _AT_ONCE):
            chunk = foreign[first : first + _AT_ONCE]
            for found in await asyncio.gather(
                *(self._bus.get_message(subjects.VERDICTS, seq) for seq in chunk)
            ):
                # Ours, unacknowledged still, or replaced by a newer one.
                if found is None or not is_foreign(subjects.VERDICTS, found.payload):
                    continue
                self._on_foreign(subjects.VERDICTS, found.seq, found.subject, found.payload)
                lost |= {
                    found.subject.removeprefix(kind): None
                    for kind in _KINDS
                    if found.subject.startswith(kind)
                }
        self._looked_to = last
        self._own = {seq for seq in self._own if seq > last}
        return list(lost)
