"""A lease in the bucket LEASES: a hint who should try to write. Safety is the fence's, never the
lease's.

The bucket forgets a key that is not renewed within its time to live. The holder renews by
compare-and-swap, so that a holder that slept through its expiry cannot renew what another has
taken. A standby listens to the key's own subject: it sees each renewal, and so knows without asking
when the last one is overdue; a release arrives the same way and wakes it at once.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from shared.bus.connection import Bus, Message, StoredMessage
from shared.bus.errors import ApiRefused, BusError
from shared.bus.jetstream_api import WRONG_LAST_SEQUENCE, PublishAnswer
from shared.contracts import subjects

_STREAM: Final = f"KV_{subjects.LEASES}"
#: Renewals within one time to live: two may be lost. Each is an append and wakes the standby.
RENEWALS_PER_TTL: Final = 3
OVERDUE_PAUSE_S: Final = 0.1
#: How a key-value bucket marks a deleted key.
_DELETED: Final = {"KV-Operation": "DEL"}

_log = logging.getLogger(__name__)
_decode_answer: Final = msgspec.json.Decoder(PublishAnswer).decode


class _Taken(Exception):
    """Somebody else holds or has just taken the key."""


class Lease:
    """Tries to hold one key for as long as `run` runs."""

    def __init__(self, bus: Bus, key: str, holder: str, *, ttl_s: float = 1.0) -> None:
        """`ttl_s` is the bucket's time to live (`shared.bus.setup.LEASE_TTL_S`)."""
        self._bus = bus
        self._subject = f"$KV.{subjects.LEASES}.{key}"
        #: For people, and unique to this process.
        self._value = f"{holder} {bus.writer_id}".encode()
        self._ttl_s = ttl_s
        self._pause_s = ttl_s / RENEWALS_PER_TTL
        #: Sequence of our own newest renewal; 0 exactly when we do not hold it.
        self._revision = 0
        self._held = asyncio.Event()
        self._on_change: Callable[[bool], None] | None = None
        self._news = asyncio.Event()
        self._released = False
        self._running: asyncio.Task[Any] | None = None

    @property
    def held(self) -> bool:
        """Whether we held it at the last renewal."""
        return self._held.is_set()

    async def wait_held(self) -> None:
        """Wait until it is held."""
        await self._held.wait()

    async def run(self, on_change: Callable[[bool], None]) -> None:
        """Acquire, renew, and call `on_change` with True when held and False when lost; until
        cancelled.

        A standby sees a release at once and a death after the time to live (and at most 0.25 s
        more). Problems of the bus are waited out; they end in False when a renewal is overdue.
        """
        self._on_change = on_change
        self._running = asyncio.current_task()
        subscription = await self._bus.subscribe(self._subject, self._on_renewal)
        try:
            while True:
                if self._revision:
                    await self._hold()
                else:
                    await self._stand_by()
        finally:
            self._running = None
            await subscription.close()

    async def release(self) -> None:
        """End `run`, and give the lease up, so that a standby takes over at once.

        Never fails: a lease that cannot be released expires. `run` may be called again.
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
        """Renew until it is lost."""
        loop = asyncio.get_running_loop()
        renewed_at = loop.time()
        while True:
            await asyncio.sleep(self._pause_s)
            try:
                sent_at = loop.time()
                self._revision = await self._put(self._value, self._revision)
                renewed_at = sent_at
            except _Taken:
                break  # or expired: standing by finds out which
            except BusError as error:
                if loop.time() - renewed_at > self._ttl_s:
                    _log.warning("lease %s: not renewed in time: %s", self._subject, error)
                    break
        self._revision = 0
        if not await self._try(unrenewed=True):
            self._note(held=False)

    async def _stand_by(self) -> None:
        """Try to take it whenever its last renewal is overdue or it was released."""
        patience_s = self._ttl_s
        unrenewed = False
        while True:
            self._released = False
            self._news.clear()
            if await self._try(unrenewed=unrenewed):
                return
            try:
                async with asyncio.timeout(patience_s):
                    await self._news.wait()
            except TimeoutError:
                # Overdue. The server may take a moment longer to forget the key: look often now.
                patience_s = OVERDUE_PAUSE_S
                unrenewed = True
                continue
            patience_s = self._ttl_s
            unrenewed = False
            if not self._released:
                await self._hear_renewals()

    async def _hear_renewals(self) -> None:
        """Wait as long as the holder goes on renewing; return when it is overdue or releases."""
        with contextlib.suppress(TimeoutError):
            while not self._released:
                self._news.clear()
                async with asyncio.timeout(self._ttl_s):
                    await self._news.wait()

    async def _try(self, *, unrenewed: bool) -> bool:
        """Take it if it is free, or ours already. Problems of the bus count as not free, and so
        does a stray in its place, unless the lease is known to be `unrenewed`.
        """
        try:
            seen = await self._bus.get_last(_STREAM, self._subject)
            stray = seen is not None and not _names_holder(seen.payload)
            if seen is not None and not self._free(seen) and not (stray and unrenewed):
                return False
            self._revision = await self._put(self._value, seen.seq if seen else 0)
        except (BusError, _Taken):
            return False
        self._note(held=True)
        return True

    def _free(self, seen: StoredMessage) -> bool:
        # Our own value: a renewal whose answer was lost.
        return seen.headers.get("KV-Operation") == "DEL" or seen.payload == self._value

    async def _put(self, value: bytes, revision: int, headers: dict[str, str] | None = None) -> int:
        """Write the key if its newest revision is `revision` (0: it has none); returns the new
        one.
        """
        answer = await self._bus.request(
            self._subject,
            value,
            timeout_s=self._pause_s,
            headers={"Nats-Expected-Last-Subject-Sequence": str(revision)} | (headers or {}),
        )
        decoded = _decode_answer(answer.payload)
        if decoded.error is None:
            return decoded.seq
        if decoded.error.err_code == WRONG_LAST_SEQUENCE:
            raise _Taken
        raise ApiRefused(
            self._subject, decoded.error.code, decoded.error.err_code, decoded.error.description
        )

    async def _on_renewal(self, message: Message) -> None:
        if message.headers.get("KV-Operation") == "DEL":
            self._released = True
        elif not _names_holder(message.payload):
            return
        self._news.set()

    def _note(self, *, held: bool) -> None:
        if held == self._held.is_set():
            return
        if held:
            self._held.set()
        else:
            self._held.clear()
        if self._on_change is not None:
            self._on_change(held)


def _names_holder(value: bytes) -> bool:
    """Whether a value is a holder's. What is stored without the right to write (ADR 0047) is empty,
    JSON, or a record in msgpack, and holds nothing.
    """
    return value.isascii() and value[:1] not in {b"", b"{"}
