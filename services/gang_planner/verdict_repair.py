"""Finds verdicts that foreign messages have overwritten (ADR 0044), so that they are published
again, and detects that the stream was lost.

VERDICTS keeps one message per subject, so a foreign message replaces the planner's verdict, and no
reader could notice. The active planner is the only writer and does not follow the stream: every few
seconds it reads the messages that were stored and not acknowledged to this process.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from shared.bus.connection import Bus
from shared.bus.errors import BusError, StreamReplaced
from shared.contracts import subjects
from shared.contracts.foreign_messages import OnForeign, is_foreign

log = logging.getLogger(__name__)

#: Between two checks. Each requests the stream's state, and reads messages only if some are
#: foreign.
CHECK_PERIOD_S: Final = 5.0
#: Messages read in one check; the next check continues.
_READ_MAX: Final = 1024
_AT_ONCE: Final = 64
_KINDS: Final = (subjects.verdict(""), subjects.wanted(""), subjects.provisioning(""))


class VerdictRepair:
    """Remembers which messages of VERDICTS this process wrote."""

    def __init__(self, bus: Bus, on_foreign: OnForeign) -> None:
        """Read over `bus`; `on_foreign` is called for each foreign message."""
        self._bus = bus
        self._on_foreign = on_foreign
        #: Last sequence checked; None: this process does not write yet.
        self._checked_to: int | None = None
        #: Of the stream that holds these sequences; "": an older version created it.
        self._generation = ""
        #: Sequences after it that this process wrote.
        self._own: set[int] = set()

    def begin(self, seq: int, generation: str) -> None:
        """This process writes from now on, and has read every message up to `seq` of the stream of
        that generation.
        """
        self._checked_to, self._generation = seq, generation

    def stored(self, seq: int) -> None:
        """Record that a message of this process was acknowledged."""
        self._own.add(seq)

    async def run(self, republish: Callable[[list[str]], None]) -> None:
        """Check until cancelled; `republish` is called with gangs whose verdict was overwritten.

        Raises:
            StreamReplaced: All verdicts are lost; the next planner writes them again.
        """
        while True:
            await asyncio.sleep(CHECK_PERIOD_S)
            try:
                lost = await self._check()
            except StreamReplaced:
                raise
            except BusError as error:
                log.info("cannot read VERDICTS, it is read again: %s", error)
                continue
            if lost:
                republish(lost)

    async def _check(self) -> list[str]:
        begin = self._checked_to
        if begin is None:
            return []
        info = await self._bus.stream_info(subjects.VERDICTS)
        last = info.last_seq
        if self._generation not in {"", info.generation} or last < begin:
            raise StreamReplaced(subjects.VERDICTS)
        foreign = [seq for seq in range(begin + 1, last + 1) if seq not in self._own]
        if len(foreign) > _READ_MAX:
            last = foreign[_READ_MAX - 1]
            del foreign[_READ_MAX:]
        lost: dict[str, None] = {}
        for first in range(0, len(foreign), _AT_ONCE):
            chunk = foreign[first : first + _AT_ONCE]
            for stored in await asyncio.gather(
                *(self._bus.get_message(subjects.VERDICTS, seq) for seq in chunk)
            ):
                # Written by this process and not acknowledged yet, or replaced by a newer one.
                if stored is None or not is_foreign(subjects.VERDICTS, stored.payload):
                    continue
                self._on_foreign(subjects.VERDICTS, stored.seq, stored.subject, stored.payload)
                lost |= {
                    stored.subject.removeprefix(kind): None
                    for kind in _KINDS
                    if stored.subject.startswith(kind)
                }
        self._checked_to = last
        self._own = {seq for seq in self._own if seq > last}
        return list(lost)
