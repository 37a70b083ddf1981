"""Pulling from durable consumers: an own loop with callbacks, in batches, that survives reconnections.

Two readers: `PullLoop` for work (explicit acknowledgement: binder, controllers), `LogReader` (in `log_reader`) for logs
whose records must arrive without a gap (planners, webhook).
"""

from collections.abc import Awaitable, Callable

from shared.bus.connection import Bus


class Delivery:
    """One message from a stream, with what the consumer says about it. Acknowledge exactly once, where asked to."""

    __slots__ = ()

    subject: str
    payload: bytes
    #: Sequence in the stream.
    seq: int
    #: How often it has been delivered, this time included.
    delivered: int
    #: How many more wait behind it.
    pending: int
    #: When the stream stored it.
    stored_ms: int

    async def ack(self) -> None:
        """It is done: never deliver it again."""
        raise NotImplementedError

    async def nak(self, delay_s: float = 0.0) -> None:
        """Not done: deliver it again, after `delay_s`."""
        raise NotImplementedError

    async def in_progress(self) -> None:
        """Still at it: the consumer's ack wait starts anew."""
        raise NotImplementedError

    async def term(self, reason: str) -> None:
        """Give it up for good; `reason` is for the server's advisory."""
        raise NotImplementedError


class PullLoop:
    """Pulls from one durable consumer for as long as `run` runs."""

    def __init__(
        self, bus: Bus, stream: str, consumer: str, *, batch: int = 256, batch_bytes: int = 8 << 20
    ) -> None:
        raise NotImplementedError

    async def run(self, handler: Callable[[list[Delivery]], Awaitable[None]]) -> None:
        """Give what has arrived to `handler`, batch after batch, until cancelled or `stop` was called.

        No more than `batch` messages are asked for beyond what the handler has taken, so that a slow handler is
        back-pressure. An exception of the handler ends the loop and passes through.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Ask for no more; `run` returns when the handler has taken what has arrived."""
        raise NotImplementedError
