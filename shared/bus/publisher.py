"""Our pipelined publisher for OUTCOMES and VERDICTS: bounded in flight, and every error reaches its caller.

nats-py's `publish_async` never reports an error acknowledgement (its future hangs), hence this one.
"""

import asyncio

import msgspec

from shared.bus.connection import Bus


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """An acknowledgement: the message is in the stream."""

    stream: str
    seq: int


class Publisher:
    """Publishes to streams without waiting for each acknowledgement."""

    def __init__(self, bus: Bus, *, in_flight_max: int = 256, timeout_s: float = 1.0) -> None:
        raise NotImplementedError

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        expected_last_subject_sequence: int | None = None,
        ttl_s: int | None = None,
    ) -> asyncio.Future[Stored]:
        """Send one message as soon as fewer than `in_flight_max` are unanswered.

        Returns:
            A future that resolves with `Stored`, or fails: `WrongLastSequence` (somebody was first), `AppendRefused`,
            or `BusUnavailable` after five unanswered attempts. It must be awaited, or given a callback that reads it.
        """
        raise NotImplementedError

    async def flush(self) -> None:
        """Wait until every message sent so far is answered or has failed; the failures stay in their futures."""
        raise NotImplementedError
