"""A lease in the bucket LEASES: it selects the process that should try to write. Safety comes from
the fence, never from the lease.

The holder renews its key by compare-and-swap, so that a holder that slept cannot renew what another
process has taken. A standby subscribes to the key's own subject: it receives each renewal, and
measures with its own clock for how long none came. It takes the lease

* at once, when the holder releases it;
* a second after the last renewal, when the holder's process is gone: nothing subscribes to the
  holder's subject any more, and the server answers so without delay;
* `PATIENCE_S` after the last renewal, when the process exists and does not renew: it hangs, or its
  machine is unreachable. A machine that is only overloaded renews sooner;
* at once, when the holder reports that it cannot do its work, and this process can.

`LeaseThread` keeps a lease in a thread of its own, on a connection of its own. While a planner
computes or a watcher decodes a large list, the event loop does not run, and a renewal that waits
for the loop comes too late. The thread renews on time. It stops when the process makes no progress
(`STALLED_S`), so that a hung process loses the lease. A stopped or killed process does not renew,
because its thread has stopped, too.
"""

import asyncio
import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from shared.bus.connection import Bus, Message
from shared.bus.errors import ApiRefused, BusError, NoAnswer, NoResponder
from shared.bus.jetstream_api import WRONG_LAST_SEQUENCE, StoredMessage
from shared.contracts import subjects
from shared.model.invariants import required

_STREAM: Final = f"KV_{subjects.LEASES}"
#: Between two renewals. Each is an append, and wakes the standby and the status controller: a large
#: part of what an idle installation does.
RENEWAL_S: Final = 0.5
#: After so long without a renewal a standby checks whether the holder's process exists.
OVERDUE_S: Final = 1.0
#: After so long without a renewal a standby takes the lease after any answer.
PATIENCE_S: Final = 2.5
#: For the answer to a renewal, which takes long on an overloaded machine.
_ANSWER_S: Final = 1.0
_PROBE_S: Final = 0.25
#: A standby whose timer is so late was suspended, or got hardly any CPU.
_SLEPT_S: Final = 0.25
#: A process whose event loop has not run for so long hangs.
STALLED_S: Final = 10.0
_BEAT_S: Final = 1.0
#: Timeout for the release of the lease, if the server does not answer.
_RELEASE_S: Final = 1.0
#: How a key-value bucket marks a deleted key.
_DELETED: Final = {"KV-Operation": "DEL"}
#: Last word of a renewal whose holder cannot do its work.
_UNABLE: Final = b" unable"

_log = logging.getLogger(__name__)

Connect = Callable[[], Awaitable[Bus]]


class _Taken(Exception):
    """Another process holds or has just taken the key."""


def _always() -> bool:
    return True


class Holding:
    """Whether this process holds a lease."""

    def __init__(self) -> None:
        self._held = asyncio.Event()
        self._on_change: Callable[[bool], None] | None = None

    @property
    def held(self) -> bool:
        """Whether this process held the lease at the last renewal."""
        return self._held.is_set()

    async def wait_held(self) -> None:
        """Wait until it is held."""
        await self._held.wait()

    def _note(self, *, held: bool) -> None:
        if held == self._held.is_set():
            return
        if held:
            self._held.set()
        else:
            self._held.clear()
        if self._on_change is not None:
            self._on_change(held)


