"""Keeps a lease in a thread of its own, on a connection of its own.

While a planner computes or a watcher decodes a large list, the event loop does not run, and a
renewal that waits for the loop comes too late. This thread renews on time. It stops when the
process makes no progress (`STALLED_S`), so that a hung process loses the lease. A stopped or killed
process does not renew, because its thread has stopped, too.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Final

from shared.bus.connection import Bus
from shared.bus.lease import Holding, Lease
from shared.model.invariants import required

#: A process whose event loop has not run for so long hangs.
STALLED_S: Final = 10.0
_BEAT_S: Final = 0.5
#: Timeout for the release of the lease, if the server does not answer.
_RELEASE_S: Final = 1.0

_log = logging.getLogger(__name__)

Connect = Callable[[], Awaitable[Bus]]


class LeaseThread(Holding):
    """A `Lease` with the same interface, driven by its own thread."""

    def __init__(self, connect: Connect, key: str, holder: str, able: Callable[[], bool]) -> None:
        """Prepare; `run` starts the thread, in which `connect` makes its connection. `able` (as in
        `Lease`) is called in the thread, so it must only read.
        """
        super().__init__()
        self._connect = connect
        self._key = key
        self._holder = holder
        self._able = able
        self._beat_s = time.monotonic()
        self._owner: asyncio.AbstractEventLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    async def run(self, on_change: Callable[[bool], None]) -> None:
        """Acquire, renew, and call `on_change` in the caller's loop; until cancelled.

        A cancellation leaves the thread to `release`.
        """
        self._on_change = on_change
        self._owner = asyncio.get_running_loop()
        self._beat_s = time.monotonic()
        self._thread = threading.Thread(target=self._main, name=f"lease {self._key}", daemon=True)
        self._thread.start()
        while self._thread.is_alive():
            self._beat_s = time.monotonic()
            await asyncio.sleep(_BEAT_S)
        if self._failure is not None:
            raise self._failure

    async def release(self) -> None:
        """Give the lease up and end the thread. Never fails, and never takes longer than a second:
        a lease that cannot be released is taken when it is overdue.
        """
        thread, loop, stop = self._thread, self._loop, self._stop
        if thread is None:
            return
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # the thread's loop is closed already
                loop.call_soon_threadsafe(stop.set)
        await asyncio.to_thread(thread.join, _RELEASE_S)
        self._note(held=False)

    def _main(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001 - raised again in `run`
            self._failure = error

    async def _live(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        bus = await self._connect()
        lease = Lease(bus, self._key, self._holder, able=self._able, alive=self._progresses)
        running = asyncio.create_task(lease.run(self._changed), name="lease")
        stopped = asyncio.create_task(self._stop.wait(), name="stopped")
        failed = asyncio.create_task(bus.wait_failed(), name="bus")
        try:
            await asyncio.wait([running, stopped, failed], return_when=asyncio.FIRST_COMPLETED)
            for task in (running, failed):
                if task.done():
                    task.result()
        finally:
            failed.cancel()
            stopped.cancel()
            await lease.release()
            await bus.close()

    def _progresses(self) -> bool:
        return time.monotonic() - self._beat_s < STALLED_S

    def _changed(self, held: bool) -> None:
        """Called in the thread, which `run` starts after it has set the owner."""
        owner = required(self._owner, "lease thread", "has an owner before it starts")
        with contextlib.suppress(RuntimeError):  # the process is ending
            owner.call_soon_threadsafe(lambda: self._note(held=held))
