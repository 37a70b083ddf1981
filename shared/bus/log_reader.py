"""Reading a log without gaps: every record once, in order, from a chosen sequence on."""

from collections.abc import Awaitable, Callable

from shared.bus.connection import Bus
from shared.bus.pull import Delivery


class LogReader:
    """Follows a log through its durable consumer (acknowledgement: none), and heals what a reconnection lost."""

    def __init__(
        self, bus: Bus, stream: str, consumer: str, *, filtered: bool = False, batch: int = 1024
    ) -> None:
        """`filtered`: the consumer delivers some subjects only, so that stream sequences have holes."""
        raise NotImplementedError

    @property
    def last_seq(self) -> int:
        """Sequence of the last record given to the handler (or start - 1)."""
        raise NotImplementedError

    async def run(self, start: int, handler: Callable[[list[Delivery]], Awaitable[None]]) -> None:
        """Reset the consumer to sequence `start` and hand over records from there on, in order, each once.

        Raises:
            LogGap: Records before the next one are no longer in the stream: take a snapshot, then run again.
        """
        raise NotImplementedError

    async def wait_caught_up(self, seq: int) -> None:
        """Wait until every record up to `seq` has been handed over and handled."""
        raise NotImplementedError