class Lease(Holding):
    """Tries to hold one key for as long as `run` runs."""

    def __init__(
        self,
        bus: Bus,
        key: str,
        holder: str,
        *,
        able: Callable[[], bool] = _always,
        alive: Callable[[], bool] = _always,
    ) -> None:
        """Prepare; `run` acquires. `holder` is the name of this process, shown to operators.

        `able`: whether this process could do the holder's work now. A holder that is not able loses
        the lease to a standby that is. `alive`: whether this process makes progress. While it does
        not, nothing is renewed.
        """
        super().__init__()
        self._bus = bus
        self._key = key
        self._subject = subjects.lease(key)
        self._token = secrets.token_hex(6)
        #: Name, unique id, and the token of the subject to which the holder subscribes.
        self._value = f"{holder} {bus.writer_id} {self._token}".encode()
        self._able = able
        self._alive = alive
        #: Sequence of our own newest renewal; 0 exactly when we do not hold it.
        self._revision = 0
        self._news = asyncio.Event()
        self._released = False
        self._holder_unable = False
        self._running: asyncio.Task[Any] | None = None

    async def run(self, on_change: Callable[[bool], None]) -> None:
        """Acquire and renew until cancelled; `on_change` is called with True when the lease is
        acquired, and with False when it is lost.

        Problems of the bus do not end it: it retries. An overdue renewal loses the lease.
        """
        self._on_change = on_change
        self._running = asyncio.current_task()
        renewals = await self._bus.subscribe(self._subject, self._on_renewal)
        # This subject receives only probes of standbys, which test whether the subscription exists.
        own = await self._bus.subscribe(
            subjects.lease_holder(self._key, self._token), _ignore_message
        )
        try:
            while True:
                if self._revision:
                    await self._hold()
                else:
                    await self._stand_by()
        finally:
            self._running = None
            await renewals.close()
            await own.close()

    async def release(self) -> None:
        """End `run` and delete the lease's key, so that a standby takes over at once.

        Never fails: a lease that cannot be released is taken when it is overdue. `run` may be
        called again.
        """
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        revision, self._revision = self._revision, 0
        self._note(held=False)
        if revision:
            with contextlib.suppress(BusError, _Taken):
                await self._put(b"", revision, _DELETED)

    async def _hold(self) -> None:
        loop = asyncio.get_running_loop()
        renewed_at = loop.time()
        while True:
            await asyncio.sleep(RENEWAL_S)
            try:
                if self._alive():
                    sent_at = loop.time()
                    value = self._value if self._able() else self._value + _UNABLE
                    self._revision = await self._put(value, self._revision)
                    renewed_at = sent_at
            except _Taken:
                break  # or the bucket expired it: `_stand_by` finds out which
            except BusError as error:
                _log.info("lease %s: a renewal failed: %s", self._subject, error)
            if loop.time() - renewed_at > PATIENCE_S:
                _log.warning("lease %s: not renewed in time", self._subject)
                break
        self._revision = 0
        if not self._alive() or not await self._try(over_foreign=True):
            self._note(held=False)

    async def _stand_by(self) -> None:
        """Take it when it is free, or when its holder must not have it any longer."""
        while True:
            self._released = False
            self._news.clear()
            if await self._try():
                return
            if await self._may_force() and await self._try(force=True):
                return

    async def _may_force(self) -> bool:
        """Wait while the holder renews. False: the lease may be free; True: this process may take
        it from its holder.
        """
        loop = asyncio.get_running_loop()
        silent_from = loop.time()
        asked_at = silent_from - OVERDUE_S  # the first question comes at once
        while True:
            self._news.clear()
            if self._released:
                return False
            now = loop.time()
            if now - silent_from >= PATIENCE_S:
                return True
            if now - asked_at >= OVERDUE_S:
                asked_at = now
                if await self._holder_is_gone():
                    return True
            until = min(asked_at + OVERDUE_S, silent_from + PATIENCE_S)
            try:
                async with asyncio.timeout_at(until):
                    await self._news.wait()
            except TimeoutError:
                if loop.time() - until > _SLEPT_S:
                    # This process did not run, so renewals may have arrived that are not read yet.
                    silent_from = asked_at = loop.time()
                continue
            silent_from = asked_at = loop.time()
            if self._holder_unable and self._able():
                _log.warning(
                    "lease %s: its holder reports that it cannot work, taking over", self._subject
                )
                return True

    async def _holder_is_gone(self) -> bool:
        """Whether the holder's own subject has lost its subscriber. False also if that is
        unknown: a holder of an older version does not subscribe.
        """
        try:
            seen = await self._bus.get_last(_STREAM, self._subject)
            if seen is None:
                return False  # free: the next attempt takes it
            words = seen.payload.removesuffix(_UNABLE).split(b" ")
            if len(words) != 3 or not _names_holder(seen.payload):
                return False
            subject = subjects.lease_holder(self._key, words[2].decode())
            await self._bus.request(subject, b"", timeout_s=_PROBE_S)
        except NoResponder:
            return True
        except (NoAnswer, BusError):
            return False
        return False

    async def _try(self, *, force: bool = False, over_foreign: bool = False) -> bool:
        """Take the lease if it is free or ours; returns whether that succeeded.

        Args:
            force: Take it from its holder too, unless the holder renews at the same time.
            over_foreign: Replace a foreign message in its place too, since this process held the
                lease when the message came. Otherwise a foreign message counts as a holder.
        """
        if not self._alive():
            await asyncio.sleep(RENEWAL_S)
            return False
        try:
            seen = await self._bus.get_last(_STREAM, self._subject)
            foreign = seen is not None and not _names_holder(seen.payload)
            may = force or seen is None or self._free(seen) or (foreign and over_foreign)
            if not may:
                return False
            self._revision = await self._put(self._value, seen.seq if seen else 0)
        except (BusError, _Taken):
            return False
        self._note(held=True)
        return True

    def _free(self, seen: StoredMessage) -> bool:
        # Our own value: a renewal whose answer was lost.
        ours = seen.payload.removesuffix(_UNABLE) == self._value
        return ours or seen.headers.get("KV-Operation") == "DEL"

    async def _put(self, value: bytes, revision: int, headers: dict[str, str] | None = None) -> int:
        """Write the key if its newest revision is `revision` (0: it has none), and return the new
        revision.
        """
        answer = await self._bus.append(
            self._subject,
            value,
            timeout_s=_ANSWER_S,
            headers={"Nats-Expected-Last-Subject-Sequence": str(revision)} | (headers or {}),
        )
        error = answer.error
        if error is None:
            return answer.seq
        if error.err_code == WRONG_LAST_SEQUENCE:
            raise _Taken
        raise ApiRefused(self._subject, error.code, error.err_code, error.description)

    async def _on_renewal(self, message: Message) -> None:
        if message.headers.get("KV-Operation") == "DEL":
            self._released = True
        elif not _names_holder(message.payload):
            return
        self._holder_unable = message.payload.endswith(_UNABLE)
        self._news.set()


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


async def _ignore_message(message: Message) -> None:
    del message


def holder_of(renewal: Message) -> str:
    """Name of the holder in a message on a lease's subject; "" for a release, and for a foreign
    message.
    """
    if renewal.headers.get("KV-Operation") == "DEL" or not _names_holder(renewal.payload):
        return ""
    return renewal.payload.decode("ascii").partition(" ")[0]


def _names_holder(value: bytes) -> bool:
    """Whether a holder wrote a value. Foreign messages (ADR 0044) are empty, JSON, or a record in
    msgpack.
    """
    return value.isascii() and value[:1] not in {b"", b"{"}
