"""The fenced append: a log with one writer, proven by each append and by no clock.

Every append carries `Nats-Expected-Last-Sequence`, the last record this process has applied, and awaits its
acknowledgement. A writer that missed a record is refused: `Superseded`.
"""

from collections.abc import Sequence

from shared.bus.connection import Bus


class FencedLog:
    """The writer's end of CLUSTER or DECISIONS. One append at a time; a second concurrent call is a misuse."""

    def __init__(self, bus: Bus, stream: str, *, last_applied: int) -> None:
        """Begin behind record `last_applied`, the last one that this process has read and applied."""
        raise NotImplementedError

    @property
    def last_applied(self) -> int:
        """Sequence of the last record applied: read by us, or appended by us."""
        raise NotImplementedError

    def applied(self, seq: int) -> None:
        """Note that a record read from the stream has been applied; an echo of our own appends changes nothing."""
        raise NotImplementedError

    async def append(self, subject: str, payload: bytes) -> int:
        """Store one record behind the last one applied, and return its sequence (then applied).

        Raises:
            Superseded: Another writer appended. This log refuses every further append.
            BusUnavailable: Its fate is unknown after bounded attempts (about 10 s). Call again with the same
                arguments; nothing else is accepted until that append's fate is known. The same holds after a
                cancellation.
            AppendRefused: The server refused and stored nothing (its storage is full, say); may be tried again.
            MessageTooLarge: Nothing was sent.
        """
        raise NotImplementedError

    async def append_batch(self, records: Sequence[tuple[str, bytes]]) -> list[int]:
        """Store several records in order, and return their sequences.

        Up to a dozen go one append each, more as atomic batches of at most 1,000. Not atomic as a whole: after an
        exception a prefix may be stored. Errors and repetition as with `append`: a repetition goes on where it stopped.
        """
        raise NotImplementedError
