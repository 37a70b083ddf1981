"""How eagerly a log is read: each record as it comes, or what came during a pause in one go.

A reader that must act on a record at once reads at full speed: a standing pull has each record sent
as it is stored. A reader that only has to know it soon (a standby, the reader of its own echo)
spares itself and the server a wakeup per record: while records stream in it looks once per pause.
While nothing comes, one pull waits for one record, so that idling costs the same and the first
record after a silence comes at once.
"""

import asyncio


class ReadingPace:
    """One reader's pace; the reader's owner changes it at any time.

    A standing pull of an earlier `full` continues until the server has filled or forgotten it (30
    s): `rest` before `full` works at once, the other way round it takes that long.
    """

    def __init__(self) -> None:
        """Full speed."""
        self._full = True
        self._pause_s = 0.0
        self._changed = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether records are sent as they are stored."""
        return self._full

    def go_full(self) -> None:
        """From now on have each record at once; a pause in flight ends."""
        self._full = True
        self._changed.set()

    def rest(self, pause_s: float) -> None:
        """From now on look once per `pause_s` seconds while records stream in; a pause in flight
        ends.

        Without a pause, one look follows the other: that is the pace of a reader that catches up.
        """
        assert pause_s >= 0, pause_s
        self._full = False
        self._pause_s = pause_s
        self._changed.set()

    async def pause(self) -> None:
        """Wait for the pause, or until the pace changes."""
        self._changed.clear()
        if self._full or not self._pause_s:
            return
        try:
            async with asyncio.timeout(self._pause_s):
                await self._changed.wait()
        except TimeoutError:
            pass
